//! That every public function is reached from the front door: the compiler says so of the others.

use std::collections::{BTreeMap, BTreeSet};

use super::{code, tokens};

/// What of a file is no test. A file of tests that it declares goes with them.
pub(super) fn without_tests(source: &str) -> String {
    let mut lines = source.lines().peekable();
    let mut kept = String::new();
    while let Some(line) = lines.next() {
        if line.starts_with("#[cfg(test)]") {
            if lines.peek().is_some_and(|next| next.starts_with("mod ") && next.ends_with(';')) {
                lines.next();
                continue;
            }
            break;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept
}

/// The files that a file declares to be tests.
fn test_files(path: &str, source: &str) -> Vec<String> {
    let folder = match path.strip_suffix("/mod.rs") {
        Some(folder) => format!("{folder}/"),
        None if matches!(path, "lib.rs" | "main.rs") => String::new(),
        None => format!("{}/", path.trim_end_matches(".rs")),
    };
    let lines: Vec<&str> = source.lines().collect();
    let declared = lines.windows(2).filter(|two| two[0].starts_with("#[cfg(test)]"));
    let names = declared.filter_map(|two| two[1].strip_prefix("mod ")?.strip_suffix(';'));
    names.map(|name| format!("{folder}{name}.rs")).collect()
}

/// A function of the sources.
struct Function {
    /// Its file and line.
    place: String,
    name: String,
    public: bool,
    /// The words of its body.
    names: BTreeSet<String>,
}

/// The functions of a file, and the words outside of their bodies.
fn functions(path: &str, tokens: &[&str]) -> (Vec<Function>, BTreeSet<String>) {
    let (mut found, mut outside) = (Vec::new(), BTreeSet::new());
    let (mut at, mut depth, mut foreign) = (0, 0usize, None); // foreign: the depth of an `impl Trait for`
    while at < tokens.len() {
        match tokens[at] {
            "impl" => {
                let open = (at..tokens.len()).find(|n| matches!(tokens[*n], "{" | ";")).unwrap_or(tokens.len());
                // `for<'a>` is no trait's
                let of_trait = (at..open).any(|n| tokens[n] == "for" && tokens.get(n + 1) != Some(&"<"));
                if of_trait && foreign.is_none() {
                    foreign = Some(depth);
                }
            }
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if foreign == Some(depth) {
                    foreign = None;
                }
            }
            // a pointer's type has no name
            "fn" if tokens.get(at + 1).is_some_and(|name| *name != "(") => {
                let begin = (at..tokens.len()).find(|n| matches!(tokens[*n], "{" | ";")).unwrap_or(tokens.len());
                let mut end = begin;
                let mut within = 0usize;
                while end < tokens.len() {
                    match tokens[end] {
                        "{" => within += 1,
                        "}" => within -= 1,
                        _ => {}
                    }
                    if within == 0 {
                        break;
                    }
                    end += 1;
                }
                let before = &tokens[at.saturating_sub(8)..at];
                let last = before.iter().rposition(|word| matches!(*word, ";" | "}" | "{" | "]")).map_or(0, |n| n + 1);
                outside.extend(tokens[at + 2..begin].iter().map(|word| (*word).to_owned()));
                found.push(Function {
                    place: format!("src/{path}"),
                    name: tokens[at + 1].to_owned(),
                    // what a trait asks for is called by whoever knows the trait
                    public: before[last..].contains(&"pub") && foreign.is_none(),
                    names: tokens[begin..end.min(tokens.len())].iter().map(|word| (*word).to_owned()).collect(),
                });
                if foreign.is_some() {
                    outside.extend(tokens[begin..end.min(tokens.len())].iter().map(|word| (*word).to_owned()));
                }
                at = end;
            }
            word => drop(outside.insert(word.to_owned())),
        }
        at += 1;
    }
    (found, outside)
}

/// Public functions that nothing leads to from the front door: only tests call them, or nobody. By name, so that what is
/// reached may be more than is called, and never less.
pub(super) fn unreached(sources: &[(String, String)]) -> Vec<String> {
    let (mut all, mut open) = (Vec::new(), vec!["main".to_owned()]);
    let tests: Vec<String> = sources.iter().flat_map(|(path, source)| test_files(path, source)).collect();
    for (path, source) in sources.iter().filter(|(path, _)| !tests.contains(path)) {
        let code = code(&without_tests(source));
        let tokens = tokens(&code);
        let (found, outside) = functions(path, &tokens);
        all.extend(found);
        // what imports name is not called by that
        let imported = imports(&tokens);
        open.extend(outside.into_iter().filter(|word| !imported.contains(word)));
    }
    let mut named: BTreeMap<&str, Vec<&Function>> = BTreeMap::new();
    for one in &all {
        named.entry(&one.name).or_default().push(one);
    }
    let mut reached: BTreeSet<String> = BTreeSet::new();
    while let Some(name) = open.pop() {
        let leads_to = named.get(name.as_str()).into_iter().flatten();
        if reached.insert(name.clone()) {
            open.extend(
                leads_to.flat_map(|one| one.names.iter().filter(|word| named.contains_key(word.as_str())).cloned()),
            );
        }
    }
    let lost = all.iter().filter(|one| one.public && !reached.contains(&one.name));
    lost.map(|one| format!("{}: nothing leads to {}", one.place, one.name)).collect()
}

/// The words of `use` and `pub use`.
fn imports(tokens: &[&str]) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut within = false;
    for (at, token) in tokens.iter().enumerate() {
        within = if within { *token != ";" } else { *token == "use" };
        // what has another name here may be called by that
        if within && tokens.get(at + 1) != Some(&"as") {
            words.insert((*token).to_owned());
        }
    }
    words
}

#[test]
fn functions_that_only_tests_call_are_found() {
    assert_eq!(test_files("a.rs", "#[cfg(test)]\nmod b;"), ["a/b.rs"]);
    assert_eq!(test_files("a/mod.rs", "mod c;\n#[cfg(test)]\nmod b;"), ["a/b.rs"]);
    let lost = |source: &str| {
        let main = "fn main() { nisse::begin() }".to_owned();
        unreached(&[("main.rs".to_owned(), main), ("a.rs".to_owned(), source.to_owned())])
    };
    let tests = "\n#[cfg(test)]\nmod tests { fn f() { super::lost() } }";
    for source in [
        "pub fn begin() {} pub fn lost() {}",
        "pub fn begin() {} pub(super) async fn lost() { lost() }",
        "use crate::b::lost; pub fn begin() {} pub fn lost() {}",
        "pub fn begin() {} impl A { pub const fn lost(self) -> u8 { 1 } }",
        "pub fn begin() { let a = \"lost()\"; } // lost()\npub fn lost() {}",
    ] {
        assert_eq!(lost(&format!("{source}{tests}")), ["src/a.rs: nothing leads to lost"], "{source}");
    }
    assert_eq!(
        lost("#[cfg(test)]\nmod b;\npub fn begin() {}\npub fn lost() {}").len(),
        1,
        "tests may be declared above"
    );
    assert_eq!(lost("pub fn begin() {} pub fn lost() { found() } pub fn found() { lost() }").len(), 2, "a circle");
    for source in [
        "pub fn begin() { let f = lost; } pub fn lost() {}",
        "pub fn begin() { via() } fn via() { self.lost() } pub fn lost() {}",
        "pub fn begin() {} impl Display for A { fn fmt(&self) { lost() } } pub fn lost() {}",
        "pub fn begin() {} static F: fn() = lost; pub fn lost() {}",
        "pub fn begin() {} fn lost() {}",
        "pub use b::lost as kept; pub fn begin() {} pub fn lost() {}",
    ] {
        assert_eq!(lost(source), Vec::<String>::new(), "{source}");
    }
}
