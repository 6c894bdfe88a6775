//! What is generated from the command line's definition is what lies under `completions/` and `man/`.

use std::{collections::BTreeMap, fs, path::Path};

use nisse::cli::{completions, man};

/// The files of a directory of the repository.
fn files(directory: &str) -> BTreeMap<String, String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let read = |entry: fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), String::from_utf8(fs::read(entry.path()).unwrap()).unwrap())
    };
    fs::read_dir(directory).unwrap().map(|entry| read(entry.unwrap())).collect()
}

fn hold(directory: &str, generated: Vec<(String, Vec<u8>)>, command: &str) {
    let mut kept = files(directory);
    for (name, content) in generated {
        let content = String::from_utf8(content).unwrap();
        let same = kept.remove(&name).as_ref() == Some(&content);
        assert!(
            same,
            "{directory}/{name} is not what is generated: make it again with `{command} > {directory}/{name}`"
        );
    }
    assert!(kept.is_empty(), "nothing generates these files of {directory}/: {:?}", kept.keys());
}

#[test]
fn completions_are_current() {
    hold("completions", completions::all(), "cargo run -- completions SHELL");
}

#[test]
fn manual_pages_are_current() {
    hold("man", man::all().unwrap(), "cargo run -- man [COMMAND]");
}
