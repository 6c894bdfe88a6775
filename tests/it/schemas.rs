//! `--json` prints what the schemas under `examples/` say, and the schemas say no more than it prints.

use std::{collections::BTreeSet, fs, path::Path};

use nisse::cli::render::schema;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    leftovers::LATER,
    support::{Script, Step, TestEnvironment, Wire, wait_until},
};

#[test]
fn the_schemas_are_current() {
    let mut stale = Vec::new();
    for (name, content) in schema::all() {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(&name);
        if fs::read(&kept).ok().as_ref() != Some(&content) {
            let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
            fs::write(&made, content).unwrap();
            stale.push(format!("cp {} {}", made.display(), kept.display()));
        }
    }
    assert!(stale.is_empty(), "the schemas are not what the types say:\n{}", stale.join("\n"));
}

#[test]
fn every_line_is_as_its_schema_says() {
    let write = || Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}));
    let mut seen = Seen::default();

    let talkative = Step::text("What shall I do?").thinking("Hm.", "sig==");
    let steps = vec![
        Step::error(500, &[("retry-after", "0")], "internal_server_error", "once"),
        talkative,
        write().and_call("run_command", json!({"command": "false"})).and_raw_call("search", "{"),
        Step::hand_back(),
        Step::hand_back(),
    ];
    let env = TestEnvironment::new(Wire::Messages, steps);
    let options = ["--check", "test -e ../mark || { touch ../mark; exit 1; }"];
    seen.all(&env.delegate(&options, "Make b.txt.").exits(0).json());
    drop(env);

    let env = TestEnvironment::new(Wire::Chat, vec![write(), Step::give_up()]);
    seen.all(&env.delegate(&[], "Make b.txt.").exits(3).json());
    drop(env);

    let env = TestEnvironment::new(Wire::Chat, vec![write()]);
    seen.all(&env.delegate(&["--max-tokens", "2500"], "Make b.txt.").exits(4).json());
    drop(env);

    let env = TestEnvironment::new(Wire::Chat, vec![write(), Step::hand_back()]);
    // in place, HEAD goes away and comes back, which its reflog tells
    env.person_will_change(".git/logs/HEAD").set("NISSE_WORKTREE_SETUP", "true");
    seen.all(&env.delegate(&["--isolation", "in-place"], "Make b.txt.").exits(0).json());
    drop(env);

    // stopped in a request, and gone on with
    let asked = tempfile::tempdir().unwrap();
    let mark = asked.path().join("asked");
    let told = mark.clone();
    let env = TestEnvironment::new(
        Wire::Chat,
        Script::by_content(move |request| match (request.replies(), told.exists()) {
            (0, _) => Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
            (_, true) => Step::hand_back(),
            (_, false) => {
                let told = told.clone();
                let ask = move || fs::write(&told, "").unwrap();
                Step::hand_back().before(ask).delay(std::time::Duration::from_mins(10))
            }
        }),
    );
    let running = env.start(&["delegate", "--json", "Make b.txt."]);
    assert!(wait_until(std::time::Duration::from_mins(1), || mark.exists()));
    running.signal(Signal::INT);
    seen.all(&env.finish(running).exits(7).json());
    seen.all(&env.run(&["resume", "--json"]).exits(0).json());
    // and again, where nothing is left to go on with
    seen.all(&env.run(&["resume", "--json"]).exits(0).json());
    seen.all(&env.run(&["apply", "--json", "no-such-task"]).exits(2).json());

    let limited = Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.");
    let resting = TestEnvironment::new(Wire::Chat, vec![write(), limited]);
    let rests = resting.delegate(&[], "Make b.txt.").exits(5).result();
    seen.all(&resting.run(&["drop", "--json", rests["task"].as_str().unwrap()]).exits(0).json());
    drop(resting);

    documents(&mut seen);

    seen.all(&env.run(&["log", "--json", "no-such-task"]).exits(2).json());
    seen.all(&env.run(&["--json", "no-such-command"]).exits(2).json());

    let often: Vec<&str> = seen.events.iter().map(String::as_str).collect();
    for event in [
        "task_started",
        "setup_ran",
        "span_started",
        "request_ended",
        "nudged",
        "check_ran",
        "task_paused",
        "gate_answered",
        "task_ended",
    ] {
        assert!(often.contains(&event), "{event} never came: {often:?}");
    }
    assert_eq!(
        seen.types.iter().map(String::as_str).collect::<Vec<_>>(),
        ["apply", "diff", "doctor", "error", "event", "init", "nothing_pending", "result", "trust"]
    );
}

/// What other commands print: of a task that is brought home, put back, and leaves something.
fn documents(seen: &mut Seen) {
    let write = Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}));
    let env = TestEnvironment::new(Wire::Chat, vec![write, Step::hand_back()]);
    let result = env.delegate(&[], "Make b.txt.").exits(0).result();
    let task = result["task"].as_str().unwrap();
    seen.all(&env.run(&["log", "--json", "--diff", task]).exits(0).json());
    env.person(|checkout| drop(checkout.write("staged", "s\n").git(&["add", "staged"])));
    let mut ways = BTreeSet::new();
    let mut apply = |options: &[&str], code| {
        let lines = env.run(&[&["apply", "--json", task], options].concat()).exits(code).json();
        seen.all(&lines);
        ways.extend(lines[0]["how"].as_str().map(str::to_owned));
    };
    apply(&[], 0);
    apply(&[], 0);
    env.checkout.write("b.txt", "mine\n");
    apply(&["--abort"], 6);
    fs::remove_file(env.checkout.path().join("b.txt")).unwrap();
    apply(&["--squash"], 0);
    env.checkout.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    assert_eq!(ways.iter().map(String::as_str).collect::<Vec<_>>(), ["already", "commits", "files", "put_back"]);
    // another's worktree and branch, and refs that are old
    let path = env.root().join("elsewhere");
    let reason = "nisse 01993c5e-7b1a-7000-8000-0123456789ab";
    let add =
        ["worktree", "add", "--quiet", "--lock", "--reason", reason, "-b", "nisse/theirs", path.to_str().unwrap()];
    env.checkout.git(&add);
    env.set("NISSE_TEST_CLOCK", LATER).changed_paths();
    env.may_add("nisse.toml");
    seen.all(&env.run(&["init", "--json"]).exits(0).json());
    seen.all(&env.run(&["trust", "--json"]).exits(0).json());
    let mut states = BTreeSet::new();
    for options in [&[][..], &["--fix"]] {
        let lines = env.run(&[&["doctor", "--json"], options].concat()).json();
        seen.all(&lines);
        states.extend(lines[0]["leftovers"].as_array().unwrap().iter().map(|one| one["state"].to_string()));
    }
    assert!(["\"dead\"", "\"foreign\"", "\"removed\""].iter().all(|&state| states.contains(state)), "{states:?}");
    env.changed_paths();
}

/// What has been held against its schema.
#[derive(Default)]
struct Seen {
    types: BTreeSet<String>,
    events: BTreeSet<String>,
}

impl Seen {
    #[track_caller]
    fn all(&mut self, lines: &[Value]) {
        for line in lines {
            let kind = line["type"].as_str().unwrap().to_owned();
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{kind}.schema.json"));
            let schema: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
            if let Err(wrong) = holds(&schema, &schema, line) {
                panic!("{wrong}\n{line:#}");
            }
            self.events.extend(line["event"].as_str().map(str::to_owned));
            self.types.insert(kind);
        }
    }
}

/// Whether `value` is what `schema` says, of the keywords that ours use; a member that it does not name is wrong.
fn holds(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let Some(keywords) = schema.as_object() else { return Ok(()) };
    let fail = |what: &str| Err(format!("{what}: {value} is not {schema}"));
    for (keyword, said) in keywords {
        match keyword.as_str() {
            "additionalProperties" if *said == json!(false) => {}
            // a map: its names are any, its values are of one kind
            "additionalProperties" => {
                assert!(schema.get("properties").is_none());
                for member in value.as_object().into_iter().flatten().map(|(_, member)| member) {
                    holds(root, said, member)?;
                }
            }
            "$ref" => {
                let path = said.as_str().unwrap().strip_prefix('#').unwrap();
                holds(root, root.pointer(path).unwrap_or_else(|| panic!("nothing at {path}")), value)?;
            }
            "type" => {
                let kinds = said.as_array().cloned().unwrap_or_else(|| vec![said.clone()]);
                if !kinds.iter().any(|kind| is(kind.as_str().unwrap(), value)) {
                    return fail("type");
                }
            }
            "const" if said != value => return fail("const"),
            "enum" if !said.as_array().unwrap().contains(value) => return fail("enum"),
            "minimum" if value.as_f64().is_some_and(|n| n < said.as_f64().unwrap()) => return fail("minimum"),
            "maximum" if value.as_f64().is_some_and(|n| n > said.as_f64().unwrap()) => return fail("maximum"),
            "const" | "enum" | "minimum" | "maximum" | "$schema" | "$defs" | "title" | "description" | "format"
            | "default" | "required" => {}
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    holds(root, said, item)?;
                }
            }
            "properties" => {
                let named = said.as_object().unwrap();
                let required = schema["required"].as_array().cloned().unwrap_or_default();
                for name in &required {
                    if value.get(name.as_str().unwrap()).is_none() {
                        return fail(&format!("{name} is missing"));
                    }
                }
                for (name, member) in value.as_object().into_iter().flatten() {
                    match named.get(name) {
                        Some(schema) => holds(root, schema, member)?,
                        // the alternatives of an event name only what differs
                        None if schema.get("required").is_none() => {}
                        None => return fail(&format!("{name} is not named")),
                    }
                }
            }
            "oneOf" | "anyOf" => {
                let fits: Vec<_> = said.as_array().unwrap().iter().map(|one| holds(root, one, value)).collect();
                let count = fits.iter().filter(|fit| fit.is_ok()).count();
                if count == 0 || (keyword == "oneOf" && count > 1) {
                    return Err(format!("{count} alternatives fit: {fits:?}"));
                }
            }
            other => panic!("the test does not know the keyword {other}"),
        }
    }
    Ok(())
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type is called {other}"),
    }
}
