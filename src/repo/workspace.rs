//! What a worktree holds, told to a model: languages, the top of the tree, the project's own instructions.
//!
//! Bounded in every direction; what comes out of the repository is marked as information, not as orders.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

/// The most files looked at.
const MOST_FILES: usize = 50_000;
/// The most kinds of files named.
const MOST_KINDS: usize = 8;
/// The most lines of the tree.
const MOST_LINES: usize = 80;
/// The most bytes of an instruction file.
const MOST_BYTES: u64 = 6 * 1024;
/// Files in which projects say how they want to be worked on.
const INSTRUCTIONS: &[&str] = &["AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md"];

/// A description of a worktree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Description {
    /// For the model.
    pub text: String,
    /// What the person should know: instructions that the model is not told, or not whole.
    pub notices: Vec<String>,
}

/// Describes the worktree at `path`.
#[must_use]
pub fn describe(path: &Path) -> Description {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut top: BTreeMap<String, BTreeMap<String, bool>> = BTreeMap::new();
    let mut files = 0;
    let root = path.to_owned();
    let artefacts = move |entry: &ignore::DirEntry| {
        let directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        let inside = entry.path().strip_prefix(&root).map(|relative| relative.join("file"));
        directory && inside.is_ok_and(|inside| super::excludes::artefact(&root, &inside))
    };
    let walk = ignore::WalkBuilder::new(path)
        .hidden(false)
        .require_git(false)
        .parents(false)
        .filter_entry(move |entry| entry.file_name() != ".git" && !artefacts(entry))
        .build();
    for entry in walk.flatten().filter(|entry| !entry.file_type().is_some_and(|kind| kind.is_dir())) {
        let Ok(relative) = entry.path().strip_prefix(path) else { continue };
        if super::excludes::artefact(path, relative) {
            continue;
        }
        files += 1;
        if files > MOST_FILES {
            break;
        }
        if let Some(extension) = relative.extension() {
            *kinds.entry(extension.to_string_lossy().to_lowercase()).or_default() += 1;
        }
        let mut parts = relative.iter().map(|part| part.to_string_lossy().into_owned());
        let Some(first) = parts.next() else { continue };
        let below = top.entry(first).or_default();
        if let Some(second) = parts.next() {
            below.insert(second, parts.next().is_some());
        }
    }
    let mut text = String::new();
    describe_files(&mut text, files, &kinds);
    describe_tree(&mut text, &top);
    let mut notices = Vec::new();
    let mut told = Vec::new();
    for name in INSTRUCTIONS {
        describe_instructions(&mut text, &mut notices, &mut told, path, name);
    }
    Description { text, notices }
}

fn describe_files(text: &mut String, files: usize, kinds: &BTreeMap<String, usize>) {
    let more = if files > MOST_FILES { "more than " } else { "" };
    let _ = write!(text, "{more}{} files", files.min(MOST_FILES));
    let mut kinds: Vec<_> = kinds.iter().collect();
    kinds.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
    let named: Vec<_> = kinds.iter().take(MOST_KINDS).map(|(name, count)| format!(".{name} {count}")).collect();
    if !named.is_empty() {
        let _ = write!(text, ": {}", named.join(", "));
    }
    text.push('\n');
}

fn describe_tree(text: &mut String, top: &BTreeMap<String, BTreeMap<String, bool>>) {
    let mut lines = Vec::new();
    for (name, below) in top {
        lines.push(format!("{name}{}", if below.is_empty() { "" } else { "/" }));
        lines.extend(below.iter().map(|(name, deep)| format!("  {name}{}", if *deep { "/" } else { "" })));
    }
    // where it would be too much, the first level alone says the most
    if lines.len() > MOST_LINES {
        lines.retain(|line| !line.starts_with("  "));
    }
    let more = lines.len().saturating_sub(MOST_LINES);
    for line in lines.iter().take(MOST_LINES) {
        let _ = writeln!(text, "{}", line.replace(char::is_control, "?"));
    }
    if more > 0 {
        let _ = writeln!(text, "… and {more} more");
    }
}

fn describe_instructions(
    text: &mut String,
    notices: &mut Vec<String>,
    told: &mut Vec<PathBuf>,
    path: &Path,
    name: &'static str,
) {
    if path.join(name).symlink_metadata().is_err() {
        return;
    }
    let (file, bytes, size) = match read(path, name) {
        Ok(read) => read,
        Err(why) => return notices.push(format!("{name} is not told to the model: {why}")),
    };
    // often one is a link to another
    if bytes.is_empty() || told.contains(&file) {
        return;
    }
    told.push(file);
    let content = String::from_utf8_lossy(&bytes);
    let whole = if size > MOST_BYTES { content.trim_end_matches('\u{fffd}') } else { &*content };
    if whole.contains('\u{fffd}') {
        notices.push(format!("{name} is not UTF-8: the model sees \u{fffd} where it is not"));
    }
    let content = whole.trim_end();
    let _ = write!(
        text,
        "\nFrom the repository, as information about it: {name}\n<<<<<<<< {name}\n{content}\n>>>>>>>> {name}\n"
    );
    if size > MOST_BYTES {
        let _ = writeln!(text, "({name} goes on: {size} bytes in all)");
        notices.push(format!("{name} has {size} bytes: the model is told the first {MOST_BYTES}, and that it goes on"));
    }
}

/// An instruction file: where it really is, its first bytes, its size. A link is followed within the worktree alone.
fn read(path: &Path, name: &str) -> Result<(PathBuf, Vec<u8>, u64), String> {
    let said = |error: std::io::Error| error.to_string();
    let root = path.canonicalize().map_err(said)?;
    let file = root.join(name).canonicalize().map_err(said)?;
    if !file.starts_with(&root) {
        return Err("it is a link that leads out of the repository".to_owned());
    }
    let found = file.metadata().map_err(said)?;
    if !found.is_file() {
        return Err("it is no file".to_owned());
    }
    // else a link could name what no file tool may read
    if file.extension().is_none_or(|extension| extension != "md") {
        return Err("it is a link to something other than a .md file".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(&file).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes)).map_err(said)?;
    Ok((file, bytes, found.len()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn languages_tree_and_instructions_are_told_within_bounds() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path();
        put(path, "src/main.rs", "");
        put(path, "src/deep/er/lib.rs", "");
        put(path, "Cargo.toml", "");
        put(path, "target/debug/x.o", "");
        put(path, ".gitignore", "secret/\n");
        put(path, "secret/x.rs", "");
        put(path, "AGENTS.md", &"é".repeat(5000));
        let Description { text, notices } = describe(path);
        assert!(text.starts_with("5 files: .rs 2, .md 1, .toml 1\n"), "{text}");
        assert!(text.contains("\nsrc/\n  deep/\n  main.rs\n"), "{text}");
        assert!(text.contains("as information about it: AGENTS.md"), "{text}");
        assert!(text.contains("(AGENTS.md goes on: 10000 bytes in all)"), "{text}");
        assert!(!text.contains("secret/x") && !text.contains("target") && !text.contains('\u{fffd}'), "{text}");
        assert!(text.len() < 7000);
        assert_eq!(notices, ["AGENTS.md has 10000 bytes: the model is told the first 6144, and that it goes on"]);
    }

    #[test]
    fn a_link_is_not_followed_out_of_the_worktree() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        outside.as_file().write_all(b"private").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("AGENTS.md")).unwrap();
        let Description { text, notices } = describe(root.path());
        assert!(!text.contains("private") && notices[0].contains("out of the repository"), "{text} {notices:?}");
    }

    #[test]
    fn a_link_within_the_worktree_is_told_once() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "docs/how.md", "Use tabs.");
        put(root.path(), "token", "canary");
        for (target, link) in [("docs/how.md", "AGENTS.md"), ("docs/how.md", "CLAUDE.md"), ("token", "CONTRIBUTING.md")]
        {
            std::os::unix::fs::symlink(target, root.path().join(link)).unwrap();
        }
        let Description { text, notices } = describe(root.path());
        assert_eq!(text.matches("Use tabs.").count(), 1, "{text}");
        assert!(!text.contains("canary") && notices.len() == 1, "{text} {notices:?}");
    }

    #[test]
    fn many_files_leave_only_the_first_level() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..100 {
            put(root.path(), &format!("dir/{number}.txt"), "");
        }
        assert!(describe(root.path()).text.contains("100 files: .txt 100\ndir/\n"));
    }
}
