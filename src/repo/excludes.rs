//! Build artefacts: what tools make beside the sources, known by name. They are in no snapshot and no checkpoint, and
//! never count as work, also where the repository's own ignore rules forgot them.
//!
//! Tracked files are never artefacts, and a rule of the repository (`!target/`) wins over the names that stand alone.

use std::{
    ffi::{OsStr, OsString},
    io::Write,
    path::{Path, PathBuf},
};

use super::{Error, io_error};

/// Directories of artefacts alone, wherever they are.
pub(super) const DIRECTORIES: &[&str] = &[
    "__pycache__",
    "node_modules",
    ".venv",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".tox",
    ".nox",
    ".eggs",
    ".gradle",
    ".next",
    ".nuxt",
    ".parcel-cache",
    ".turbo",
    ".terraform",
    ".dart_tool",
    ".nyc_output",
];

/// Files that are never sources, by the end of their names.
const ENDINGS: &[&str] = &[".pyc", ".pyo"];

/// Files that are never sources, by name.
const FILES: &[&str] = &[".DS_Store", "Thumbs.db"];

/// Directories that are artefacts where a file of this name stands beside them: their names alone say too little.
const BESIDE: &[(&str, &[&str])] = &[
    ("target", &["Cargo.toml", "pom.xml", "build.sbt"]),
    ("build", &["build.gradle", "build.gradle.kts"]),
    ("_build", &["mix.exs", "dune-project"]),
    ("deps", &["mix.exs"]),
    ("dist-newstyle", &["cabal.project"]),
    (".stack-work", &["stack.yaml"]),
    (".build", &["Package.swift"]),
    ("zig-cache", &["build.zig"]),
    (".zig-cache", &["build.zig"]),
    ("zig-out", &["build.zig"]),
    ("venv", &["pyproject.toml", "requirements.txt", "setup.py"]),
];

/// The option by which git leaves out the names that stand alone too; they are written into `directory`.
pub(super) fn option(directory: &Path) -> Result<OsString, Error> {
    let path = directory.join("exclude");
    let text = patterns().join("\n");
    let write = |path: &Path| std::fs::File::create(path)?.write_all(text.as_bytes());
    write(&path).map_err(io_error("write", &path))?;
    let mut option = OsString::from("--exclude-from=");
    option.push(path);
    Ok(option)
}

/// The names that stand alone, as ignore patterns.
pub(super) fn patterns() -> Vec<String> {
    let directories = DIRECTORIES.iter().map(|name| format!("{name}/"));
    let endings = ENDINGS.iter().map(|ending| format!("*{ending}"));
    directories.chain(endings).chain(FILES.iter().map(|name| (*name).to_owned())).collect()
}

/// The directory (relative to `root`) by which an untracked path is an artefact of a tool whose project file stands
/// beside it.
pub(super) fn beside(root: &Path, path: &Path) -> Option<PathBuf> {
    let mut at = PathBuf::new();
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let marked = BESIDE.iter().filter(|(name, _)| part.as_os_str() == *name).flat_map(|(_, markers)| *markers);
        let is_directory = parts.peek().is_some();
        for marker in marked {
            if is_directory && root.join(&at).join(marker).is_file() {
                return Some(at.join(part));
            }
        }
        at.push(part);
    }
    None
}

/// Whether a path has the name of a project file that makes a directory beside it one of artefacts.
pub(super) fn is_marker(path: &Path) -> bool {
    BESIDE.iter().flat_map(|(_, markers)| *markers).any(|marker| path.file_name() == Some(OsStr::new(marker)))
}

/// Whether an untracked path is an artefact.
pub(super) fn artefact(root: &Path, path: &Path) -> bool {
    let alone = path
        .parent()
        .is_some_and(|parent| parent.components().any(|part| DIRECTORIES.iter().any(|name| part.as_os_str() == *name)));
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let file = FILES.contains(&name.as_str()) || ENDINGS.iter().any(|ending| name.ends_with(ending));
    alone || file || beside(root, path).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_too_little_need_their_project_file_beside_them() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("a")).unwrap();
        std::fs::File::create(root.path().join("a/Cargo.toml")).unwrap();
        assert!(artefact(root.path(), Path::new("a/target/debug/x")));
        assert!(!artefact(root.path(), Path::new("a/target")), "a file of that name is no build directory");
        assert!(!artefact(root.path(), Path::new("a/src/target/mod.rs")));
        assert!(!artefact(root.path(), Path::new("target/mod.rs")));
        assert_eq!(beside(root.path(), Path::new("a/target/debug/x")), Some("a/target".into()));
    }

    #[test]
    fn names_that_stand_alone_count_everywhere() {
        let root = Path::new("/nowhere");
        assert!(artefact(root, Path::new("web/node_modules/x/index.js")));
        assert!(artefact(root, Path::new("pkg/__pycache__/m.cpython-312.pyc")));
        assert!(artefact(root, Path::new("m.pyc")));
        assert!(!artefact(root, Path::new("src/node_modules.rs")));
        assert!(!artefact(root, Path::new("node_modules")));
    }
}
