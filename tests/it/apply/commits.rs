//! Commits that are the person's: made by their git, with their hooks, signature and name.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use rustix::process::{Pid, Signal, kill_process};

use super::{applied, handed_back, handed_back_with, refused};
use crate::support::{TestEnvironment, is_alive, wait_until};

/// Puts a hook into the checkout; what it writes to `$seen` is asked for with [`seen`].
fn hook(env: &TestEnvironment, name: &str, script: &str) {
    let seen = env.root().join("seen");
    env.person(|checkout| {
        let path = checkout.path().join(".git/hooks").join(name);
        fs::write(&path, format!("#!/bin/sh\nseen='{}'\n{script}\n", seen.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    });
}

/// A program of the test's own, outside of the checkout.
fn program(env: &TestEnvironment, name: &str, script: &str) -> String {
    let path = env.root().join(name);
    let seen = env.root().join("seen");
    fs::write(&path, format!("#!/bin/sh\nseen='{}'\n{script}\n", seen.display())).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The process id that a program wrote, once it has.
fn process(seen: &Path) -> i32 {
    let id = || fs::read_to_string(seen).ok().and_then(|text| text.trim().parse().ok());
    assert!(wait_until(Duration::from_mins(2), || id().is_some()), "it was not run");
    id().unwrap()
}

fn seen(env: &TestEnvironment) -> String {
    fs::read_to_string(env.root().join("seen")).unwrap_or_default()
}

#[test]
fn a_commit_has_the_tasks_files_and_nothing_else() {
    for manner in ["--commit", "--squash"] {
        let (env, task) = handed_back(|_| {}, "echo task >> a.txt; echo b > b.txt");
        env.set("MINE", "visible");
        hook(
            &env,
            "pre-commit",
            "git diff --cached --name-only > $seen; git diff --name-only >> $seen; echo $MINE >> $seen; env | grep -c NISSE_ >> $seen; true",
        );
        hook(&env, "commit-msg", "echo 'Hooked: yes' >> $1");
        env.person(|checkout| {
            checkout.write("staged.txt", "staged\n").write("loose.txt", "loose\n");
            checkout.git(&["add", "staged.txt"]);
        });
        let document = applied(&env.run(&["apply", "--json", &task, manner]), "commits");
        assert_eq!(document["commits"], 1);
        assert_eq!(seen(&env), "a.txt\nb.txt\nvisible\n0\n", "what the hook saw");
        assert_eq!(env.checkout.git(&["log", "-1", "--format=%an <%ae>"]), "Test Person <person@example.invalid>");
        let message = env.checkout.git(&["log", "-1", "--format=%B"]);
        assert!(message.starts_with("what was asked") && message.contains("Hooked: yes"), "{message}");
        assert_eq!(env.checkout.git(&["log", "--format=%s"]).lines().count(), 2);
        assert_eq!(env.checkout.git(&["show", "--name-only", "--format="]), "a.txt\nb.txt");
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), "A  staged.txt\n?? loose.txt");
        env.changed_paths();
        applied(&env.run(&["apply", "--json", &task, manner]), "already");
        env.run(&["apply", "--json", &task, "--abort"]).exits(2);
        env.assert_checkout_unchanged();
    }
}

#[test]
fn a_branch_of_several_commits_comes_as_it_is_or_as_one() {
    for (manner, commits) in [("--commit", 3), ("--squash", 1)] {
        let (env, task) = handed_back_with(
            |env| {
                env.set("NISSE_BRANCH_HISTORY", "turns");
            },
            &["echo 1 > one.txt", "echo 2 >> one.txt; echo x > two.txt", "rm two.txt; echo 3 > three.txt"],
        );
        env.person(|checkout| {
            checkout.write("mine.txt", "m\n").commit("meanwhile");
        });
        let document = applied(&env.run(&["apply", "--json", &task, manner]), "commits");
        assert_eq!(document["commits"], commits);
        assert_eq!(env.checkout.git(&["log", "--format=%s"]).lines().count(), 2 + commits);
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
        assert_eq!(env.checkout.git(&["ls-files"]), "a.txt\nmine.txt\none.txt\nthree.txt");
        env.changed_paths();
        applied(&env.run(&["apply", "--json", &task, manner]), "already");
    }
}

#[test]
fn a_conflict_with_a_later_commit_is_seen_before_the_first() {
    let (env, task) = handed_back_with(
        |env| {
            env.set("NISSE_BRANCH_HISTORY", "turns");
        },
        &["echo 1 > one.txt", "echo 2 >> a.txt"],
    );
    env.person(|checkout| {
        checkout.write("a.txt", "mine\n").commit("meanwhile");
    });
    refused(&env, &env.run(&["apply", "--json", &task, "--commit"]), "apply_conflict", &["a.txt"]);
    // the person's own changes would be committed too
    let (env, task) = handed_back(
        |env| {
            env.checkout.write("a.txt", "1\n2\n3\n4\n5\n").commit("lines");
        },
        "sed -i s/5/five/ a.txt",
    );
    env.person(|checkout| {
        checkout.write("a.txt", "one\n2\n3\n4\n5\n");
    });
    refused(&env, &env.run(&["apply", "--json", &task, "--commit"]), "apply_conflict", &["a.txt"]);
}

#[test]
fn a_hook_that_refuses_is_heard_and_the_work_stays() {
    let (env, task) = handed_back(|_| {}, "echo task >> a.txt; echo b > b.txt");
    hook(
        &env,
        "pre-commit",
        "[ -e $seen ] && exit 0; echo formatted >> b.txt; git add b.txt; : > $seen; echo 'style: b.txt' >&2; exit 1",
    );
    let run = env.run(&["apply", "--json", &task, "--commit"]);
    run.exits(6);
    let error = run.json().pop().unwrap();
    assert_eq!(error["error"]["kind"], "not_committed");
    assert!(error["error"]["message"].as_str().unwrap().contains("style: b.txt"), "{}", run.report());
    let way_back = format!("nisse apply {} --abort", &task[24..]);
    assert!(error["error"]["hint"].as_str().unwrap().contains(&way_back), "{}", run.report());
    assert_eq!(env.checkout.git(&["log", "--format=%s"]), "base");
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), " M a.txt\n?? b.txt", "applied, and the index as it was");
    // once more: the hook is content, and what it changed is in the commit
    let document = applied(&env.run(&["apply", "--json", &task, "--commit"]), "commits");
    assert_eq!(document["commits"], 1);
    assert_eq!(env.checkout.git(&["show", "HEAD:b.txt"]), "b\nformatted");
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
    env.changed_paths();
}

#[test]
fn a_hook_that_refuses_leads_back_too() {
    let (env, task) = handed_back(|_| {}, "echo task >> a.txt; mkdir d; echo b > d/b.txt");
    hook(&env, "pre-commit", "exit 1");
    env.run(&["apply", "--json", &task, "--squash"]).exits(6);
    applied(&env.run(&["apply", "--json", &task, "--abort"]), "put_back");
    env.assert_checkout_unchanged();
}

#[test]
fn a_signature_that_cannot_be_made_makes_no_commit() {
    let (env, task) = handed_back(|_| {}, "echo task >> a.txt");
    env.person(|checkout| {
        checkout.git(&["config", "commit.gpgsign", "true"]);
        checkout.git(&["config", "gpg.program", "false"]);
    });
    for manner in ["--commit", "--squash", "--merge"] {
        let run = env.run(&["apply", "--json", &task, manner]);
        run.exits(6);
        assert!(run.stdout.contains("not_committed") && run.stdout.contains("gpg"), "{}", run.report());
        assert_eq!(env.checkout.git(&["log", "--format=%s"]), "base");
        let back = env.run(&["apply", "--json", &task, "--abort"]);
        // a merge that was refused has left nothing
        if manner == "--merge" {
            back.exits(2);
        } else {
            applied(&back, "put_back");
        }
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
    }
    env.changed_paths();
    env.person(|checkout| drop(checkout.git(&["config", "commit.gpgsign", "false"])));
    applied(&env.run(&["apply", "--json", &task, "--commit"]), "commits");
    env.changed_paths();
}

#[test]
fn a_merge_is_a_commit_with_two_parents() {
    let (env, task) = handed_back(|_| {}, "echo b > b.txt");
    let branch = env.checkout.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/nisse"]);
    hook(&env, "pre-merge-commit", "echo merged > $seen");
    env.person(|checkout| {
        checkout.write("mine.txt", "m\n").commit("meanwhile").write("loose.txt", "l\n");
    });
    let head = env.checkout.git(&["rev-parse", "HEAD"]);
    applied(&env.run(&["apply", "--json", &task, "--merge"]), "commits");
    let parents = env.checkout.git(&["log", "-1", "--format=%P"]);
    assert_eq!(parents, format!("{head} {}", env.checkout.git(&["rev-parse", &branch])));
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "?? loose.txt");
    assert_eq!(seen(&env), "merged\n");
    env.changed_paths();
    applied(&env.run(&["apply", "--json", &task, "--merge"]), "already");
}

#[test]
fn a_merge_brings_no_unfinished_work_and_wants_everything_committed() {
    let (env, task) = handed_back(
        |env| {
            env.checkout.write("mine.txt", "unfinished\n");
        },
        "echo b > b.txt",
    );
    let run = env.run(&["apply", "--json", &task, "--merge"]);
    refused(&env, &run, "merge_refused", &["uncommitted"]);
    let way_on = format!("nisse apply {} --commit", &task[24..]);
    assert!(run.stdout.contains(&way_on), "{}", run.report());
    let (env, task) = handed_back(|_| {}, "echo b > b.txt");
    env.person(|checkout| {
        checkout.write("a.txt", "mine\n");
    });
    refused(&env, &env.run(&["apply", "--json", &task, "--merge"]), "apply_conflict", &["a.txt"]);
}

#[test]
fn without_a_name_the_person_is_told_by_git() {
    let (env, task) = handed_back(|_| {}, "echo b > b.txt");
    env.person(|checkout| {
        checkout.git(&["config", "--unset", "user.name"]);
        checkout.git(&["config", "--unset", "user.email"]);
        checkout.git(&["config", "user.useConfigOnly", "true"]);
    });
    let run = env.run(&["apply", "--json", &task, "--commit"]);
    run.exits(6);
    assert!(run.stdout.contains("user.email") || run.stdout.contains("tell me who you are"), "{}", run.report());
    applied(&env.run(&["apply", "--json", &task, "--abort"]), "put_back");
    env.assert_checkout_unchanged();
}

#[test]
fn nothing_that_asks_on_the_terminal_is_waited_for() {
    let (env, task) = handed_back(|_| {}, "echo task >> a.txt");
    // as a program that asks for a passphrase does: on the terminal where there is one, else not at all
    let asks = "if (: < /dev/tty) 2> /dev/null; then sleep 1000 < /dev/tty; fi; echo 'signing failed: nobody to ask' >&2; exit 2";
    let gpg = program(&env, "gpg", asks);
    let hooks = env.root().join("hooks");
    fs::create_dir(&hooks).unwrap();
    fs::copy(&gpg, hooks.join("pre-commit")).unwrap();
    for settings in [
        vec![("commit.gpgsign", "true"), ("gpg.program", &*gpg)],
        vec![("commit.gpgsign", "false"), ("core.hooksPath", hooks.to_str().unwrap())],
    ] {
        env.person(|checkout| {
            for (key, value) in settings {
                checkout.git(&["config", key, value]);
            }
        });
        let on_terminal = env.finish(env.start_on_terminal(&["apply", &task, "--commit"]));
        let without = env.run(&["apply", "--json", &task, "--commit"]);
        for run in [&on_terminal, &without] {
            let told = format!("{}{}", run.exits(6).stdout, run.stderr);
            // on a terminal it is folded
            let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(told.contains("signing failed: nobody to ask"), "{}", run.report());
        }
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), " M a.txt", "the files stay applied");
    }
    env.person(|checkout| drop(checkout.git(&["config", "--unset", "core.hooksPath"])));
    applied(&env.run(&["apply", "--json", &task, "--commit"]), "commits");
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
    env.changed_paths();
}

#[test]
fn what_a_hook_leaves_in_the_background_is_not_waited_for() {
    for manner in ["--commit", "--merge"] {
        let (env, task) = handed_back(|_| {}, "echo task >> a.txt");
        for name in ["post-commit", "post-merge"] {
            hook(&env, name, "sleep 1000 & echo $! > $seen");
        }
        applied(&env.run(&["apply", "--json", &task, manner]), "commits");
        let left = process(&env.root().join("seen"));
        assert!(is_alive(left), "it is the person's");
        // it holds nothing of the task's
        env.run(&["apply", "--json", &task, "--abort"]).exits(2);
        kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();
        env.changed_paths();
    }
}

#[test]
fn a_signal_ends_the_hook_and_the_way_on_is_open() {
    for (manner, name) in [("--commit", "pre-commit"), ("--merge", "pre-merge-commit")] {
        let (env, task) = handed_back(|_| {}, "echo task >> a.txt; echo b > b.txt");
        env.person(|checkout| {
            checkout.write("mine.txt", "m\n").commit("meanwhile");
        });
        hook(&env, name, "echo $$ > $seen; sleep 1000");
        let running = env.start(&["apply", "--json", &task, manner]);
        let waiting = process(&env.root().join("seen"));
        running.signal(Signal::INT);
        let run = env.finish(running);
        let error = run.exits(6).json().pop().unwrap();
        assert_eq!(error["error"]["kind"], "not_committed");
        assert!(wait_until(Duration::from_secs(30), || !is_alive(waiting)), "the hook goes on");
        assert_eq!(env.checkout.git(&["log", "-1", "--format=%s"]), "meanwhile");
        let status = env.checkout.git(&["status", "--porcelain"]);
        assert_eq!(status, if manner == "--merge" { "" } else { " M a.txt\n?? b.txt" }, "{manner}");
        hook(&env, name, "exit 0");
        applied(&env.run(&["apply", "--json", &task, manner]), "commits");
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
        env.changed_paths();
    }
}

#[test]
fn what_a_configuration_names_is_run_by_the_persons_commit_alone() {
    for (manner, hooks) in
        [("--commit", "pre-commit commit-msg"), ("--squash", "pre-commit"), ("--merge", "commit-msg")]
    {
        let (env, task) = handed_back(|_| {}, "echo more >> a.txt; echo b > b.txt");
        // who runs it: nisse's own calls name their repository
        let tells = program(&env, "tells", "echo \"$(basename $0) of $(ps -o args= -p $PPID)\" >> $seen; exit 0");
        let own = env.root().join("hooks");
        fs::create_dir(&own).unwrap();
        let all = [
            "pre-commit",
            "commit-msg",
            "pre-merge-commit",
            "post-checkout",
            "post-index-change",
            "reference-transaction",
        ];
        for name in all {
            fs::copy(&tells, own.join(name)).unwrap();
        }
        let included = env.root().join("included");
        let text = format!(
            "[core]\nfsmonitor = {tells}\nhooksPath = {}\neditor = {tells}\n[diff]\nexternal = {tells}\n[sequence]\neditor = {tells}\n",
            own.display()
        );
        fs::write(&included, text).unwrap();
        env.person(|checkout| {
            checkout.git(&["config", "include.path", included.to_str().unwrap()]);
            fs::write(checkout.path().join(".git/info/attributes"), "*.txt diff=told\n").unwrap();
            checkout.git(&["config", "diff.told.textconv", &tells]);
            checkout.git(&["-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "meanwhile"]);
        });
        let _ = fs::remove_file(env.root().join("seen"));
        applied(&env.run(&["apply", "--json", &task, manner]), "commits");
        let seen = seen(&env);
        for name in hooks.split(' ') {
            assert!(seen.lines().any(|line| line.starts_with(&format!("{name} of git "))), "{manner} {name}: {seen}");
        }
        let ours: Vec<_> =
            seen.lines().filter(|line| line.contains("--git-dir") || line.contains("nisse apply")).collect();
        assert!(ours.is_empty(), "{manner}: {ours:?}");
        assert!(!seen.contains("editor"), "{seen}");
        env.changed_paths();
    }
}
