//! What a model, a log, a branch and a terminal must not hold, wherever it comes from and wherever it is cut.

use std::{fs, path::Path};

use serde_json::json;

use crate::support::{Script, Step, TestEnvironment, Wire};

/// `x-access-token:ghs_CANARYn2n2n2n2n2n2n2n2n2n2n2` in base64, as a CI service writes it into the configuration.
const BASIC: &str = "eC1hY2Nlc3MtdG9rZW46Z2hzX0NBTkFSWW4ybjJuMm4ybjJuMm4ybjJuMm4ybjI=";
/// The value of a variable that no command is given.
const PASSWD: &str = "CANARY-passwd-31415926";
/// A private key, as it stands in a file.
const KEY: &str =
    "-----BEGIN RSA PRIVATE KEY-----\nCANARYkeyCANARYkey1\nCANARYkeyCANARYkey2\n-----END RSA PRIVATE KEY-----\n";

fn command(line: &str) -> Step {
    Step::call("run_command", json!({"command": line}))
}

/// A world whose configuration, files and variables hold secrets.
fn world(steps: Vec<Step>) -> TestEnvironment {
    let env = TestEnvironment::new(Wire::Chat, steps);
    let header = format!("AUTHORIZATION: basic {BASIC}");
    env.checkout.git(&["config", "http.https://git.example.invalid/.extraheader", &header]);
    let remote = "https://ci-bot:CANARY%21pass5518@git.example.invalid/team/app.git";
    env.checkout.git(&["remote", "add", "origin", remote]);
    let line = format!("{}{PASSWD}{}\n", "x".repeat(1990), "y".repeat(600));
    let searched = format!("FIND{}{PASSWD}{}\n", "x".repeat(490), "y".repeat(600));
    env.checkout.write("long.txt", line + &searched).write("deploy.txt", KEY).commit("files");
    env.set("DB_PASSWD", PASSWD).set("GOOGLE_APPLICATION_CREDENTIALS", env.checkout.path().to_str().unwrap());
    env
}

/// Every place below a directory where one of the words stands.
fn places(directory: &Path, words: &[&str], found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            places(&entry.path(), words, found);
        } else if let Ok(bytes) = fs::read(entry.path()) {
            let holds = |word: &&&str| memchr::memmem::find(&bytes, word.as_bytes()).is_some();
            found.extend(words.iter().filter(holds).map(|word| format!("{}: {word}", entry.path().display())));
        }
    }
}

#[test]
fn no_secret_reaches_the_model_the_log_a_branch_or_the_output() {
    // at each place a part of the secret lies on either side of where the output is cut
    let cut = |before: usize, after: usize| {
        format!(
            "head -c {before} /dev/zero | tr '\\0' x; cat /proc/$PPID/environ | tr '\\0' '\\n' | sed -n 's/^DB_PASSWD=//p' | tr -d '\\n'; head -c {after} /dev/zero | tr '\\0' y"
        )
    };
    let (head, tail) = (cut(16 * 1024 - 8, 90_000), cut(90_000, 16 * 1024 - 8));
    let quoting = Step::text(&format!("The password is {PASSWD}.\n"))
        .and_call("write_file", json!({"path": "b.txt", "content": "b\n"}))
        .and_call("read_file", json!({"path": "long.txt"}))
        .and_call("read_file", json!({"path": "deploy.txt", "start_line": 2, "end_line": 2}))
        .and_call("search", json!({"pattern": "FIND|CANARYkey2"}))
        .and_call("edit_file", json!({"path": "deploy.txt", "old": "CANARYkeyCANARYkey3", "new": "x"}));
    let note = json!({"changed": format!("b.txt, by {PASSWD}"), "now_true": "ghp_CANARYCANARYCANARYCANARY was seen",
        "next": "nothing", "succeeded": true});
    let env = world(vec![
        command("git config --list; git remote -v; cat \"$(git rev-parse --git-common-dir)/config\""),
        command("tr '\\0' '\\n' < /proc/$PPID/environ"),
        command(&head).and_call("run_command", json!({"command": tail})),
        quoting,
        Step::call("hand_back", note),
    ]);
    let check = cut(5000, 3990);
    let run = env.delegate(&["--check", &check, "--check", "git config --list"], &format!("Make b.txt, not {PASSWD}."));
    let result = run.ends(0, "handback");
    assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");

    let told = env.run(&["log", "--json", result["task"].as_str().unwrap()]).exits(0).stdout.clone();
    let history = env.checkout.git(&["log", "--all", "--format=%D %B"]);
    let sent: String = env.server.requests().iter().map(|asked| asked.raw.as_str()).collect();
    let pieces = ["CANARY", BASIC, &BASIC[..20], "ghs_CAN", "pass5518", "31415926"];
    for (place, text) in
        [("sent", &sent), ("stdout", &run.stdout), ("stderr", &run.stderr), ("log", &told), ("history", &history)]
    {
        for piece in pieces {
            let seen = text.find(piece).map(|at| text.get(at.saturating_sub(200)..at + piece.len()));
            // the search's own pattern, and the path of the edit, are the model's words
            let own = ["FIND|CANARYkey2", "CANARYkeyCANARYkey3"];
            let rest = own.iter().fold(text.clone(), |rest, own| rest.replace(own, ""));
            assert!(!rest.contains(piece), "{place} holds {piece}: {seen:?}");
        }
    }
    let mut found = Vec::new();
    places(&env.state(), &["CANARY-", BASIC, "ghs_CAN", "pass5518"], &mut found);
    assert!(found.is_empty(), "{found:?}");
    // what is not secret is still there
    for word in ["extraheader", "git.example.invalid", "DB_PASSWD", env.checkout.path().to_str().unwrap()] {
        assert!(sent.contains(word), "{word} was masked too");
    }
    assert!(result["branch"].as_str().unwrap().contains("masked"), "{result}");
}

#[test]
fn what_is_run_or_named_as_it_is_may_hold_no_secret() {
    let env = world(Vec::new());
    let check = format!("grep -q {PASSWD} a.txt");
    for (options, what) in [
        (["--check", &check], "a check command"),
        (["--branch", &PASSWD.to_lowercase().replace("canary", "CANARY")], "the branch's name"),
    ] {
        let error = env.delegate(&options, "Make b.txt.").exits(2).json().pop().unwrap()["error"].clone();
        assert_eq!(error["kind"], "holds_secret", "{error}");
        assert!(error["message"].as_str().unwrap().starts_with(what), "{error}");
        assert!(!error.to_string().contains(PASSWD), "{error}");
    }
    assert_eq!(env.run(&["log"]).exits(0).stdout, "", "a task was begun");
    // an error names what was typed, and hides what is secret of it
    let run = env.run(&["log", PASSWD]);
    assert!(!run.exits(2).stderr.contains("CANARY"), "{}", run.report());
}

/// What a command writes is not changed; a push would publish it, so it is said, and so is a mask in the place of a secret.
#[test]
fn secrets_that_a_command_wrote_are_named_with_their_files() {
    let env = world(vec![
        command("git config --list > settings.txt; echo b > b.txt"),
        command("curl -u '[masked by nisse]' localhost"),
        Step::hand_back(),
    ]);
    let result = env.delegate(&[], "Write settings.txt.").ends(0, "handback");
    let notices = result["notices"].to_string();
    assert!(notices.contains("what looks like secrets") && notices.contains(": settings.txt; "), "{notices}");
    let refused = &env.server.requests()[2].last_answers()[0].text;
    assert!(refused.contains("Not run: the command holds `[masked by nisse]`"), "{refused}");
}

/// What a person gives to commands may turn up anywhere, also where it is a word like any other.
#[test]
fn what_is_passed_to_commands_is_masked_at_first_and_after_a_resume() {
    let went = std::sync::atomic::AtomicBool::new(false);
    let script = Script::by_content(move |asked| match asked.replies() {
        0 => command("echo \"it is $BUILD_TOKEN\"; echo b > b.txt"),
        1 if !went.swap(true, std::sync::atomic::Ordering::SeqCst) => {
            Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.")
        }
        1 => command("echo \"again $BUILD_TOKEN\""),
        _ => Step::hand_back(),
    });
    let env = TestEnvironment::new(Wire::Chat, script);
    env.configure("[commands]\npass_env = [\"BUILD_TOKEN\"]\n").set("BUILD_TOKEN", "wordyword");
    let first = env.delegate(&[], "Make b.txt.");
    first.ends(5, "interrupted");
    let second = env.run(&["resume", "--json"]);
    second.ends(0, "handback");
    let last = env.server.requests().pop().unwrap().raw;
    assert!(last.contains("it is [masked by nisse]") && last.contains("again [masked by nisse]"), "{last}");
    for run in [&first, &second] {
        assert!(!run.stdout.contains("wordyword") && !run.stderr.contains("wordyword"), "{}", run.report());
    }
}
