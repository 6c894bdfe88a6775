//! Files under the root by name: ignore rules of the repository applied, `.git` never entered, links never followed.
//!
//! The order is that of the names, directory by directory. What cannot be entered or is neither a file nor a link
//! to a file inside is not named.

use std::{
    ffi::OsStr,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use ignore::WalkBuilder;

use super::root_directory::RootDirectory;
use crate::{
    domain::globs::{self, PathGlobs},
    ports::host::{Error, FileKind, Listed, Listing},
};

/// A file that was met.
pub(super) struct Met {
    /// Relative to the root; lossy where the name is not UTF-8.
    pub(super) path: String,
    /// It is a link to a file inside.
    pub(super) is_link: bool,
}

/// See [`crate::ports::host::Host::list`].
pub(super) fn list(root: &RootDirectory, listing: &Listing, stop: &AtomicBool) -> Result<Listed, Error> {
    let mut listed = Listed::default();
    for met in files(root, listing)? {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if listed.paths.len() == listing.limit {
            listed.more = true;
            break;
        }
        listed.paths.push(met.path);
    }
    Ok(listed)
}

/// The files that a listing asks for, one by one, its limit aside.
pub(super) fn files<'r>(root: &'r RootDirectory, listing: &Listing) -> Result<impl Iterator<Item = Met> + 'r, Error> {
    let refused = |error: globs::Error| Error::Refused(error.to_string());
    let pick = listing.glob.as_deref().map(PathGlobs::picking).transpose().map_err(refused)?;
    let deny = PathGlobs::denying(&listing.deny).map_err(refused)?;
    let under = root.resolve(&listing.under)?;
    if under.kind == FileKind::Absent {
        return Err(Error::Refused(format!("{}: there is no such directory", listing.under)));
    }
    let (from, below) = (root.path().to_owned(), under.path);
    // from the root down, so that the ignore files above `under` count and those above the root do not
    let walk = WalkBuilder::new(root.path())
        .hidden(false)
        .parents(false)
        .require_git(false)
        .git_global(false)
        .sort_by_file_name(OsStr::cmp)
        .filter_entry(move |entry| {
            let path = entry.path().strip_prefix(&from).unwrap_or(entry.path());
            !entry.file_name().eq_ignore_ascii_case(".git")
                && (path.starts_with(&below) || Path::new(&below).starts_with(path))
        })
        .build();
    Ok(walk.filter_map(Result::ok).filter_map(move |entry| {
        let kind = entry.file_type()?;
        let path = entry.path().strip_prefix(root.path()).ok()?.to_string_lossy().into_owned();
        let wanted = pick.as_ref().is_none_or(|pick| pick.matches(&path)) && !deny.matches(&path);
        if !wanted || !(kind.is_file() || kind.is_symlink()) {
            return None;
        }
        if kind.is_symlink() {
            let target = root.resolve(&path).ok()?;
            if target.kind != FileKind::File || deny.matches(&target.path) {
                return None;
            }
        }
        Some(Met { path, is_link: kind.is_symlink() })
    }))
}

#[cfg(test)]
pub(super) mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    pub(in super::super) fn tree() -> (tempfile::TempDir, RootDirectory) {
        let outer = tempfile::tempdir().unwrap();
        // an ignore file above the root, which is none of its business
        fs::copy(file(&outer.path().join("star"), "*\n"), outer.path().join(".ignore")).unwrap();
        let inner = outer.path().join("root");
        for directory in [".git", "src/deep", "target", "sub/.git", "node_modules/x"] {
            fs::create_dir_all(inner.join(directory)).unwrap();
        }
        for (path, text) in [
            (".gitignore", "target\n*.log\n"),
            (".git/config", "needle\n"),
            ("sub/.git/config", "needle\n"),
            ("sub/s.txt", "s\n"),
            ("src/.gitignore", "secret*\n"),
            ("src/lib.rs", "fn needle() {}\n// Needle\r\n"),
            ("src/deep/a.rs", "no\n"),
            ("src/secret.txt", "needle\n"),
            ("src-old.rs", "needle old\n"),
            ("target/out.rs", "needle\n"),
            ("x.log", "needle\n"),
            (".env", "needle=1\n"),
            (".hidden", "h\n"),
        ] {
            file(&inner.join(path), text);
        }
        symlink("src/lib.rs", inner.join("link.rs")).unwrap();
        symlink(".env", inner.join("env.rs")).unwrap();
        symlink("/etc/passwd", inner.join("passwd.rs")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, inner.join("pipe.rs"), rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        let root = RootDirectory::open(&inner).unwrap();
        (outer, root)
    }

    fn file(path: &Path, text: &str) -> std::path::PathBuf {
        use std::io::Write as _;
        fs::File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
        path.to_owned()
    }

    pub(in super::super) fn listing(under: &str, glob: Option<&str>) -> Listing {
        Listing { under: under.to_owned(), glob: glob.map(str::to_owned), deny: vec![".env*".to_owned()], limit: 100 }
    }

    fn paths(root: &RootDirectory, listing: &Listing) -> Vec<String> {
        list(root, listing, &AtomicBool::new(false)).unwrap().paths
    }

    #[test]
    fn ignored_denied_and_git_files_are_not_named() {
        let (_outer, root) = tree();
        assert_eq!(
            paths(&root, &listing("", None)),
            [
                ".gitignore",
                ".hidden",
                "link.rs",
                "src/.gitignore",
                "src/deep/a.rs",
                "src/lib.rs",
                "src-old.rs",
                "sub/s.txt"
            ]
        );
    }

    #[test]
    fn a_directory_and_a_glob_narrow_the_listing_and_ignore_files_above_still_count() {
        let (_outer, root) = tree();
        assert_eq!(paths(&root, &listing("src", Some("*.rs"))), ["src/deep/a.rs", "src/lib.rs"]);
        assert_eq!(paths(&root, &listing("./src/", Some("src/*.rs"))), ["src/lib.rs"]);
        assert_eq!(paths(&root, &listing("target", None)), Vec::<String>::new());
        assert_eq!(paths(&root, &listing("src/lib.rs", None)), ["src/lib.rs"]);
        for (under, glob) in [("nowhere", None), ("..", None), (".git", None), ("", Some("["))] {
            let refused = list(&root, &listing(under, glob), &AtomicBool::new(false));
            assert!(matches!(refused, Err(Error::Refused(_))), "{under} {glob:?}");
        }
    }

    #[test]
    fn the_limit_is_kept_and_said() {
        let (_outer, root) = tree();
        let all = listing("src", None);
        let cut = list(&root, &Listing { limit: 2, ..all.clone() }, &AtomicBool::new(false)).unwrap();
        assert_eq!((cut.paths.len(), cut.more), (2, true));
        let whole = list(&root, &Listing { limit: 3, ..all }, &AtomicBool::new(false)).unwrap();
        assert_eq!((whole.paths.len(), whole.more), (3, false));
    }
}
