//! nisse, or a git process of its, is killed at a system call that changes what is on the disk, right before it is done:
//! more places than have names. What is run again ends as if nothing had happened.
//!
//! Of nisse's own calls, and of each kind of its git processes, a bounded choice; which calls there are is found by
//! looking.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::{Case, End, answers::with_loose_file, home, task};
use crate::{
    apply::handed_back,
    leftovers::LATER,
    support::{Needs, Run, lacks},
};

/// What changes names, and what makes them durable.
const CALLS: [&str; 4] = ["rename,renameat,renameat2", "link,linkat", "unlink,unlinkat", "fsync,fdatasync"];
/// At which of nisse's own calls it dies, of each kind.
const TIMES: [usize; 4] = [1, 2, 5, 13];
/// What of git changes nothing that counts: objects, and answers.
const READERS: &str = "*' hash-object '*|*' commit-tree '*|*' write-tree '*|*' rev-parse '*|*' rev-list '*|*' cat-file '*|\
                       *' ls-files '*|*' ls-tree '*|*' diff '*|*' diff-tree '*|*' config '*|*' for-each-ref '*|\
                       *' --version '*|*' check-ignore '*|*' check-ref-format '*|*' merge-tree '*|*' mktree '*";
/// Of a git that the doctor runs, which owns no task: it could be anybody's.
const OF_NO_TASK: [&str; 1] = ["packed-refs.lock"];
/// Those of a git that the person's commits are made by.
const PERSONS: [&str; 4] = ["index.lock", "HEAD.lock", "ORIG_HEAD.lock", "main.lock"];

impl Case<'_> {
    /// Kills nisse, and its git processes, at system calls, and goes on.
    fn at_calls(&self) {
        if lacks(Needs::Tracing) {
            return;
        }
        let Self { env, command, .. } = self;
        env.keep("before");
        let before = End::of(env).without_own_refs();
        let notes = env.root().join("git-calls");
        env.before_git(&counting(&notes));
        begin(&notes, "look", 0, "");
        env.run(command).exits(self.code);
        env.plain_git();
        let after = End::of(env);
        let of_nobodys: &[&str] = if command.first() == Some(&"doctor") { &OF_NO_TASK } else { &[] };
        let mut kills = 0;
        for (number, process, calls) in kinds(&notes) {
            env.bring_back("before");
            env.before_git(&counting(&notes));
            begin(&notes, "kill", number, calls);
            let died = env.run(command);
            env.plain_git();
            assert!(notes.join("killed").exists(), "{command:?}: no {calls} of git {process}\n{}", died.report());
            let persons = matches!(&*process, "commit" | "merge");
            self.ends(
                &before,
                &after,
                &died,
                &format!("git {process} killed at {calls}"),
                if persons { &PERSONS } else { of_nobodys },
            );
            kills += 1;
        }
        for calls in CALLS {
            for time in TIMES {
                env.bring_back("before");
                let inject = format!("inject={calls}:signal=SIGKILL:when={time}");
                let options =
                    ["-f", "-qq", "-o", "/dev/null", "-b", "execve", "-e", &inject, env!("CARGO_BIN_EXE_nisse")];
                let died = env.run_program("strace", &[&options[..], command].concat());
                if died.code().is_some() {
                    // it makes fewer of them
                    break;
                }
                self.ends(&before, &after, &died, &format!("nisse killed at the {time}. {calls}"), &[]);
                kills += 1;
            }
        }
        assert!(kills > 3, "{command:?} was killed {kills} times");
        env.person(|_| {});
    }

    /// Goes on after a death; locks with these names may be in the way, and are named.
    fn ends(&self, before: &End, after: &End, died: &Run, how: &str, may_stay: &[&str]) {
        let Self { env, command, again, .. } = self;
        let at = |run: &Run| format!("{command:?}: {how}\n{}\n{}", died.report(), run.report());
        let (mut next, mut last) = (again, env.run(again));
        for _ in 0..5 {
            if let Some(lock) = lock_in_the_way(&last) {
                let name = lock.file_name().unwrap().to_str().unwrap();
                assert!(may_stay.contains(&name), "{name} was left in the way\n{}", at(&last));
                let told = env.run(&["doctor", "--json"]).stdout;
                assert!(told.contains(lock.to_str().unwrap()) && told.contains("s old"), "{told}\n{}", at(&last));
                fs::remove_file(lock).unwrap();
            } else if last.code() == Some(6) && next != command {
                // it died before the answer stood, and asks again
                next = command;
            } else {
                break;
            }
            last = env.run(next);
        }
        let at = at(&last);
        assert!(!last.stderr.contains("panicked at") && !last.stderr.contains("bug in nisse"), "{at}");
        let end = End::of(env);
        let wrong = end.without_numbers().against(&after.without_numbers());
        // it died before there was a task, so that nothing has happened
        let never_began = before.said["tasks"].is_empty() && end.said["tasks"].is_empty();
        let back = (self.takes_back || never_began) && end.without_own_refs().against(before).is_empty();
        assert!(wrong.is_empty() || back, "{wrong:#?}\n{at}");
        let locks = locks_below(&env.checkout.path().join(".git"));
        assert!(locks.iter().all(|lock| may_stay.iter().any(|name| lock.ends_with(name))), "{locks:?} stayed\n{at}");
    }
}

impl End {
    /// With what was found on the way as one: an answer that is given again has another number.
    fn without_numbers(&self) -> Self {
        let plain = |line: &str| match line.split_once("/found/") {
            Some((before, rest)) => {
                let name = rest.split(' ').next().unwrap_or_default();
                let what = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
                format!("{before}/found/{what}{}\n", &rest[name.len()..])
            }
            None => format!("{line}\n"),
        };
        let mut said = self.said.clone();
        let refs = said["refs"].lines().map(plain).collect();
        said.insert("refs", refs);
        Self { files: self.files.clone(), said }
    }
}

/// The lock that a run says is in its way.
fn lock_in_the_way(run: &Run) -> Option<PathBuf> {
    [&run.stderr, &run.stdout].into_iter().find_map(|said| {
        let (before, _) = said.split_once(".lock is there, ")?;
        let path = before.rsplit([' ', '"', '\n']).next()?;
        Some(PathBuf::from(format!("{path}.lock")))
    })
}

fn locks_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(locks_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "lock") {
            found.push(path);
        }
    }
    found
}

/// Shell that counts the git processes that change something, and does with them what `notes/what` says: `look` at their
/// calls, or `kill` the one with that number.
fn counting(notes: &Path) -> String {
    let all = CALLS.join(",");
    format!(
        r#"notes='{}'
case " $* " in {READERS}) exec "$real" "$@";; esac
read -r what number calls <"$notes/what"
count=$(($(cat "$notes/count") + 1)); echo $count >"$notes/count"
if [ $what = look ]; then
  for word; do case $word in -*|/*|.) ;; *) echo "$word" >"$notes/$count.name"; break;; esac; done
  exec strace -f -qq -o "$notes/$count.calls" -e 'trace={all}' "$real" "$@"
elif [ $count = $number ]; then
  : >"$notes/killed"
  exec strace -f -qq -o /dev/null -e "inject=$calls:signal=SIGKILL:when=1" "$real" "$@"
fi"#,
        notes.display()
    )
}

fn begin(notes: &Path, what: &str, number: usize, calls: &str) {
    fs::create_dir_all(notes).unwrap();
    let _ = fs::remove_file(notes.join("killed"));
    fs::write(notes.join("count"), "0\n").unwrap();
    fs::write(notes.join("what"), format!("{what} {number} {calls}\n")).unwrap();
}

/// Each kind of git process with each kind of call that it makes, once: its number, its name, the calls.
fn kinds(notes: &Path) -> Vec<(usize, String, &'static str)> {
    let mut known = BTreeSet::new();
    let mut kinds = Vec::new();
    for number in 1.. {
        let Ok(made) = fs::read_to_string(notes.join(format!("{number}.calls"))) else { break };
        let name = fs::read_to_string(notes.join(format!("{number}.name"))).unwrap_or_default().trim().to_owned();
        for calls in CALLS {
            let makes = calls.split(',').any(|call| made.contains(&format!(" {call}(")));
            if makes && known.insert((name.clone(), calls)) {
                kinds.push((number, name.clone(), calls));
            }
        }
    }
    kinds
}

#[test]
fn of_a_task_with_a_worktree() {
    let env = task::world("worktree", crate::support::Step::hand_back());
    Case::new(&env, &task::begin("worktree")).then(&["resume", "--json"]).at_calls();
}

#[test]
fn of_a_task_in_place() {
    let env = task::world("in-place", crate::support::Step::hand_back());
    Case::new(&env, &task::begin("in-place")).then(&["resume", "--json"]).at_calls();
}

#[test]
fn of_a_task_that_fails() {
    let env = task::world("worktree", crate::support::Step::give_up());
    Case::new(&env, &task::begin("worktree")).code(3).then(&["resume", "--json"]).at_calls();
}

#[test]
fn of_going_back_and_of_giving_up() {
    for isolation in ["worktree", "in-place"] {
        let (env, task) = with_loose_file(isolation);
        env.run(&["resume", "--json", &task]).ends(6, "gated");
        Case::new(&env, &["resume", "--json", &task, "--rollback"]).then(&["resume", "--json"]).at_calls();
        let (env, task) = with_loose_file(isolation);
        Case::new(&env, &["drop", "--json", &task]).at_calls();
    }
}

#[test]
fn of_bringing_the_work_home() {
    let (env, task) = home::beside_own_work();
    Case::new(&env, &["apply", "--json", &task]).at_calls();
    let (env, task) = home::beside_own_work();
    env.run(&["apply", "--json", &task]).exits(0);
    Case::new(&env, &["apply", "--json", &task, "--abort"]).at_calls();
}

#[test]
fn of_a_fast_forward_and_of_commits() {
    let (env, task) = handed_back(crate::apply::cut::arranged, crate::apply::cut::LINE);
    Case::new(&env, &["apply", "--json", &task]).at_calls();
    let (env, task) = home::beside_own_work();
    Case::new(&env, &["apply", "--json", &task, "--squash"]).at_calls();
    let (env, task) = home::base_moved();
    Case::new(&env, &["apply", "--json", &task, "--merge"]).at_calls();
}

#[test]
fn of_clearing_up() {
    let (env, task) = handed_back(|_| {}, "echo b > b.txt");
    env.run(&["apply", "--json", &task]).exits(0);
    env.set("NISSE_TEST_CLOCK", LATER).person(|_| {});
    Case::new(&env, &["doctor", "--json", "--fix"]).at_calls();
}
