//! What leaves with a branch: nothing that is denied, nothing of nisse's own, no link in the place of what is left out.

use std::{fs, os::unix::fs::symlink, path::Path};

use nisse::{
    domain::id::CommitId,
    repo::{Checkout, NeverStaged, Worktree},
};

use super::ground::{Ground, checkpoint, put, snapshot};

const DENY: [&str; 3] = [".env*", "id_rsa*", "keys/"];

/// The checkout of a task that is to leave these out, by each hand.
fn both(ground: &Ground) -> [Checkout; 2] {
    let deny = DENY.map(str::to_owned);
    let base = ground.checkout().base().unwrap();
    let rules = || NeverStaged::new(&deny, &ground.root.join("var/nisse"), base.commit.as_ref()).unwrap();
    [ground.checkout().never_staging(rules()), ground.checkout().by_program().never_staging(rules())]
}

fn tree(ground: &Ground, commit: &CommitId) -> Vec<String> {
    ground.git(&["ls-tree", "-r", "--name-only", &commit.0]).lines().map(str::to_owned).collect()
}

fn holds(ground: &Ground, commit: &CommitId, path: &str) -> bool {
    tree(ground, commit).iter().any(|found| found == path)
}

fn end(worktree: &Worktree) {
    worktree.discard(&worktree.tip().unwrap().unwrap()).unwrap();
}

/// One with tracked files of such names, and untracked ones.
fn with_secrets() -> Ground {
    let ground = Ground::new();
    ground.put(".env.example", "KEY=\n");
    ground.put("keys/readme", "tracked\n");
    ground.git(&["add", "-A"]);
    ground.git(&["commit", "-qm", "tracked"]);
    ground.put(".env.example", "KEY=changed\n");
    ground.put(".env", "KEY=secret\n");
    ground.put("deep/ID_RSA", "secret\n");
    ground.put("keys/new", "secret\n");
    ground.put("notes.txt", "notes\n");
    ground.put("var/nisse/nisse.db", "log\n");
    ground.put("staged/.env", "the person staged it\n");
    ground.git(&["add", "staged/.env"]);
    ground
}

#[test]
fn a_snapshot_leaves_out_what_is_denied_and_untracked_and_says_so() {
    for number in 0..2 {
        let ground = with_secrets();
        let checkout = &both(&ground)[number];
        let taken = snapshot(checkout, &checkout.base().unwrap()).unwrap();
        let held = tree(&ground, &taken.commit);
        for path in [".env", "deep/ID_RSA", "keys/new", "var/nisse/nisse.db"] {
            assert!(!held.iter().any(|found| found == path), "{path} in {held:?}");
        }
        for path in ["notes.txt", ".env.example", "keys/readme", "staged/.env"] {
            assert!(held.iter().any(|found| found == path), "{path} not in {held:?}");
        }
        assert_eq!(ground.git(&["show", &format!("{}:.env.example", taken.commit)]), "KEY=changed");
        assert_eq!(
            taken.notices,
            [
                "not carried over, because [files] deny names them and a branch may be pushed: .env, deep/ID_RSA, keys/new",
                "not carried over, because it is the state directory of nisse: var/nisse",
            ]
        );
    }
}

#[test]
fn no_checkpoint_takes_what_is_denied_whoever_made_or_staged_it() {
    for number in 0..2 {
        let ground = with_secrets();
        let checkout = &both(&ground)[number];
        let (worktree, taken) = ground.begin_in(checkout);
        let path = worktree.path();
        put(path, ".env", "made by a command\n");
        put(path, "new.txt", "work\n");
        let first = checkpoint(&worktree, 1, &taken.commit, None).unwrap().unwrap();
        assert!(holds(&ground, &first, "new.txt") && !holds(&ground, &first, ".env"));
        // seen as it was before, by its name alone
        put(path, "id_rsa.pub", "made\n");
        assert_eq!(checkpoint(&worktree, 2, &first, None).unwrap(), None);
        assert_eq!(checkpoint(&worktree, 3, &first, Some(&["id_rsa.pub"])).unwrap(), None);
        assert_eq!(worktree.ignored(&["id_rsa.pub".to_owned()]).unwrap(), ["id_rsa.pub"]);

        ground.git_in(path, &["add", "-f", ".env", "id_rsa.pub"]);
        put(path, "new.txt", "more\n");
        let second = checkpoint(&worktree, 4, &first, None).unwrap().unwrap();
        assert!(!holds(&ground, &second, ".env") && !holds(&ground, &second, "id_rsa.pub"));
        assert_eq!(ground.git(&["show", &format!("{second}:new.txt")]), "more");
        ground.git_in(path, &["add", "-f", ".env"]);
        worktree.restore(&second).unwrap();
        assert_eq!(fs::read_to_string(path.join(".env")).unwrap(), "made by a command\n");
        assert!(worktree.changed_since(&second).unwrap().is_empty());
        assert_eq!(worktree.ignored_work().unwrap(), [".env", "id_rsa.pub"]);

        // tracked from the beginning, it stays so, also where it went and came again
        fs::remove_file(path.join(".env.example")).unwrap();
        let third = checkpoint(&worktree, 5, &second, None).unwrap().unwrap();
        assert!(!holds(&ground, &third, ".env.example"));
        put(path, ".env.example", "KEY=again\n");
        let fourth = checkpoint(&worktree, 6, &third, None).unwrap().unwrap();
        assert_eq!(ground.git(&["show", &format!("{fourth}:.env.example")]), "KEY=again");
        end(&worktree);
    }
}

#[test]
fn a_link_in_the_place_of_a_directory_that_is_left_out_is_left_out() {
    for number in 0..2 {
        let ground = Ground::new();
        ground.put(".gitignore", "vendor/\n*.log\n/only/here/\n!deep/vendor/\n");
        ground.put("Cargo.toml", "[package]\n");
        ground.git(&["add", "-A"]);
        ground.git(&["commit", "-qm", "rules"]);
        symlink("/nowhere", ground.root.join("vendor")).unwrap();
        let checkout = &both(&ground)[number];
        let (worktree, taken) = ground.begin_in(checkout);
        assert!(!holds(&ground, &taken.commit, "vendor"));
        assert_eq!(
            taken.notices,
            ["not carried over, because they are links in the place of directories that git ignores: vendor"]
        );
        let path = worktree.path();
        fs::create_dir_all(path.join("deep")).unwrap();
        fs::create_dir_all(path.join("only")).unwrap();
        let outside = ground.top().join("outside");
        put(&outside, "kept", "kept\n");
        let left = ["node_modules", "deep/node_modules", "only/here", "target", "vendor"];
        let work = ["deep/vendor", "here", "src/target", "other"];
        for link in left.iter().chain(&work) {
            symlink(&outside, path.join(link)).unwrap();
        }
        let made = checkpoint(&worktree, 1, &taken.commit, None).unwrap().unwrap();
        for link in left {
            assert!(!holds(&ground, &made, link), "{link} is committed");
        }
        for link in work {
            assert!(holds(&ground, &made, link), "{link} is missing");
        }
        assert_eq!(checkpoint(&worktree, 2, &made, Some(&left)).unwrap(), None);
        ground.git_in(path, &["add", "-f", "node_modules"]);
        assert_eq!(checkpoint(&worktree, 3, &made, None).unwrap(), None);
        worktree.restore(&made).unwrap();
        assert!(path.join("node_modules").is_symlink());
        let mut named = left.map(str::to_owned);
        named.sort_unstable();
        assert_eq!(worktree.ignored_work().unwrap(), named);
        end(&worktree);
        assert!(outside.join("kept").exists() && !Path::new(path).exists());
    }
}

#[test]
fn a_file_that_became_a_directory_of_ignored_files_is_gone_and_the_other_way_round() {
    for number in 0..2 {
        let ground = Ground::new();
        ground.put("out", "a file\n");
        ground.put("dir/a", "a\n");
        ground.put("dir/b", "b\n");
        ground.git(&["add", "-A"]);
        ground.git(&["commit", "-qm", "both"]);
        let swap = |root: &Path, to_file: &str| {
            fs::remove_file(root.join("out")).unwrap();
            put(root, "out/x.log", "ignored\n");
            fs::remove_dir_all(root.join("dir")).unwrap();
            put(root, to_file, "ignored\n");
        };
        let checkout = &both(&ground)[number];
        let (worktree, taken) = ground.begin_in(checkout);
        ground.git(&["config", "core.excludesFile", ground.top().join("own").to_str().unwrap()]);
        put(&ground.top(), "own", "dir\n");
        swap(worktree.path(), "dir");
        assert_eq!(worktree.changed_since(&taken.commit).unwrap(), ["dir/a", "dir/b", "out"]);
        let held = worktree.snapshot_files(&taken.commit, 0).unwrap().unwrap();
        let made = checkpoint(&worktree, 1, &taken.commit, None).unwrap().unwrap();
        let gone = ["dir/a", "dir/b", "out"].join("\n");
        for commit in [&made, &held] {
            assert_eq!(ground.git(&["diff", "--name-only", &taken.commit.0, &commit.0]), gone);
        }
        assert!(worktree.changed_since(&made).unwrap().is_empty());
        end(&worktree);

        swap(&ground.root, "dir");
        let dirty = snapshot(checkout, &checkout.base().unwrap()).unwrap();
        assert_eq!(ground.git(&["diff", "--name-only", "HEAD", &dirty.commit.0]), gone);
        assert_eq!(ground.git(&["status", "--porcelain"]), " D dir/a\n D dir/b\n D out");
    }
}
