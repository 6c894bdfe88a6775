//! Every kind of repository that tasks work with.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt};

use super::ground::{Ground, put};

pub(crate) type Arrange = fn(&mut Ground);

/// Every kind, and what its repository is called.
pub(crate) const KINDS: &[(&str, Arrange)] = &[
    ("plain", |_| ()),
    ("detached", |g| drop(g.git(&["checkout", "-q", "--detach"]))),
    ("sparse", |g| {
        three_directories(g);
        g.git(&["sparse-checkout", "set", "src"]);
        g.put("src/new.c", "unfinished\n");
    }),
    ("sparse with a file outside", |g| {
        three_directories(g);
        g.git(&["sparse-checkout", "set", "src"]);
        g.put("doc/read.me", "put here by hand\n");
    }),
    ("sparse index", |g| {
        three_directories(g);
        g.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "src"]);
    }),
    ("sparse by patterns", |g| {
        three_directories(g);
        g.git(&["sparse-checkout", "set", "--no-cone", "/*", "!*.me"]);
    }),
    ("split index", |g| drop(g.git(&["update-index", "--split-index"]))),
    ("untracked cache and a new index", |g| {
        g.git(&["update-index", "--index-version=4", "--untracked-cache"]);
        g.put("b.txt", "unfinished\n");
    }),
    ("clean filter", |g| {
        g.put(".gitattributes", "*.bin filter=tidy\n");
        g.git(&["config", "filter.tidy.clean", "tr a-z A-Z"]);
        g.git(&["config", "filter.tidy.smudge", "tr A-Z a-z"]);
        g.git(&["config", "filter.tidy.required", "true"]);
        g.put("data.bin", "kept in capitals\n");
        g.git(&["add", "-A"]);
        g.git(&["commit", "-qm", "filter"]);
        g.put("more.bin", "unfinished\n");
    }),
    ("partial clone", |g| clone(g, &["--filter=blob:none"])),
    ("partial and sparse", |g| {
        clone(g, &["--filter=blob:none", "--sparse"]);
        g.git(&["sparse-checkout", "set", "src"]);
    }),
    ("shallow", |g| clone(g, &["--depth=1"])),
    ("sha256", |g| anew(g, &["--object-format=sha256"])),
    ("reftable", |g| anew(g, &["--ref-format=reftable"])),
    ("submodules", |g| {
        submodule(g);
        g.put("lib/a.txt", "changed inside\n");
    }),
    ("a submodule", |g| {
        submodule(g);
        g.root = g.root.join("lib");
        g.put("b.txt", "unfinished in the submodule\n");
    }),
    ("linked worktree", |g| {
        let linked = g.top().join("linked");
        g.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
        g.root = linked;
    }),
    ("worktreeConfig", |g| {
        g.git(&["config", "extensions.worktreeConfig", "true"]);
        g.git(&["config", "--worktree", "core.quotePath", "false"]);
    }),
    ("autocrlf", |g| {
        g.git(&["config", "core.autocrlf", "true"]);
        fs::remove_file(g.root.join("a.txt")).unwrap();
        g.git(&["checkout", "-q", "--", "."]);
    }),
    ("text attributes", |g| {
        g.put(".gitattributes", "* text=auto\n*.bat eol=crlf\n*.id ident\n*.raw -text\n");
        g.put("x.bat", "echo\r\n");
    }),
    ("names that are no text", |g| {
        put_bytes(g, b"b\xe9b\xe9/caf\xe9.txt");
        g.git(&["add", "-A"]);
        g.git(&["commit", "-qm", "names"]);
        put_bytes(g, b"b\xe9b\xe9/new\xff.txt");
    }),
    ("no commit yet", |g| {
        fs::remove_dir_all(g.root.join(".git")).unwrap();
        g.git(&["init", "-q", "-b", "main"]);
        g.git(&["add", "a.txt"]);
    }),
    ("letters' cases", |g| {
        g.git(&["mv", "a.txt", "A.txt"]);
        g.put("B.TXT", "beside b.txt\n");
    }),
];

fn three_directories(ground: &Ground) {
    ground.put("doc/read.me", "read\n");
    ground.put("web/index.html", "index\n");
    ground.git(&["add", "-A"]);
    ground.git(&["commit", "-qm", "three"]);
}

fn put_bytes(ground: &Ground, name: &[u8]) {
    let path = ground.root.join(OsStr::from_bytes(name));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "named\n").unwrap();
}

fn clone(ground: &mut Ground, options: &[&str]) {
    three_directories(ground);
    ground.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", ground.root.display());
    ground.git_in(&ground.top(), &[&["clone", "-q", "--no-local"], options, &[&url, "clone"]].concat());
    ground.root = ground.top().join("clone");
    ground.put("b.txt", "unfinished\n");
}

fn anew(ground: &mut Ground, options: &[&str]) {
    fs::remove_dir_all(ground.root.join(".git")).unwrap();
    ground.git(&[&["init", "-q", "-b", "main"], options].concat());
    ground.git(&["add", "-A"]);
    ground.git(&["commit", "-qm", "first"]);
    ground.put("b.txt", "unfinished\n");
}

fn submodule(ground: &mut Ground) {
    let library = ground.top().join("library");
    fs::create_dir(&library).unwrap();
    ground.git_in(&library, &["init", "-q", "-b", "main"]);
    put(&library, "a.txt", "a library\n");
    put(&library, "b.txt", "two\n");
    ground.git_in(&library, &["add", "-A"]);
    ground.git_in(&library, &["commit", "-qm", "library"]);
    let url = library.to_str().unwrap();
    ground.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "lib"]);
    ground.git(&["commit", "-q", "-m", "with a submodule"]);
}
