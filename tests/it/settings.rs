//! The settings file that people copy.

use std::path::Path;

use nisse::commands::settings::{Directories, Environment, Flags, Settings, Source};

use crate::support::{TestEnvironment, Wire};

fn load(file: &Path) -> Settings {
    let directories =
        Directories { home: Some("/home".into()), state: Some("/state".into()), ..Directories::default() };
    let flags = Flags { config: Some(file.to_owned()), ..Flags::default() };
    Settings::load(&Environment::new([], directories), &flags, None).unwrap()
}

fn example() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/config.toml")
}

#[test]
fn the_example_loads() {
    let settings = load(&example());
    assert_eq!(settings.base_url().unwrap(), "http://127.0.0.1:4000");
    assert_eq!(settings.models.len(), 1);
}

/// With the comment signs gone, every key is set: none is forgotten, and none is unknown.
#[test]
fn its_commented_keys_are_all_keys() {
    let text = std::fs::read_to_string(example()).unwrap();
    let is_key =
        |line: &str| line.split_once(" = ").is_some_and(|(key, _)| key.chars().all(|c| c == '_' || c.is_lowercase()));
    let whole: String = text
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|rest| is_key(rest)).unwrap_or(line).to_owned() + "\n")
        .collect();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, whole.as_bytes()).unwrap();
    let settings = load(file.path());
    let unset =
        |shown: &&nisse::commands::settings::Shown| shown.source == Source::Default && shown.key != "state directory";
    let unset: Vec<_> = settings.shown().iter().filter(unset).map(|shown| shown.key.clone()).collect();
    assert!(unset.is_empty(), "{unset:?}");
    let declared = settings.shown().iter().filter(|shown| shown.key.starts_with("models.")).count();
    assert_eq!(declared, 8);

    // and the built-in values that it names are the built-in values
    let built_in = Settings::load(
        &Environment::new([], Directories { state: Some("/state".into()), ..Directories::default() }),
        &Flags::default(),
        None,
    );
    let named = |line: &str| line.starts_with("# ") && !line.contains("~/") && is_key(&line[2..]);
    let commented: Vec<String> =
        text.lines().filter(|line| named(line)).map(|line| line[2..].split(" = ").next().unwrap().to_owned()).collect();
    for built_in in built_in.unwrap().shown() {
        let key = built_in.key.rsplit('.').next().unwrap().to_owned();
        let Some(value) = built_in.value.filter(|value| value != "[]" && commented.contains(&key)) else { continue };
        let set = settings.shown().into_iter().find(|shown| shown.key == built_in.key).unwrap();
        assert_eq!(set.value.unwrap(), value, "{key}");
    }
}

/// What looks like a mistyped setting is told where settings matter, and nowhere else.
#[test]
fn a_mistyped_variable_stops_what_asks_a_model_and_nothing_that_looks() {
    let env = TestEnvironment::new(Wire::Chat, Vec::new());
    env.set("NISSE_SERVICE_HOST", "10.0.0.7").set("NISSE_VERSION", "1");
    env.run(&["models"]).exits(0);
    env.set("NISSE_ROLE_DELEGAT", "x");
    env.run(&["log"]).exits(0);
    assert!(env.run(&["drop", "00"]).exits(2).stderr.contains("no task is named 00"));
    for command in [&["models", "--json"][..], &["delegate", "--json", "x"], &["resume", "--json"]] {
        let error = env.run(command).exits(2).json().pop().unwrap()["error"].clone();
        assert!(error["message"].as_str().unwrap().contains("NISSE_ROLE_DELEGAT is unknown"), "{error}");
        assert_eq!(error["hint"], "write NISSE_ROLE_DELEGATE", "{error}");
    }
}
