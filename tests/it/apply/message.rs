//! The message of a commit of the person's is the note, line by line (case N2-10).

use serde_json::json;

use super::applied;
use crate::support::{Step, TestEnvironment, Wire};

#[test]
fn lines_that_look_like_comments_stay_in_the_message() {
    for manner in ["--squash", "--commit", "--merge"] {
        let env = TestEnvironment::new(
            Wire::Chat,
            vec![
                Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
                Step::call(
                    "hand_back",
                    json!({
                        "changed": "#17 b.txt holds the letter b\n# Why\nthe loader needs it",
                        "now_true": "; cat b.txt prints b\n# ------------------------ >8 ------------------------\nbelow",
                        "next": "nothing",
                        "succeeded": true
                    }),
                ),
            ],
        );
        let result = env.delegate(&[], "Make b.txt (#17).").ends(0, "handback");
        let (task, branch) = (result["task"].as_str().unwrap(), result["branch"].as_str().unwrap());
        let note = env.checkout.git(&["log", "-1", "--format=%B", branch]);
        for line in ["#17 b.txt holds the letter b", "# Why", "Now true: ; cat b.txt prints b"] {
            assert!(note.lines().any(|one| one == line), "{line}: {note}");
        }
        env.person(|checkout| {
            checkout.write("own.txt", "mine\n").commit("meanwhile");
        });
        env.keep("before");
        for (cleanup, mark) in
            [("strip", "#"), ("scissors", "#"), ("whitespace", "#"), ("default", ";"), ("strip", ";")]
        {
            env.bring_back("before");
            env.checkout.git(&["config", "commit.cleanup", cleanup]);
            env.checkout.git(&["config", "core.commentChar", mark]);
            env.checkout.write("loose.txt", "unfinished\n");
            applied(&env.run(&["apply", "--json", task, manner]), "commits");
            let made = if manner == "--merge" { "HEAD^2" } else { "HEAD" };
            assert_eq!(env.checkout.git(&["log", "-1", "--format=%B", made]), note, "{manner} {cleanup} {mark}");
            assert_eq!(env.checkout.git(&["status", "--porcelain"]), "?? loose.txt", "{manner} {cleanup} {mark}");
        }
        env.changed_paths();
    }
}

#[test]
fn a_hook_of_the_persons_still_has_the_last_word() {
    let (env, task) = super::handed_back(|_| {}, "echo b > b.txt");
    env.person(|checkout| {
        let hook = checkout.path().join(".git/hooks/commit-msg");
        std::fs::write(&hook, "#!/bin/sh\necho 'Signed-off-by: hook' >> \"$1\"\n").unwrap();
        checkout.executable(".git/hooks/commit-msg");
    });
    applied(&env.run(&["apply", "--json", &task, "--squash"]), "commits");
    assert!(env.checkout.git(&["log", "-1", "--format=%B"]).ends_with("Signed-off-by: hook"));
    env.changed_paths();
}
