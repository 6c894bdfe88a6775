use super::ground::{Ground, checkpoint, put};
use std::time::Instant;
#[test]
#[ignore]
fn speed() {
    for (dirs, files) in [(2, 100), (200, 100)] {
        for by_program in [false, true] {
            let ground = Ground::new();
            for d in 0..dirs {
                for f in 0..files {
                    put(
                        &ground.root,
                        &format!("big/{d}/{f}.txt"),
                        &format!("{d} {f}\n{}", "some line of text\n".repeat(30)),
                    );
                }
            }
            ground.git(&["add", "-A"]);
            ground.git(&["commit", "-qm", "big"]);
            let checkout = if by_program { ground.checkout().by_program() } else { ground.checkout() };
            let t = Instant::now();
            let (worktree, snapshot) = ground.begin_in(&checkout);
            eprintln!("{} files, program {by_program}: begin {:?}", dirs * files, t.elapsed());
            let mut at = snapshot.commit.clone();
            for unknown in [false, true] {
                let mut times = Vec::new();
                for n in 0..15 {
                    put(worktree.path(), "big/1/5.txt", &format!("{unknown} {n}\n"));
                    let t = Instant::now();
                    let paths: &[&str] = &["big/1/5.txt"];
                    at = checkpoint(&worktree, n + 1, &at, (!unknown).then_some(paths)).unwrap().unwrap();
                    times.push(t.elapsed());
                }
                times.sort();
                eprintln!("   unknown {unknown}: median {:?} min {:?} max {:?}", times[7], times[0], times[14]);
            }
            let t = Instant::now();
            worktree.ignored(&["big/1/5.txt".to_owned()]).unwrap();
            eprintln!("   ignored {:?}", t.elapsed());
            let t = Instant::now();
            worktree.changed_since(&at).unwrap();
            eprintln!("   changed_since {:?}", t.elapsed());
        }
    }
    // fsync
    let d = tempfile::tempdir().unwrap();
    let mut times = Vec::new();
    for n in 0..20 {
        let p = d.path().join(n.to_string());
        std::fs::write(&p, "xxx").unwrap();
        let t = Instant::now();
        std::fs::File::open(&p).unwrap().sync_all().unwrap();
        times.push(t.elapsed());
    }
    times.sort();
    eprintln!("fsync median {:?}", times[10]);
}
