//! What stands against it is named, and nothing is touched.

use std::fs;

use serde_json::json;

use super::{applied, handed_back, refused};
use crate::support::{Step, TestEnvironment, Wire};

#[test]
fn paths_that_stand_against_it_are_all_named() {
    let (env, task) = handed_back(
        |env| {
            env.checkout.write(".gitignore", "*.log\n").write("deleted.txt", "d\n").write("removed.txt", "r\n");
            env.checkout.write("fine.txt", "f\n").write("kind.txt", "k\n").commit("files");
        },
        "echo task >> a.txt; echo task > out.log; git add -f out.log 2>/dev/null || true; echo task >> deleted.txt;
         rm removed.txt; echo task > fresh.txt; echo task >> fine.txt; mkdir sub; echo t > sub/x; mkdir via; echo t > via/y;
         echo task > folder; echo task >> kind.txt",
    );
    env.person(|checkout| {
        checkout.write("a.txt", "mine\n").write("removed.txt", "r\nmine\n").write("fresh.txt", "mine\n");
        checkout.write("sub", "a file of mine\n").write("folder/in", "mine\n");
        fs::remove_file(checkout.path().join("deleted.txt")).unwrap();
        fs::remove_file(checkout.path().join("kind.txt")).unwrap();
        checkout.link("a.txt", "kind.txt");
        let outside = checkout.path().parent().unwrap().join("outside");
        fs::create_dir(&outside).unwrap();
        checkout.link(outside.to_str().unwrap(), "via");
    });
    let named = ["a.txt", "removed.txt", "fresh.txt", "sub/x", "folder", "deleted.txt", "kind.txt", "via/y"];
    refused(&env, &env.run(&["apply", "--json", &task]), "apply_conflict", &named);
    assert_eq!(fs::read_dir(env.root().join("outside")).unwrap().count(), 0, "a link was followed");
    let run = env.run(&["apply", "--json", &task]);
    assert!(!run.stdout.contains("fine.txt"), "{}", run.report());
}

/// What the advice says is done, word by word, and then it works.
#[test]
fn the_advice_leads_out() {
    let (env, task) = handed_back(|_| {}, "echo task >> a.txt; echo b > b.txt");
    env.person(|checkout| {
        checkout.write("a.txt", "mine\n").write("b.txt", "mine\n");
    });
    let run = env.run(&["apply", "--json", &task]);
    refused(&env, &run, "apply_conflict", &["a.txt", "b.txt"]);
    let error = run.json().pop().unwrap();
    let hint = error["error"]["hint"].as_str().unwrap();
    for (step, arguments) in [
        ("commit or stash your changes", &["stash", "--quiet"][..]),
        ("move untracked files away", &["mv", "b.txt", "../b.txt"]),
        ("then run it again", &[]),
    ] {
        assert!(hint.contains(step), "{step}: {hint}");
        match arguments {
            ["stash", ..] => drop(env.checkout.git(arguments)),
            ["mv", ..] => drop(env.run_program("mv", &arguments[1..]).exits(0)),
            _ => drop(env.run(&["apply", "--json", &task]).exits(0)),
        }
    }
    assert_eq!(fs::read_to_string(env.checkout.path().join("b.txt")).unwrap(), "b\n");
    env.changed_paths();
}

#[test]
fn an_ignored_file_in_the_way_is_not_overwritten() {
    let (env, task) = handed_back(|_| {}, "echo task > local.conf");
    env.person(|checkout| {
        fs::write(checkout.path().join(".git/info/exclude"), "local.conf\n").unwrap();
        checkout.write("local.conf", "mine\n");
    });
    refused(&env, &env.run(&["apply", "--json", &task]), "apply_conflict", &["local.conf"]);
    // the same bytes are no conflict, and nothing is left to do
    env.person(|checkout| {
        checkout.write("local.conf", "task\n");
    });
    env.run(&["apply", "--json", &task]).exits(6);
    env.assert_checkout_unchanged();
}

#[test]
fn what_git_is_told_not_to_look_at_is_not_overwritten() {
    let (env, task) = handed_back(|_| {}, "echo task >> a.txt");
    env.person(|checkout| {
        checkout.git(&["update-index", "--assume-unchanged", "a.txt"]);
        checkout.write("a.txt", "mine, hidden\n");
    });
    refused(&env, &env.run(&["apply", "--json", &task]), "apply_conflict", &["a.txt"]);
}

#[test]
fn a_checkout_that_is_busy_is_left_alone() {
    let (env, task) = handed_back(|_| {}, "echo task >> a.txt");
    env.person(|checkout| {
        checkout.write(".git/index.lock", "");
    });
    let run = env.run(&["apply", "--json", &task]);
    run.exits(1);
    assert!(run.stdout.contains("index.lock") && run.stdout.contains("s old"), "{}", run.report());
    env.assert_checkout_unchanged();
    env.person(|checkout| {
        fs::remove_file(checkout.path().join(".git/index.lock")).unwrap();
        checkout.git(&["checkout", "-q", "-b", "other"]);
        checkout.write("a.txt", "other\n").commit("other");
        checkout.git(&["checkout", "-q", "main"]);
        checkout.write("a.txt", "main\n").commit("main");
        let merging = std::process::Command::new("git")
            .args(["-c", "user.name=x", "-c", "user.email=x@x", "merge", "other"])
            .current_dir(checkout.path())
            .output()
            .unwrap();
        assert!(!merging.status.success());
    });
    let run = env.run(&["apply", "--json", &task]);
    run.exits(1);
    assert!(run.stdout.contains("a merge is in progress"), "{}", run.report());
    env.assert_checkout_unchanged();
}

#[test]
fn only_what_was_handed_back_is_applied() {
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![Step::call("write_file", json!({"path": "b", "content": "b"})), Step::give_up()],
    );
    let result = env.delegate(&[], "Do it.").ends(3, "failed");
    let run = env.run(&["apply", "--json", result["task"].as_str().unwrap()]);
    run.exits(2);
    assert!(run.stdout.contains("not_handed_back") && run.stdout.contains("failed"), "{}", run.report());
    let pending =
        TestEnvironment::new(Wire::Chat, vec![Step::error(429, &[("retry-after", "9999")], "throttling_error", "no")]);
    let result = pending.delegate(&[], "Do it.").ends(5, "interrupted");
    let run = pending.run(&["apply", "--json", result["task"].as_str().unwrap()]);
    run.exits(2);
    assert!(run.stdout.contains("nisse resume"), "{}", run.report());
    let run = pending.run(&["apply", "--json", "ffff"]);
    run.exits(2);
    assert!(run.stdout.contains("no_such_task"), "{}", run.report());
}

#[test]
fn a_person_reads_what_happened() {
    let (env, task) = handed_back(|_| {}, "echo task > b.txt");
    env.person(|checkout| {
        checkout.write("a.txt", "mine\n");
    });
    let run = env.run(&["apply", &task]);
    run.exits(0);
    assert!(run.stdout.contains("uncommitted") && run.stdout.contains("--abort"), "{}", run.report());
    let log = env.run(&["log", &task]);
    assert!(log.stdout.contains("applies the files to your checkout"), "{}", log.report());
    env.changed_paths();
    let run = env.run(&["apply", &task, "--commit", "--merge"]);
    run.exits(2);
    let _ = applied(&env.run(&["apply", "--json", &task]), "already");
}

#[test]
fn a_file_that_somebody_changes_while_it_is_brought_is_not_passed_over() {
    let (env, task) = handed_back(|_| (), "echo task >> a.txt; echo b > b.txt; echo c > c.txt");
    env.person(|checkout| {
        checkout.write("notes.txt", "mine\n");
    });
    // git is asked for the files' contents before each look at them: the first is over by the second
    env.before_git(&format!(
        "case \"$*\" in *'cat-file --batch'*)
            echo x >> '{count}'
            [ $(wc -l < '{count}') -eq 2 ] && echo mine > '{file}'
        esac",
        count = env.root().join("count").display(),
        file = env.checkout.path().join("b.txt").display()
    ));
    let run = env.run(&["apply", "--json", &task]);
    let error = run.exits(6).json().pop().unwrap()["error"].clone();
    assert_eq!(error["kind"], "apply_changed", "{}", run.report());
    assert!(error["message"].as_str().unwrap().contains("b.txt"), "{error}");
    env.plain_git();
    let back = env.run(&["apply", "--json", &task, "--abort"]);
    assert_eq!(back.exits(6).json().pop().unwrap()["left"], json!(["b.txt"]));
    assert_eq!(fs::read_to_string(env.checkout.path().join("b.txt")).unwrap(), "mine\n");
    assert_eq!(env.changed_paths(), ["b.txt"]);
}
