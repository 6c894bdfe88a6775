//! Which task a name means, and whether a command may act on it from here.
//!
//! A beginning of an id means a task of this repository before one of another. What acts on a checkout or a repository
//! acts on the one that it stands in: a task of another is named with its place, and nothing is done.

use std::path::Path;

use super::{Error, open::Opened};
use crate::{
    domain::{checkout::Isolation, id::TaskId, started::TaskStarted},
    log::{self, Access, Log},
    repo::Checkout,
};

/// What a task is named for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Its work comes into the checkout.
    Apply,
    /// It goes on.
    Resume,
    /// It is given up.
    Drop,
    /// It is read.
    Log,
}

impl Purpose {
    /// The command.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Resume => "resume",
            Self::Drop => "drop",
            Self::Log => "log",
        }
    }
}

/// A task that goes by a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// Its id.
    pub id: TaskId,
    /// Where it was begun, if that is not here.
    pub elsewhere: Option<String>,
}

/// How near a task is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Nearness {
    /// It was begun in this checkout.
    Here,
    /// In another one of this repository.
    Repository,
    /// In another repository.
    Far,
}

/// The task that `name` means: its id, or a beginning of it, or of the short form of it.
pub fn task(opened: &Opened, name: &str, purpose: Purpose) -> Result<Named, Error> {
    let missing = || log::Error::NoSuchTask { name: name.to_owned() };
    let log = Log::open(opened.state_dir(), Access::Read)?.ok_or_else(missing)?;
    let here = opened.checkout().ok();
    let mut found = Vec::new();
    for id in log.named(name)? {
        match log.started(id) {
            Ok(started) => found.push((id, nearness(opened, here, &started)?, Some(started))),
            // whose it is is not known; whoever asks for it is to hear that it is corrupt
            Err(log::Error::Corrupt { .. }) => found.push((id, Nearness::Here, None)),
            Err(error) => return Err(error.into()),
        }
    }
    if found.iter().any(|(_, near, _)| *near != Nearness::Far) {
        found.retain(|(_, near, _)| *near != Nearness::Far);
    }
    let (id, near, started) = match found.len() {
        0 => return Err(missing().into()),
        1 => found.swap_remove(0),
        _ => {
            let among = found.into_iter().map(|(id, ..)| id).collect();
            return Err(log::Error::Ambiguous { name: name.to_owned(), among }.into());
        }
    };
    let Some(started) = started.filter(|_| near != Nearness::Here) else { return Ok(Named { id, elsewhere: None }) };
    let may = match (purpose, near) {
        (Purpose::Log, _) | (_, Nearness::Here) => true,
        // branch and worktree belong to the repository; files belong to one checkout
        (Purpose::Resume | Purpose::Drop, Nearness::Repository) => started.workplace.isolation != Isolation::InPlace,
        (Purpose::Apply, Nearness::Repository) | (Purpose::Apply | Purpose::Resume | Purpose::Drop, Nearness::Far) => {
            false
        }
    };
    if may {
        return Ok(Named { id, elsewhere: Some(started.workplace.checkout.clone()) });
    }
    let path = opened.path();
    let path = crate::repo::real_path(path).unwrap_or_else(|_| path.to_owned());
    let here = here.map_or(path, |here| here.root().to_owned());
    Err(Error::OtherCheckout { task: id, checkout: started.workplace.checkout.clone(), here, command: purpose.word() })
}

fn nearness(opened: &Opened, here: Option<&Checkout>, started: &TaskStarted) -> Result<Nearness, Error> {
    let Some(here) = here else {
        let is_its_place = gone_from(opened, started);
        return Ok(if is_its_place { Nearness::Here } else { Nearness::Far });
    };
    if opened.is_here(started)? {
        return Ok(Nearness::Here);
    }
    Ok(match opened.checkout_at(Path::new(&started.workplace.checkout)) {
        Ok(other) if other.common_dir() == here.common_dir() => Nearness::Repository,
        // gone, or no repository any more: not this one, as far as can be seen
        Ok(_) | Err(_) => Nearness::Far,
    })
}

/// Whether the command stands where a task was begun, and there is no repository any more.
fn gone_from(opened: &Opened, started: &TaskStarted) -> bool {
    let place = Path::new(&started.workplace.checkout);
    let standing = crate::repo::real_path(opened.path());
    standing.is_ok_and(|standing| standing.starts_with(place)) && !place.join(".git/objects").exists()
}
