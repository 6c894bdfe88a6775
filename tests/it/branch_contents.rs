//! What leaves with a task's branch, through the program.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Step, TestEnvironment, Wire};

fn write(path: &str, content: &str) -> Step {
    Step::call("write_file", json!({"path": path, "content": content}))
}

fn command(line: &str) -> Step {
    Step::call("run_command", json!({ "command": line }))
}

fn notices(result: &Value) -> Vec<&str> {
    result["notices"].as_array().unwrap().iter().map(|notice| notice.as_str().unwrap()).collect()
}

/// All that anybody gets who fetches the branch.
fn in_all_commits(env: &TestEnvironment, result: &Value) -> String {
    let branch = result["branch"].as_str().unwrap();
    env.checkout.git(&["log", "--format=", "--name-only", branch])
}

#[test]
fn secrets_that_nobody_tracks_are_in_no_commit_and_named() {
    for isolation in ["worktree", "in-place"] {
        let line =
            "echo made > id_rsa; echo made > deploy.pem; git add -f deploy.pem; echo more >> .env; echo c > c.txt";
        let env = TestEnvironment::new(Wire::Chat, vec![command(line), write("b.txt", "b\n"), Step::hand_back()]);
        env.checkout.write(".env", "KEY=mine\n");
        if isolation == "worktree" {
            env.checkout.write("notes.txt", "unfinished\n");
        } else {
            env.person_will_change(".git/logs/HEAD").person_will_change(".env");
            for made in ["id_rsa", "deploy.pem"] {
                env.may_add(made);
            }
        }
        let result = env.delegate(&["--isolation", isolation], "Make b.txt.").ends(0, "handback");
        let all = in_all_commits(&env, &result);
        for secret in [".env", "id_rsa", "deploy.pem"] {
            assert!(!all.lines().any(|name| name == secret), "{isolation}: {secret} in {all}");
        }
        assert!(all.contains("b.txt") && all.contains("c.txt"), "{all}");
        let carried = "not carried over, because [files] deny names them and a branch may be pushed: .env";
        // in place nothing is carried anywhere
        assert_eq!(notices(&result).contains(&carried), isolation == "worktree", "{isolation}: {result}");
        if isolation == "worktree" {
            let gone = notices(&result).pop().unwrap().to_owned();
            assert!(gone.ends_with("removed with the worktree: .env, deploy.pem, id_rsa"), "{gone}");
        } else {
            assert_eq!(fs::read_to_string(env.checkout.path().join(".env")).unwrap(), "KEY=mine\nmore\n");
        }
    }
}

#[test]
fn a_copy_of_what_is_denied_is_in_no_commit() {
    let env = TestEnvironment::new(Wire::Chat, vec![command("cat .env > seen.txt"), Step::hand_back()]);
    env.checkout.write(".env", "KEY=mine\n");
    env.set("NISSE_WORKTREE_COPY", ".env");
    let result = env.delegate(&[], "Read it.").ends(0, "handback");
    assert_eq!(env.on_branch(&result, "seen.txt").unwrap(), b"KEY=mine\n");
    assert_eq!(env.on_branch(&result, ".env"), None);
    assert!(notices(&result).contains(&"copied into the worktree, but not part of the branch: .env"), "{result}");
}

#[test]
fn a_branch_that_begins_with_unfinished_files_says_how_many_and_what_to_push_instead() {
    let env = TestEnvironment::new(Wire::Chat, vec![write("b.txt", "b\n"), Step::hand_back()]);
    env.checkout.write("a.txt", "unfinished\n").write("draft.txt", "draft\n");
    let run = env.run(&["delegate", "Make b.txt."]);
    let line = "begins     with 2 uncommitted files of yours, which a push would publish; to leave them out, commit the task's part only \
         (`nisse apply --commit 000000000100`), or start without them (`nisse delegate --base HEAD`)";
    assert!(run.exits(0).stdout.lines().any(|told| told == line), "{}", run.report());
    let result = env.run(&["resume", "--json", "000000000100"]).ends(0, "handback");
    assert_eq!((&result["dirty"], &result["unfinished_files"]), (&json!(true), &json!(2)));

    env.run(&["apply", "--commit", "000000000100"]).exits(0);
    env.changed_paths();
    assert_eq!(env.checkout.git(&["show", "--format=", "--name-only", "main"]), "b.txt");
}

#[test]
fn a_task_from_a_base_begins_with_nothing_of_the_persons() {
    let env = TestEnvironment::new(Wire::Chat, vec![write("b.txt", "b\n"), Step::hand_back()]);
    env.checkout.write("a.txt", "unfinished\n").write(".env", "KEY=mine\n");
    let run = env.run(&["delegate", "--base", "HEAD", "Make b.txt."]);
    assert!(!run.exits(0).stdout.contains("uncommitted"), "{}", run.report());
    let result = env.run(&["resume", "--json", "00000000-0000-7000-8000-000000000100"]).ends(0, "handback");
    assert_eq!((&result["dirty"], &result["unfinished_files"]), (&json!(false), &json!(0)));
    assert_eq!(in_all_commits(&env, &result), "b.txt\na.txt");
}

#[test]
fn links_to_the_persons_dependencies_stay_where_they_are() {
    let line = |env: &TestEnvironment| {
        let root = env.checkout.path().display();
        format!(
            "ln -s {root}/node_modules node_modules && ln -s {root}/target target && cat node_modules/x target/warm"
        )
    };
    // the command names the checkout, which is known only when the world stands
    let scratch = tempfile::tempdir().unwrap();
    let script = scratch.path().join("link.sh");
    let steps = vec![command(&format!("sh {}", script.display())), write("main.js", "2\n"), Step::hand_back()];
    let env = TestEnvironment::new(Wire::Chat, steps);
    fs::write(&script, line(&env)).unwrap();
    env.checkout.write(".gitignore", "node_modules/\ntarget/\n").commit("rules");
    env.checkout.write("node_modules/x", "mine\n").write("target/warm", "warm\n");
    let result = env.delegate(&[], "Make main.js print 2.").ends(0, "handback");
    assert_eq!(in_all_commits(&env, &result), "main.js\n.gitignore\na.txt");
    let gone = notices(&result).pop().unwrap().to_owned();
    assert!(gone.ends_with("removed with the worktree: node_modules, target"), "{gone}");
    env.run(&["apply", result["task"].as_str().unwrap()]).exits(0);
    assert_eq!(env.changed_paths().iter().filter(|path| !path.starts_with(".git/")).count(), 1);
    assert_eq!(fs::read_to_string(env.checkout.path().join("node_modules/x")).unwrap(), "mine\n");
}

#[test]
fn a_state_directory_inside_the_checkout_is_in_no_commit() {
    let env = TestEnvironment::new(Wire::Chat, vec![command("ls -a; echo b > b.txt"), Step::hand_back()]);
    env.may_add("var");
    let state = env.checkout.path().join("var/nisse");
    env.set("NISSE_STATE_DIR", state.to_str().unwrap());
    env.checkout.write("notes.txt", "unfinished\n");
    let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
    assert_eq!(in_all_commits(&env, &result), "b.txt\nnotes.txt\na.txt");
    let told = "not carried over, because it is the state directory of nisse: var/nisse";
    assert!(notices(&result).contains(&told), "{result}");
}
