//! Content filters (Git LFS, git-crypt and their like): seen in attributes, and refused.
//!
//! They run programs, and a commit made without them would hold the wrong bytes.

use std::collections::BTreeSet;

/// Filters whose repositories hold other bytes than their files, also where they are not set up.
const ALWAYS: &[&str] = &["lfs", "git-crypt"];

/// The filter that a configuration key (`filter.lfs.clean`) is about.
pub(super) fn filter_of(key: &str) -> Option<&str> {
    let rest = key.strip_prefix("filter.")?;
    let (name, part) = rest.rsplit_once('.')?;
    matches!(part, "clean" | "smudge" | "process" | "required").then_some(name)
}

/// The first filter that an attributes file asks for and that would run here: one of `configured`, or a known one.
pub(super) fn filter_in(attributes: &[u8], configured: &BTreeSet<String>) -> Option<String> {
    let text = String::from_utf8_lossy(attributes);
    text.lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(str::split_whitespace)
        .filter_map(|word| word.strip_prefix("filter="))
        .find(|name| configured.contains(*name) || ALWAYS.contains(name))
        .map(str::to_owned)
}

/// The sentence that refuses a repository with such a filter.
pub(super) fn refusal(filter: &str) -> String {
    let what =
        if filter == "lfs" { "Git LFS (filter=lfs)".to_owned() } else { format!("the content filter `{filter}`") };
    format!("its .gitattributes ask for {what}, and tasks cannot yet work in repositories with content filters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_counts_where_it_is_set_up_or_known() {
        let configured = BTreeSet::from(["tidy".to_owned()]);
        assert_eq!(filter_in(b"*.bin filter=lfs diff=lfs -text", &configured).as_deref(), Some("lfs"));
        assert_eq!(filter_in(b"*.c filter=tidy", &configured).as_deref(), Some("tidy"));
        assert_eq!(filter_in(b"*.ipynb filter=nbstripout\n# *.x filter=lfs", &configured), None);
        assert_eq!(filter_in(b"* text=auto\n*.x -filter", &configured), None);
    }

    #[test]
    fn a_filters_name_may_hold_dots() {
        assert_eq!(filter_of("filter.a.b.clean"), Some("a.b"));
        assert_eq!(filter_of("filter.lfs.process"), Some("lfs"));
        assert_eq!(filter_of("user.name"), None);
    }
}
