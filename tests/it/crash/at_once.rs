//! Two that change one checkout at once, and a person who does while one of them is at work.

use std::{fs, time::Duration};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    apply::{
        cut::{LINE, arranged},
        handed_back,
    },
    support::{Run, Step, TestEnvironment, Wire, wait_until},
};

fn command(line: &str) -> Step {
    Step::call("run_command", json!({"command": line}))
}

/// Asserts that it did nothing, since that process holds the checkout.
#[track_caller]
fn is_refused(run: &Run, holder: &str) {
    let error = run.exits(1).json().pop().unwrap()["error"].clone();
    assert_eq!(error["kind"], "checkout_held", "{}", run.report());
    let text = error["message"].as_str().unwrap();
    assert!(text.contains(holder) && error["hint"].as_str().unwrap().contains("wait"), "{error}");
}

#[test]
fn one_at_a_time_works_in_a_checkout() {
    let waits = |name: &str| format!(": > ../{name}-held; until test -e ../{name}-go; do sleep 0.02; done");
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![
            command("echo b > b.txt"),
            Step::hand_back(),
            command("echo c > c.txt"),
            Step::hand_back(),
            command(&format!("echo d > d.txt; {}", waits("task"))),
            Step::hand_back(),
        ],
    );
    let [first, second] = ["b", "c"].map(|what| {
        let result = env.delegate(&[], &format!("Make {what}.txt.")).ends(0, "handback");
        result["task"].as_str().unwrap().to_owned()
    });
    let events = env.run(&["log", "--json", &second]).stdout;
    env.set("MEANWHILE", &format!("apply.held {}", waits("apply")));
    let running = env.start(&["apply", "--json", &first]);
    env.unset("MEANWHILE");
    let there = |name: &str| env.root().join(name).exists();
    assert!(wait_until(Duration::from_mins(2), || there("apply-held")), "it did not begin");
    let holder = format!("for task {}", &first[24..]);
    is_refused(&env.run(&["apply", "--json", &second]), &holder);
    is_refused(&env.run(&["apply", "--json", &second, "--abort"]), &holder);
    is_refused(&env.delegate(&["--isolation", "in-place"], "Make d.txt."), &holder);
    assert_eq!(env.run(&["log", "--json", &second]).stdout, events);
    env.assert_checkout_unchanged();
    running.signal(Signal::KILL);
    // the shell that it waited for has its output
    fs::write(env.root().join("apply-go"), "").unwrap();
    env.finish(running);
    for task in [&first, &second] {
        env.run(&["apply", "--json", task]).exits(0);
    }
    env.checkout.commit("both");
    env.changed_paths();

    let running = env.start(&["delegate", "--json", "--isolation", "in-place", "Make d.txt."]);
    assert!(wait_until(Duration::from_mins(2), || there("task-held")), "it did not begin");
    is_refused(&env.run(&["apply", "--json", &second, "--abort"]), "for task");
    fs::write(env.root().join("task-go"), "").unwrap();
    env.finish(running).ends(0, "handback");
    let locks = fs::read_dir(env.state().join("locks")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = locks.filter(|name| name.to_str().unwrap().starts_with("checkout-")).collect();
    assert!(left.is_empty(), "{left:?}");
    // HEAD goes away and comes back, which its reflog tells
    env.changed_paths();
}

/// What is said to be there is there: it is looked at again at the end.
#[test]
fn what_a_person_undoes_meanwhile_is_not_called_applied() {
    let rows: [(&[&str], &str, Value, &str); 4] = [
        (&[], "apply.done git restore a.txt", json!(["a.txt"]), "files"),
        (&[], "apply.done echo mine > b.txt", json!(["b.txt"]), "files"),
        (&[], "apply.done git reset -q --hard HEAD~1", json!(["a.txt", "b.txt", "gone.txt", "run.sh"]), "fast_forward"),
        (&["--squash"], "apply.done#2 git reset -q --hard HEAD~1", json!([]), "commits"),
    ];
    let (env, task) = handed_back(arranged, LINE);
    env.keep("handed back");
    for (options, meanwhile, left, how) in rows {
        env.bring_back("handed back");
        if how == "files" {
            env.checkout.write("mine.txt", "m\n").git(&["add", "mine.txt"]);
        }
        let run = env.set("MEANWHILE", meanwhile).run(&[&["apply", "--json", &task], options].concat());
        env.unset("MEANWHILE");
        let document = run.exits(6).json().pop().unwrap();
        assert_eq!((&document["how"], &document["left"], &document["exit"]), (&json!(how), &left, &json!(6)));
        assert!(document["notices"].to_string().contains("to apply what is missing"), "{document}");
        if meanwhile.contains("mine") {
            continue;
        }
        let again = env.run(&[&["apply", "--json", &task], options].concat());
        assert_eq!(again.exits(0).json().pop().unwrap()["left"], json!([]), "{}", again.report());
    }
    env.changed_paths();
}

/// Killed between a file and its directory, it takes the directory away when it is run again.
#[test]
fn no_empty_directory_of_ours_stays() {
    let (env, task) = handed_back(|_| {}, "mkdir -p new/deep; echo n > new/deep/n.txt");
    env.person(|checkout| drop(checkout.write("mine.txt", "m\n").git(&["add", "mine.txt"])));
    env.run(&["apply", "--json", &task]).exits(0);
    env.set("CRASHPOINT", "put_back.opened").run(&["apply", "--json", &task, "--abort"]);
    env.unset("CRASHPOINT");
    fs::remove_file(env.checkout.path().join("new/deep/n.txt")).unwrap();
    env.run(&["apply", "--json", &task, "--abort"]).exits(0);
    assert!(!env.checkout.path().join("new").exists());
    env.changed_paths();
}
