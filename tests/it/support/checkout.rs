//! A person's repository, made for a test.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

/// A git repository with a branch `main` and an identity of its own.
pub(crate) struct Checkout {
    path: PathBuf,
    path_variable: String,
}

impl Checkout {
    /// A repository at `path` without commits.
    pub(crate) fn new(path: &Path) -> Self {
        fs::create_dir_all(path).expect("a directory for the checkout");
        let checkout = Self { path: path.to_owned(), path_variable: std::env::var("PATH").expect("PATH") };
        checkout.git(&["init", "--quiet", "--initial-branch=main"]);
        checkout.git(&["config", "user.name", "Test Person"]);
        checkout.git(&["config", "user.email", "person@example.invalid"]);
        checkout
    }

    /// The repository at `path`.
    pub(crate) fn existing(path: &Path) -> Self {
        Self { path: path.to_owned(), path_variable: std::env::var("PATH").expect("PATH") }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file, uncommitted.
    pub(crate) fn write(&self, file: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path.join(file);
        fs::create_dir_all(path.parent().expect("a file has a directory")).expect("the file's directory");
        fs::write(path, content).expect("a file in the checkout");
        self
    }

    /// Makes a file executable.
    pub(crate) fn executable(&self, file: &str) -> &Self {
        fs::set_permissions(self.path.join(file), fs::Permissions::from_mode(0o755)).expect("a mode in the checkout");
        self
    }

    /// Makes a symbolic link.
    pub(crate) fn link(&self, target: &str, link: &str) -> &Self {
        symlink(target, self.path.join(link)).expect("a link in the checkout");
        self
    }

    /// Commits everything.
    pub(crate) fn commit(&self, message: &str) -> &Self {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self
    }

    /// What git says, without the last line ending.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.git_bytes(arguments)).expect("git speaks UTF-8 here").trim_end().to_owned()
    }

    /// The bytes of `file` at `revision`; none if it is not there.
    pub(crate) fn file_at(&self, revision: &str, file: &str) -> Option<Vec<u8>> {
        let listed = self.git(&["ls-tree", "--name-only", revision, "--", file]);
        (!listed.is_empty()).then(|| self.git_bytes(&["cat-file", "blob", &format!("{revision}:{file}")]))
    }

    /// Whether the reference exists.
    pub(crate) fn has_ref(&self, name: &str) -> bool {
        !self.git(&["for-each-ref", "--format=%(refname)", name]).is_empty()
    }

    fn git_bytes(&self, arguments: &[&str]) -> Vec<u8> {
        let output = Command::new("git")
            .arg("-C")
            .arg(&self.path)
            .args(arguments)
            .env_clear()
            .env("PATH", &self.path_variable)
            .env("HOME", &self.path)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z")
            .env("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z")
            .output()
            .expect("git starts");
        assert!(
            output.status.success(),
            "git {arguments:?} in {}: {}",
            self.path.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    }
}
