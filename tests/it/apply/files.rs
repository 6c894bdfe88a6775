//! Changed files: what is brought, what stays, and that it goes back byte for byte.

use std::{fs, os::unix::fs::PermissionsExt as _};

use super::{applied, handed_back, tree_of_files};

const EVERY_KIND: &str = r#"printf 'one\nTWO\nthree\n' > a.txt
    printf '\000\001binary\377' > blob.bin; : > empty
    git mv old-name.txt new-name.txt 2>/dev/null || mv old-name.txt new-name.txt
    rm gone.txt; chmod +x run.sh; ln -sf a.txt link; rm -r dir; printf 'file now\n' > dir
    rm plain; mkdir plain; printf 'x\n' > plain/in; mkdir -p new/deep; printf 'y\n' > new/deep/file
    printf 'n\n' > "$(printf 'name\nwith\377odd "bytes')"; chmod 600 private; printf 'more\n' >> private"#;

fn every_kind(env: &crate::support::TestEnvironment) {
    env.checkout.write("a.txt", "one\ntwo\nthree\n").write("old-name.txt", "long enough\nto be\na rename\n");
    env.checkout.write("gone.txt", "g\n").write("run.sh", "true\n").write("dir/a", "a\n").write("dir/b", "b\n");
    env.checkout.write("plain", "p\n").write("private", "secret\n").link("gone.txt", "link").commit("kinds");
    fs::set_permissions(env.checkout.path().join("private"), fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_clean_checkout_where_the_task_began_is_fast_forwarded() {
    let (env, task) = handed_back(every_kind, EVERY_KIND);
    let branch = env.checkout.git(&["for-each-ref", "--format=%(refname)", "refs/heads/nisse"]);
    let document = applied(&env.run(&["apply", "--json", &task]), "fast_forward");
    assert_eq!(env.checkout.git(&["rev-parse", "main"]), env.checkout.git(&["rev-parse", &branch]));
    assert_eq!(document["head"], env.checkout.git(&["rev-parse", "HEAD"]).as_str());
    assert_eq!(document["branch"], "main");
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
    assert_eq!(tree_of_files(&env), env.checkout.git(&["rev-parse", "HEAD^{tree}"]));
    let mode = fs::metadata(env.checkout.path().join("private")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "a file's rights are the person's");
    env.changed_paths();

    let events = env.run(&["log", "--json", &task]).stdout;
    applied(&env.run(&["apply", "--json", &task]), "already");
    env.assert_checkout_unchanged();
    assert_eq!(env.run(&["log", "--json", &task]).stdout, events, "nothing was done, so nothing is logged");
    env.run(&["apply", "--json", &task, "--abort"]).exits(2);
    env.assert_checkout_unchanged();
}

#[test]
fn the_persons_own_changes_stay_as_they_are_and_the_index_too() {
    let (env, task) = handed_back(every_kind, EVERY_KIND);
    let a = "one\ntwo\nthree\n".replace("one", "ONE of mine");
    env.person(|checkout| {
        checkout.write("a.txt", &a).write("notes.txt", "mine\n").write("staged.txt", "staged\n");
        checkout.git(&["add", "staged.txt"]);
    });
    // `a.txt`: the changes touch each other; a line between them makes them two
    super::refused(&env, &env.run(&["apply", "--json", &task]), "apply_conflict", &["a.txt"]);
    env.person(|checkout| {
        checkout.git(&["checkout", "-q", "--", "a.txt"]);
    });
    applied(&env.run(&["apply", "--json", &task]), "files");
    let changed = env.changed_paths();
    for kept in [".git/index", ".git/HEAD", ".git/refs/heads/main", "notes.txt", "staged.txt"] {
        assert!(!changed.contains(&kept.to_owned()), "{kept}: {changed:?}");
    }
    assert_eq!(env.checkout.git(&["diff", "--cached", "--name-only"]), "staged.txt");
    assert!(env.checkout.git(&["status", "--porcelain"]).contains("?? new-name.txt"), "new files stay untracked");
    assert_eq!(fs::read(env.checkout.path().join("a.txt")).unwrap(), b"one\nTWO\nthree\n");
}

#[test]
fn it_is_put_back_byte_for_byte() {
    let (env, task) = handed_back(every_kind, EVERY_KIND);
    env.person(|checkout| {
        checkout.write("notes.txt", "mine\n");
        checkout.write("run.sh", "true\n# mine\n");
    });
    let whole = fs::read_dir(env.checkout.path()).unwrap().count();
    applied(&env.run(&["apply", "--json", &task]), "files");
    assert_eq!(fs::read(env.checkout.path().join("run.sh")).unwrap(), b"true\n# mine\n");
    assert_ne!(fs::read_dir(env.checkout.path()).unwrap().count(), whole);
    applied(&env.run(&["apply", "--json", &task, "--abort"]), "put_back");
    env.assert_checkout_unchanged();
    env.run(&["apply", "--json", &task, "--abort"]).exits(2);
    // and it can be brought again
    applied(&env.run(&["apply", "--json", &task]), "files");
    assert!(env.checkout.path().join("new/deep/file").exists());
    env.changed_paths();
}

#[test]
fn what_was_changed_since_is_not_put_back() {
    let (env, task) = handed_back(|_| {}, "echo b > b.txt; echo more >> a.txt");
    env.person(|checkout| {
        checkout.write("notes.txt", "mine\n").write("c.txt", "c\n").git(&["add", "c.txt"]);
    });
    applied(&env.run(&["apply", "--json", &task]), "files");
    env.checkout.write("b.txt", "mine now\n");
    let run = env.run(&["apply", "--json", &task, "--abort"]);
    let document = run.exits(6).json().pop().unwrap();
    assert_eq!(document["left"], serde_json::json!(["b.txt"]));
    assert_eq!(env.changed_paths(), ["b.txt"]);
    assert_eq!(fs::read(env.checkout.path().join("a.txt")).unwrap(), b"a\n");
}

#[test]
fn changes_in_one_file_are_merged_where_they_do_not_touch() {
    let text = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n{last}\n");
    let (env, task) = handed_back(
        |env| {
            env.checkout.write("a.txt", text("1", "6")).commit("six lines");
        },
        "sed -i s/6/SIX/ a.txt",
    );
    env.person(|checkout| {
        checkout.write("a.txt", text("ONE", "6"));
    });
    applied(&env.run(&["apply", "--json", &task]), "files");
    assert_eq!(fs::read_to_string(env.checkout.path().join("a.txt")).unwrap(), text("ONE", "SIX"));
    assert_eq!(env.changed_paths(), ["a.txt"]);
}

#[test]
fn the_persons_unfinished_work_is_not_brought_as_the_tasks() {
    let (env, task) = handed_back(
        |env| {
            env.checkout.write("mine.txt", "unfinished\n").write("a.txt", "unfinished\n");
        },
        "cat mine.txt > b.txt",
    );
    // the person threw it away meanwhile
    env.person(|checkout| {
        checkout.git(&["checkout", "-q", "--", "a.txt"]);
        fs::remove_file(checkout.path().join("mine.txt")).unwrap();
    });
    applied(&env.run(&["apply", "--json", &task]), "files");
    assert_eq!(env.changed_paths(), ["b.txt"]);
    assert_eq!(env.checkout.git(&["log", "--format=%s"]), "base");
}

#[test]
fn line_endings_are_those_of_the_checkout() {
    let (env, task) = handed_back(
        |env| {
            env.checkout
                .write("a.txt", "one\ntwo\n")
                .write(".gitattributes", "*.txt text eol=crlf\n")
                .commit("attributes");
            fs::remove_file(env.checkout.path().join("a.txt")).unwrap();
            env.checkout.git(&["checkout", "--", "a.txt"]);
        },
        r"printf 'one\r\nTWO\r\n' > a.txt; printf 'new\r\n' > b.txt",
    );
    env.person(|checkout| {
        checkout.write("notes.md", "mine\n");
    });
    applied(&env.run(&["apply", "--json", &task]), "fast_forward");
    assert_eq!(fs::read(env.checkout.path().join("a.txt")).unwrap(), b"one\r\nTWO\r\n");
    assert_eq!(fs::read(env.checkout.path().join("b.txt")).unwrap(), b"new\r\n");
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "?? notes.md");
    env.changed_paths();
}

#[test]
fn a_base_that_moved_on_and_a_detached_head_take_the_files() {
    let (env, task) = handed_back(|_| {}, "echo b > b.txt");
    env.person(|checkout| {
        checkout.write("other.txt", "o\n").commit("meanwhile");
        checkout.git(&["checkout", "-q", "--detach"]);
    });
    let head = env.checkout.git(&["rev-parse", "HEAD"]);
    let document = applied(&env.run(&["apply", "--json", &task]), "files");
    assert_eq!((document["branch"].as_str(), document["head"].as_str()), (None, Some(head.as_str())));
    assert_eq!(env.changed_paths(), ["b.txt"]);
}

#[test]
fn work_that_is_merged_already_is_told() {
    let (env, task) = handed_back(|_| {}, "echo b > b.txt");
    let branch = env.checkout.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/nisse"]);
    env.person(|checkout| drop(checkout.git(&["merge", "-q", &branch])));
    applied(&env.run(&["apply", "--json", &task]), "already");
    env.assert_checkout_unchanged();
}

#[test]
fn nothing_that_a_configuration_names_is_run() {
    let (env, task) = handed_back(|_| {}, "echo more >> a.txt; echo b > b.txt");
    let evil = env.root().join("evil");
    fs::write(&evil, format!("#!/bin/sh\necho \"$0 $*\" >> {}\nexit 1\n", env.root().join("ran").display())).unwrap();
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
    let at = evil.to_str().unwrap().to_owned();
    env.person(|checkout| {
        checkout.write(".gitattributes", "* merge=evil diff=evil\n").write("a.txt", "mine\na\n");
        for key in ["diff.external", "diff.evil.command", "diff.evil.textconv", "core.fsmonitor", "core.editor"] {
            checkout.git(&["config", key, &at]);
        }
        checkout.git(&["config", "merge.evil.driver", &format!("{at} %A")]);
        for hook in ["post-checkout", "post-merge", "post-index-change", "reference-transaction", "pre-commit"] {
            fs::copy(&evil, checkout.path().join(".git/hooks").join(hook)).unwrap();
        }
    });
    let _ = env.run(&["apply", "--json", &task]);
    assert!(!env.root().join("ran").exists(), "{:?}", fs::read_to_string(env.root().join("ran")));
    env.changed_paths();
}
