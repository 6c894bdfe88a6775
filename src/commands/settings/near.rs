//! "Did you mean": the known word nearest to a mistyped one.

/// The candidate nearest to `word`, if at most a third of its letters differ.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let known = ["max_turns", "max_tokens", "idle"];
        assert_eq!(nearest("max_turn", known), Some("max_turns"));
        assert_eq!(nearest("max_tokesn", known), Some("max_tokens"));
        assert_eq!(nearest("colour", known), None);
    }
}
