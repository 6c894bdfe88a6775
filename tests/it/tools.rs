//! The tools offered to a model, on this machine: what a model's calls do to real files and what it reads about it.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    time::Duration,
};

use nisse::{
    adapters::host::Local,
    agent::tools::{self, FileRules, Looked, Refusal, Tool},
    domain::{
        event::ResultStatus,
        id::Hash,
        mask::Mask,
        message::Call,
        role::ToolName,
        started::{CommandRules, Sandbox},
    },
    ports::host::{Host, LastLine},
};
use serde_json::{Value, json};

/// A directory of its own, with what the model knows of its files.
struct Project {
    directory: tempfile::TempDir,
    host: Local,
    rules: FileRules,
    known: BTreeMap<String, Hash>,
}

impl Project {
    /// A project that a shell script made.
    async fn made_by(script: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let host = Local::new(directory.path(), [("PATH", "/usr/local/bin:/usr/bin:/bin")]);
        let rules = FileRules::new(&[".env*".to_owned(), "*.pem".to_owned()]).expect("globs");
        let mut project = Self { directory, host, rules, known: BTreeMap::new() };
        let made = project.run(script).await;
        assert_eq!(made.status, ResultStatus::Done, "{made:?}");
        project
    }

    /// Makes a call as the loop does, and returns its answer.
    async fn call(&mut self, tool: ToolName, arguments: &Value) -> Looked {
        self.call_as_written(tool.as_str(), &arguments.to_string()).await
    }

    async fn call_as_written(&mut self, name: &str, arguments: &str) -> Looked {
        let answered = |status, content| Looked { status, content, seen: None };
        let call = Call::minted(1, 0, "", name, arguments, &[]);
        let tool = match tools::parse(&call, &tools::offer(&ToolName::ALL)) {
            Ok(tool) => tool,
            Err(refusal) => return answered(refusal.status(), refusal.text().to_owned()),
        };
        match tool {
            Tool::Look(look) => {
                let looked =
                    tools::inspect(&look, &self.host, &self.rules, &Mask::default()).await.expect("the machine works");
                if let Some(seen) = looked.seen.clone() {
                    self.known.insert(seen.path, seen.hash);
                }
                looked
            }
            Tool::Edit(edit) => {
                let known = |path: &str| self.known.get(path).cloned();
                match tools::plan_edit(&edit, &self.host, &self.rules, &known, &Mask::default())
                    .await
                    .expect("the machine works")
                {
                    Err(reason) => answered(ResultStatus::Refused, reason),
                    Ok(plan) => {
                        let written = self.host.write(&plan.path, plan.before.as_ref(), &plan.bytes).await;
                        written.expect("nobody else writes");
                        assert_eq!(plan.after, Hash::of(&plan.bytes));
                        self.known.insert(plan.path, plan.after);
                        answered(ResultStatus::Done, plan.answer)
                    }
                }
            }
            Tool::RunCommand(run) => {
                match self.host.run(&run.on_host(Duration::from_mins(1), &rules()), &LastLine::default()).await {
                    Ok(output) => {
                        let (status, content) = tools::command_answer(&run.command, &output);
                        answered(status, content)
                    }
                    Err(error) => answered(ResultStatus::Refused, error.to_string()),
                }
            }
            Tool::HandBack(note) => answered(ResultStatus::Done, format!("{note:?}")),
        }
    }

    async fn read(&mut self, path: &str) -> String {
        self.call(ToolName::ReadFile, &json!({ "path": path })).await.content
    }

    async fn edit(&mut self, path: &str, old: &str, new: &str) -> Looked {
        self.call(ToolName::EditFile, &json!({ "path": path, "old": old, "new": new })).await
    }

    async fn write(&mut self, path: &str, content: &str) -> Looked {
        self.call(ToolName::WriteFile, &json!({ "path": path, "content": content })).await
    }

    async fn run(&mut self, command: &str) -> Looked {
        self.call(ToolName::RunCommand, &json!({ "command": command })).await
    }

    fn bytes(&self, path: &str) -> Vec<u8> {
        fs::read(self.directory.path().join(path)).expect("a file")
    }
}

#[test]
fn the_schemas_are_closed_objects_of_plain_types() {
    let schemas = tools::offer(&ToolName::ALL);
    assert_eq!(schemas.iter().map(|schema| schema.name).collect::<Vec<_>>(), ToolName::ALL);
    for schema in &schemas {
        let text = schema.parameters.to_string();
        for word in ["$schema", "$defs", "$ref", "\"title\"", "\"format\"", "null", "[\"string\""] {
            assert!(!text.contains(word), "{word} in {text}");
        }
        assert_eq!(schema.parameters["type"], "object");
        assert_eq!(schema.parameters["additionalProperties"], false);
        assert!(!schema.description.is_empty());
        for (name, field) in schema.parameters["properties"].as_object().expect("properties") {
            assert!(field["type"].is_string() && field["description"].is_string(), "{name}: {field}");
        }
    }
    assert_eq!(schemas[0].parameters["required"], json!(["path"]));
    assert_eq!(schemas[4].parameters["required"], json!(["path", "old", "new"]));
    assert_eq!(schemas[6].parameters["required"], json!(["changed", "now_true", "next", "succeeded"]));
    assert!(tools::offer(&[]).is_empty());
}

#[tokio::test]
async fn arguments_that_mean_one_thing_are_taken() {
    let mut project = Project::made_by("printf 'a\\n' > a.txt; printf 'x x x\\n' > r.txt").await;
    for arguments in [
        r#"{"path": "r.txt", "old": "x x x", "new": "y", "replace_all": "false"}"#,
        r#"{"path": "r.txt", "old": "y", "new": "z", "replace_all": null}"#,
        r#"{"path": "r.txt", "old": "z", "new": 7, "replace_all": ""}"#,
        r#"{"path": "r.txt", "old": 7, "new": "z", "replace_all": "True"}"#,
    ] {
        assert_eq!(project.call_as_written("edit_file", arguments).await.status, ResultStatus::Done, "{arguments}");
    }
    assert_eq!(project.bytes("r.txt"), b"z\n");
    for arguments in [
        r#""{\"path\": \"a.txt\"}""#,
        r#"{"path": "a.txt", "start_line": "1", "end_line": 1.0}"#,
        r#"  {"path": "a.txt", "end_line": null}  "#,
    ] {
        assert_eq!(project.call_as_written("read_file", arguments).await.content, "1\ta\n", "{arguments}");
    }
    for arguments in ["", "null", "{}", " \n", "\"\""] {
        assert_eq!(project.call_as_written("list_files", arguments).await.content, "a.txt\nr.txt\n", "{arguments}");
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_answered_with_field_and_type() {
    let mut project = Project::made_by("printf 'a\\n' > a.txt").await;
    for (arguments, status, words) in [
        (r#"["a.txt"]"#, ResultStatus::Unreadable, &["an array", "\"path\": string"][..]),
        ("\"a.txt\"", ResultStatus::Unreadable, &["not valid JSON", "\"path\": string"]),
        ("{\"path\": \"a.t", ResultStatus::Unreadable, &["not valid JSON"]),
        (r#"{"path":"a.txt"}{"path":"b.txt"}"#, ResultStatus::Unreadable, &["several JSON objects"]),
        ("", ResultStatus::Refused, &["`path` is missing: expected a string"]),
        ("null", ResultStatus::Refused, &["`path` is missing: expected a string"]),
        (r#"{"path": " "}"#, ResultStatus::Refused, &["`path` is blank"]),
        (
            r#"{"path": {"x": 1}, "start_line": "two", "end_line": 0, "lines": 5}"#,
            ResultStatus::Refused,
            &[
                "`path`: expected a string that is not blank, got an object",
                "`start_line`: expected a whole number from 1 on, got the string \"two\"",
                "`end_line`: expected a whole number from 1 on, got the number 0",
                "`lines` is not one of its arguments",
            ],
        ),
        (r#"{"path": "a.txt", "start_line": -1}"#, ResultStatus::Refused, &["`start_line`"]),
        (r#"{"path": "a.txt", "start_line": true}"#, ResultStatus::Refused, &["got the boolean true"]),
        (r#"{"path": ["a.txt"]}"#, ResultStatus::Refused, &["got an array"]),
    ] {
        let answer = project.call_as_written("read_file", arguments).await;
        assert_eq!(answer.status, status, "{arguments}: {answer:?}");
        for word in words {
            assert!(answer.content.contains(word), "{arguments}: {}", answer.content);
        }
    }
}

#[test]
fn only_offered_tools_by_their_exact_names_are_called() {
    let offered = tools::offer(&[ToolName::ReadFile, ToolName::ListFiles]);
    let long = "x".repeat(300);
    for name in ["execute_python", "", "functions.read_file:0", "read file", "write_file", "naïve tool!", &long] {
        let refusal = tools::parse(&Call::minted(1, 0, "", name, "{}", &[]), &offered).expect_err(name);
        assert!(matches!(refusal, Refusal::Unoffered(_)), "{name}: {refusal:?}");
        assert!(refusal.text().contains("read_file, list_files.") && refusal.text().len() < 300, "{refusal:?}");
    }
}

#[test]
fn a_hand_back_is_whole_or_the_delegation_stays_open() {
    let offered = tools::offer(&[ToolName::HandBack]);
    let parse = |arguments: &str| tools::parse(&Call::minted(1, 0, "", "hand_back", arguments, &[]), &offered);
    for (arguments, words) in [
        (r#"{"changed": "a", "now_true": "b", "next": "c"}"#, &["`succeeded` is missing", "boolean"][..]),
        (
            r#"{"changed": "a", "now_true": "b", "next": "c", "succeeded": "true"}"#,
            &["`succeeded`: expected a boolean"],
        ),
        (r#"{"changed": "a", "now_true": "b", "next": "c", "succeeded": 1}"#, &["`succeeded`: expected a boolean"]),
        (
            r#"{"changed": " \n", "now_true": "", "succeeded": true}"#,
            &["`changed` is blank", "`now_true` is blank", "`next` is missing"],
        ),
        ("done", &["not valid JSON"]),
    ] {
        let refusal = parse(arguments).expect_err(arguments);
        assert!(refusal.text().contains("delegation is still open"), "{refusal:?}");
        for word in words {
            assert!(refusal.text().contains(word), "{refusal:?}");
        }
    }
    let whole = parse(r#"{"changed": "a", "now_true": "b", "next": "nothing", "succeeded": false}"#);
    assert!(matches!(whole, Ok(Tool::HandBack(note)) if !note.succeeded && note.changed == "a"));
}

#[tokio::test]
async fn an_edit_is_exact_or_told_with_count_and_lines() {
    let mut project = Project::made_by(
        "printf 'def a():\\n    return 1\\n\\ndef b():\\n    return 1\\n' > m.py
         printf -- '- [x] two (src/two)\\n' > t.md",
    )
    .await;
    let several = project.edit("m.py", "    return 1", "    return 2").await;
    assert!(several.content.contains("occurs 2 times in m.py, at lines 2 and 5"), "{several:?}");
    let missing = project.edit("t.md", "- [x] three (src/two)", "- [ ] three").await;
    assert!(missing.content.contains("1\t- [x] two (src/two)"), "{missing:?}");
    assert!(project.edit("m.py", "zzz", "zzz").await.content.contains("equal"));
    let right = project.edit("m.py", "def b():\n    return 1", "def b():\n    return 2").await;
    assert_eq!(right.status, ResultStatus::Done);
    assert_eq!(project.bytes("m.py"), b"def a():\n    return 1\n\ndef b():\n    return 2\n");
    assert_eq!(project.bytes("t.md"), b"- [x] two (src/two)\n");
}

#[tokio::test]
async fn line_endings_marks_and_last_lines_stay_as_they_are() {
    let mut project = Project::made_by(
        "printf 'first\\r\\nTARGET one\\r\\nlast\\r\\n' > crlf.txt
         printf 'u1\\nu2\\r\\nTARGET one\\nu3\\r\\nu4\\n' > mixed.txt
         printf 'p1\\rp2\\rTARGET one\\rp3\\n' > lonecr.txt
         printf '\\357\\273\\277head\\nTARGET one\\n' > bom.txt
         printf 'x\\nTARGET one' > nonl.txt",
    )
    .await;
    for path in ["crlf.txt", "mixed.txt", "lonecr.txt", "bom.txt", "nonl.txt"] {
        let wanted = String::from_utf8(project.bytes(path)).expect("text").replace("TARGET one", "CHANGED two");
        assert_eq!(project.edit(path, "TARGET one", "CHANGED two").await.status, ResultStatus::Done);
        assert_eq!(project.bytes(path), wanted.as_bytes(), "{path}");
    }
    let inserted = project.edit("crlf.txt", "first\nCHANGED two\n", "first\nCHANGED two\nINSERTED\n").await;
    assert_eq!(inserted.status, ResultStatus::Done);
    assert_eq!(project.bytes("crlf.txt"), b"first\r\nCHANGED two\r\nINSERTED\r\nlast\r\n");
}

#[tokio::test]
async fn modes_links_and_second_names_survive_an_edit() {
    let mut project = Project::made_by(
        "for m in 755 700 600 640; do echo OLD > f$m.sh; chmod $m f$m.sh; done; ln f755.sh hard.sh; mkdir real
         echo OLD > real/t.txt; ln -s real/t.txt link.txt; ln -s real dirlink; ln -s nowhere.txt dangling.txt
         ln -s ../outside out.txt",
    )
    .await;
    let at = |path: &str| project.directory.path().join(path);
    let modes = [0o755, 0o700, 0o600, 0o640];
    let (scripts, hard) = (modes.map(|mode| at(&format!("f{mode:o}.sh"))), at("hard.sh"));
    let links = ["link.txt", "dirlink", "dangling.txt", "out.txt"].map(at);
    let targets = links.clone().map(|link| fs::read_link(link).expect("a link"));
    for mode in modes {
        let edited = project.edit(&format!("f{mode:o}.sh"), "OLD", "NEW").await;
        assert_eq!(edited.status, ResultStatus::Done, "{edited:?}");
    }
    for (script, mode) in scripts.iter().zip(modes) {
        assert_eq!(fs::metadata(script).expect("a file").permissions().mode() & 0o777, mode);
        assert_eq!(fs::read(script).expect("a file"), b"NEW\n");
    }
    assert_eq!(fs::metadata(&hard).expect("a file").ino(), fs::metadata(&scripts[0]).expect("a file").ino());
    assert_eq!(project.edit("link.txt", "OLD", "NEW").await.status, ResultStatus::Done);
    assert_eq!(project.edit("dirlink/t.txt", "NEW", "NEWER").await.status, ResultStatus::Done);
    assert_eq!(project.write("dangling.txt", "x\n").await.status, ResultStatus::Done);
    let outside = project.write("out.txt", "x\n").await;
    assert_eq!(outside.status, ResultStatus::Refused);
    assert!(outside.content.contains("out.txt"), "{outside:?}");
    assert_eq!(project.bytes("real/t.txt"), b"NEWER\n");
    assert_eq!(project.bytes("nowhere.txt"), b"x\n");
    assert_eq!(links.map(|link| fs::read_link(link).expect("still a link")), targets);
}

#[tokio::test]
async fn what_somebody_else_wrote_meanwhile_is_not_overwritten() {
    let mut project =
        Project::made_by("printf 'alpha\\nbeta\\n' > notes.md; echo k=1 > conf.ini; ln -s notes.md link").await;
    assert!(project.write("notes.md", "x").await.content.contains("you have not read all of it"));
    project.read("notes.md").await;
    project.run("echo 'human line' >> notes.md").await;
    for path in ["notes.md", "link"] {
        let refused = project.write(path, "alpha\nBETA\n").await;
        assert_eq!(refused.status, ResultStatus::Refused);
        assert!(refused.content.starts_with(&format!("{path} has changed since you last read")), "{refused:?}");
    }
    assert_eq!(project.bytes("notes.md"), b"alpha\nbeta\nhuman line\n");

    project.read("conf.ini").await;
    project.run("printf 'k=1\\nhuman=yes\\n' > conf.ini").await;
    assert_eq!(project.edit("conf.ini", "k=1", "k=2").await.status, ResultStatus::Done);
    assert_eq!(project.bytes("conf.ini"), b"k=2\nhuman=yes\n");
    assert_eq!(project.write("conf.ini", "k=3\n").await.status, ResultStatus::Done);
    assert!(project.write("conf.ini", "k=3\n").await.content.starts_with("Nothing changed"));
}

#[tokio::test]
async fn other_encodings_keep_their_bytes() {
    let mut project = Project::made_by(
        "printf '// pr\\351fixe \\223q\\224\\nvalue := OLD;\\n' > unit.pas
         printf '\\0\\1\\2\\377\\376\\0\\5\\200' > blob.bin",
    )
    .await;
    assert!(project.read("unit.pas").await.contains("not UTF-8"));
    assert_eq!(project.edit("unit.pas", "OLD", "NEW").await.status, ResultStatus::Done);
    assert_eq!(project.bytes("unit.pas"), b"// pr\xe9fixe \x93q\x94\nvalue := NEW;\n");
    assert_eq!(project.read("blob.bin").await, "[blob.bin is binary, 8 bytes; it is not shown]");
    assert!(project.write("unit.pas", "préfixe").await.content.contains("not UTF-8"));
}

#[tokio::test]
async fn halves_of_characters_and_nul_bytes_harm_nothing() {
    let mut project = Project::made_by("printf 'x\\000y\\n' > nul.txt").await;
    for shift in 0..4 {
        let flood = format!("printf '%{shift}s' ''; for i in {{1..20000}}; do printf '\\360\\237\\224\\245'; done");
        let shown = project.run(&flood).await.content;
        assert!(shown.contains("bytes of output left out") && !shown.contains('\u{fffd}'), "{shift}");
        assert!(shown.len() < 40_000);
    }
    for (arguments, path, content) in [
        (r#"{"path": "e.txt", "content": "half \ud83d end \udc00"}"#, "e.txt", "half \u{fffd} end \u{fffd}"),
        (r#""{\"path\": \"twice\", \"content\": \"a \\ud83d\"}""#, "twice", "a \u{fffd}"),
        (r#"{"path": "n.txt", "content": "a\u0000b"}"#, "n.txt", "a\0b"),
    ] {
        let written = project.call_as_written("write_file", arguments).await;
        assert_eq!(written.status, ResultStatus::Done, "{written:?}");
        assert_eq!(project.bytes(path), content.as_bytes());
    }
    assert!(project.run("printf 'before\\000after\\n'").await.content.contains("before\u{fffd}after"));
    assert!(project.read("nul.txt").await.starts_with("1\tx\u{fffd}y\n"));
    for (name, arguments) in
        [("run_command", r#"{"command": "echo a\u0000b"}"#), ("read_file", r#"{"path": "a\u0000b"}"#)]
    {
        assert_eq!(project.call_as_written(name, arguments).await.status, ResultStatus::Refused);
    }
}

#[tokio::test]
async fn commands_wait_for_nobody_and_tell_their_status() {
    let mut project = Project::made_by(
        "git init -q -b main . && git config core.pager 'less -+F' && git config user.name a && git config user.email b
         for i in {1..60}; do git commit -q --allow-empty -m \"commit number $i\"; done",
    )
    .await;
    assert_eq!(project.run("cat; echo after-cat").await.content, "exit status 0\nafter-cat");
    assert!(project.run("read x; echo \"got:$x\"").await.content.ends_with("got:"));
    assert!(project.run("git log").await.content.contains("commit number 60"));
    let odd = project.run("printf 'caf\\351 ok-canary\\n'; head -c 3000 /dev/urandom; exit 5").await;
    assert_eq!(odd.status, ResultStatus::Failed);
    assert!(odd.content.starts_with("exit status 5;") && odd.content.contains("ok-canary"), "{odd:?}");
    let split = project.run("printf '\\303'; sleep 0.1; printf '\\244 split-canary'").await;
    assert_eq!(split.content, "exit status 0\nä split-canary");
}

#[tokio::test]
async fn git_data_and_denied_files_stay_shut_by_every_way() {
    let mut project = Project::made_by(
        "git init -q -b main .; mkdir sub; echo K=1 > .env; echo K=1 > sub/.env.local; echo k > a.pem; ln -s .env plain
         echo K=1 > open.txt",
    )
    .await;
    for path in [".git/config", "sub/../.git/HEAD", ".env", "sub/.env.local", "plain", "./a.pem", "/etc/passwd", "../x"]
    {
        for answer in [
            project.call(ToolName::ReadFile, &json!({ "path": path })).await,
            project.write(path, "x").await,
            project.edit(path, "K", "L").await,
        ] {
            assert_eq!(answer.status, ResultStatus::Refused, "{path}: {answer:?}");
            assert!(answer.content.contains(path), "{path}: {answer:?}");
        }
    }
    assert_eq!(project.call(ToolName::ListFiles, &json!({})).await.content, "open.txt\n");
    assert_eq!(project.call(ToolName::Search, &json!({ "pattern": "K=" })).await.content, "open.txt:1: K=1\n");
    assert_eq!(project.bytes(".env"), b"K=1\n");
}

#[tokio::test]
async fn a_mask_is_never_written_unless_the_file_holds_it_already() {
    let mut project = Project::made_by("echo key > a.txt; echo 'M = \"[masked by nisse]\" # x' > own.txt").await;
    project.read("a.txt").await;
    for refused in [
        project.write("a.txt", "key=[masked by nisse]\n").await,
        project.edit("a.txt", "key", "[masked by nisse]").await,
        project.write("new.txt", "[masked by nisse]").await,
    ] {
        assert!(refused.content.contains("stands for a secret"), "{refused:?}");
    }
    assert_eq!(project.bytes("a.txt"), b"key\n");
    assert_eq!(project.edit("own.txt", "\" # x", "\" # y").await.status, ResultStatus::Done);
}

#[tokio::test]
async fn looking_for_what_is_not_there_is_answered() {
    let mut project = Project::made_by("mkdir -p src/deep; echo needle > src/deep/a.rs; echo other > b.txt").await;
    assert!(project.read("gone.txt").await.contains("no such file"));
    assert!(project.read("src").await.contains("is a directory"));
    assert!(project.edit("gone.txt", "a", "b").await.content.contains("no such file"));
    assert!(project.write("src", "x").await.content.contains("is a directory"));
    assert!(project.write("b.txt/c", "x").await.content.contains("not a directory"));
    let found = "src/deep/a.rs:1: needle\n";
    for (arguments, content) in [
        (json!({ "pattern": "needle|nothing" }), found),
        (json!({ "pattern": "NEEDLE", "ignore_case": true, "under": "src", "glob": "*.rs" }), found),
        (json!({ "pattern": "needle", "under": "src/deep/a.rs" }), found),
        (json!({ "pattern": "NEEDLE" }), "[no line matches; files that git ignores are not searched]"),
    ] {
        assert_eq!(project.call(ToolName::Search, &arguments).await.content, content);
    }
    for arguments in
        [json!({ "pattern": "(" }), json!({ "pattern": "x", "glob": "[" }), json!({ "pattern": "x", "under": "no" })]
    {
        assert_eq!(project.call(ToolName::Search, &arguments).await.status, ResultStatus::Refused, "{arguments}");
    }
    let none = project.call(ToolName::ListFiles, &json!({ "glob": "*.py" })).await;
    assert!(none.content.starts_with("[no such files"), "{none:?}");
}

fn rules() -> CommandRules {
    CommandRules { time_ms: 60_000, pass_env: Vec::new(), keep_output: 16_384, sandbox: Sandbox::None }
}
