//! Killed half way, it goes on when it is run again, or goes back: for every cut of its log and every half of its files.

use std::fs;

use nisse::{
    domain::{
        event::{Event, EventKind},
        id::{Hash, TaskId},
        intent::IntentKind,
    },
    log::{Access, Log},
};

use super::{applied, handed_back, handed_back_with};
use crate::support::{Fingerprint, TestEnvironment};

/// The worlds before and after, of which a cut one is made.
struct Cut<'a> {
    env: &'a TestEnvironment,
    task: TaskId,
    begins: u64,
}

impl<'a> Cut<'a> {
    /// Keeps the world as it is, runs `arguments` to the end, and keeps that world too.
    fn of(env: &'a TestEnvironment, task: &str, arguments: &[&str], how: &str) -> Self {
        let task = task.parse().unwrap();
        let begins = events(env, task).len() as u64;
        env.keep("before");
        applied(&env.run(arguments), how);
        env.keep("after");
        env.changed_paths();
        Self { env, task, begins }
    }

    /// The events that it wrote.
    fn written(&self) -> Vec<Event> {
        let log = Log::open(&self.env.root().join("state-after"), Access::Read).unwrap().unwrap();
        log.events(self.task, self.begins).unwrap()
    }

    /// The world before it, with so many of its events in the log, and the files of which `moved` says so.
    fn stand(&self, events: usize, moved: impl Fn(usize, &str) -> bool) {
        let root = self.env.root();
        self.env.bring_back("before");
        // objects and refs are written before anything in the checkout
        for ours in [".git/objects", ".git/refs/nisse"] {
            self.env.copy(&format!("checkout-after/{ours}"), &format!("checkout/{ours}"));
        }
        let log = Log::open(&root.join("state"), Access::Write).unwrap().unwrap();
        log.append(&self.written()[..events]).unwrap();
        for (number, name) in ["a.txt", "b.txt", "gone.txt", "run.sh"].into_iter().enumerate() {
            if !moved(number, name) {
                continue;
            }
            let (from, to) = (root.join("checkout-after").join(name), root.join("checkout").join(name));
            let _ = fs::remove_file(&to);
            if from.exists() {
                fs::copy(from, to).unwrap();
            }
        }
    }

    fn files(&self, place: &str) -> Fingerprint {
        Fingerprint::of(&self.env.root().join(place))
    }
}

fn events(env: &TestEnvironment, task: TaskId) -> Vec<Event> {
    Log::open(&env.state(), Access::Read).unwrap().unwrap().events(task, 0).unwrap()
}

/// A file of each kind of change.
pub(crate) const LINE: &str = "echo task >> a.txt; echo b > b.txt; rm gone.txt; chmod +x run.sh; echo more >> run.sh";

pub(crate) fn arranged(env: &TestEnvironment) {
    env.checkout.write("gone.txt", "g\n").write("run.sh", "true\n").commit("files");
}

/// The place of the last event that begins something outside the log, from 1.
fn opened(written: &[Event], is: fn(&IntentKind) -> bool) -> usize {
    let found = |event: &Event| matches!(&event.kind, EventKind::IntentOpened { kind, .. } if is(kind));
    written.iter().rposition(found).unwrap() + 1
}

#[test]
fn half_of_the_files_are_gone_on_with_and_taken_back() {
    let (env, task) = handed_back(arranged, LINE);
    env.person(|checkout| drop(checkout.write("notes.txt", "mine\n").write("staged", "s\n").git(&["add", "staged"])));
    let cut = Cut::of(&env, &task, &["apply", "--json", &task], "files");
    let begun = opened(&cut.written(), |kind| matches!(kind, IntentKind::Apply { .. }));
    let (before, after) = (cut.files("checkout-before"), cut.files("checkout-after"));
    for half in 0..16_u32 {
        cut.stand(begun, |number, _| half & (1 << number) != 0);
        // what a killed write leaves
        let file = ["a.txt", "b.txt", "gone.txt", "run.sh"][half as usize % 4];
        let temporary = format!(".nisse-{}-{}.new", cut.task.short(), &Hash::of(file.as_bytes()).0[..12]);
        fs::write(env.checkout.path().join(&temporary), "half").unwrap();
        applied(&env.run(&["apply", "--json", &task]), "files");
        assert_eq!(after.changes(&cut.files("checkout"), &[]), Vec::<String>::new(), "forth from {half:b}");

        cut.stand(begun, |number, _| half & (1 << number) != 0);
        fs::write(env.checkout.path().join(&temporary), "half").unwrap();
        applied(&env.run(&["apply", "--json", &task, "--abort"]), "put_back");
        assert_eq!(before.changes(&cut.files("checkout"), &[]), Vec::<String>::new(), "back from {half:b}");
    }
    // every cut of the log itself
    for number in 0..=cut.written().len() {
        cut.stand(number, |_, _| number > begun);
        let run = env.run(&["apply", "--json", &task]);
        run.exits(0);
        assert_eq!(after.changes(&cut.files("checkout"), &[]), Vec::<String>::new(), "log cut behind {number}");
    }
    env.changed_paths();
}

#[test]
fn a_file_that_somebody_changed_meanwhile_stops_it_before_the_rest() {
    let (env, task) = handed_back(arranged, LINE);
    env.person(|checkout| drop(checkout.write("notes.txt", "mine\n").write("staged", "s\n").git(&["add", "staged"])));
    let cut = Cut::of(&env, &task, &["apply", "--json", &task], "files");
    let begun = opened(&cut.written(), |kind| matches!(kind, IntentKind::Apply { .. }));
    cut.stand(begun, |number, _| number == 0);
    env.checkout.write("b.txt", "somebody's\n");
    env.changed_paths();
    super::refused(&env, &env.run(&["apply", "--json", &task]), "apply_changed", &["b.txt"]);
    let run = env.run(&["apply", "--json", &task, "--abort"]);
    assert_eq!(run.exits(6).json().pop().unwrap()["left"], serde_json::json!(["b.txt"]));
    assert_eq!(env.changed_paths(), ["a.txt"]);
    assert_eq!(fs::read(env.checkout.path().join("b.txt")).unwrap(), b"somebody's\n");
    let again = env.run(&["apply", "--json", &task, "--abort"]);
    let error = again.exits(2).json().pop().unwrap()["error"].clone();
    let said = (error["message"].as_str().unwrap(), error["hint"].as_str().unwrap());
    assert!(said.0.contains("an earlier --abort left") && said.0.contains("b.txt"), "{error}");
    assert!(said.1.contains("git diff refs/nisse/before-apply/"), "{error}");
}

#[test]
fn a_fast_forward_is_gone_on_with() {
    let (env, task) = handed_back(arranged, LINE);
    let cut = Cut::of(&env, &task, &["apply", "--json", &task], "fast_forward");
    let begun = opened(&cut.written(), |kind| matches!(kind, IntentKind::Apply { .. }));
    let tip = env.checkout.git(&["rev-parse", "HEAD"]);
    for index_too in [false, true] {
        for half in [0, 5, 15_u32] {
            cut.stand(begun, |number, _| half & (1 << number) != 0);
            if index_too {
                fs::copy(env.root().join("checkout-after/.git/index"), env.checkout.path().join(".git/index")).unwrap();
            }
            applied(&env.run(&["apply", "--json", &task]), "fast_forward");
            assert_eq!(env.checkout.git(&["rev-parse", "main"]), tip);
            assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
        }
    }
    // `nisse resume` sees to it too
    cut.stand(begun, |number, _| number == 1);
    env.run(&["resume", "--json", &task]).exits(0);
    assert_eq!(env.checkout.git(&["rev-parse", "main"]), tip);
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
    env.changed_paths();
}

#[test]
fn no_commit_is_made_twice() {
    let (env, task) = handed_back_with(
        |env| {
            arranged(env);
            env.set("NISSE_BRANCH_HISTORY", "turns");
        },
        &["echo task >> a.txt; rm gone.txt", "echo b > b.txt; chmod +x run.sh"],
    );
    env.person(|checkout| drop(checkout.write("staged", "s\n").git(&["add", "staged"])));
    let cut = Cut::of(&env, &task, &["apply", "--json", &task, "--commit"], "commits");
    let written = cut.written();
    let commits = env.checkout.git(&["rev-list", "--reverse", "HEAD"]);
    let commits: Vec<&str> = commits.lines().collect();
    assert_eq!(commits.len(), 4, "two of the person's, two of the task's");
    let whole = cut.files("checkout-after");
    for number in 0..=written.len() {
        let prefix = &written[..number];
        let (files, landed) = (settled(&written, prefix, true), settled(&written, prefix, false));
        let landing = matches!(
            prefix.last().map(|event| &event.kind),
            Some(EventKind::IntentOpened { kind: IntentKind::UserCommit(_), .. })
        );
        // git may have made the commit before nisse died, or not
        for made in [landed, landed + usize::from(landing)] {
            cut.stand(number, |place, _| if place % 2 == 0 { files >= 1 } else { files >= 2 });
            env.checkout.git(&["update-ref", "refs/heads/main", commits[1 + made]]);
            // the index follows last
            env.checkout.git(&["read-tree", commits[1 + landed]]);
            env.checkout.git(&["add", "staged"]);
            let run = env.run(&["apply", "--json", &task, "--commit"]);
            run.exits(0);
            let at = format!("cut behind {number}, {made} made\n{}", run.report());
            assert_eq!(env.checkout.git(&["rev-list", "--count", "HEAD"]), "4", "{at}");
            assert_eq!(
                env.checkout.git(&["rev-parse", "HEAD^{tree}"]),
                env.checkout.git(&["rev-parse", &format!("{}^{{tree}}", commits[3])]),
                "{at}"
            );
            assert_eq!(env.checkout.git(&["status", "--porcelain"]), "A  staged", "{at}");
            let changes = whole.changes(&cut.files("checkout"), &[]);
            assert!(changes.iter().all(|change| change.starts_with(".git/")), "{changes:?}\n{at}");
        }
    }
    env.changed_paths();
}

/// How many applications of files, or else commits, a prefix settles.
fn settled(written: &[Event], prefix: &[Event], files: bool) -> usize {
    let settles = |event: &&Event| {
        let EventKind::IntentSettled { intent, .. } = event.kind else { return false };
        written.iter().any(|one| match &one.kind {
            EventKind::IntentOpened { intent: of, kind: IntentKind::Apply { .. } } => files && *of == intent,
            EventKind::IntentOpened { intent: of, kind: IntentKind::UserCommit(_) } => !files && *of == intent,
            _ => false,
        })
    };
    prefix.iter().filter(settles).count()
}

#[test]
fn a_merge_that_git_left_half_done_is_made_once() {
    let (env, task) = handed_back(arranged, LINE);
    env.person(|checkout| {
        checkout.write("mine.txt", "m\n").commit("meanwhile");
    });
    let branch = env.checkout.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/nisse"]);
    let cut = Cut::of(&env, &task, &["apply", "--json", &task, "--merge"], "commits");
    let begun = opened(&cut.written(), |kind| matches!(kind, IntentKind::UserCommit(_)));
    let (tree, made) = (env.checkout.git(&["rev-parse", "HEAD^{tree}"]), env.checkout.git(&["rev-parse", "HEAD"]));
    for state in ["nothing", "written", "staged", "half", "done"] {
        cut.stand(begun, |_, _| false);
        match state {
            // git writes the files before it stages any
            "written" => {
                env.checkout.git(&["restore", "--source", &branch, "--worktree", "a.txt", "b.txt"]);
                env.checkout.write("a.txt", "");
            }
            "half" => drop(env.checkout.git(&["merge", "-q", "--no-ff", "--no-commit", &branch])),
            "staged" => {
                env.checkout.git(&["merge", "-q", "--no-ff", "--no-commit", &branch]);
                // git notes that it merges only after its hook
                for name in ["MERGE_HEAD", "MERGE_MODE", "MERGE_MSG"] {
                    fs::remove_file(env.checkout.path().join(".git").join(name)).unwrap();
                }
            }
            "done" => drop(env.checkout.git(&["reset", "-q", "--hard", &made])),
            _ => {}
        }
        applied(&env.run(&["apply", "--json", &task, "--merge"]), "commits");
        assert_eq!(env.checkout.git(&["rev-parse", "HEAD^{tree}"]), tree, "{state}");
        assert_eq!(env.checkout.git(&["rev-list", "--count", "HEAD"]), "5", "{state}");
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), "", "{state}");
        assert!(!env.checkout.path().join(".git/MERGE_HEAD").exists(), "{state}");
    }
    env.changed_paths();
}
