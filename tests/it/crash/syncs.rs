//! What is promised to be on the disk is on it before anything stands on it: the syncs are seen, and their order.
//!
//! A benchmark shows too many syncs; too few look like good news. So each promise is held against the system calls of a run,
//! between the named points that it comes by. Nothing here depends on how fast anything is.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use regex::Regex;
use serde_json::json;

use super::task;
use crate::{
    apply::handed_back,
    packing::large_turns,
    support::{Needs, Script, Step, TestEnvironment, Wire, lacks, other_file_system},
};

/// Something that a run did.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Did {
    /// A file or a directory was made durable.
    Sync(PathBuf),
    /// A name took the place of another, or a second one was given.
    Name(PathBuf, PathBuf),
    /// A directory was made.
    Made(PathBuf),
    /// A name went.
    Gone(PathBuf),
    /// The model was asked.
    Asked,
    /// The lock by which a task is owned was signed.
    Owned,
    /// A shell was started for a command.
    Ran,
    /// A named point was come by.
    At(String),
}

/// All that a run did, in order.
struct Trace(Vec<Did>);

const CALLS: &str = "trace=execve,write,writev,sendto,sendmsg,fsync,fdatasync,sync_file_range,rename,renameat,renameat2,link,\
                     linkat,unlink,unlinkat,mkdir,mkdirat";

/// Runs nisse with a look at its calls.
fn traced(env: &TestEnvironment, code: i32, arguments: &[&str]) -> Trace {
    let notes = env.root().join("system-calls");
    let options = ["-f", "-y", "-qq", "-s", "48", "-o", notes.to_str().unwrap(), "-e", CALLS];
    env.set("CRASHPOINT", "?");
    env.run_program("strace", &[&options[..], &[env!("CARGO_BIN_EXE_nisse")], arguments].concat()).exits(code);
    env.set("CRASHPOINT", "");
    Trace::read(&fs::read_to_string(notes).unwrap())
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

impl Trace {
    /// Reads the notes of `strace -f -y`: a call counts where it has ended.
    fn read(notes: &str) -> Self {
        static RESUMED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^<\.\.\. \w+ resumed>"));
        let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
        let mut done = Vec::new();
        for line in notes.lines() {
            let Some((process, call)) = line.split_once(' ') else { continue };
            let call = call.trim_start();
            if let Some(begin) = call.strip_suffix(" <unfinished ...>") {
                begun.insert(process, begin);
            } else if let Some(resumed) = RESUMED.find(call) {
                let whole = format!("{}{}", begun.remove(process).unwrap_or_default(), &call[resumed.end()..]);
                done.extend(did(&whole));
            } else {
                done.extend(did(call));
            }
        }
        Self(done)
    }

    fn place(&self, wanted: &Did, from: usize) -> usize {
        let found = self.0[from..].iter().position(|did| did == wanted);
        found.map_or_else(|| panic!("never {wanted:?} after {from} of\n{self}"), |at| from + at)
    }

    /// What was done between two points, each of which is come by once, or the first time after the other.
    #[track_caller]
    fn between(&self, from: &str, to: &str) -> Part<'_> {
        let from = self.place(&Did::At(from.to_owned()), 0);
        Part(&self.0[from..self.place(&Did::At(to.to_owned()), from)])
    }

    /// What was done between each time that the model was asked, or a command was run, and the next time that `to` is come by.
    fn after(&self, what: &Did, to: &str) -> Part<'_> {
        let to = self.place(&Did::At(to.to_owned()), 0);
        let from = self.0[..to].iter().rposition(|did| did == what).unwrap_or_else(|| panic!("never {what:?}\n{self}"));
        Part(&self.0[from..to])
    }

    fn all(&self) -> Part<'_> {
        Part(&self.0)
    }
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|did| writeln!(f, "{did:?}"))
    }
}

/// What a call did; none where it did nothing of interest.
fn did(call: &str) -> Option<Did> {
    static SYNC: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^(?:fsync|fdatasync|sync_file_range)\(\d+<([^>]*)>.*\) += 0"));
    static NAME: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r#"^(?:rename|link)\w*\((?:\S+?<([^>]*)>, )?"([^"]*)", (?:\S+?<([^>]*)>, )?"([^"]*)".*\) += 0"#)
    });
    static GONE: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^unlink\w*\((?:\S+?<([^>]*)>, )?"([^"]*)".*\) += 0"#));
    static MADE: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^mkdir\w*\((?:\S+?<([^>]*)>, )?"([^"]*)".*\) += 0"#));
    static POINT: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^write\(2<[^"]*"([a-z_]+\.[a-z_]+)""#));
    let path = |groups: &regex::Captures<'_>, at: usize, name: usize| {
        Path::new(groups.get(at).map_or("", |found| found.as_str())).join(&groups[name])
    };
    if let Some(sync) = SYNC.captures(call) {
        return Some(Did::Sync(sync[1].into()));
    }
    if let Some(name) = NAME.captures(call) {
        return Some(Did::Name(path(&name, 1, 2), path(&name, 3, 4)));
    }
    if let Some(gone) = GONE.captures(call) {
        return Some(Did::Gone(path(&gone, 1, 2)));
    }
    if let Some(made) = MADE.captures(call) {
        return Some(Did::Made(path(&made, 1, 2)));
    }
    if let Some(point) = POINT.captures(call) {
        return Some(Did::At(point[1].to_owned()));
    }
    if call.starts_with("execve(") && call.contains("[\"bash\", \"-c\"") && call.ends_with("= 0") {
        return Some(Did::Ran);
    }
    if call.starts_with("write(") && call.contains("/locks/") && call.contains(".lock>, \"process ") {
        return Some(Did::Owned);
    }
    let sends = ["write", "writev", "sendto", "sendmsg"].iter().any(|name| call.starts_with(&format!("{name}(")));
    (sends && call.contains("\"POST /v1/")).then_some(Did::Asked)
}

/// A part of what was done.
struct Part<'a>(&'a [Did]);

fn is_log(path: &Path) -> bool {
    path.ends_with("nisse.db-wal")
}

/// The object that a path names, loose.
fn is_object(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let parts: Vec<_> = text.rsplit('/').take(3).collect();
    matches!(parts[..], [name, two, "objects"] if name.len() == 38 && two.len() == 2)
}

fn is_ref(path: &Path) -> bool {
    path.to_string_lossy().contains("/.git/refs/") && path.extension().is_none_or(|end| end != "lock")
}

impl Part<'_> {
    /// How often the log was made durable.
    fn commits(&self) -> usize {
        self.0.iter().filter(|did| matches!(did, Did::Sync(path) if is_log(path))).count()
    }

    fn syncs(&self, is: impl Fn(&Path) -> bool) -> usize {
        self.0.iter().filter(|did| matches!(did, Did::Sync(path) if is(path))).count()
    }

    /// Asserts that what came to be called `name` is so on the disk by the end; gives when it was named, and its name before.
    #[track_caller]
    fn names_durably(&self, name: &str) -> (usize, &Path) {
        let (at, from) = self.named(name);
        let Did::Name(_, to) = &self.0[at] else { unreachable!("a name") };
        let above = Did::Sync(to.parent().unwrap().to_owned());
        assert!(self.0[at..].contains(&above), "the name {name} may be lost: {:#?}", self.0);
        (at, from)
    }

    /// When something came to be called `name` the last time, and its name before.
    #[track_caller]
    fn named(&self, name: &str) -> (usize, &Path) {
        let named = self.0.iter().enumerate().rev().find_map(|(at, did)| match did {
            Did::Name(from, to) if to.ends_with(name) => Some((at, from.as_path())),
            _ => None,
        });
        named.unwrap_or_else(|| panic!("nothing came to be called {name}: {:#?}", self.0))
    }

    /// Asserts that a directory that was made has its name on the disk by the end.
    #[track_caller]
    fn makes_durably(&self, name: &str) {
        let made = self.0.iter().enumerate().find_map(|(at, did)| match did {
            Did::Made(path) if path.ends_with(name) => Some((at, path)),
            _ => None,
        });
        let (at, path) = made.unwrap_or_else(|| panic!("no {name} was made: {:#?}", self.0));
        let above = Did::Sync(path.parent().unwrap().to_owned());
        assert!(self.0[at..].contains(&above), "the name {name} may be lost: {:#?}", self.0);
    }

    /// The same of a file that was whole on the disk before.
    #[track_caller]
    fn puts_durably(&self, name: &str) {
        let (at, from) = self.names_durably(name);
        self.is_whole(at, from, name);
    }

    /// Asserts that the file that was named `from` until then was on the disk.
    #[track_caller]
    fn is_whole(&self, at: usize, from: &Path, name: &str) {
        // it may have had two names before
        let earlier = self.0[..at].iter().rev().find_map(|did| match did {
            Did::Name(first, then) if then == from => Some(first.as_path()),
            _ => None,
        });
        let whole = Did::Sync(earlier.unwrap_or(from).to_owned());
        assert!(self.0[..at].contains(&whole), "{name} was named before it was whole: {:#?}", self.0);
    }

    /// Asserts that no ref took its place before it was whole, nor before all objects were that were made by then; gives the
    /// number of both.
    #[track_caller]
    fn objects_come_before_refs(&self) -> (usize, usize) {
        let (mut synced, mut open, mut refs, mut objects) = (BTreeSet::new(), BTreeSet::new(), 0, 0);
        for did in self.0 {
            match did {
                Did::Sync(path) => {
                    open.remove(path);
                    synced.insert(path.clone());
                }
                Did::Name(from, to) if is_object(to) => {
                    objects += 1;
                    // git syncs it under its first name, the library's are synced under their last
                    if !synced.contains(from) {
                        open.insert(to.clone());
                    }
                }
                Did::Name(from, to) if is_ref(to) => {
                    refs += 1;
                    assert!(synced.remove(from), "{} was put before it was whole", to.display());
                    assert!(open.is_empty(), "{} was put before these were on the disk: {open:#?}", to.display());
                }
                Did::Name(..) | Did::Made(_) | Did::Gone(_) | Did::Asked | Did::Owned | Did::Ran | Did::At(_) => {}
            }
        }
        (refs, objects)
    }
}

#[test]
fn a_turn_with_a_file_and_the_squash() {
    if lacks(Needs::Tracing) {
        return;
    }
    let steps = vec![
        Step::call("write_file", json!({"path": "d/b.txt", "content": "b\n"})),
        Step::call("edit_file", json!({"path": "a.txt", "old": "unfinished", "new": "finished"})),
        Step::hand_back(),
    ];
    let env = TestEnvironment::new(Wire::Chat, Script::ByHistory(steps));
    env.checkout.write("a.txt", "unfinished\n");
    let trace = traced(&env, 0, &task::begin("worktree"));
    // the checkout's own mark
    let all = trace.all();
    let (at, from) = all.named("nisse-id");
    all.is_whole(at, from, "nisse-id");
    // the log says what begins before anything outside of it is touched
    let owned = trace.place(&Did::Owned, 0);
    let outside = |did: &Did| matches!(did, Did::Name(_, to) if to.starts_with(env.checkout.path()) || to.starts_with(env.state().join("worktrees")));
    let touched = trace.0.iter().position(outside).unwrap();
    assert!(Part(trace.0.get(owned..touched).unwrap()).commits() >= 1, "touched before the task began\n{trace}");
    // snapshot and worktree are recorded, and that a request leaves
    let asked = trace.place(&Did::Asked, 0);
    let ready = trace.place(&Did::At("prepare.ready".to_owned()), 0);
    assert!(Part(&trace.0[ready..asked]).commits() >= 1, "asked before the log said so\n{trace}");
    // the reply is whole in the log, and then the intent
    assert!(trace.after(&Did::Asked, "edit.opened").commits() >= 2, "{trace}");
    let edit = trace.between("edit.opened", "edit.written");
    edit.makes_durably("d");
    edit.puts_durably("d/b.txt");
    let checkpoint = trace.between("edit.written", "checkpoint.branch");
    assert_eq!(checkpoint.commits(), 0, "the log says that it is done before it is\n{trace}");
    // a blob, two trees, a commit, and then the branch
    let (refs, objects) = checkpoint.objects_come_before_refs();
    assert!(refs == 1 && objects >= 4, "{refs} refs, {objects} objects\n{trace}");
    checkpoint.puts_durably("nisse/000000000100-finish-it");
    // the result, the settlement and the next request
    let branch = trace.place(&Did::At("checkpoint.branch".to_owned()), 0);
    let next = trace.place(&Did::Asked, branch);
    assert!(Part(&trace.0[branch..next]).commits() >= 1, "asked again before the log had the result\n{trace}");
    // the squash, its intent first
    let opened = trace.between("squash.commit", "squash.opened");
    assert!(opened.commits() >= 1, "{trace}");
    let (refs, _) = trace.between("squash.opened", "squash.applied").objects_come_before_refs();
    assert_eq!(refs, 2, "the turns are kept, and the branch goes on\n{trace}");
    assert!(trace.between("squash.applied", "end.recorded").commits() >= 1, "{trace}");
    trace.all().objects_come_before_refs();
}

#[test]
fn a_turn_with_a_command_in_place() {
    if lacks(Needs::Tracing) {
        return;
    }
    let script = Script::ByHistory(vec![
        Step::call("run_command", json!({"command": "mkdir d; echo b > d/b.txt; ln d/b.txt d/twin"})),
        Step::call("edit_file", json!({"path": "d/b.txt", "old": "b", "new": "c"})),
        Step::hand_back(),
    ]);
    let env = TestEnvironment::new(Wire::Chat, script);
    env.person_will_change(".git/logs/HEAD");
    let trace = traced(&env, 0, &task::begin("in-place"));
    // the checkout is marked before it goes onto the branch
    let marked = trace.between("switch.opened", "switch.marked");
    assert!(
        marked.syncs(|path| path.to_string_lossy().contains("nisse-in-place.")) >= 2,
        "its name and the index\n{trace}"
    );
    marked.names_durably("nisse-in-place");
    // the reply, and the intent, and only then the command
    assert!(trace.after(&Did::Asked, "checkpoint.begun").commits() >= 2, "{trace}");
    let ran = trace.0.iter().position(|did| *did == Did::Ran).unwrap();
    let asked = trace.place(&Did::Asked, 0);
    assert!(Part(&trace.0[asked..ran]).commits() >= 2, "run before the log said so\n{trace}");
    let checkpoint = trace.between("checkpoint.begun", "checkpoint.branch");
    let (refs, objects) = checkpoint.objects_come_before_refs();
    assert!(refs == 1 && objects >= 4, "{refs} refs, {objects} objects: a blob, two trees, a commit\n{trace}");
    assert_eq!(checkpoint.commits(), 0, "the log says that it is done before it is\n{trace}");
    // a file with a second name is written where it is
    let edit = trace.between("edit.opened", "edit.written");
    assert!(edit.syncs(|path| path.ends_with("d/b.txt")) >= 1, "{trace}");
    trace.all().objects_come_before_refs();
}

#[test]
fn bringing_the_work_home_keeps_what_was_there() {
    if lacks(Needs::Tracing) {
        return;
    }
    let (env, task) = handed_back(|_| {}, "echo task >> a.txt; mkdir new; echo b > new/b.txt");
    env.person(|checkout| {
        checkout.write("notes.txt", "mine\n");
    });
    let trace = traced(&env, 0, &["apply", "--json", &task]);
    let opened = trace.place(&Did::At("apply.opened".to_owned()), 0);
    assert!(Part(&trace.0[..opened]).commits() >= 1, "{trace}");
    // the plan and the checkout before it are kept, and only then a file is touched
    let (refs, _) = trace.between("apply.opened", "apply.held").objects_come_before_refs();
    assert_eq!(refs, 2, "{trace}");
    let files = trace.between("apply.held", "apply.done");
    files.puts_durably("a.txt");
    files.makes_durably("new");
    files.puts_durably("new/b.txt");
    assert_eq!(files.commits(), 0, "the log says that it is done before it is\n{trace}");
    let done = trace.place(&Did::At("apply.done".to_owned()), 0);
    assert!(Part(&trace.0[done..]).commits() >= 1, "{trace}");
    trace.all().objects_come_before_refs();
    env.changed_paths();
}

/// What no commit can hold comes out of the tree, to whatever file system, before the log says where it is kept.
#[test]
fn what_is_moved_out_of_the_tree() {
    if lacks(Needs::Tracing) || lacks(Needs::FileSystems) {
        return;
    }
    let elsewhere = tempfile::tempdir_in(other_file_system().unwrap()).unwrap();
    for other in [false, true] {
        let line = "git init -q --template= app; echo code > app/main.py; echo b > b.txt";
        let steps = vec![Step::call("run_command", json!({"command": line})), Step::hand_back(), Step::hand_back()];
        let env = TestEnvironment::new(Wire::Chat, Script::ByHistory(steps));
        env.person_will_change(".git/logs/HEAD");
        if other {
            env.set("NISSE_STATE_DIR", elsewhere.path().to_str().unwrap());
        }
        let trace = traced(&env, 0, &task::begin("in-place"));
        let moved = trace.place(&Did::At("kept.moved".to_owned()), 0);
        let code = Did::Gone(env.checkout.path().join("app/main.py"));
        // what is copied is removed only then
        let kept = Part(&trace.0[..if other { trace.place(&code, 0) } else { moved }]);
        kept.names_durably("app");
        assert!(!other || kept.syncs(|path| path.ends_with("main.py")) >= 1, "it may be lost\n{trace}");
        assert!(Part(&trace.0[moved..]).commits() >= 1, "{trace}");
    }
}

#[test]
fn a_pack_stands_before_what_it_was_made_of_goes() {
    if lacks(Needs::Tracing) {
        return;
    }
    let env = large_turns();
    let trace = traced(&env, 0, &["delegate", "--json", "Change it."]);
    let made = trace.place(&Did::At("pack.made".to_owned()), 0);
    for end in ["pack", "idx"] {
        let is = |path: &Path| {
            path.to_string_lossy().contains(&format!("tmp_{end}_")) || path.extension().is_some_and(|is| is == end)
        };
        assert!(Part(&trace.0[..made]).syncs(is) >= 1, "no {end} on the disk\n{trace}");
    }
    let placed = trace.between("pack.made", "pack.placed");
    assert!(placed.syncs(|path| path.ends_with("objects/pack")) >= 1, "its name may be lost\n{trace}");
    assert!(!placed.0.iter().any(|did| matches!(did, Did::Gone(path) if is_object(path))), "{trace}");
    trace.all().objects_come_before_refs();
}
