//! The program dies at every named point that a command comes by, is run again, and ends as if it had not.
//!
//! Compiled with the feature `crashpoints` only; `tests/run` does it. Which points a command comes by is not listed here:
//! it is run to its end once, and names them.

mod answers;
mod at_once;
mod calls;
mod home;
mod left;
mod log;
mod meanwhile;
mod syncs;
mod task;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicBool, Ordering},
};

use nisse::log::{Access, Log, crash::POINTS};
use serde_json::{Value, json};

use crate::support::{Fingerprint, Run, Script, Step, TestEnvironment, Wire};

/// A command in a world, and what is run after it died.
struct Case<'a> {
    env: &'a TestEnvironment,
    command: Vec<&'a str>,
    again: Vec<&'a str>,
    code: i32,
    /// What is run again takes back what was begun: then all is as it was before the command, or as it is after it.
    takes_back: bool,
    once: bool,
}

impl<'a> Case<'a> {
    fn new(env: &'a TestEnvironment, command: &[&'a str]) -> Self {
        Self { env, command: command.to_vec(), again: command.to_vec(), code: 0, takes_back: false, once: false }
    }

    /// The exit status of the command.
    fn code(mut self, code: i32) -> Self {
        self.code = code;
        self
    }

    /// Something else is run after the death.
    fn then(mut self, again: &[&'a str]) -> Self {
        self.again = again.to_vec();
        self
    }

    fn takes_back(mut self) -> Self {
        self.takes_back = true;
        self
    }

    /// Each point counts once, however often the command comes by it.
    fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Kills the command at these points, whenever it comes by one, and goes on.
    fn at(&self, named: &[&str]) {
        let Self { env, command, again, .. } = self;
        env.keep("before");
        let before = End::of(env).without_own_refs();
        let whole = env.set("CRASHPOINT", "?").run(command);
        whole.exits(self.code);
        let after = End::of(env);
        let mut points = reached(&whole);
        for name in named {
            assert!(points.iter().any(|(point, _)| point == name), "{command:?}: never at {name}");
        }
        // what it comes by often it comes by in the same way: the first, the second and the last time are tried
        let last: BTreeMap<String, usize> = points.iter().cloned().collect();
        points.retain(|(point, time)| {
            named.contains(&&**point) && (*time == 1 || !self.once && (*time == 2 || last.get(point) == Some(time)))
        });
        for (name, time) in points {
            let point = format!("{name}#{time}");
            env.bring_back("before");
            let died = env.set("CRASHPOINT", &point).run(command);
            assert!(died.stderr.contains(&format!("crashed at {name}\n")), "{point}\n{}", died.report());
            // it may come by the same point again; then it dies there again
            let mut last = env.run(again);
            if last.stderr.contains("crashed at") {
                last = env.set("CRASHPOINT", "").run(again);
            }
            env.set("CRASHPOINT", "");
            let at = format!("{command:?} {point}\n{}\n{}", died.report(), last.report());
            assert!(!last.stderr.contains("panicked at") && !last.stderr.contains("bug in nisse"), "{at}");
            let end = End::of(env);
            let wrong = end.against(&after);
            let back = self.takes_back && end.without_own_refs().against(&before).is_empty();
            assert!(wrong.is_empty() || back, "{wrong:#?}\n{at}");
        }
        env.set("CRASHPOINT", "").changed_paths();
    }
}

/// No point is dead: for each there is a case that names it.
#[test]
fn every_point_is_in_a_case() {
    let cases = [task::POINTS, home::POINTS, answers::POINTS, left::POINTS, log::POINTS];
    let named: BTreeSet<&str> = cases.into_iter().flatten().flat_map(|case| case.iter().copied()).collect();
    assert_eq!(named, POINTS.iter().copied().collect());
}

/// The points that a run names, in order, each with how often it has come by then.
fn reached(run: &Run) -> Vec<(String, usize)> {
    let mut times = BTreeMap::new();
    let mut count = |name: &str| {
        let time = times.entry(name.to_owned()).or_default();
        *time += 1;
        (name.to_owned(), *time)
    };
    run.stderr.lines().filter_map(|line| line.strip_prefix("reached ")).map(&mut count).collect()
}

/// What is left in the checkout and of its tasks.
struct End {
    files: Fingerprint,
    said: BTreeMap<&'static str, String>,
}

impl End {
    fn of(env: &TestEnvironment) -> Self {
        let git = |arguments: &[&str]| env.checkout.git(arguments);
        // no ids of commits: those of the person's own hold the time of day
        let refs = git(&["for-each-ref", "--format=%(refname) %(tree) %(subject)"]);
        let counted = |line: &str| {
            let name = line.split(' ').next().unwrap();
            format!("{line} {}\n", git(&["rev-list", "--count", name]))
        };
        let log = Log::open(&env.state(), Access::Read).unwrap();
        let tasks = log.iter().flat_map(|log| log.tasks().unwrap().into_iter().map(|id| log.task(id).unwrap()));
        let outcome = |task: nisse::domain::task::Task| {
            let outcome = task.outcome().map(|outcome| outcome.word());
            format!("{} {outcome:?}, {} pending\n", task.id, task.pending_intents().count())
        };
        // what is kept must be named, also by whoever goes on
        let unnamed = |task: nisse::domain::task::Task| {
            let found = git(&["for-each-ref", "--format=%(refname)", &format!("refs/nisse/found/{}", task.id)]);
            let is_told = |name: &&str| task.changes.iter().any(|change| change.kept() == Some(*name));
            let ours = |name: &&str| ["branch", "head"].iter().any(|what| name.ends_with(what));
            let aside: Vec<_> = task.kept_aside.iter().flat_map(|(_, paths)| paths).collect();
            format!("{aside:?} is told; ")
                + &found.lines().filter(ours).filter(|name| !is_told(name)).collect::<String>()
        };
        let tasks_again = log.iter().flat_map(|log| log.tasks().unwrap().into_iter().map(|id| log.task(id).unwrap()));
        let unnamed: String = tasks_again.map(unnamed).collect();
        let list = |place: &str| {
            let entries = std::fs::read_dir(env.state().join(place)).into_iter().flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names.join("\n")
        };
        let is_of_task = |name: &&str| {
            name.split_once('.').is_some_and(|(_, kind)| kind != "beat") && !name.starts_with("checkout-")
        };
        let worktrees = git(&["worktree", "list", "--porcelain"]);
        let said = BTreeMap::from([
            ("refs", refs.lines().map(counted).collect()),
            ("HEAD", std::fs::read_to_string(env.checkout.path().join(".git/HEAD")).unwrap()),
            ("index", git(&["ls-files", "--stage"])),
            ("status", git(&["status", "--porcelain", "--ignored"])),
            ("worktrees", worktrees.lines().filter(|line| !line.starts_with("HEAD ")).collect()),
            ("directories", list("worktrees")),
            // how long a killed process had worked is no lock, and a checkout's is of use to the next that takes it
            ("locks", list("locks").lines().filter(|name| is_of_task(name)).collect::<Vec<_>>().join("\n")),
            ("tasks", tasks.map(outcome).collect()),
            ("what is kept", unnamed),
        ]);
        Self { files: Fingerprint::of(env.checkout.path()), said }
    }

    /// Without what is kept under `refs/nisse`.
    fn without_own_refs(mut self) -> Self {
        let refs = self.said.get_mut("refs").unwrap();
        *refs = refs.split_inclusive('\n').filter(|line| !line.starts_with("refs/nisse/")).collect();
        self
    }

    /// What differs from another.
    fn against(&self, other: &Self) -> Vec<String> {
        let mut wrong = other.files.changes(&self.files, &[]);
        wrong.retain(|change| !change.starts_with(".git/"));
        let said = other.said.iter().filter(|(what, said)| self.said[*what] != **said);
        wrong.extend(said.map(|(what, said)| format!("{what}: was\n{said}\nis\n{}", self.said[what])));
        wrong
    }
}

/// A task that rests after its first file, in a world that is prepared so; and its result.
fn resting(isolation: &str, prepare: impl FnOnce(&TestEnvironment)) -> (TestEnvironment, Value) {
    let went = AtomicBool::new(false);
    let script = Script::by_content(move |asked| match asked.replies() {
        0 => Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
        1 if !went.swap(true, Ordering::SeqCst) => {
            Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.")
        }
        _ => Step::hand_back(),
    });
    let env = TestEnvironment::new(Wire::Chat, script);
    prepare(&env);
    // in place, HEAD goes away and comes back, which its reflog tells
    env.person_will_change(".git/logs/HEAD");
    let rests = env.delegate(&["--isolation", isolation], "Make b.txt.").ends(5, "interrupted");
    (env, rests)
}
