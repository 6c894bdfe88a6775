//! The place of a file that is most like a text that is not in it: shown, never edited.

use std::fmt::Write as _;

/// Lines shown at most.
const SHOWN: usize = 30;
/// Characters of a line compared and shown at most.
const LINE: usize = 300;
/// Lines compared at most, so that a miss in a huge file takes no time worth mentioning.
const COMPARED: usize = 20_000;
/// Less alike than this, a place would only mislead.
const ALIKE: f64 = 0.5;

/// Sentences that show the nearest place of `text` to `wanted`, and what is likely wrong.
pub(super) fn place(text: &str, wanted: &[u8]) -> String {
    let wanted = String::from_utf8_lossy(wanted);
    let lines: Vec<String> = text.lines().map(cut).collect();
    let sought: Vec<String> = wanted.trim_matches('\n').lines().map(cut).collect();
    if wanted.contains('\u{fffd}') {
        return "It holds \u{fffd}, which stands for a byte that cannot be shown: choose a text without it.".to_owned();
    }
    if !sought.is_empty() && sought.iter().all(|line| is_numbered(line)) {
        return "The line numbers that read_file shows are not part of the file: leave them out.".to_owned();
    }
    let height = sought.len().clamp(1, SHOWN);
    let reach = lines.len().min(COMPARED / height);
    let best = (0..reach)
        .map(|first| (first, likeness(&lines[first..], &sought[..height.min(sought.len())])))
        // the first of equals
        .fold(None, |best: Option<(usize, f64)>, (first, alike)| match best {
            Some((_, before)) if before >= alike => best,
            Some(_) | None => Some((first, alike)),
        });
    let Some((first, _)) = best.filter(|(_, alike)| *alike >= ALIKE) else {
        let part = if reach < lines.len() { format!("the first {reach} lines") } else { "the file".to_owned() };
        return format!("Nothing in {part} is like it: read the file again.");
    };
    let shown = &lines[first..lines.len().min(first + height)];
    let mut sentences = String::new();
    let same = |a: &String, b: &String| a.split_whitespace().eq(b.split_whitespace());
    if shown.len() == sought.len() && shown.iter().zip(&sought).all(|(a, b)| same(a, b)) {
        sentences.push_str("Only the white space differs. ");
    }
    let _ = write!(sentences, "The nearest place is at line {}:", first + 1);
    for (offset, line) in shown.iter().enumerate() {
        let _ = write!(sentences, "\n{}\t{line}", first + offset + 1);
    }
    sentences
}

/// How alike the first lines of `lines` are to `sought`, from 0 to 1.
fn likeness(lines: &[String], sought: &[String]) -> f64 {
    let weight = |line: &String| f64::from(u32::try_from(line.trim().len()).unwrap_or(u32::MAX)) + 1.0;
    let (mut alike, mut all) = (0.0, 0.0);
    for (index, wanted) in sought.iter().enumerate() {
        all += weight(wanted);
        if let Some(line) = lines.get(index) {
            alike += weight(wanted) * strsim::sorensen_dice(line, wanted);
        }
    }
    if all > 0.0 { alike / all } else { 0.0 }
}

fn is_numbered(line: &str) -> bool {
    line.split_once('\t').is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn cut(line: &str) -> String {
    line.chars().take(LINE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likest_lines_are_shown_with_their_numbers() {
        let text = "fn one() {\n    1\n}\nfn two() {\n    let two = 2;\n    two\n}\n";
        assert_eq!(
            place(text, b"fn two() {\n    let tow = 2;\n"),
            "The nearest place is at line 4:\n4\tfn two() {\n5\t    let two = 2;"
        );
        assert!(place(text, b"fn two() {\n  let two = 2;").starts_with("Only the white space differs. "));
    }

    #[test]
    fn what_is_likely_wrong_is_said() {
        assert!(place("alpha\n", b"entirely other").starts_with("Nothing in the file is like it"));
        assert!(place("", b"x").starts_with("Nothing in the file is like it"));
        assert!(place("a\nb\n", b"1\ta\n2\tb").contains("line numbers"));
        assert!(place("caf\u{fffd}\n", "caf\u{fffd}".as_bytes()).contains("cannot be shown"));
        assert!(place("a\n", b"\n\n").starts_with("Nothing"));
    }
}
