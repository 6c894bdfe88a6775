//! The whole state of a checkout, `.git` included, to assert that it is what it was.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _},
    path::Path,
};

use nisse::domain::id::Hash;

/// Places in `.git` where a task may add (never change or remove) something: its own refs with their logs, objects,
/// and its worktree's entry.
const OURS: [&str; 7] = [
    ".git/nisse-id",
    ".git/refs/nisse",
    ".git/refs/heads/nisse",
    ".git/logs/refs/nisse",
    ".git/logs/refs/heads/nisse",
    ".git/objects",
    ".git/worktrees",
];

/// Every path below a directory with its kind, mode and content.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Fingerprint(BTreeMap<String, String>);

impl Fingerprint {
    /// The state of `directory` now.
    pub(crate) fn of(directory: &Path) -> Self {
        let mut entries = BTreeMap::new();
        walk(directory, directory, &mut entries);
        Self(entries)
    }

    /// What is different in `later`, save what a task may add; `also` names further places where it may.
    pub(crate) fn changes(&self, later: &Self, also: &[String]) -> Vec<String> {
        let ours = |path: &str| {
            let mut places = OURS.into_iter().chain(also.iter().map(String::as_str));
            places.any(|place| path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
        };
        let mut changes = Vec::new();
        for (path, was) in &self.0 {
            match later.0.get(path) {
                Some(is) if is == was => {}
                Some(is) => changes.push(format!("{path}: was {was}, is {is}")),
                None => changes.push(format!("{path}: was {was}, is gone")),
            }
        }
        let new = later.0.iter().filter(|(path, _)| !self.0.contains_key(*path) && !ours(path));
        changes.extend(new.map(|(path, is)| format!("{path}: new, {is}")));
        changes
    }

    /// Forgets a path that the person changes meanwhile.
    pub(crate) fn forget(&mut self, path: &str) {
        self.0.remove(path);
    }
}

fn walk(root: &Path, directory: &Path, entries: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).expect("a directory of the checkout") {
        let path = entry.expect("an entry of the checkout").path();
        let meta = fs::symlink_metadata(&path).expect("an entry's metadata");
        let name = path.strip_prefix(root).expect("it is below the root").to_string_lossy().into_owned();
        let mode = meta.permissions().mode() & 0o7777;
        let kind = meta.file_type();
        let state = if kind.is_symlink() {
            format!("link to {}", fs::read_link(&path).expect("a link's target").display())
        } else if kind.is_dir() {
            format!("directory {mode:o}")
        } else if kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device() {
            format!("special {mode:o}")
        } else {
            let bytes = fs::read(&path).expect("a file of the checkout");
            format!("file {mode:o}, {} bytes, {}", bytes.len(), Hash::of(&bytes))
        };
        entries.insert(name, state);
        if kind.is_dir() {
            walk(root, &path, entries);
        }
    }
}
