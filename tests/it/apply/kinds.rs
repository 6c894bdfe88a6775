//! Every kind of entry becomes every other, and goes back; what git does not keep stays as it was.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use super::{applied, handed_back, tree_of_files};
use crate::support::{Checkout, TestEnvironment};

const KINDS: [&str; 7] = ["nothing", "file", "private", "program", "link", "dirlink", "directory"];

/// The shell that makes `path` a kind.
fn shell(kind: &str, path: &str) -> String {
    match kind {
        "nothing" => ":".to_owned(),
        "file" => format!("echo '{path}' > {path}"),
        "private" => format!("echo 'private {path}' > {path}; chmod 600 {path}"),
        "program" => format!("echo 'true {path}' > {path}; chmod 755 {path}"),
        "link" => format!("ln -s a.txt {path}"),
        "dirlink" => format!("ln -s inner {path}"),
        "directory" => format!("mkdir -p {path}/deep; echo x > {path}/x; echo y > {path}/deep/y; ln -s x {path}/l"),
        other => panic!("{other}"),
    }
}

fn run_shell(directory: &Path, lines: &str) {
    let done = std::process::Command::new("sh").args(["-ec", lines]).current_dir(directory).status().unwrap();
    assert!(done.success());
}

/// A world with a path for each pair of kinds, and a task that turned the one into the other.
fn every_pair() -> (TestEnvironment, String) {
    let pairs = || KINDS.iter().flat_map(|from| KINDS.iter().map(move |to| (*from, *to, format!("{from}-{to}"))));
    let before: Vec<_> = pairs().map(|(from, _, path)| shell(from, &path)).collect();
    let after: Vec<_> = pairs()
        .filter(|(from, to, _)| from != to)
        .map(|(_, to, path)| format!("rm -rf {path}; {}", shell(to, &path)))
        .collect();
    let arrange = |env: &TestEnvironment| {
        env.checkout.write("inner/x", "of the link\n").write("inner/deep/y", "of the link\n");
        run_shell(env.checkout.path(), &before.join("\n"));
        env.checkout.commit("kinds");
    };
    handed_back(arrange, &after.join("; "))
}

fn no_own_names(root: &Path) {
    for entry in fs::read_dir(root).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        assert!(!name.starts_with(".nisse-"), "{name} is left in {}", root.display());
        if entry.file_type().unwrap().is_dir() && name != ".git" {
            no_own_names(&entry.path());
        }
    }
}

#[test]
fn every_kind_becomes_every_other_by_a_fast_forward() {
    let (env, task) = every_pair();
    applied(&env.run(&["apply", "--json", &task]), "fast_forward");
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
    assert_eq!(tree_of_files(&env), env.checkout.git(&["rev-parse", "HEAD^{tree}"]));
    assert_eq!(
        fs::read_to_string(env.checkout.path().join("inner/x")).unwrap(),
        "of the link\n",
        "written through a link"
    );
    no_own_names(env.checkout.path());
    env.changed_paths();
}

#[test]
fn every_kind_becomes_every_other_and_goes_back() {
    let (env, task) = every_pair();
    env.person(|checkout| drop(checkout.write("mine.txt", "m\n").git(&["add", "mine.txt"])));
    let branch = env.checkout.git(&["for-each-ref", "--format=%(refname)", "refs/heads/nisse"]);
    applied(&env.run(&["apply", "--json", &task]), "files");
    let wanted = env.checkout.git(&["ls-tree", "-r", "--full-tree", &branch]);
    let is = env.checkout.git(&["ls-tree", "-r", "--full-tree", &tree_of_files(&env)]);
    let is: Vec<_> = is.lines().filter(|line| !line.ends_with("\tmine.txt")).collect();
    assert_eq!(is, wanted.lines().collect::<Vec<_>>());
    no_own_names(env.checkout.path());
    // modes that git does not keep come back too
    applied(&env.run(&["apply", "--json", &task, "--abort"]), "put_back");
    env.assert_checkout_unchanged();
    applied(&env.run(&["apply", "--json", &task, "--squash"]), "commits");
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "A  mine.txt");
    env.changed_paths();
}

#[test]
fn a_directory_with_something_of_the_persons_makes_room_for_nothing() {
    for (now, named) in [("ln -s a.txt d", "d"), ("echo file > d", "d")] {
        let (env, task) = handed_back(
            |env| {
                env.checkout.write("d/in", "in\n").write(".gitignore", "*.o\n").commit("directory");
            },
            &format!("rm -r d; {now}"),
        );
        env.person(|checkout| {
            checkout.write("d/built.o", "ignored\n");
        });
        super::refused(&env, &env.run(&["apply", "--json", &task]), "apply_conflict", &[named]);
        // empty ones are nothing to git
        env.person(|checkout| {
            fs::remove_file(checkout.path().join("d/built.o")).unwrap();
            fs::create_dir_all(checkout.path().join("d/empty/deep")).unwrap();
        });
        applied(&env.run(&["apply", "--json", &task]), "fast_forward");
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
        env.changed_paths();
    }
}

#[test]
fn what_git_does_not_keep_stays_with_the_file() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    let (env, task) = handed_back(
        |env| {
            env.checkout.write("private", "p\n").write("shared", "s\n").write("run", "r\n").executable("run");
            env.checkout.commit("files");
            for (file, mode) in [("private", 0o600), ("run", 0o700)] {
                fs::set_permissions(env.checkout.path().join(file), fs::Permissions::from_mode(mode)).unwrap();
            }
        },
        "echo more >> private; echo more >> shared; chmod +x private run; echo new > new; echo run > newrun; chmod +x newrun",
    );
    let at = |file: &str| env.checkout.path().join(file);
    let with_attributes = setxattr(at("private"), c"user.note", b"mine", XattrFlags::empty()).is_ok();
    fs::hard_link(at("shared"), env.root().join("second-name")).unwrap();
    env.person(|_| {});
    let document = applied(&env.run(&["apply", "--json", &task]), "fast_forward");
    let mode = |file: &str| at(file).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("private"), mode("run")), (0o700, 0o700), "nobody else may read them by now");
    // as git makes new ones here
    env.checkout.write("by-hand", "x\n");
    assert_eq!((mode("new"), mode("newrun")), (mode("by-hand"), mode("by-hand") | (mode("by-hand") & 0o444) >> 2));
    if with_attributes {
        let mut value = [0_u8; 16];
        let length = getxattr(at("private"), c"user.note", &mut value[..]).unwrap();
        assert_eq!(&value[..length], b"mine");
    }
    assert_eq!(fs::read_to_string(env.root().join("second-name")).unwrap(), "s\n", "as git leaves it");
    assert_eq!(at("shared").metadata().unwrap().nlink(), 1);
    let notices = document["notices"].to_string();
    assert!(notices.contains("shared") && notices.contains("hard links"), "{notices}");
    env.changed_paths();
}

#[test]
fn new_files_come_as_the_umask_says() {
    for (umask, file, program) in [("077", 0o600, 0o700), ("027", 0o640, 0o750), ("002", 0o664, 0o775)] {
        let (env, task) = handed_back(|_| {}, "mkdir d; echo new > d/new; echo run > d/run; chmod +x d/run");
        let run = env.start_behind(&format!("umask {umask}"), &["apply", "--json", &task]);
        applied(&env.finish(run), "fast_forward");
        let mode = |name: &str| env.checkout.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("d/new"), mode("d/run"), mode("d")), (file, program, program), "{umask}");
        env.changed_paths();
    }
}

/// A checkout with a submodule `sub`, filled.
fn with_submodule(env: &TestEnvironment) {
    let library = Checkout::new(&env.root().join("library"));
    library.write("lib.txt", "lib\n").commit("library");
    let from = library.path().to_str().unwrap();
    env.checkout.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, "sub"]);
    env.checkout.commit("submodule");
}

#[test]
fn a_submodule_that_goes_leaves_as_git_would_let_it() {
    for manner in [&[][..], &["--squash"]] {
        for filled in [true, false] {
            let (env, task) = handed_back(with_submodule, "rm -r sub .gitmodules");
            env.person(|checkout| {
                if !filled {
                    checkout.git(&["submodule", "--quiet", "deinit", "--force", "sub"]);
                }
            });
            let run = env.run(&[&["apply", "--json", &task], manner].concat());
            let document = run.exits(0).json().pop().unwrap();
            assert_eq!(env.checkout.git(&["ls-tree", "-r", "--name-only", "HEAD"]), "a.txt", "{}", run.report());
            assert_eq!(env.checkout.path().join("sub").exists(), filled, "what is in it is the person's");
            assert_eq!(env.checkout.git(&["status", "--porcelain"]), if filled { "?? sub/" } else { "" });
            assert_eq!(document["notices"].to_string().contains("sub"), filled, "{document}");
            applied(&env.run(&[&["apply", "--json", &task], manner].concat()), "already");
            env.changed_paths();
        }
    }
}

#[test]
fn a_submodule_that_comes_is_in_the_commit_and_said_of_files() {
    let id = "0123456789012345678901234567890123456789";
    let line = format!(
        "git update-index --add --cacheinfo 160000,{id},sub; mkdir sub; echo '[submodule \"sub\"]' > .gitmodules; \
         echo b > b.txt"
    );
    for manner in ["", "--squash"] {
        let (env, task) = handed_back(|_| {}, &line);
        let branch = env.checkout.git(&["for-each-ref", "--format=%(refname)", "refs/heads/nisse"]);
        assert!(env.checkout.git(&["ls-tree", &branch, "sub"]).contains(id), "the task has it");
        env.person(|checkout| {
            if manner.is_empty() {
                checkout.write("a.txt", "mine\n");
            }
        });
        let arguments: Vec<_> = ["apply", "--json", &task, manner].into_iter().filter(|one| !one.is_empty()).collect();
        let run = env.run(&arguments);
        let document = run.exits(0).json().pop().unwrap();
        assert!(env.checkout.path().join("sub").is_dir(), "{}", run.report());
        if manner.is_empty() {
            assert!(document["notices"].to_string().contains(&format!("160000,{id},sub")), "{document}");
        } else {
            assert!(env.checkout.git(&["ls-tree", "HEAD", "sub"]).contains(id), "{}", run.report());
            assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
        }
        applied(&env.run(&arguments), "already");
        env.changed_paths();
    }
}
