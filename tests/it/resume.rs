//! `nisse resume` finds what can go on: nothing, one task, several, or one that is over; and goes on as it was begun.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::support::{Script, Step, TestEnvironment, Wire};

fn limited() -> Step {
    Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.")
}

fn write(path: &str) -> Step {
    Step::call("write_file", json!({"path": path, "content": "x\n"}))
}

#[test]
fn where_nothing_is_pending_there_is_nothing_to_do() {
    let env = TestEnvironment::new(Wire::Chat, vec![write("b.txt"), Step::hand_back()]);
    let without_a_log = env.run(&["resume"]);
    assert!(without_a_log.exits(0).stderr.contains("nothing is pending"), "{}", without_a_log.report());
    assert!(env.run(&["log"]).exits(0).stderr.contains("this checkout has no tasks"), "nothing at all is said");
    assert!(!env.root().join("state").exists(), "a log was made to look into it");
    env.delegate(&[], "Make b.txt.").ends(0, "handback");
    let after_the_end = env.run(&["resume", "--json"]);
    assert!(after_the_end.exits(0).stderr.contains("nothing is pending"), "{}", after_the_end.report());
    let line = json!({"v": 1, "type": "nothing_pending", "exit": 0, "copy_of": null});
    assert_eq!(after_the_end.json(), [line], "whoever takes the last line has one");
    assert_eq!(env.server.requests().len(), 2);
}

#[test]
fn a_name_that_no_task_or_several_have_is_wrong_usage() {
    let env = TestEnvironment::new(Wire::Chat, vec![limited(), limited()]);
    for name in ["0199", "x", "'; DROP TABLE event"] {
        let run = env.run(&["resume", "--json", name]);
        assert_eq!(run.exits(2).json()[0]["error"]["kind"], "no_such_task", "{}", run.report());
        let run = env.run(&["log", "--json", name]);
        assert_eq!(run.exits(2).json()[0]["error"]["kind"], "no_such_task", "{}", run.report());
    }
    let tasks = ["One.", "Two."].map(|brief| env.delegate(&[], brief).ends(5, "interrupted")["task"].clone());
    let run = env.run(&["resume", "--json", "00000000-0000"]);
    assert_eq!(run.exits(2).json()[0]["error"]["kind"], "ambiguous_task", "{}", run.report());
    assert!(tasks.iter().all(|task| run.stderr.contains(&task.as_str().unwrap()[24..])), "{}", run.report());
}

#[test]
fn several_pending_tasks_are_told_and_each_goes_on_by_its_name() {
    for wire in Wire::BOTH {
        let script = Script::by_content(|asked| {
            let file = if asked.raw.contains("Task one") { "one.txt" } else { "two.txt" };
            match asked.replies() {
                0 => write(file),
                _ => Step::hand_back(),
            }
        });
        let env = TestEnvironment::new(wire, Script::InOrder(vec![limited(), limited()]));
        let [one, two] = ["Task one.", "Task two."]
            .map(|brief| env.delegate(&[], brief).ends(5, "interrupted")["task"].as_str().unwrap().to_owned());
        let run = env.run(&["resume", "--json"]);
        assert_eq!(run.exits(6).json()[0]["error"]["kind"], "several_tasks", "{}", run.report());
        assert!([&one, &two].iter().all(|task| run.stderr.contains(&task[24..])), "{}", run.report());
        assert_eq!(env.server.requests().len(), 2, "nothing is asked before somebody chose");

        let other = crate::support::Server::new(script);
        env.set("NISSE_LLM_BASE_URL", &other.url());
        // by the random end of the id, which people see in branch names
        let result = env.run(&["resume", "--json", &two[24..]]).ends(0, "handback");
        assert_eq!(result["task"], two.as_str());
        assert_eq!(result["artifacts"], json!(["two.txt"]));
        let result = env.run(&["resume", "--json"]).ends(0, "handback");
        assert_eq!(result["task"], one.as_str(), "the one that is left needs no name");
        assert_eq!(other.violations(), Vec::<String>::new());
    }
}

#[test]
fn a_task_that_is_over_is_told_again_and_nothing_happens() {
    let cases: [(&[&str], Vec<Step>, i32, &str); 3] = [
        (&[], vec![write("b.txt"), Step::hand_back()], 0, "handback"),
        (&[], vec![write("b.txt"), Step::give_up()], 3, "failed"),
        (&["--max-turns", "1"], vec![write("b.txt")], 4, "capped"),
    ];
    for (options, steps, code, outcome) in cases {
        for wire in Wire::BOTH {
            let env = TestEnvironment::new(wire, steps.clone());
            let ended = env.delegate(options, "Make b.txt.").ends(code, outcome);
            let task = ended["task"].as_str().unwrap();
            let log = env.run(&["log", "--json", task]).stdout;
            let again = env.run(&["resume", "--json", task]).ends(code, outcome);
            let mut wanted = ended.clone();
            wanted["worktree"] = again["worktree"].clone();
            assert_eq!(again, wanted);
            assert_eq!(env.run(&["log", "--json", task]).stdout, log, "something was written");
            assert_eq!(env.server.requests().len(), steps.len());
        }
    }
}

#[test]
fn caps_checks_role_model_and_route_are_those_of_the_start() {
    for (wire, other) in [(Wire::Chat, Wire::Messages), (Wire::Messages, Wire::Chat)] {
        let script = vec![write("b.txt"), limited(), Step::hand_back(), write("c.txt"), Step::hand_back()];
        let env = TestEnvironment::new(wire, script);
        env.delegate(&["--check", "test -e c.txt", "--max-turns", "4"], "Make b.txt.").ends(5, "interrupted");
        // what is configured today says otherwise
        env.set("NISSE_ROLE_DELEGATE", other.alias());
        env.checkout
            .write("../home/config/nisse/config.toml", "[delegate]\nmax_turns = 1\n[check]\ncommands = [\"false\"]\n");
        let result = env.run(&["resume", "--json"]).ends(0, "handback");
        assert_eq!(result["model"]["alias"], wire.alias());
        assert!(env.server.requests().iter().all(|asked| asked.wire == wire));
        assert_eq!(result["check"]["command"], "test -e c.txt");
        assert_eq!(result["turns"], 4, "the cap of the start allows the fourth turn");
    }
}

#[test]
fn a_task_is_resumed_from_anywhere_in_its_own_checkout() {
    let env = TestEnvironment::new(Wire::Chat, vec![limited(), write("b.txt"), Step::hand_back()]);
    env.checkout.write("deep/down/c.txt", "c\n");
    let task = env.delegate(&[], "Make b.txt.").ends(5, "interrupted")["task"].as_str().unwrap().to_owned();
    let inside = env.checkout.path().join("deep/down");
    let result = env.run(&["-C", inside.to_str().unwrap(), "resume", "--json", &task]).ends(0, "handback");
    assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"x\n");
}

#[test]
fn a_settings_file_that_a_task_wrote_stops_no_command_on_it() {
    let write = |path: &str, content: &str| Step::call("write_file", json!({"path": path, "content": content}));
    for isolation in ["in-place", "worktree"] {
        let went = AtomicBool::new(false);
        let script = Script::by_content(move |asked| match asked.replies() {
            0 => write("nisse.toml", "[proxy\nbase_url = 1"),
            1 if !went.swap(true, Ordering::SeqCst) => limited(),
            1 => write("b.txt", "b\n"),
            _ => Step::hand_back(),
        });
        let env = TestEnvironment::new(Wire::Chat, script);
        env.person_will_change(".git/logs/HEAD");
        let result = env.delegate(&["--isolation", isolation], "Work.").ends(5, "interrupted");
        let task = result["task"].as_str().unwrap();
        if isolation == "worktree" {
            env.person(|checkout| {
                checkout.write("nisse.toml", "[proxy\nbase_url = 1");
            });
        }
        env.delegate(&[], "More.").exits(2);
        for command in [&["log"][..], &["log", task], &["log", task, "--diff"]] {
            env.run(command).exits(0);
        }
        let result = env.run(&["resume", "--json", task]).ends(0, "handback");
        assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
        env.run(&["apply", task]).exits(0);
        env.changed_paths();
        let result = env.run(&["log", "--json"]);
        assert!(result.exits(0).stdout.contains("handback"), "{}", result.report());
    }
}
