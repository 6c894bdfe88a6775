//! Whether libgit2 finds the configuration that git finds. It reads the environment of this process, knows fewer places
//! than git, and no `GIT_CONFIG_*`: where what it finds would have files stored otherwise, the program does everything.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{conversion::FILE_SYSTEM, library::Library, read_error};
use crate::repo::{
    Environment, Error,
    configuration::{Configuration, PersonalFile},
    environment::config_home,
};

impl Library {
    /// Whether libgit2 finds what git finds of what says which files are stored, and how: it reads this process's own
    /// environment, and not `GIT_CONFIG_*`.
    pub(in crate::repo) fn agrees(&self, git: &Configuration, environment: &Environment) -> Result<bool, Error> {
        let what = "read the configuration";
        let config = self.open()?.config().and_then(|mut config| config.snapshot()).map_err(read_error(what))?;
        let own = |key: &str| match config.get_entry(key) {
            // a key alone stands for true
            Ok(entry) if !entry.has_value() => Some("true".to_owned()),
            Ok(entry) => Some(String::from_utf8_lossy(entry.value_bytes()).into_owned()),
            Err(_) => None,
        };
        if FILE_SYSTEM.iter().any(|(key, _)| own(key).as_deref() != git.last(key)) {
            return Ok(false);
        }
        #[expect(clippy::disallowed_methods, reason = "where libgit2 looks, whatever environment we were given")]
        let [home, xdg] = ["HOME", "XDG_CONFIG_HOME"].map(std::env::var_os);
        let home = home.filter(|home| !home.is_empty()).map(PathBuf::from);
        let same = |file: PersonalFile| {
            let (theirs, ours) = (git.last(file.key()), own(file.key()));
            if theirs != ours.as_deref() {
                return false;
            }
            let config_home = config_home(xdg.as_deref(), home.as_deref());
            let usual = ours.is_none();
            match (git.personal_file(file, environment), file.place(ours.as_deref(), home.as_deref(), config_home)) {
                // without a place in which it could be, there is none
                (None, None) => usual,
                (theirs, ours) => theirs == ours || text(theirs.as_deref()) == text(ours.as_deref()),
            }
        };
        Ok(PersonalFile::ALL.into_iter().all(same))
    }
}

/// What a file holds; nothing where there is none.
fn text(path: Option<&Path>) -> Vec<u8> {
    path.and_then(|path| fs::read(path).ok()).unwrap_or_default()
}
