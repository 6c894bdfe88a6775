//! What is the person's in the repository (refs, the stash's list, configuration), looked at before a command of a task and
//! after it. What is gone is put back; what moved is named, its old place kept; what is new is only named. It need not have
//! been the command: its person may be at work at the same time, and nothing of theirs is undone.
//!
//! Where no file's status changed nothing is read. What was noted lies in a file too, so that it outlives a killed process.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use super::{
    Error, Worktree,
    configuration::{entries, of_branches},
    files_clock::{Stamp, stamp},
    io_error,
    names::discarded_ref,
    persons_state::{Note, Noted, hash_of},
    removal::remove_file,
    store::{Program, Store as _},
};
use crate::{
    domain::{
        checkout::Isolation,
        id::{CommitId, Hash},
        repository::RepositoryChange,
    },
    log::crash,
};

/// The file in the worktree's own git directory that holds what was noted, while a command runs.
const FILE: &str = "nisse-noted";
/// Refs that are nisse's, a worktree's own, or seen to in another way.
const OTHERS: &[&str] =
    &["refs/nisse/", "refs/heads/nisse/", "refs/bisect/", "refs/worktree/", "refs/rewritten/", "refs/stash"];
/// The file of a repository's configuration.
const CONFIG: &str = "config";
/// Refs that say where another repository's are.
const REMOTE: &str = "refs/remotes/";

impl Worktree {
    /// Notes what there is, before a command.
    pub fn note_persons(&self) -> Result<(), Error> {
        let stamps = self.persons_stamps();
        let locks = self.locks_of_commands()?.iter().map(|lock| self.named(lock)).collect();
        let mut note = self.notes.lock();
        if note.as_ref().is_none_or(|note| note.stamps != stamps || note.noted.locks != locks) {
            *note = Some(Note { stamps, noted: Noted { locks, ..self.noted()? }, written: false });
        }
        Ok(())
    }

    /// The same, so that it outlives this process.
    pub fn note_persons_durably(&self) -> Result<(), Error> {
        self.note_persons()?;
        let mut note = self.notes.lock();
        // to write a file again costs more than all the rest
        if let Some(note) = note.as_mut().filter(|note| !(note.written && self.note_file().exists())) {
            self.write_note(&note.noted)?;
            note.written = true;
        }
        Ok(())
    }

    /// The locks that were there when a command was begun; none where nothing was noted.
    pub(super) fn noted_locks(&self) -> Option<BTreeSet<String>> {
        self.notes.lock().as_ref().map(|note| note.noted.locks.clone())
    }

    /// What a process noted that was cut off; none if it noted nothing, or the directory was made again.
    pub(super) fn read_note(&self) -> Option<Noted> {
        serde_json::from_slice(&fs::read(self.note_file()).ok()?).ok()
    }

    /// In place it goes with what says that a task works there.
    fn note_file(&self) -> PathBuf {
        match self.branch().isolation {
            Isolation::Worktree => self.git_dir().join(FILE),
            Isolation::InPlace => self.checkout().in_place_directory().join(FILE),
        }
    }

    fn write_note(&self, noted: &Noted) -> Result<(), Error> {
        let path = self.note_file();
        let text = serde_json::to_vec(noted).map_err(std::io::Error::from);
        let write = |text: Vec<u8>| fs::File::create(&path).and_then(|mut file| file.write_all(&text));
        text.and_then(write).map_err(io_error("write", &path))
    }

    /// Says what is about to be put back, for whoever goes on.
    fn about_to(&self, noted: &mut Noted, change: RepositoryChange) -> Result<(), Error> {
        if noted.done.contains(&change) {
            return Ok(());
        }
        noted.done.push(change.clone());
        self.write_note(noted)?;
        self.changed(change);
        Ok(())
    }

    /// Sees to what was noted, after the command. [`Self::take_changes`] tells what differs.
    pub fn see_to_persons(&self) -> Result<(), Error> {
        let mut note = self.notes.lock();
        if note.as_ref().is_some_and(|note| note.stamps != self.persons_stamps())
            && let Some(Note { noted: mut before, .. }) = note.take()
        {
            self.put_right(&mut before, &self.noted()?)?;
        }
        // the file stays until the next command, for whoever goes on if this is not recorded
        Ok(())
    }

    /// The same after a process that was cut off while its command ran.
    pub fn see_to_persons_again(&self) -> Result<(), Error> {
        if let Some(mut before) = self.read_note() {
            before.done.iter().for_each(|change| self.changed(change.clone()));
            self.put_right(&mut before, &self.noted()?)?;
        }
        remove_file(&self.note_file())
    }

    fn put_right(&self, before: &mut Noted, now: &Noted) -> Result<(), Error> {
        let settings_back = self.refs_back(before, now)?;
        // `git branch -m` takes along each HEAD that is on the branch
        if let (Some(from), Some(to)) = (&before.head, &now.head)
            && from != to
            && !now.refs.contains_key(&format!("refs/heads/{from}"))
        {
            self.changed(RepositoryChange::CheckoutHeadMoved { from: from.clone(), to: to.clone() });
        }
        self.stash_back(before, now)?;
        // what was put back stands in another place of the file
        let config = self.checkout().common_dir().join(CONFIG);
        let as_before = settings_back && before.settings == Some(hash_of(&entries(&config)));
        let changed = before.configuration.iter().filter(|(name, hash)| now.configuration.get(*name) != Some(hash));
        let new = now.configuration.keys().filter(|name| !before.configuration.contains_key(*name));
        for file in changed.map(|(name, _)| name).chain(new).filter(|name| !(as_before && *name == CONFIG)) {
            let file = self.checkout().common_dir().join(file).display().to_string();
            self.changed(RepositoryChange::ConfigurationChanged { file });
        }
        Ok(())
    }

    /// Whether what the configuration says of a branch was put back too.
    fn refs_back(&self, before: &mut Noted, now: &Noted) -> Result<bool, Error> {
        let (mut new, mut remote, mut settings) = (Vec::new(), Vec::new(), false);
        for (name, was) in &before.refs.clone() {
            let is = now.refs.get(name);
            if is == Some(was) {
            } else if name.starts_with(REMOTE) {
                remote.push(name.clone());
            } else if let Some(is) = is {
                self.ref_moved(name, was, is)?;
            } else {
                settings |= self.ref_back(before, now, name, was)?;
            }
        }
        for name in now.refs.keys().filter(|name| !before.refs.contains_key(*name)) {
            if name.starts_with(REMOTE) { remote.push(name.clone()) } else { new.push(name.clone()) }
        }
        if !new.is_empty() {
            self.changed(RepositoryChange::RefsAdded { names: new });
        }
        if !remote.is_empty() {
            self.changed(RepositoryChange::RemoteRefsChanged { names: remote });
        }
        Ok(settings)
    }

    /// Names a ref that moved. Its old place is kept, unless the new one holds it.
    fn ref_moved(&self, name: &str, was: &str, is: &str) -> Result<(), Error> {
        let (from, to) = (CommitId(was.to_owned()), CommitId(is.to_owned()));
        // a tag need not be a commit's
        let held = self.checkout().store().reaches(&to, &from).unwrap_or(false);
        let kept = if held { None } else { Some(self.branch().pin_commit("moved", &from)?) };
        self.changed(RepositoryChange::RefMoved { name: name.to_owned(), from, to, kept });
        Ok(())
    }

    /// Puts a ref back that is gone, unless it was the branch of a task that was discarded meanwhile. Whether settings of the
    /// branch were gone too.
    fn ref_back(&self, before: &mut Noted, now: &Noted, name: &str, was: &str) -> Result<bool, Error> {
        let at = CommitId(was.to_owned());
        if let Ok(Some(task)) = self.checkout().task_of_commit(&at)
            && self.checkout().store().reference(&discarded_ref(task))?.is_some()
        {
            return Ok(false);
        }
        let none = "0".repeat(was.len());
        let name = name.to_owned();
        // another ref may have taken a part of its name
        let in_the_way = |other: &String| {
            format!("{name}/").starts_with(&format!("{other}/")) || other.starts_with(&format!("{name}/"))
        };
        if now.refs.keys().any(in_the_way) {
            let kept = self.branch().pin_commit("moved", &at)?;
            self.changed(RepositoryChange::RefGone { name, at, kept });
            return Ok(false);
        }
        // before the ref, which tells whoever goes on that it is still to be done
        let settings = self.branch_settings_back(before, &name)?;
        self.about_to(before, RepositoryChange::RefRestored { name: name.clone(), at })?;
        self.checkout().git().call(["update-ref", &name, was, &none]).run()?;
        crash::point("persons.ref");
        Ok(settings)
    }

    /// What git forgets with a branch: its upstream and the like. Whether anything was.
    fn branch_settings_back(&self, before: &Noted, name: &str) -> Result<bool, Error> {
        let config = self.checkout().common_dir().join(CONFIG);
        let mut there = entries(&config);
        let wanted = name.strip_prefix("refs/heads/").and_then(|branch| before.of_branches.get(branch));
        let mut any = false;
        for entry in wanted.into_iter().flatten() {
            if let Some(at) = there.iter().position(|one| one == entry) {
                there.remove(at);
                continue;
            }
            let call = self.checkout().git().call(["config", "--file"]).args([&config]);
            call.args(["--add", &entry.0, &entry.1]).run()?;
            any = true;
        }
        Ok(any)
    }

    /// Puts entries of the stash back that are gone; the list is otherwise as it is.
    fn stash_back(&self, before: &mut Noted, now: &Noted) -> Result<(), Error> {
        let missing = |of: &[(String, String)], from: &[(String, String)]| {
            let mut there: HashMap<&str, usize> = HashMap::new();
            for (commit, _) in from {
                *there.entry(commit).or_default() += 1;
            }
            let mut missing = Vec::new();
            for entry in of {
                match there.get_mut(&*entry.0).filter(|times| **times > 0) {
                    Some(times) => *times -= 1,
                    None => missing.push(entry.clone()),
                }
            }
            missing
        };
        let gone = missing(&before.stash, &now.stash);
        let new = missing(&now.stash, &before.stash);
        let words = |entries: &[(String, String)]| entries.iter().map(|(_, words)| words.clone()).collect();
        if !gone.is_empty() {
            self.about_to(before, RepositoryChange::StashRestored { entries: words(&gone) })?;
        }
        // the oldest first, so that they come to lie as they lay
        for (commit, words) in gone.iter().rev() {
            self.checkout().git().call(["stash", "store", "--quiet", "-m", words, commit]).run()?;
            crash::point("persons.stash");
        }
        if !new.is_empty() {
            self.changed(RepositoryChange::StashAdded { entries: words(&new) });
        }
        Ok(())
    }

    fn noted(&self) -> Result<Noted, Error> {
        let checkout = self.checkout();
        // the library stops at a ref that is broken, the program warns and goes on
        let listed = match checkout.store().references(&["refs/"]) {
            Ok(listed) => listed,
            Err(_) => Program::new(checkout.git().clone(), false).references(&["refs/"])?,
        };
        let refs = listed.into_iter().filter(|(name, _)| !self.is_ours(name)).map(|(name, at)| (name, at.0)).collect();
        let head = match self.branch().isolation {
            Isolation::Worktree => checkout.store().head()?.branch,
            Isolation::InPlace => None,
        };
        let no_stash = checkout.formats().refs_in_files && !checkout.common_dir().join("logs/refs/stash").exists();
        let listed =
            if no_stash { Vec::new() } else { checkout.git().call(["stash", "list", "--format=%H %gs"]).run()? };
        let entry = |line: &str| line.split_once(' ').map(|(commit, words)| (commit.to_owned(), words.to_owned()));
        let stash = String::from_utf8_lossy(&listed).lines().filter_map(entry).collect();
        // named from the repository on, which may be moved in between
        let name = |path: &Path| path.strip_prefix(checkout.common_dir()).unwrap_or(path).display().to_string();
        let hash = |path: PathBuf| Some((name(&path), Hash::of(&fs::read(&path).ok()?)));
        let configuration = self.configuration_files().into_iter().filter_map(hash).collect();
        let entries = entries(&checkout.common_dir().join(CONFIG));
        let (settings, of_branches) = (Some(hash_of(&entries)), of_branches(&entries));
        Ok(Noted { refs, head, stash, of_branches, settings, configuration, locks: BTreeSet::new(), done: Vec::new() })
    }

    fn configuration_files(&self) -> Vec<PathBuf> {
        let common = self.checkout().common_dir();
        let mut files =
            vec![common.join(CONFIG), common.join("config.worktree"), self.git_dir().join("config.worktree")];
        files.dedup();
        files
    }

    fn is_ours(&self, name: &str) -> bool {
        OTHERS.iter().any(|other| name.starts_with(other))
            || name.strip_prefix("refs/heads/") == Some(self.branch().name())
    }

    /// How the files look that all of it lies in.
    fn persons_stamps(&self) -> BTreeMap<PathBuf, Stamp> {
        let common = self.checkout().common_dir();
        let mut stamps = BTreeMap::new();
        let mut look = |path: PathBuf| {
            if let Ok(found) = path.symlink_metadata() {
                stamps.insert(path, stamp(&found));
            }
        };
        for name in ["packed-refs", "reftable/tables.list", "logs/refs/stash"] {
            look(common.join(name));
        }
        self.configuration_files().into_iter().for_each(&mut look);
        let mut directories = vec![PathBuf::from("refs")];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(common.join(&directory)).into_iter().flatten().flatten() {
                let path = directory.join(entry.file_name());
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    if !self.is_ours(&format!("{}/", path.display())) {
                        directories.push(path);
                    }
                } else if !self.is_ours(&path.to_string_lossy()) && path.extension() != Some("lock".as_ref()) {
                    look(common.join(path));
                }
            }
        }
        stamps
    }
}
