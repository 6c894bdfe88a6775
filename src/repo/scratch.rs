//! A new repository with one commit, for the demo.

use std::{fs::File, io::Write as _, path::Path};

use super::{Environment, Error, git::Git, io_error};

/// Makes a repository in the empty directory `dir` with one commit that holds `files` (name, content) on branch `main`.
pub fn make(dir: &Path, files: &[(&str, &str)], subject: &str, environment: &Environment) -> Result<(), Error> {
    for (name, content) in files {
        let path = dir.join(name);
        File::create_new(&path)
            .and_then(|mut file| file.write_all(content.as_bytes()))
            .map_err(io_error("write", &path))?;
    }
    let git = Git::new(environment.clone());
    let call = |args: &[&str]| git.call(["-C".as_ref(), dir.as_os_str()]).args(args).run().map(drop);
    call(&["init", "--quiet", "--initial-branch=main"])?;
    call(&["add", "--all"])?;
    call(&["-c", "user.name=nisse", "-c", "user.email=nisse@localhost", "commit", "--quiet", "-m", subject])
}
