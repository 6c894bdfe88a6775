//! A plan as it is stored: a commit that holds, byte for byte, the files that are to change as they are (`before/…`) and as
//! they are to be (`after/…`), and the rights of files that git does not keep (`rights`).

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fmt::Write as _,
    io::Write as _,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Checkout, Error,
    commit::{Author, commit_tree},
    disk::{Content, SUBMODULE},
    git::LONG,
    io_error,
    staging::scratch,
};
use crate::domain::id::{CommitId, TaskId};

/// What a file was, and is to be.
pub(super) type Sides = (Option<Content>, Option<Content>);
/// Paths with what is there, or is to be.
pub(super) type Contents = BTreeMap<PathBuf, Option<Content>>;

/// A file of a plan: the modes and ids of what it was and is to be.
#[derive(Default)]
pub(super) struct PlannedFile {
    pub(super) before: Option<(String, String)>,
    pub(super) after: Option<(String, String)>,
    /// The rights of a file that goes, for when it comes back.
    pub(super) rights: Option<u32>,
}

impl PlannedFile {
    /// Whether all that is to be done is in the index: a submodule comes, moves or goes.
    pub(super) fn is_submodule(&self) -> bool {
        match (&self.before, &self.after) {
            (_, Some((mode, _))) | (Some((mode, _)), None) => mode == SUBMODULE,
            (None, None) => false,
        }
    }
}

/// What a plan is made of.
pub(super) struct Parts<'a> {
    pub(super) before: &'a Contents,
    pub(super) after: &'a Contents,
    pub(super) rights: &'a BTreeMap<PathBuf, u32>,
}

impl Checkout {
    pub(super) fn plan_paths(&self, plan: &CommitId) -> Result<Vec<PathBuf>, Error> {
        Ok(self.read_plan(plan)?.into_keys().collect())
    }

    /// What a plan says of each of its paths.
    pub(super) fn read_plan(&self, plan: &CommitId) -> Result<BTreeMap<PathBuf, PlannedFile>, Error> {
        let listed = self.git().call(["ls-tree", "-r", "-z", "--full-tree", &plan.0]).limit(LONG).parts()?;
        let mut planned: BTreeMap<PathBuf, PlannedFile> = BTreeMap::new();
        let mut rights = None;
        for line in listed {
            let unreadable = || Error::Unreadable {
                action: "ls-tree".to_owned(),
                answer: String::from_utf8_lossy(&line).into_owned(),
            };
            let tab = line.iter().position(|byte| *byte == b'\t').ok_or_else(unreadable)?;
            let (head, path) = line.split_at(tab);
            let head = String::from_utf8_lossy(head).into_owned();
            let [mode, _, id] = head.split(' ').collect::<Vec<_>>()[..] else { return Err(unreadable()) };
            let entry = Some((mode.to_owned(), id.to_owned()));
            let path = path.get(1..).unwrap_or_default();
            let at = |path: &[u8]| PathBuf::from(OsStr::from_bytes(path));
            if let Some(path) = path.strip_prefix(b"before/") {
                planned.entry(at(path)).or_default().before = entry;
            } else if let Some(path) = path.strip_prefix(b"after/") {
                planned.entry(at(path)).or_default().after = entry;
            } else if path == b"rights" {
                rights = Some(id.to_owned());
            } else {
                return Err(unreadable());
            }
        }
        if let Some(id) = rights {
            self.read_rights(&id, &mut planned)?;
        }
        Ok(planned)
    }

    fn read_rights(&self, id: &str, planned: &mut BTreeMap<PathBuf, PlannedFile>) -> Result<(), Error> {
        for line in self.git().call(["cat-file", "blob", id]).parts()? {
            let text = String::from_utf8_lossy(&line);
            let mode = text.split(' ').next().and_then(|mode| u32::from_str_radix(mode, 8).ok());
            let (Some(mode), Some(blank)) = (mode, line.iter().position(|byte| *byte == b' ')) else {
                return Err(Error::Unreadable { action: "cat-file".to_owned(), answer: text.into_owned() });
            };
            let path = Path::new(OsStr::from_bytes(line.get(blank + 1..).unwrap_or_default()));
            if let Some(one) = planned.get_mut(path) {
                one.rights = Some(mode);
            }
        }
        Ok(())
    }

    /// What these files were and are to be.
    pub(super) fn plan_contents(
        &self,
        planned: &BTreeMap<PathBuf, PlannedFile>,
        batch: &[&PathBuf],
    ) -> Result<Vec<Sides>, Error> {
        let of = |path: &&PathBuf| planned.get(*path).map(|one| [one.before.clone(), one.after.clone()]);
        let sides: Vec<[Option<(String, String)>; 2]> = batch.iter().map(|path| of(path).unwrap_or_default()).collect();
        let blobs = sides.iter().flatten().flatten().filter(|(mode, _)| mode != SUBMODULE);
        let ids: Vec<&str> = blobs.map(|(_, id)| id.as_str()).collect();
        let mut blobs = self.blobs(&ids)?.into_iter();
        let mut next = |side: &Option<(String, String)>| {
            let (mode, id) = side.as_ref()?;
            let bytes = if mode == SUBMODULE { id.clone().into_bytes() } else { blobs.next()? };
            Some(Content { mode: mode.clone(), bytes })
        };
        Ok(sides.iter().map(|[before, after]| (next(before), next(after))).collect())
    }

    /// The contents of blobs, in order.
    fn blobs(&self, ids: &[&str]) -> Result<Vec<Vec<u8>>, Error> {
        let answer = self.git().call(["cat-file", "--batch"]).limit(LONG).input(ids.join("\n").into_bytes()).run()?;
        let mut rest = answer.as_slice();
        let mut blobs = Vec::new();
        for id in ids {
            let unreadable =
                || Error::Unreadable { action: "cat-file".to_owned(), answer: format!("nothing for {id}") };
            let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(unreadable)?;
            let head = String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned();
            let size = match head.split(' ').collect::<Vec<_>>()[..] {
                [_, "blob", size] => size.parse::<usize>().map_err(|_| unreadable())?,
                _ => return Err(unreadable()),
            };
            let from = end + 1;
            blobs.push(rest.get(from..from + size).ok_or_else(unreadable)?.to_vec());
            rest = rest.get(from + size + 1..).unwrap_or_default();
        }
        Ok(blobs)
    }

    /// Writes a plan's objects; `index` is a name for an index of its own.
    pub(super) fn commit_plan(
        &self,
        task: TaskId,
        at_ms: u64,
        parts: &Parts<'_>,
        parent: &CommitId,
    ) -> Result<CommitId, Error> {
        let scratch = scratch()?;
        let index = scratch.path().join("index");
        let mut writing = Writing { raw: scratch.path().join("raw"), ..Writing::default() };
        std::fs::create_dir(&writing.raw).map_err(io_error("make", &writing.raw))?;
        for (side, contents) in [("before/", parts.before), ("after/", parts.after)] {
            for (path, content) in contents {
                let Some(content) = content else { continue };
                let name = [side.as_bytes(), path.as_os_str().as_bytes()].concat();
                if content.is_submodule() {
                    writing.entry(&content.mode, &String::from_utf8_lossy(&content.bytes), &name);
                } else {
                    writing.file(&content.mode, &content.bytes, name)?;
                }
            }
        }
        if !parts.rights.is_empty() {
            let mut text = Vec::new();
            for (path, mode) in parts.rights {
                let mut line = String::new();
                let _ = write!(line, "{mode:o} ");
                text.extend_from_slice(line.as_bytes());
                text.extend_from_slice(path.as_os_str().as_bytes());
                text.push(0);
            }
            writing.file("100644", &text, b"rights".to_vec())?;
        }
        let call = self.git().call(["hash-object", "-w", "--no-filters", "--stdin-paths"]);
        let input = std::mem::take(&mut writing.input);
        let ids = String::from_utf8_lossy(&call.limit(LONG).input(input).run()?).into_owned();
        for ((mode, name), id) in std::mem::take(&mut writing.names).into_iter().zip(ids.lines()) {
            writing.entry(&mode, id, &name);
        }
        self.git().call(["read-tree", "--empty"]).index(Some(&index)).run()?;
        let call = self.git().call(["update-index", "-z", "--add", "--index-info"]);
        call.index(Some(&index)).limit(LONG).input(writing.entries).run()?;
        let tree = self.git().call(["write-tree"]).index(Some(&index)).limit(LONG).line()?;
        let author = Author { name: "nisse", email: "nisse@localhost", at_ms };
        let message = format!("nisse: files before and after\n\nNisse-Task: {task}\n");
        commit_tree(self.git(), &tree, &[parent], &message, &author)
    }
}

/// Entries of a plan's tree, and the files whose ids they wait for.
#[derive(Default)]
struct Writing {
    raw: PathBuf,
    /// What hash-object reads: names line by line, so none of the person's.
    input: Vec<u8>,
    names: Vec<(String, Vec<u8>)>,
    entries: Vec<u8>,
}

impl Writing {
    fn file(&mut self, mode: &str, bytes: &[u8], name: Vec<u8>) -> Result<(), Error> {
        let file = self.raw.join(self.names.len().to_string());
        let write = || std::fs::File::create(&file)?.write_all(bytes);
        write().map_err(io_error("write", &file))?;
        self.input.extend_from_slice(file.as_os_str().as_bytes());
        self.input.push(b'\n');
        self.names.push((mode.to_owned(), name));
        Ok(())
    }

    fn entry(&mut self, mode: &str, id: &str, name: &[u8]) {
        self.entries.extend_from_slice(format!("{mode} {id}\t").as_bytes());
        self.entries.extend_from_slice(name);
        self.entries.push(0);
    }
}
