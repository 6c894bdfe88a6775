//! The tasks that are recorded: every outcome, every kind of event and of intent, both routes.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Finish, Script, Step, TestEnvironment, Wire, wait_until};

/// The brief of the tasks whose recorded requests are compared.
pub(crate) const STORY: &str = "Make b.txt hold one line, b.";
/// What the story's model thinks, with the signatures.
pub(crate) const STORY_THINKING: [(&str, &str); 2] = [("Look first.", "sig=="), ("Now I see.", "sig2==")];
const CHECK: &str = "grep -qx b b.txt || { echo b.txt is wrong; exit 4; }";

/// A task that goes wrong in most ways that a model can: refused, failed, cut short, silent, told, checked.
pub(crate) fn story(wire: Wire) -> TestEnvironment {
    let same = || Step::call("search", json!({"pattern": "t[wh]"}));
    let steps = vec![
        Step::call("read_file", json!({"path": "a.txt"})).thinking(STORY_THINKING[0].0, STORY_THINKING[0].1),
        write("c\n").and_call("run_command", json!({"command": "cat b.txt; echo made > made.txt; exit 3"})),
        Step::text("I will write the file."),
        Step::call("execute_python", json!({"code": "1"})).and_raw_call("write_file", r#"{"path": "b.txt", "con"#),
        Step::hand_back(),
        same(),
        Step::empty(),
        same().and_call("search", json!({"pattern": "t[wh]"})),
        write("d\n").finish(Finish::Length),
        Step::call("edit_file", json!({"path": "b.txt", "old": "c", "new": "b"}))
            .thinking(STORY_THINKING[1].0, STORY_THINKING[1].1),
        Step::hand_back(),
    ];
    TestEnvironment::new(wire, steps)
}

/// The options of the story.
pub(crate) const STORY_OPTIONS: [&str; 2] = ["--check", CHECK];

/// A task that outgrows its window: results of old turns are left out.
pub(crate) fn reader(wire: Wire) -> TestEnvironment {
    reader_answered(
        wire,
        Script::by_content(|asked| match asked.replies() {
            n if n < 16 => Step::call("read_file", json!({"path": format!("f{n}.txt")})),
            16 => write("b\n"),
            _ => Step::hand_back(),
        }),
    )
}

/// The reader's world with other answers.
pub(crate) fn reader_answered(wire: Wire, script: impl Into<Script>) -> TestEnvironment {
    let env = TestEnvironment::new(wire, script);
    for n in 0..16 {
        let text = format!("a line of file {n}, of which nothing matters much\n").repeat(100);
        env.checkout.write(&format!("f{n}.txt"), &text);
    }
    env.checkout.commit("files to read");
    let window = |wire: Wire| format!("[models.\"{}\"]\nmax_input_tokens = 24000\n", wire.alias());
    env.configure(&Wire::BOTH.map(window).concat());
    env
}

fn write(content: &str) -> Step {
    Step::call("write_file", json!({"path": "b.txt", "content": content}))
}

pub(super) fn away() -> Step {
    Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.")
}

/// A world, prepared and not run yet.
fn world(wire: Wire, steps: Vec<Step>, nth: &mut u32) -> TestEnvironment {
    at(TestEnvironment::new(wire, Script::ByHistory(steps)), nth)
}

/// Gives the world a time and ids of its own.
pub(super) fn at(env: TestEnvironment, nth: &mut u32) -> TestEnvironment {
    *nth += 1;
    env.set("NISSE_TEST_CLOCK", &(1_795_910_400_000 + u64::from(*nth) * 1_000_000).to_string());
    env.count_from(*nth * 0x100);
    env
}

/// Makes every world but the two that are compared, runs its tasks, and hands it to `record`.
pub(super) fn every(nth: &mut u32, record: &mut dyn FnMut(&TestEnvironment)) {
    for wire in Wire::BOTH {
        delegations(wire, nth, record);
        troubles(wire, nth, record);
        decided(wire, nth, record);
    }
    applied(nth, record);
    in_place(nth, record);
    changed(nth, record);
    repaired(nth, record);
    locked(nth, record);
    own_git(nth, record);
}

/// A command that commits, and makes what no commit can hold.
fn own_git(nth: &mut u32, record: &mut dyn FnMut(&TestEnvironment)) {
    let line = "git commit -qm mine --allow-empty; git init -q app";
    let steps =
        vec![write("b\n"), Step::call("run_command", json!({"command": line})), Step::hand_back(), Step::hand_back()];
    let env = world(Wire::Chat, steps, nth);
    env.delegate(&[], STORY).exits(0);
    record(&env);
}

fn delegations(wire: Wire, nth: &mut u32, record: &mut dyn FnMut(&TestEnvironment)) {
    let mut run = |steps: Vec<Step>, options: &[&str], exit: i32| {
        let env = world(wire, steps, nth);
        env.delegate(options, STORY).exits(exit);
        record(&env);
    };
    run(vec![write("b\n"), Step::give_up()], &[], 3);
    run(vec![Step::text("One."), Step::text("Two."), Step::text("Three.")], &[], 3);
    run(
        vec![write("x\n"), Step::hand_back(), Step::hand_back(), Step::hand_back(), Step::hand_back()],
        &STORY_OPTIONS,
        3,
    );
    run(vec![write("b\n")], &["--max-turns", "1"], 4);
    run(vec![write("b\n").usage(30_000, 10)], &["--max-tokens", "30000"], 4);
    run(vec![write("b\n")], &["--max-cost", "0.001"], 4);
    run(vec![write("b\n").and_hand_back().and_call("read_file", json!({"path": "a.txt"}))], &[], 0);
    let ignored = "printf 'cache\\n' > .gitignore; echo 1 > cache; echo b > b.txt";
    run(vec![Step::call("run_command", json!({"command": ignored})), Step::hand_back()], &[], 0);
    run(
        vec![
            Step::call("run_command", json!({"command": "echo b > b.txt; head -c 20000 /dev/zero | tr '\\0' x"})),
            Step::hand_back(),
        ],
        &[],
        0,
    );
    run(vec![write("b\n").usage(9_000, 10), Step::text("more")], &["--max-tokens", "10000"], 4);

    let env = world(wire, vec![Step::hand_back(), write("b\n"), Step::hand_back()], nth);
    env.set("NISSE_BRANCH_HISTORY", "turns");
    env.delegate(&[], STORY).exits(0);
    record(&env);

    let env = world(wire, vec![write("b\n"), Step::hand_back()], nth);
    env.set("NISSE_WORKTREE_SETUP", "echo ready");
    env.delegate(&[], STORY).exits(0);
    record(&env);

    // real time is needed for a cap on it
    let slow = Step::hand_back().delay(Duration::from_mins(10));
    let env = world(wire, vec![slow], nth).with_running_clock();
    env.delegate(&["--max-time", "2s"], STORY).exits(4);
    record(&env);
}

fn troubles(wire: Wire, nth: &mut u32, record: &mut dyn FnMut(&TestEnvironment)) {
    let mut run = |steps: Vec<Step>, exit: i32| {
        let env = at(TestEnvironment::new(wire, steps), nth);
        env.delegate(&[], STORY).exits(exit);
        record(&env);
    };
    let gone = "Budget has been exceeded! Key=test Current cost: 0.004207, Max budget: 0.0001";
    run(vec![write("b\n"), Step::error(422, &[], "budget_exceeded", gone)], 5);
    run(vec![Step::error(503, &[], "internal_server_error", "overloaded"), write("b\n"), Step::hand_back()], 0);
    run(vec![write("b\n").answered_by("other", "openai/other")], 5);
    run(
        vec![
            Step::error(400, &[], "invalid_request_error", "tool_choice is not supported by this model"),
            write("b\n"),
            Step::hand_back(),
        ],
        0,
    );
    let long = "litellm.ContextWindowExceededError: prompt is too long: 300 tokens > 200 maximum";
    run(vec![write("b\n"), Step::error(400, &[], "invalid_request_error", long)], 6);
    run(
        vec![
            write("b\n"),
            Step::error(401, &[], "auth_error", "Authentication Error, Invalid proxy server token passed."),
        ],
        2,
    );

    let steps =
        vec![write("b\n").answered_by("other", "openai/other").thinking("Another's.", "b3RoZXI"), Step::hand_back()];
    let env = world(wire, steps, nth);
    env.server.takes_fallbacks();
    env.configure("[delegate]\nfallback = \"allow\"\n");
    env.delegate(&[], STORY).exits(0);
    record(&env);
}

/// Killed, stopped, asked about, answered, given up.
fn decided(wire: Wire, nth: &mut u32, record: &mut dyn FnMut(&TestEnvironment)) {
    let env = at(TestEnvironment::new(wire, vec![write("b\n"), away()]), nth);
    let rests = env.delegate(&[], STORY).ends(5, "interrupted");
    env.run(&["drop", "--json", rests["task"].as_str().unwrap()]).exits(0);
    record(&env);

    for answer in ["--rollback", "--keep", "--drop"] {
        let scratch = tempfile::tempdir().unwrap();
        let began = scratch.path().join("began");
        let line = format!("echo half >> a.txt; echo half > half.txt; : > {}; sleep 600", began.display());
        let env = world(
            wire,
            vec![write("b\n"), Step::call("run_command", json!({"command": line})), Step::hand_back()],
            nth,
        );
        killed_when(&env, &began, &["delegate", "--json", STORY], Signal::KILL);
        env.run(&["resume", "--json"]).exits(6);
        env.run(&["resume", "--json", answer]).exits(0);
        record(&env);
    }

    let scratch = tempfile::tempdir().unwrap();
    let asked = scratch.path().join("asked");
    let seen = asked.clone();
    let script = Script::by_content(move |request| match (request.replies(), seen.exists()) {
        (0, _) => write("b\n"),
        (_, true) => Step::hand_back(),
        (_, false) => {
            let seen = seen.clone();
            Step::hand_back().before(move || fs::write(&seen, "").unwrap()).delay(Duration::from_mins(10))
        }
    });
    let env = at(TestEnvironment::new(wire, script), nth);
    killed_when(&env, &asked, &["delegate", "--json", STORY], Signal::TERM);
    env.run(&["resume", "--json"]).exits(0);
    record(&env);

    let steps = vec![write("b\n"), Step::call("write_file", json!({"path": "made/c.txt", "content": "c\n"}))];
    let env = at(TestEnvironment::new(wire, [steps, vec![away()]].concat()), nth);
    env.delegate(&[], STORY).exits(5);
    record(&env);
}

fn killed_when(env: &TestEnvironment, exists: &Path, arguments: &[&str], signal: Signal) {
    let running = env.start(arguments);
    assert!(wait_until(Duration::from_mins(2), || exists.exists()), "{} was not made", exists.display());
    running.signal(signal);
    env.finish(running);
}

fn applied(nth: &mut u32, record: &mut dyn FnMut(&TestEnvironment)) {
    let ways: [&[&[&str]]; 5] = [
        &[&["apply", "--json"]],
        &[&["apply", "--json"], &["apply", "--json", "--abort"]],
        &[&["apply", "--json", "--commit"]],
        &[&["apply", "--json", "--squash"]],
        &[&["apply", "--json", "--merge"]],
    ];
    for commands in ways {
        let env = world(Wire::Chat, vec![write("b\n"), Step::hand_back()], nth);
        let result = env.delegate(&[], STORY).ends(0, "handback");
        if commands.len() > 1 {
            // what is brought beside unfinished work can be taken back
            env.person(|checkout| {
                checkout.write("a.txt", "a\nmine\n");
            });
        }
        for command in commands {
            env.run(&[command, &[result["task"].as_str().unwrap()][..]].concat()).exits(0);
        }
        env.person(|_| ());
        record(&env);
    }
}

fn in_place(nth: &mut u32, record: &mut dyn FnMut(&TestEnvironment)) {
    for (last, exit) in [(Step::hand_back(), 0), (Step::give_up(), 3), (away(), 5)] {
        let env = at(TestEnvironment::new(Wire::Chat, vec![write("b\n"), last]), nth);
        env.person_will_change(".git/logs/HEAD");
        env.delegate(&["--isolation", "in-place"], STORY).exits(exit);
        env.person(|_| ());
        record(&env);
    }
}

/// A file that somebody else changed, which a person is asked about before the next command.
fn changed(nth: &mut u32, record: &mut dyn FnMut(&TestEnvironment)) {
    let root = Arc::new(OnceLock::<PathBuf>::new());
    let known = Arc::clone(&root);
    let look = Step::call("run_command", json!({"command": "cat a.txt"}));
    let look = look.before(move || fs::write(known.get().unwrap().join("a.txt"), "a\nmine\n").unwrap());
    let env = at(TestEnvironment::new(Wire::Chat, vec![write("b\n"), look, Step::hand_back()]), nth);
    root.set(env.checkout.path().to_owned()).unwrap();
    env.person_will_change(".git/logs/HEAD");
    let gated = env.delegate(&["--isolation", "in-place"], STORY).ends(6, "gated");
    env.run(&["resume", "--json", gated["task"].as_str().unwrap(), "--keep"]).exits(0);
    env.person(|_| ());
    record(&env);
}

/// What ties a worktree to its branch was changed by a command, and put back.
fn repaired(nth: &mut u32, record: &mut dyn FnMut(&TestEnvironment)) {
    let line = "echo b > b.txt; echo 'gitdir: /nowhere' > .git";
    let env = world(Wire::Chat, vec![Step::call("run_command", json!({"command": line})), Step::hand_back()], nth);
    env.delegate(&[], STORY).exits(0);
    record(&env);
}

/// A killed process left a lock file.
fn locked(nth: &mut u32, record: &mut dyn FnMut(&TestEnvironment)) {
    let env = at(TestEnvironment::new(Wire::Chat, vec![write("b\n"), away(), Step::hand_back()]), nth);
    let rests = env.delegate(&[], STORY).ends(5, "interrupted");
    let lock = format!(".git/refs/nisse/turns/{}.lock", rests["task"].as_str().unwrap());
    env.checkout.write(&lock, "");
    env.run(&["resume", "--json"]).ends(0, "handback");
    record(&env);
}
