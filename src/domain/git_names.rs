//! File names that git refuses, because some file systems treat them as its own directory (`core.protectNTFS`,
//! `core.protectHFS`; <https://git-scm.com/docs/git-config>).

use std::path::Path;

/// Characters that HFS+ ignores when it compares names.
const UNSEEN: [char; 16] = [
    '\u{200c}', '\u{200d}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
    '\u{206a}', '\u{206b}', '\u{206c}', '\u{206d}', '\u{206e}', '\u{206f}', '\u{feff}',
];

/// Whether some file system treats a file of this name as git's own directory.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    // to NTFS, a backslash separates directories, and a colon begins a stream name
    let name = name.split(['\\', ':']).next().unwrap_or_default();
    let seen: String = name.chars().filter(|letter| !UNSEEN.contains(letter)).collect();
    let plain = seen.trim_end_matches(['.', ' ']);
    plain.eq_ignore_ascii_case(".git") || plain.eq_ignore_ascii_case("git~1")
}

/// Whether a component of the path is such a name.
#[must_use]
pub fn in_path(path: &Path) -> bool {
    path.components().any(|part| is_reserved(&part.as_os_str().to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_some_system_takes_for_gits_own_is_known() {
        for name in [".git", ".GIT", "git~1", "GIT~1", ".git ", ".git.", ".git. .", ".git:x", ".git::$INDEX_ALLOCATION"]
        {
            assert!(is_reserved(name), "{name}");
        }
        assert!(is_reserved(".git\\x") && is_reserved(".g\u{200c}it"));
        for name in [".gitignore", ".github", "git", "git~2", "x.git", ".gitmodules", "", ".", "a:.git"] {
            assert!(!is_reserved(name), "{name}");
        }
        assert!(in_path(Path::new("sub/git~1/x")) && !in_path(Path::new("sub/.github/x")));
    }
}
