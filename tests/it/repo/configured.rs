//! Files come out as `git add -A` has them, by both hands, however git is configured and wherever that is said.

use std::fs;

use super::ground::{Ground, checkpoint, put};

type Arrange = fn(&mut Ground);

/// Files of every line ending, one that a person's rules ignore, one that their filter changes.
const FILES: [(&str, &str); 8] = [
    ("crlf.txt", "one\r\ntwo\r\n"),
    ("lf.txt", "one\ntwo\n"),
    ("mixed.txt", "one\r\ntwo\n"),
    ("lone.txt", "one\rtwo\r\n"),
    ("nul.bin", "\0one\r\ntwo\r\n"),
    ("deep/er.bat", "echo\r\n"),
    ("a.scratch", "ignored by the person's own rules\n"),
    ("words.up", "a filter makes these capitals\n"),
];

/// A configuration of line endings, ignored files and filters, as the text of a file.
fn settings(ground: &Ground) -> String {
    put(&ground.top(), "own/ignore", "*.scratch\n");
    put(&ground.top(), "own/attributes", "*.up filter=capitals\n*.bat eol=crlf\n");
    let own = ground.top().join("own");
    format!(
        "[core]\n\tautocrlf = input\n\texcludesFile = {0}/ignore\n\tattributesFile = {0}/attributes\n\
         [filter \"capitals\"]\n\tclean = tr a-z A-Z\n\trequired = true\n",
        own.display()
    )
}

/// Puts those settings into a file outside the repository, and gives its path.
fn settings_in(ground: &Ground, place: &str) -> String {
    let mut text = settings(ground);
    // it may stand in for the person's own
    text.push_str("[user]\n\tname = Ada\n\temail = ada@example.org\n");
    put(&ground.top(), place, &text);
    ground.top().join(place).to_str().unwrap().to_owned()
}

fn append(ground: &Ground, text: &str) {
    let path = ground.root.join(".git/config");
    let before = fs::read_to_string(&path).unwrap();
    fs::write(path, before + text).unwrap();
}

fn variable(ground: &mut Ground, name: &str, value: impl Into<String>) {
    ground.variables.push((name.to_owned(), value.into()));
}

/// Where a configuration can stand.
const PLACES: &[(&str, Arrange)] = &[
    ("nowhere", |_| ()),
    (".git/config", |g| append(g, &settings(g))),
    ("~/.gitconfig", |g| drop(settings_in(g, "home/.gitconfig"))),
    ("~/.config/git/config", |g| drop(settings_in(g, "home/.config/git/config"))),
    ("XDG_CONFIG_HOME", |g| {
        settings_in(g, "xdg/git/config");
        let xdg = g.top().join("xdg").to_str().unwrap().to_owned();
        variable(g, "XDG_CONFIG_HOME", xdg);
    }),
    ("GIT_CONFIG_GLOBAL", |g| {
        let path = settings_in(g, "elsewhere");
        variable(g, "GIT_CONFIG_GLOBAL", path);
    }),
    ("GIT_CONFIG_SYSTEM", |g| {
        let path = settings_in(g, "elsewhere");
        variable(g, "GIT_CONFIG_SYSTEM", path);
    }),
    ("GIT_CONFIG_COUNT", |g| {
        settings(g);
        let own = g.top().join("own");
        let all = [
            ("core.autocrlf", "input".to_owned()),
            ("core.excludesFile", own.join("ignore").to_str().unwrap().to_owned()),
            ("core.attributesFile", own.join("attributes").to_str().unwrap().to_owned()),
            ("filter.capitals.clean", "tr a-z A-Z".to_owned()),
        ];
        variable(g, "GIT_CONFIG_COUNT", all.len().to_string());
        for (number, (key, value)) in all.into_iter().enumerate() {
            variable(g, &format!("GIT_CONFIG_KEY_{number}"), key);
            variable(g, &format!("GIT_CONFIG_VALUE_{number}"), value);
        }
    }),
    ("include.path", |g| append(g, &format!("[include]\n\tpath = {}\n", settings_in(g, "elsewhere")))),
    ("includeIf gitdir", |g| {
        let (path, top) = (settings_in(g, "elsewhere"), g.top());
        append(g, &format!("[includeIf \"gitdir:{}/\"]\n\tpath = {path}\n", top.display()));
    }),
    ("includeIf gitdir in ~/.gitconfig", |g| {
        let (path, own) = (settings_in(g, "elsewhere"), g.home().join(".gitconfig"));
        let text = fs::read_to_string(&own).unwrap();
        fs::write(own, format!("{text}[includeIf \"gitdir:~/../repo/\"]\n\tpath = {path}\n")).unwrap();
    }),
    ("includeIf onbranch", |g| {
        let path = settings_in(g, "elsewhere");
        append(g, &format!("[includeIf \"onbranch:**\"]\n\tpath = {path}\n"));
    }),
    ("includeIf hasconfig", |g| {
        let path = settings_in(g, "elsewhere");
        append(g, &format!("[includeIf \"hasconfig:remote.*.url:https://example.org/**\"]\n\tpath = {path}\n"));
        append(g, "[remote \"origin\"]\n\turl = https://example.org/x.git\n");
    }),
    ("the usual files of a person", |g| {
        put(&g.home(), ".config/git/ignore", "*.scratch\n");
        put(&g.home(), ".config/git/attributes", "*.bat -text\n*.txt text=auto\n");
    }),
    ("the usual files, elsewhere", |g| {
        put(&g.top(), "xdg/git/ignore", "*.scratch\n");
        put(&g.home(), ".config/git/ignore", "*.txt\n");
        let xdg = g.top().join("xdg").to_str().unwrap().to_owned();
        variable(g, "XDG_CONFIG_HOME", xdg);
    }),
    ("a path from home", |g| {
        put(&g.home(), "mine", "*.scratch\n");
        append(g, "[core]\n\texcludesFile = ~/mine\n\tattributesFile = ~/not-there\n");
    }),
    ("no file", |g| append(g, "[core]\n\texcludesFile =\n\tattributesFile =\n")),
    ("the repository's own", |g| {
        put(&g.root, ".git/info/exclude", "*.scratch\n");
        put(&g.root, ".git/info/attributes", "*.txt text\n*.up filter=nowhere\n");
    }),
];

/// Every way to spell how line endings are to be.
const ENDINGS: [&str; 16] = [
    "autocrlf = true",
    "autocrlf = TRUE",
    "autocrlf = input",
    "autocrlf = Input",
    "autocrlf = on",
    "autocrlf",
    "autocrlf = false",
    "autocrlf = 0",
    "autocrlf =",
    "eol = crlf",
    "eol = native",
    "autocrlf = true\n\teol = lf",
    "autocrlf = false\n\teol = crlf",
    "safecrlf = warn\n\tautocrlf = true",
    "fileMode = 0",
    "symlinks = no",
];

/// The same repository by each hand, by named paths and by a look at all: the trees are those of git itself.
fn comes_out_as_git_adds_it(what: &str, attributes: Option<&str>, arrange: &dyn Fn(&mut Ground)) {
    for (by_program, named) in [(false, false), (false, true), (true, false)] {
        let what = format!("{what}, by the program: {by_program}, named: {named}");
        let mut ground = Ground::new();
        if let Some(attributes) = attributes {
            ground.put(".gitattributes", attributes);
            ground.git(&["add", "-A"]);
            ground.git(&["commit", "-qm", "attributes"]);
        }
        arrange(&mut ground);
        let checkout = if by_program { ground.checkout().by_program() } else { ground.checkout() };
        let (worktree, snapshot) = ground.begin_in(&checkout);
        for (path, text) in FILES {
            put(worktree.path(), path, text);
        }
        let (index, added) = (ground.top().join("index"), ["add", "-A"]);
        let variables = [("GIT_INDEX_FILE", index.to_str().unwrap())];
        let git = |args: &[&str]| {
            let (done, text) = ground.try_git_with(worktree.path(), args, &variables);
            assert!(done, "{what}: {text}");
            text
        };
        git(&["read-tree", "HEAD"]);
        git(&added);
        let expected = git(&["ls-files", "-s"]);
        let names = FILES.map(|(path, _)| path);
        let made = checkpoint(&worktree, 1, &snapshot.commit, named.then_some(&names)).unwrap().unwrap();
        git(&["read-tree", &made.0]);
        assert_eq!(git(&["ls-files", "-s"]), expected, "{what}");
        assert!(worktree.changed_since(&made).unwrap().is_empty(), "{what}: {:?}", worktree.changed_since(&made));

        // the snapshot of a checkout with the same files, which the program always makes
        if !by_program {
            continue;
        }
        for (path, text) in FILES {
            ground.put(path, text);
        }
        let taken = super::ground::snapshot(&checkout, &checkout.base().unwrap()).unwrap();
        git(&["read-tree", &taken.commit.0]);
        assert_eq!(git(&["ls-files", "-s"]), expected, "{what}: the snapshot");
    }
}

#[test]
fn wherever_a_configuration_stands() {
    for (place, arrange) in PLACES {
        comes_out_as_git_adds_it(place, None, arrange);
    }
}

#[test]
fn however_line_endings_are_spelled() {
    for spelled in ENDINGS {
        for attributes in [None, Some("* text=auto\n*.bat eol=crlf\nlone.txt -text\n")] {
            comes_out_as_git_adds_it(spelled, attributes, &|ground| append(ground, &format!("[core]\n\t{spelled}\n")));
        }
    }
}

/// git compares whole seconds where libgit2 compares their parts: a second change of the same size in one second.
#[test]
fn a_change_of_the_same_size_in_the_same_second_is_staged_by_the_program_too() {
    let ground = Ground::new();
    append(&ground, "[core]\n\tautocrlf = input\n");
    let (worktree, snapshot) = ground.begin();
    let path = worktree.path().join("crlf.txt");
    let second = |at: u64| std::time::UNIX_EPOCH + std::time::Duration::from_secs(at);
    let write = |text: &str, at: std::time::SystemTime| {
        let mut file = fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        file.set_modified(at).unwrap();
    };
    write("one\r\n", second(1_700_000_000));
    let first = checkpoint(&worktree, 1, &snapshot.commit, Some(&["crlf.txt"])).unwrap().unwrap();
    write("two\r\n", second(1_700_000_000));
    let second = checkpoint(&worktree, 2, &first, Some(&["crlf.txt"])).unwrap().expect("the change is there");
    assert_eq!(ground.git(&["show", &format!("{second}:crlf.txt")]), "two");
}
