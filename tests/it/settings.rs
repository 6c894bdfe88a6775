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
    // what people copy runs nothing by itself
    let shown = settings.entries();
    let runs = shown.iter().find(|shown| shown.key == "proxy.token_command").unwrap();
    assert_eq!(runs.value, None);
}

/// The sample of a repository's file with its comment signs gone: it loads, and names every key that it may.
#[test]
fn the_example_of_a_repository_sets_what_a_repository_may() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/nisse.toml");
    let repository = tempfile::tempdir().unwrap();
    let environment = Environment::new([], Directories { state: Some("/state".into()), ..Directories::default() });
    let load = |text: &str| {
        std::fs::write(repository.path().join("nisse.toml"), text).unwrap();
        Settings::load(&environment, &Flags::default(), Some(repository.path())).unwrap()
    };
    let text = std::fs::read_to_string(sample).unwrap();
    let set = |settings: &Settings| settings.entries().into_iter().filter(|shown| shown.source.is_project()).count();
    let as_it_is = load(&text);
    assert!(set(&as_it_is) == 0 && !as_it_is.waits_for_trust(), "the sample sets something");
    // 14 keys, what is added to files.deny, and the two limits of a model
    assert_eq!(set(&load(&uncommented(&text))), 17);
}

/// The text with the comment signs of keys gone, and of the sections of models.
fn uncommented(text: &str) -> String {
    let bare = |line: &str| {
        let is_ours = |rest: &&str| is_key(rest) || rest.starts_with("[models.");
        line.strip_prefix("# ").filter(is_ours).unwrap_or(line).to_owned() + "\n"
    };
    text.lines().map(bare).collect()
}

fn is_key(line: &str) -> bool {
    line.split_once(" = ").is_some_and(|(key, _)| key.chars().all(|c| c == '_' || c.is_lowercase()))
}

/// With the comment signs gone, every key is set: none is forgotten, and none is unknown.
#[test]
fn its_commented_keys_are_all_keys() {
    let text = std::fs::read_to_string(example()).unwrap();
    let whole = uncommented(&text);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, whole.as_bytes()).unwrap();
    let settings = load(file.path());
    let unset =
        |shown: &&nisse::commands::settings::Shown| shown.source == Source::Default && shown.key != "state directory";
    let unset: Vec<_> = settings.entries().iter().filter(unset).map(|shown| shown.key.clone()).collect();
    assert!(unset.is_empty(), "{unset:?}");
    let declared = settings.entries().iter().filter(|shown| shown.key.starts_with("models.")).count();
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
    for built_in in built_in.unwrap().entries() {
        let key = built_in.key.rsplit('.').next().unwrap().to_owned();
        let Some(value) = built_in.value.filter(|value| value != "[]" && commented.contains(&key)) else { continue };
        let set = settings.entries().into_iter().find(|shown| shown.key == built_in.key).unwrap();
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
    assert!(env.run(&["drop", "00"]).exits(2).stderr.contains("there is no task 00"));
    for command in [&["models", "--json"][..], &["delegate", "--json", "x"], &["resume", "--json"]] {
        let error = env.run(command).exits(2).json().pop().unwrap()["error"].clone();
        assert!(error["message"].as_str().unwrap().contains("NISSE_ROLE_DELEGAT is unknown"), "{error}");
        assert_eq!(error["hint"], "write NISSE_ROLE_DELEGATE", "{error}");
    }
}
