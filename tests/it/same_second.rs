//! What nisse writes is what runs next, also within the second in which the version before it was run: Python knows a
//! source by its size and the whole second of its time.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::{
    apply::handed_back_with,
    support::{Asked, Script, Step, TestEnvironment, Wire},
};

const ROUNDS: usize = 20;
/// With these set, Python would keep no bytecode there, and no test here could fail.
const PLAIN: &str = "unset PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX";

const TEST: &str = "import unittest\nimport calc\n\n\nclass Calc(unittest.TestCase):\n    def test_value(self):\n        \
                    self.assertEqual(str(calc.VALUE), open('expected').read())\n";

fn command(line: &str) -> Step {
    Step::call("run_command", json!({"command": format!("{PLAIN}; {line}")}))
}

fn edit(old: &str, new: &str) -> Step {
    Step::call("edit_file", json!({"path": "calc.py", "old": old, "new": new}))
}

/// The tests of the project, which expect this value.
fn tests(expected: &str) -> Step {
    command(&format!("printf %s '{expected}' > expected; python3 -m unittest -q"))
}

fn project(env: &TestEnvironment) {
    env.checkout.write(".gitignore", "__pycache__/\n").write("calc.py", "VALUE = 10\n");
    env.checkout.write("test_calc.py", TEST).write("expected", "10").commit("project");
}

fn world(steps: Vec<Step>) -> TestEnvironment {
    let env = TestEnvironment::new(Wire::Chat, Script::ByHistory(steps));
    project(&env);
    env
}

/// The answers to the commands that a model was told, in order.
fn answers(env: &TestEnvironment) -> Vec<String> {
    let requests = env.server.requests();
    let told = requests.iter().flat_map(Asked::last_answers).map(|answer| answer.text);
    told.filter(|text| text.starts_with("exit status")).collect()
}

#[test]
fn an_edit_of_the_same_size_is_what_the_next_test_run_judges() {
    let mut steps = vec![tests("10")];
    for round in 0..ROUNDS {
        let (old, new) = (format!("{}", 10 + round), format!("{}", 11 + round));
        steps.extend([edit(&old, &new), tests(&new)]);
    }
    steps.push(Step::hand_back());
    let env = world(steps);
    env.delegate(&["--max-turns", "100"], "Count.").ends(0, "handback");
    let answers = answers(&env);
    assert_eq!(answers.len(), ROUNDS + 1);
    for (round, answer) in answers.iter().enumerate() {
        assert!(answer.starts_with("exit status 0"), "round {round}: {answer}");
    }
}

#[test]
fn another_size_in_between_makes_no_difference() {
    let runs = |value: u32| command(&format!("python3 -c 'import calc; assert calc.VALUE == {value}'"));
    let mut steps = Vec::new();
    for value in (10..40).step_by(4) {
        let [first, second, third] = [value + 1, 1000 + value, value + 4];
        steps.extend([
            edit(&value.to_string(), &first.to_string()),
            runs(first),
            edit(&first.to_string(), &second.to_string()),
            edit(&second.to_string(), &third.to_string()),
            runs(third),
        ]);
    }
    steps.push(Step::hand_back());
    let env = world(steps);
    env.delegate(&["--max-turns", "100"], "Count.").ends(0, "handback");
    for answer in answers(&env) {
        assert!(answer.starts_with("exit status 0"), "{answer}");
    }
}

#[test]
fn what_is_put_back_after_a_check_is_what_runs_next() {
    for _ in 0..3 {
        let check = format!("{PLAIN}; printf 'VALUE = 66\\n' > calc.py; python3 -c 'import calc'; false");
        let steps = vec![edit("10", "20"), Step::hand_back(), tests("20"), Step::give_up()];
        let env = world(steps);
        env.delegate(&["--check", &check], "Count.").ends(3, "failed");
        let answers = answers(&env);
        assert!(answers[0].starts_with("exit status 0"), "{answers:?}");
    }
}

/// What calc.py holds, as the person's Python has it.
fn value(env: &TestEnvironment) -> String {
    let mut python = Command::new("python3");
    python.args(["-c", "import calc; print(calc.VALUE)"]).current_dir(env.checkout.path()).stdin(Stdio::null());
    python.env_remove("PYTHONDONTWRITEBYTECODE").env_remove("PYTHONPYCACHEPREFIX");
    String::from_utf8(python.output().unwrap().stdout).unwrap().trim().to_owned()
}

#[test]
fn what_is_applied_and_taken_back_is_what_the_person_runs_next() {
    let (env, task) = handed_back_with(project, &["sed -i s/10/20/ calc.py"]);
    // beside unfinished work it comes as files, which can be taken back
    env.checkout.write("a.txt", "unfinished\n");
    for _ in 0..3 {
        assert_eq!(value(&env), "10");
        env.person(|_| {}).run(&["apply", "--json", &task]).exits(0);
        assert_eq!(value(&env), "20");
        env.person(|_| {}).run(&["apply", "--json", &task, "--abort"]).exits(0);
        env.person(|_| {});
    }
    assert_eq!(value(&env), "10");
    env.person(|_| {});
}
