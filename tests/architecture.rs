//! The house rules as a test: floors, file sizes, what may lie where.
//!
//! It needs nothing of the library, so that it says what is wrong even when nothing else builds. Each rule is a
//! function from text to complaints, tried below on text that breaks it.
#![expect(clippy::expect_used, reason = "a panic is how a test fails")]
#![expect(clippy::disallowed_methods, reason = "the rules are about this machine's paths too")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

#[path = "architecture/circles.rs"]
mod circles;
#[path = "architecture/reached.rs"]
mod reached;

/// Lines that a file may have before its tests.
const MOST_LINES: usize = 450;

/// Each folder of `src` and its floor. A file names only its own floor and floors below.
const FLOORS: [(&str, u8); 9] = [
    ("cli", 6),
    ("serve", 6),
    ("commands", 5),
    ("agent", 4),
    ("adapters", 3),
    ("log", 3),
    ("repo", 3),
    ("ports", 2),
    ("domain", 1),
];

/// What may lie at the top; names that begin with a dot may too.
const TOP_LEVEL: [&str; 11] = [
    "Cargo.toml",
    "Cargo.lock",
    "src",
    "tests",
    "completions",
    "man",
    "examples",
    "README.md",
    "CHANGELOG.md",
    "rustfmt.toml",
    "clippy.toml",
];

/// The floor of a folder.
fn floor(folder: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == folder).map(|(_, floor)| *floor)
}

/// Rust text without comments, strings and character literals, each replaced by blanks; lines stay.
fn code(source: &str) -> String {
    let text: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < text.len() {
        let end = skipped(&text, at);
        if end == at {
            out.push(text[at]);
            at += 1;
        } else {
            out.extend(text[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// Where the comment, string or character literal that begins at `at` ends; `at` itself if none begins there.
fn skipped(text: &[char], at: usize) -> usize {
    let begins = |what: &str| what.chars().enumerate().all(|(n, c)| text.get(at + n) == Some(&c));
    let after_word = at > 0 && (text[at - 1].is_alphanumeric() || text[at - 1] == '_');
    if begins("//") {
        return (at..text.len()).find(|n| text[*n] == '\n').unwrap_or(text.len());
    }
    if begins("/*") {
        let (mut depth, mut n) = (0usize, at);
        while n < text.len() {
            match (text[n], text.get(n + 1)) {
                ('/', Some('*')) => (depth, n) = (depth + 1, n + 2),
                ('*', Some('/')) => (depth, n) = (depth - 1, n + 2),
                _ => n += 1,
            }
            if depth == 0 {
                return n;
            }
        }
        return text.len();
    }
    if begins("r\"") || begins("r#\"") || begins("r##\"") {
        if after_word && text[at - 1] != 'b' {
            return at;
        }
        let hashes = text[at + 1..].iter().take_while(|c| **c == '#').count();
        let closes = |n: usize| text[n] == '"' && (1..=hashes).all(|h| text.get(n + h) == Some(&'#'));
        return (at + hashes + 2..text.len()).find(|n| closes(*n)).map_or(text.len(), |n| n + hashes + 1);
    }
    if begins("\"") {
        let mut n = at + 1;
        while n < text.len() && text[n] != '"' {
            n += if text[n] == '\\' { 2 } else { 1 };
        }
        return (n + 1).min(text.len());
    }
    if begins("'") {
        // a lifetime has no closing quote where a character would have it
        let closing = if text.get(at + 1) == Some(&'\\') {
            (at + 3..text.len().min(at + 14)).find(|n| text[*n] == '\'')
        } else {
            (text.get(at + 2) == Some(&'\'')).then_some(at + 2)
        };
        return closing.map_or(at, |n| n + 1);
    }
    at
}

/// The words and marks of `code`.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if word(first) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// The folders of `src` that a file names, by `crate::…`, `nisse::…` or enough `super::`; `module` is the file's own
/// path of modules.
fn named_folders(module: &[&str], source: &str) -> BTreeSet<String> {
    let code = code(source);
    let tokens = tokens(&code);
    let mut named = BTreeSet::new();
    let mut inline: Vec<usize> = Vec::new(); // the depths of braces at which `mod name {` stands
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at] {
            "mod" if tokens.get(at + 2) == Some(&"{") => inline.push(depth),
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                if inline.last() == Some(&depth) {
                    inline.pop();
                }
            }
            "crate" | "nisse" if tokens.get(at + 1) == Some(&"::") => first_names(&tokens, at + 2, &mut named),
            "super" if at == 0 || tokens[at - 1] != "::" => {
                let mut ups = 1;
                while tokens.get(at + 2 * ups) == Some(&"super") {
                    ups += 1;
                }
                if ups == module.len() + inline.len() {
                    first_names(&tokens, at + 2 * ups, &mut named);
                }
                at += 2 * (ups - 1);
            }
            _ => {}
        }
        at += 1;
    }
    named
}

/// The first name of a path at `at`, or of each path of a group there.
fn first_names(tokens: &[&str], at: usize, named: &mut BTreeSet<String>) {
    if tokens.get(at) != Some(&"{") {
        named.extend(tokens.get(at).map(|name| (*name).to_owned()));
        return;
    }
    let mut depth = 0;
    for (n, token) in tokens.iter().enumerate().skip(at) {
        match *token {
            "{" => depth += 1,
            "}" => depth -= 1,
            name if depth == 1 && matches!(tokens[n - 1], "{" | ",") => drop(named.insert(name.to_owned())),
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
}

/// What is wrong with the names in a file of `src`, given by its path there.
fn floor_faults(path: &str, source: &str) -> Vec<String> {
    let module: Vec<&str> =
        path.trim_end_matches(".rs").split('/').filter(|part| !matches!(*part, "mod" | "lib" | "main")).collect();
    let Some(own) = module.first() else { return Vec::new() }; // lib.rs and main.rs stand above all
    let Some(own_floor) = floor(own) else { return vec![format!("src/{path}: {own} has no floor")] };
    let mut faults = Vec::new();
    for name in named_folders(&module, source) {
        match floor(&name) {
            Some(above) if above > own_floor => {
                faults.push(format!("src/{path} (floor {own_floor}) names {name} (floor {above})"));
            }
            Some(_) if *own == "agent" && name == "adapters" => faults.push(format!("src/{path} names an adapter")),
            Some(_) | None => {}
        }
    }
    faults
}

/// What is wrong with a file's size.
fn size_faults(path: &str, source: &str) -> Vec<String> {
    let lines = source.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).count();
    if lines > MOST_LINES { vec![format!("{path}: {lines} lines before its tests")] } else { Vec::new() }
}

/// Unfinished places in a Rust file, and tests that do not run.
fn unfinished(path: &str, source: &str) -> Vec<String> {
    let code = code(source);
    let tokens = tokens(&code);
    let mut faults = Vec::new();
    for three in tokens.windows(3) {
        match three {
            [name @ ("todo" | "unimplemented" | "dbg"), "!", "(" | "[" | "{"] => {
                faults.push(format!("{path}: {name}!"));
            }
            ["#", "[", "ignore"] => faults.push(format!("{path}: an ignored test")),
            _ => {}
        }
    }
    let words: Vec<&str> = source.split(|c: char| !c.is_alphanumeric()).collect();
    for mark in [concat!("FIX", "ME"), concat!("XX", "X"), concat!("TO", "DO")] {
        if words.contains(&mark) {
            faults.push(format!("{path}: {mark}"));
        }
    }
    faults
}

/// Places where a text names a directory of the machine that it was written on.
fn machine_paths(path: &str, text: &str, directories: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for directory in directories {
            let named = line.match_indices(directory.as_str()).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                let after = line[at + directory.len()..].chars().next();
                let joined = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
                !before.is_some_and(joined) && !after.is_some_and(|c| joined(c) && c != '/')
            });
            if named {
                faults.push(format!("{path}:{}: a path of this machine, {directory}", number + 1));
            }
        }
    }
    faults
}

/// The directories whose names must not stand in the project: its own place, the one above and the home, where they are
/// deep enough to mean this machine.
fn own_directories(root: &Path, home: Option<&Path>) -> Vec<String> {
    let candidates = [Some(root), root.parent(), home];
    let deep = candidates.into_iter().flatten().filter(|path| path.components().count() > 2);
    deep.map(|path| path.to_string_lossy().into_owned()).collect()
}

/// Entries that may not lie at the top.
fn top_level_faults<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let agreed = |name: &&str| {
        let licence = name.starts_with("LICENSE");
        TOP_LEVEL.contains(name) || licence || *name == "deny.toml" || name.starts_with('.') || *name == "target"
    };
    names.into_iter().filter(|name| !agreed(name)).map(|name| format!("not at the agreed top level: {name}")).collect()
}

/// Folders that the crate's documentation does not link.
fn unlinked<'a>(lib: &str, folders: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let docs: Vec<&str> = lib.lines().filter_map(|line| line.trim_start().strip_prefix("//!")).collect();
    let docs = docs.join("\n");
    let missing = folders.into_iter().filter(|name| !docs.contains(&format!("[`{name}`]")));
    missing.map(|name| format!("src/lib.rs does not link [`{name}`]")).collect()
}

/// The modules that a file declares as files of their own.
fn declared(source: &str) -> Vec<String> {
    let code = code(source);
    let tokens = tokens(&code);
    let modules = tokens.windows(3).filter(|three| three[0] == "mod" && three[2] == ";");
    modules.map(|three| three[1].to_owned()).collect()
}

/// The files that are part of a crate, from its first one on; `read` gives a file's text.
fn reachable(first: &Path, read: &dyn Fn(&Path) -> Option<String>) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![first.to_owned()];
    while let Some(file) = open.pop() {
        let Some(source) = read(&file) else { continue };
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let beside = file.parent().unwrap_or(Path::new("")).to_owned();
        let below = if matches!(stem, "main" | "lib" | "mod") { beside } else { beside.join(stem) };
        for module in declared(&source) {
            open.push(below.join(format!("{module}.rs")));
            open.push(below.join(module).join("mod.rs"));
        }
        found.insert(file);
    }
    found
}

// ---------------------------------------------------------------- the project

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `directory`, sorted.
fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The Rust files below a folder of the project, with their paths relative to it and their text.
fn rust_files(folder: &str) -> Vec<(String, String)> {
    let base = root().join(folder);
    let rust = files(&base).into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    rust.map(|path| {
        let name = path.strip_prefix(&base).expect("it is below").to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).expect("a source file"))
    })
    .collect()
}

#[track_caller]
fn none(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn a_file_names_only_its_own_floor_and_floors_below() {
    let sources = rust_files("src");
    assert!(sources.len() > 10, "the sources are not where they should be");
    none(&sources.iter().flat_map(|(path, source)| floor_faults(path, source)).collect::<Vec<_>>());
}

#[test]
fn files_are_short_and_finished() {
    for folder in ["src", "tests"] {
        for (path, source) in rust_files(folder) {
            let path = format!("{folder}/{path}");
            none(&[size_faults(&path, &source), unfinished(&path, &source)].concat());
        }
    }
}

#[test]
fn no_files_know_each_other_in_a_circle() {
    none(&circles::circles(&rust_files("src")));
}

#[test]
fn every_public_function_is_reached_from_the_front_door() {
    let sources = rust_files("src");
    none(&reached::unreached(&sources));
}

#[test]
fn every_test_file_is_part_of_the_tests() {
    let folder = root().join("tests/it");
    let found = reachable(&folder.join("main.rs"), &|path| fs::read_to_string(path).ok());
    let all = files(&folder).into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let lost: Vec<String> = all.filter(|path| !found.contains(path)).map(|path| path.display().to_string()).collect();
    none(&lost);
}

#[test]
fn nothing_lies_at_the_top_that_was_not_agreed() {
    let names: Vec<String> = fs::read_dir(root())
        .expect("the project")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    none(&top_level_faults(names.iter().map(String::as_str)));
}

#[test]
fn no_file_names_a_path_of_this_machine() {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let directories = own_directories(&root(), home.as_deref());
    let top = fs::read_dir(root()).expect("the project").map(|entry| entry.expect("an entry").path());
    let mine = top.filter(|path| !path.ends_with("target") && !path.ends_with(".git"));
    for path in mine.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }) {
        let Ok(text) = fs::read_to_string(&path) else { continue }; // no text
        none(&machine_paths(&path.display().to_string(), &text, &directories));
    }
}

#[test]
fn the_crates_documentation_links_every_folder() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).expect("src/lib.rs");
    let folders: Vec<String> = fs::read_dir(root().join("src"))
        .expect("src")
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    none(&unlinked(&lib, folders.iter().map(String::as_str)));
}

#[cfg(test)]
mod tests {
    //! The rules themselves, tried on text that breaks them.

    use super::*;

    #[test]
    fn a_floor_above_is_found_however_it_is_named() {
        for (path, source) in [
            ("domain/task.rs", "use crate::agent::turn;"),
            ("domain/task.rs", "use crate::{domain::id, ports::llm};"),
            ("domain/task.rs", "use crate :: { domain::{id, event}, repo };"),
            ("domain/task.rs", "fn f() { let x = crate::cli::run(); }"),
            ("domain/task.rs", "use super::super::commands::open;"),
            ("domain/mod.rs", "use super::agent;"),
            ("domain/mod.rs", "use super::{domain, agent};"),
            ("agent/tools/mod.rs", "use super::super::adapters::host;"),
            ("agent/tools/read.rs", "use super::super::super::adapters::host;"),
            ("agent/turn.rs", "use crate::adapters::litellm;"),
            ("agent/turn.rs", "#[cfg(test)] mod tests { use super::super::super::cli; }"),
            ("repo/mod.rs", "use nisse::commands;"),
            ("elsewhere/mod.rs", ""),
        ] {
            assert_eq!(floor_faults(path, source).len(), 1, "{path}: {source}");
        }
    }

    #[test]
    fn floors_below_and_words_that_name_nothing_are_no_fault() {
        for (path, source) in [
            ("agent/turn.rs", "use crate::{domain::task, ports::host, log::Log, repo};"),
            ("agent/tools/read.rs", "use super::super::turn; use super::list;"),
            ("domain/task.rs", "// crate::agent\n/* crate::cli /* nested */ crate::cli */ fn f() {}"),
            ("domain/task.rs", r##"const A: &str = "crate::agent"; const B: &str = r#"crate::"agent"#;"##),
            ("domain/task.rs", "fn f<'a>(x: &'a str) -> char { if x == \"\\\"\" { '\"' } else { '\\'' } }"),
            ("domain/task.rs", "#[cfg(test)] mod tests { use super::*; use super::super::id; }"),
            ("adapters/host/local.rs", "use crate::repo; use crate::log;"),
            ("cli/mod.rs", "use crate::commands;"),
            ("lib.rs", "pub mod cli; use crate::cli;"),
            ("main.rs", "fn main() { nisse::run() }"),
        ] {
            assert_eq!(floor_faults(path, source), Vec::<String>::new(), "{path}: {source}");
        }
    }

    #[test]
    fn a_name_behind_a_literal_is_still_seen() {
        for source in [
            "const A: char = '\"'; use crate::agent;",
            "const A: &str = \"a\\\\\"; use crate::agent;",
            "const A: &[u8] = br#\"\"\"#; use crate::agent;",
            "fn f<'a>(_: &'a u8) {} use crate::agent;",
        ] {
            assert_eq!(floor_faults("domain/task.rs", source).len(), 1, "{source}");
        }
    }

    #[test]
    fn long_files_are_found_and_tests_are_not_counted() {
        let line = "fn f() {}\n";
        assert_eq!(size_faults("a.rs", &line.repeat(MOST_LINES)).len(), 0);
        assert_eq!(size_faults("a.rs", &line.repeat(MOST_LINES + 1)).len(), 1);
        let with_tests = format!("{}#[cfg(test)]\n{}", line.repeat(MOST_LINES), line.repeat(100));
        assert_eq!(size_faults("a.rs", &with_tests).len(), 0);
    }

    #[test]
    fn unfinished_places_are_found() {
        let mark = concat!("// FIX", "ME later");
        for source in [
            "fn f() { todo!() }",
            "fn f() { unimplemented ! [\"x\"] }",
            "#[test]\n#[ignore = \"slow\"]\nfn f() {}",
            mark,
        ] {
            assert_eq!(unfinished("a.rs", source).len(), 1, "{source}");
        }
        for source in ["// todo!() is forbidden", "fn f() { let todo = \"unimplemented!()\"; }", "fn ignore() {}"] {
            assert_eq!(unfinished("a.rs", source), Vec::<String>::new(), "{source}");
        }
    }

    #[test]
    fn paths_of_this_machine_are_found() {
        let directories = own_directories(Path::new("/data/build/nisse"), Some(Path::new("/home/somebody")));
        assert_eq!(directories, ["/data/build/nisse", "/data/build", "/home/somebody"]);
        let faults = |text: &str| machine_paths("a.md", text, &directories).len();
        assert_eq!(faults("see /data/build/nisse/src"), 2);
        assert_eq!(faults("`/home/somebody/.cargo`"), 1);
        assert_eq!(faults("at /home/somebody"), 1);
        assert_eq!(faults("/home/somebody-else, /srv/data/build, target/data/build.rs, /data/builder"), 0);
        assert!(own_directories(Path::new("/src"), Some(Path::new("/root"))).is_empty(), "too short to mean anything");
    }

    #[test]
    fn other_names_at_the_top_are_found() {
        assert_eq!(
            top_level_faults(["Cargo.toml", "LICENSE-MIT", ".ci", "src", "target", "deny.toml"]),
            Vec::<String>::new()
        );
        assert_eq!(top_level_faults(["notes.md", "scripts"]).len(), 2);
    }

    #[test]
    fn folders_without_a_link_are_found() {
        let lib = "//! [`domain`] and\n//! [`ports`]\npub mod agent; // [`agent`]\n";
        assert_eq!(unlinked(lib, ["domain", "ports", "agent"]), ["src/lib.rs does not link [`agent`]"]);
    }

    #[test]
    fn a_file_that_no_module_declares_is_not_reached() {
        let read = |path: &Path| {
            let text = match path.to_str()? {
                "it/main.rs" => "mod a;\n// mod lost;\nmod inline { fn f() {} }",
                "it/a.rs" => "pub(crate) mod b;",
                "it/a/b.rs" | "it/lost.rs" => "",
                _ => return None,
            };
            Some(text.to_owned())
        };
        let found = reachable(Path::new("it/main.rs"), &read);
        let wanted = ["it/a.rs", "it/a/b.rs", "it/main.rs"].map(PathBuf::from);
        assert_eq!(found, BTreeSet::from(wanted));
    }
}
