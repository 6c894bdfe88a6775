//! That no files know each other in a circle: each can be read, and moved, with those below it alone.
//!
//! What counts is what a path names: in a `use`, or behind `crate::` and `super::`. Methods are called without one; their
//! types are named. What a module has of its parent's own file, and what a parent re-exports of its children, counts not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{code, reached::without_tests, tokens};

/// A module by its names from the crate on.
type Module = Vec<String>;

/// A path that a file names.
#[derive(Debug)]
struct Named {
    path: Vec<String>,
    /// What it is called here.
    name: String,
    /// By a `use` that others see.
    public: bool,
}

/// The module that a file of `src` is; none for the program's own.
fn module_of(path: &str) -> Option<Module> {
    let parts = path.trim_end_matches(".rs").split('/').filter(|part| !matches!(*part, "mod" | "lib"));
    (path != "main.rs").then(|| parts.map(str::to_owned).collect())
}

/// The paths that a file names.
fn named(tokens: &[&str]) -> Vec<Named> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let before = |back: usize| at.checked_sub(back).map_or("", |n| tokens[n]);
        match tokens[at] {
            "use" => {
                let public = matches!(before(1), "pub" | ")");
                at = tree(tokens, at + 1, &[], public, &mut all);
            }
            // `pub(super)` and `pub(in crate::a)` name nothing
            "crate" | "super" if !matches!((before(2), before(1)), (_, "::" | "in") | ("pub", "(")) => {
                let mut path = vec![tokens[at].to_owned()];
                while tokens.get(at + 1) == Some(&"::") && tokens.get(at + 2).is_some_and(|next| is_word(next)) {
                    path.push(tokens[at + 2].to_owned());
                    at += 2;
                }
                let name = path.last().cloned().unwrap_or_default();
                all.push(Named { path, name, public: false });
            }
            _ => {}
        }
        at += 1;
    }
    all
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Reads one tree of a `use` from `at` on, and gives where it ends.
fn tree(tokens: &[&str], mut at: usize, prefix: &[String], public: bool, all: &mut Vec<Named>) -> usize {
    let mut path = prefix.to_vec();
    while let Some(token) = tokens.get(at) {
        match *token {
            "::" => {}
            "{" => {
                while tokens.get(at).is_some_and(|token| *token != "}") {
                    at = tree(tokens, at + 1, &path, public, all);
                }
                return at + 1;
            }
            "," | "}" | ";" => break,
            "as" => {
                let name = tokens.get(at + 1).map_or(String::new(), |name| (*name).to_owned());
                all.push(Named { path, name, public });
                return at + 2;
            }
            "self" if !path.is_empty() => {}
            word => path.push(word.to_owned()),
        }
        at += 1;
    }
    if path.len() > prefix.len() || tokens.get(at.wrapping_sub(1)) == Some(&"self") {
        let name = path.last().cloned().unwrap_or_default();
        all.push(Named { path, name, public });
    }
    at
}

/// The files of a crate, by module, and what they name.
struct Crate {
    files: BTreeMap<Module, String>,
    names: BTreeMap<Module, Vec<Named>>,
}

impl Crate {
    fn new(sources: &[(String, String)]) -> Self {
        let (mut files, mut names) = (BTreeMap::new(), BTreeMap::new());
        for (path, source) in sources {
            let Some(module) = module_of(path) else { continue };
            let code = code(&without_tests(source));
            names.insert(module.clone(), named(&tokens(&code)));
            files.insert(module, format!("src/{path}"));
        }
        Self { files, names }
    }

    /// The module in whose file a path's item stands, as `module` sees it; none if it is no module of this crate.
    fn target(&self, module: &Module, path: &[String], depth: usize) -> Option<Module> {
        let ups = path.iter().take_while(|part| *part == "super").count();
        let (mut at, rest) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (module.clone(), &path[1..]),
            "super" => (module.get(..module.len().checked_sub(ups)?)?.to_vec(), &path[ups..]),
            first => {
                let child = [module.as_slice(), &[first.to_owned()]].concat();
                (self.files.contains_key(&child).then(|| module.clone())?, path)
            }
        };
        let mut rest = rest.iter();
        for part in rest.by_ref() {
            let below = [at.as_slice(), std::slice::from_ref(part)].concat();
            if !self.files.contains_key(&below) {
                // what is re-exported stands elsewhere
                let shown = self.names.get(&at)?.iter().find(|one| one.public && one.name == *part);
                let elsewhere = shown.filter(|_| depth < 8).and_then(|one| self.target(&at, &one.path, depth + 1));
                return Some(elsewhere.unwrap_or(at));
            }
            at = below;
        }
        Some(at)
    }

    /// The modules that a module knows.
    fn known(&self, module: &Module) -> BTreeSet<Module> {
        let mut known = BTreeSet::new();
        for one in self.names.get(module).into_iter().flatten() {
            let Some(target) = self.target(module, &one.path, 0) else { continue };
            let is_above = module.starts_with(&target);
            let is_door = one.public && target.starts_with(module);
            if !is_above && !is_door {
                known.insert(target);
            }
        }
        known
    }
}

/// The shortest circle through each file that lies in one, each once.
pub(super) fn circles(sources: &[(String, String)]) -> Vec<String> {
    let all = Crate::new(sources);
    let known: BTreeMap<&Module, BTreeSet<Module>> =
        all.files.keys().map(|module| (module, all.known(module))).collect();
    let mut found: BTreeMap<BTreeSet<&str>, String> = BTreeMap::new();
    for start in all.files.keys() {
        // from where each was reached first
        let mut from: BTreeMap<&Module, &Module> = BTreeMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(at) = open.pop_front().filter(|_| !from.contains_key(start)) {
            for next in &known[at] {
                if !from.contains_key(next) {
                    from.insert(next, at);
                    open.push_back(next);
                }
            }
        }
        let Some(mut at) = from.get(start).copied() else { continue };
        let mut circle = vec![all.files[start].as_str()];
        while at != start {
            circle.push(&all.files[at]);
            at = from[at];
        }
        circle.reverse();
        let text = format!("a circle: {} → {} again", circle.join(" → "), circle[0]);
        found.entry(circle.into_iter().collect()).or_insert(text);
    }
    found.into_values().collect()
}

#[test]
fn circles_are_found_however_they_are_written() {
    let circle = |files: &[(&str, &str)]| {
        let own = |(path, source): &(&str, &str)| ((*path).to_owned(), (*source).to_owned());
        circles(&files.iter().map(own).collect::<Vec<_>>())
    };
    let two = |a: &str, b: &str| circle(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", b)]).len();
    let back = "use crate::a::A; pub struct B;";
    for source in [
        "use crate::b::B; pub struct A;",
        "use super::{b::{self, B}, c::D};",
        "use super::{b::B as C, c::{D, E}};",
        "use super::{c::{D, E}, b};",
        "fn f(b: crate::b::B) {}",
        "fn f() { super::b::g() }",
        "pub use crate::b::B;",
        "use super::b::*;",
    ] {
        assert_eq!(two(source, back), 1, "{source}");
    }
    for source in [
        "use crate::c::B;",
        "pub(in crate::b) struct A;",
        "// crate::b::B\nconst B: &str = \"crate::b::B\";",
        "pub struct A;\n#[cfg(test)]\nmod tests { use crate::b::B; }",
    ] {
        assert_eq!(two(source, back), 0, "{source}");
    }
    // by what a door re-exports, and three in a row
    let door = ("d/mod.rs", "mod a; mod b; pub use a::A; pub use b::B; pub struct D;");
    let files = [door, ("d/a.rs", "use super::{B, D}; pub struct A;"), ("d/b.rs", "use super::A; pub struct B;")];
    assert_eq!(circle(&files), ["a circle: src/d/b.rs → src/d/a.rs → src/d/b.rs again"]);
    let three = [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;"), ("c.rs", "use crate::a::A;")];
    assert_eq!(circle(&three).len(), 1);
    // a child may name what stands in its parent's file, and the parent its child
    let family = [("a.rs", "mod b; use b::B; pub struct A;"), ("a/b.rs", "use super::A; pub struct B;")];
    assert_eq!(circle(&family), Vec::<String>::new());
}
