//! A repository of a given size, and this disk's speed.

use std::{fs, io::Write as _, path::PathBuf, process::Command, time::Instant};

pub(crate) struct World {
    _dir: tempfile::TempDir,
    pub(crate) repo: PathBuf,
    pub(crate) state: PathBuf,
}

impl World {
    /// A repository with so many files of 600 bytes, a hundred a directory, and one of 4 KB.
    pub(crate) fn new(files: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (repo, state) = (dir.path().join("repo"), dir.path().join("state"));
        for n in 0..files {
            let sub = repo.join(format!("dir-{}", n / 100));
            fs::create_dir_all(&sub).unwrap();
            fs::write(sub.join(format!("file-{n}.txt")), format!("{n} line of text\n").repeat(35)).unwrap();
        }
        fs::create_dir_all(repo.join("dir-1")).unwrap();
        fs::write(repo.join("dir-1/file-1.txt"), "first\n").unwrap();
        fs::write(repo.join("four-kilobytes.txt"), "0123456789abcde\n".repeat(256)).unwrap();
        for args in [
            &["init", "-q", "-b", "main"][..],
            &["add", "-A"],
            &["-c", "user.name=B", "-c", "user.email=b@example.invalid", "commit", "-q", "-m", "base"],
        ] {
            assert!(Command::new("git").arg("-C").arg(&repo).args(args).status().unwrap().success());
        }
        Self { repo, state, _dir: dir }
    }
}

/// The median of 50 appends of 4 KiB, each synced.
pub(crate) fn fdatasync_ms() -> f64 {
    let mut file = tempfile::tempfile().unwrap();
    let times: Vec<f64> = (0..50)
        .map(|_| {
            file.write_all(&[7; 4096]).unwrap();
            let begun = Instant::now();
            file.sync_data().unwrap();
            super::ms(begun.elapsed())
        })
        .collect();
    super::median(&times)
}
