//! What models send that is not what was asked for.

use serde_json::{Value, json};

use crate::support::{Finish, Step, TestEnvironment, Wire};

fn write(path: &str, content: &str) -> Step {
    Step::call("write_file", json!({"path": path, "content": content}))
}

#[test]
fn nothing_of_a_reply_cut_by_the_output_limit_runs() {
    for wire in Wire::BOTH {
        let half = r##"{"path": "big.md", "content": "# Title\n## 1\ntext te"##;
        let env = TestEnvironment::new(
            wire,
            vec![
                Step::call("run_command", json!({"command": "echo ran > ran-anyway"}))
                    .and_raw_call("write_file", half)
                    .finish(Finish::Length),
                write("big.md", "# Title\n"),
                Step::hand_back(),
            ],
        );
        let result = env.delegate(&[], "Write big.md.").ends(0, "handback");
        assert_eq!(env.on_branch(&result, "big.md").unwrap(), b"# Title\n");
        assert_eq!(env.on_branch(&result, "ran-anyway"), None, "a whole call of a truncated reply ran");
        let second = &env.server.requests()[1];
        let answers: String = second.last_answers().into_iter().map(|answer| answer.text).collect();
        let told = format!("{answers}{}", second.last_told());
        assert!(told.contains("limit"), "the model is not told of the limit: {told}");
    }
}

#[test]
fn the_same_call_with_the_same_result_is_a_loop_at_the_fourth_time() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(wire, vec![Step::call("read_file", json!({"path": "a.txt"})); 25]);
        let run = env.delegate(&[], "Check a.txt.");
        let cause = run.ends(3, "failed")["cause"].as_str().unwrap().to_owned();
        assert_eq!(cause, "a loop: the same read_file with the same result 4 times in a row");
        let requests = env.server.requests();
        assert_eq!(requests.len(), 4, "{}", run.report());
        let third = format!("{:?}{}", requests[3].last_answers(), requests[3].last_told());
        let second = format!("{:?}{}", requests[2].last_answers(), requests[2].last_told());
        assert!(third.len() > second.len(), "the model is not told at the third time: {third}");
    }
}

#[test]
fn a_model_is_told_of_a_loop_before_it_fails_however_many_calls_a_reply_holds() {
    for wire in Wire::BOTH {
        let read = || Step::call("read_file", json!({"path": "a.txt"}));
        let five = (0..4).fold(read(), |step, _| step.and_call("read_file", json!({"path": "a.txt"})));
        let env = TestEnvironment::new(wire, vec![five.clone(), write("b.txt", "b\n"), Step::hand_back()]);
        env.delegate(&[], "Make b.txt.").ends(0, "handback");
        assert!(env.server.requests()[1].last_told().contains("5 times"), "the model is not told");
        let env = TestEnvironment::new(wire, vec![five, read()]);
        let result = env.delegate(&[], "Make b.txt.").ends(3, "failed");
        assert!(result["cause"].as_str().unwrap().contains("a loop: the same read_file"), "{result}");
    }
}

#[test]
fn the_same_tool_with_other_arguments_is_no_loop() {
    for wire in Wire::BOTH {
        let edit = |n| Step::call("edit_file", json!({"path": format!("m{n}.txt"), "old": "v1", "new": "v2"}));
        let mut steps: Vec<Step> = (1..=25).map(edit).collect();
        steps.push(Step::hand_back());
        let env = TestEnvironment::new(wire, steps);
        for n in 1..=25 {
            env.checkout.write(&format!("m{n}.txt"), "v1\n");
        }
        env.checkout.commit("files");
        let result = env.delegate(&[], "Set v2 in all m files.").ends(0, "handback");
        for n in 1..=25 {
            assert_eq!(env.on_branch(&result, &format!("m{n}.txt")).unwrap(), b"v2\n", "m{n}.txt");
        }
    }
}

#[test]
fn arguments_that_mean_one_thing_are_taken_and_others_are_told_precisely() {
    for wire in Wire::BOTH {
        let bad = [r#"["a.txt"]"#, "", "null", r#"{"path": {"x": 1}}"#];
        let mut steps = vec![
            Step::raw_call("edit_file", r#"{"path": "r.txt", "old": "x x x", "new": "y", "replace_all": "false"}"#),
            Step::raw_call("edit_file", r#"{"path": "r.txt", "old": "y", "new": "z", "replace_all": null}"#),
            Step::raw_call("read_file", r#""{\"path\": \"a.txt\"}""#),
            Step::call("read_file", json!({"path": "a.txt", "start_line": "1", "end_line": "1"})),
        ];
        for shape in bad {
            // a good call between them, so that they are not three bad replies in a row
            steps.push(Step::raw_call("read_file", shape));
            steps.push(Step::call("list_files", json!({"glob": format!("*{}*", steps.len())})));
        }
        steps.push(Step::hand_back());
        let env = TestEnvironment::new(wire, steps);
        env.checkout.write("r.txt", "x x x\n").commit("r");
        let result = env.delegate(&[], "Edit r.txt.").ends(0, "handback");
        assert_eq!(env.on_branch(&result, "r.txt").unwrap(), b"z\n");
        let requests = env.server.requests();
        let answer = |nth: usize| requests[nth].last_answers().remove(0).text;
        assert!(answer(3).lines().any(|line| line.ends_with('a')), "encoded twice: {}", answer(3));
        assert!(answer(4).lines().any(|line| line.ends_with('a')), "numbers as strings: {}", answer(4));
        for (nth, shape) in bad.iter().enumerate() {
            let told = answer(5 + 2 * nth);
            assert!(told.contains("path") || told.contains("object"), "{shape:?}: {told}");
        }
    }
}

#[test]
fn tools_that_are_not_there_are_answered_and_their_names_made_legal() {
    for wire in Wire::BOTH {
        let long = "x".repeat(300);
        let names = ["", "functions.read_file:0", long.as_str(), "naïve tool!"];
        let mut steps = vec![
            Step::call("execute_python", json!({"code": "print(1)"})).and_call("read_file", json!({"path": "a.txt"})),
        ];
        for (nth, name) in names.iter().enumerate() {
            steps.push(Step::call(name, json!({"path": "a.txt"})));
            steps.push(write(&format!("b{nth}.txt"), "b\n"));
        }
        steps.push(Step::hand_back());
        let env = TestEnvironment::new(wire, steps);
        env.delegate(&[], "Read a.txt.").ends(0, "handback"); // the server refuses an illegal name in the history
        let requests = env.server.requests();
        let first = requests[1].last_answers();
        assert!(first[0].text.contains("read_file"), "the real tools are not named: {first:?}");
        assert!(first[1].text.contains('a') && !first[1].text.contains("execute_python"), "{first:?}");
        for (nth, name) in names.iter().enumerate() {
            let answers = requests[2 + 2 * nth].last_answers();
            assert!(answers[0].text.contains("run_command"), "{name:?}: {answers:?}");
        }
    }
}

#[test]
fn calls_written_as_prose_are_never_run_and_end_without_success() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(
            wire,
            vec![
                Step::text(
                    "I will write it.\n<function=write_file>\n<parameter=path>\nb.txt\n</parameter>\n<parameter=content>\nx\n</parameter>",
                ),
                Step::text(
                    r#"<tool_call>{"name": "write_file", "arguments": {"path": "b.txt", "content": "x"}}</tool_call>"#,
                ),
                Step::text(r#"[TOOL_CALL] {tool => "write_file", args => {--path "b.txt"}} [/TOOL_CALL]"#),
                Step::text("```json\n{\"tool\": \"write_file\"}\n```"),
            ],
        );
        let run = env.delegate(&[], "Create b.txt.");
        let result = run.ends(3, "failed");
        let requests = env.server.requests();
        assert_eq!(requests.len(), 3);
        assert!(requests[1].last_told().contains("call"), "not told how to call: {}", requests[1].last_told());
        assert_eq!(result["artifacts"], json!([]), "a call was run out of prose");
    }
}

#[test]
fn empty_turns_are_asked_again_and_never_end_in_success() {
    for wire in Wire::BOTH {
        let whole = |content: Value| Step::plain(200, &[], "application/json", &whole_body(wire, &content).to_string());
        let nothing = match wire {
            Wire::Chat => {
                json!([{"index": 0, "message": {"role": "assistant", "content": null}, "finish_reason": "stop"}])
            }
            Wire::Messages => json!([]),
        };
        let mut steps = vec![Step::text(""), whole(nothing), write("b.txt", "x\n"), Step::text("   \n")];
        steps.push(Step::empty().thinking("I should now finish the second file.", "sig=="));
        if wire == Wire::Chat {
            steps.push(whole(json!([]))); // no choice at all is no reply: it is asked again
        }
        steps.push(Step::text(""));
        let (env, expected) = (TestEnvironment::new(wire, steps.clone()), steps.len());
        let result = env.delegate(&[], "Create b.txt and c.txt.").ends(3, "failed");
        assert_eq!(env.server.requests().len(), expected);
        assert_eq!(result["artifacts"], json!(["b.txt"]));
    }
}

/// A whole JSON answer to a streamed request.
fn whole_body(wire: Wire, content: &Value) -> Value {
    match wire {
        Wire::Chat => json!({
            "id": "x", "object": "chat.completion", "created": 0, "model": "case-model", "choices": content,
            "usage": {"prompt_tokens": 900, "completion_tokens": 2, "total_tokens": 902},
        }),
        Wire::Messages => json!({
            "id": "x", "type": "message", "role": "assistant", "model": "case-native", "content": content,
            "stop_reason": "end_turn", "stop_sequence": null, "usage": {"input_tokens": 900, "output_tokens": 2},
        }),
    }
}

#[test]
fn an_edit_that_fits_several_places_or_none_changes_nothing() {
    for wire in Wire::BOTH {
        let edit =
            |path: &str, old: &str, new: &str| Step::call("edit_file", json!({"path": path, "old": old, "new": new}));
        let env = TestEnvironment::new(
            wire,
            vec![
                edit("m.py", "    return 1", "    return 2"),
                edit("t.md", "- [x] three (src/two)", "- [ ] three"),
                edit("m.py", "def b():\n    return 1", "def b():\n    return 2"),
                edit("m.py", "zzz", "zzz"),
                Step::hand_back(),
            ],
        );
        env.checkout.write("m.py", "def a():\n    return 1\n\ndef b():\n    return 1\n");
        env.checkout.write("t.md", "- [x] one (src/one)\n- [x] two (src/two)\n").commit("files");
        let result = env.delegate(&[], "Make b return 2.").ends(0, "handback");
        let wanted = "def a():\n    return 1\n\ndef b():\n    return 2\n";
        assert_eq!(env.on_branch(&result, "m.py").unwrap(), wanted.as_bytes());
        assert_eq!(result["artifacts"], json!(["m.py"]));
        let requests = env.server.requests();
        let answer = |nth: usize| requests[nth].last_answers().remove(0).text;
        let several = answer(1);
        assert!(several.contains('2') && several.contains('5'), "count and lines of the matches: {several}");
        assert!(answer(2).contains("two (src/two)"), "the nearest line: {}", answer(2));
        assert!(
            answer(4).contains("same") || answer(4).contains("equal") || answer(4).contains("identical"),
            "{}",
            answer(4)
        );
    }
}

#[test]
fn missing_and_repeated_call_ids_become_unique() {
    for wire in Wire::BOTH {
        let run = |text: &str| Step::call("run_command", json!({"command": format!("echo {text}")}));
        let env = TestEnvironment::new(
            wire,
            vec![
                run("r1").and_call("run_command", json!({"command": "echo r2"})).ids(&["", ""]),
                run("r3").ids(&["same"]),
                run("r4").ids(&["same"]),
                Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded."),
                write("b.txt", "b\n").ids(&["same"]),
                Step::hand_back(),
            ],
        );
        env.delegate(&[], "Run four echoes.").ends(5, "interrupted");
        env.run(&["resume", "--json"]).ends(0, "handback");
        let last = env.server.requests().pop().unwrap();
        let answers: Vec<String> = last.answers().into_iter().map(|answer| answer.text).collect();
        for (nth, wanted) in ["r1", "r2", "r3", "r4"].iter().enumerate() {
            assert!(answers[nth].contains(wanted), "answer {nth} is not {wanted}'s: {answers:?}");
        }
    }
}
