//! `nisse delegate`: one bounded sub-task, on its own branch, ending in a handback note.

use std::{
    collections::BTreeMap,
    path::{Component, PathBuf},
};

use super::{
    Error, leftovers,
    open::Opened,
    proxy,
    result::TaskResult,
    run::{Watch, run},
    secrets,
    settings::{Fallback, History},
};
use crate::{
    agent::{first_request, roles, tools},
    domain::{
        checkout::Isolation,
        id::TaskId,
        mask::Mask,
        model::PinnedModel,
        role::{OnSuccess, Role},
        started::{Assignment, CommandRules, FileLimits, HostName, Models, Sandbox, TaskStarted, Tree, WorkplaceSpec},
    },
    log::{Journal, Subscriber},
    repo::{self, Checkout},
};

/// The parameters of a delegation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delegation {
    /// What to do.
    pub brief: String,
    /// The branch's name, if the user chose one.
    pub branch: Option<String>,
    /// The revision to start from, instead of the checkout as it is.
    pub base: Option<String>,
    /// Where it works.
    pub isolation: Isolation,
}

/// Starts a delegation with the configured proxy and runs it.
pub async fn delegate(opened: &Opened, delegation: &Delegation, mut watch: Watch) -> Result<TaskResult, Error> {
    let checks = opened.settings.checks()?.to_vec();
    let checkout = opened.checkout()?;
    checkout.ready()?;
    checkout.refuse_special_files()?;
    let proxy = proxy::connect(&opened.settings, &opened.environment)?;
    let catalog = proxy::catalog(&proxy, &opened.settings, proxy::BEGIN).await?;
    let model = proxy::pin_delegate(&catalog, &opened.settings)?;
    let subscribers = std::mem::take(&mut watch.subscribers);
    let passed = &opened.settings.commands.pass_env.value;
    let mask = secrets::mask(&opened.environment, Some(checkout), Some(proxy.token()), passed);
    let journal = begin(opened, checkout, delegation, model, checks, &mask, subscribers)?;
    let keep = opened.settings.branch.keep_turns.value;
    let pruned = leftovers::prune(&opened.log()?, checkout, keep, opened.clock().civil_ms());
    match run(opened, checkout, Some(&proxy), mask, journal, watch).await {
        Err(error) => Err(proxy::with_offers(&proxy, error).await),
        Ok(mut done) => {
            // no reason not to work
            done.notices.extend(pruned.err().map(|error| format!("could not prune old refs: {error}")));
            Ok(done)
        }
    }
}

/// Begins the task: its first event is durable when this returns, and nothing else has been touched.
pub(super) fn begin(
    opened: &Opened,
    checkout: &Checkout,
    delegation: &Delegation,
    model: PinnedModel,
    checks: Vec<String>,
    mask: &Mask,
    subscribers: Vec<Subscriber>,
) -> Result<Journal, Error> {
    let settings = &opened.settings;
    let caps = settings.delegate.caps();
    let id = opened.new_task_id();
    let brief = mask.apply(&delegation.brief).into_owned();
    let setup = settings.setup()?.map(str::to_owned);
    // nisse runs them unmasked, so it would have to store and send them unmasked
    let named = [("the branch's name", delegation.branch.iter()), ("the setup command", setup.iter())];
    let lines = checks.iter().map(|line| ("a check command", line));
    let all = named.into_iter().flat_map(|(what, text)| text.map(move |text| (what, text))).chain(lines);
    if let Some((what, _)) = all.into_iter().find(|(_, text)| mask.apply(text) != text.as_str()) {
        return Err(Error::HoldsSecret { what });
    }
    let branch = match &delegation.branch {
        Some(name) => free_branch(checkout, name)?,
        None => repo::branch_name(id, &brief),
    };
    let base = match &delegation.base {
        Some(revision) => checkout.resolve_base(revision)?,
        None => checkout.base()?,
    };
    let worktree = match delegation.isolation {
        Isolation::Worktree => worktree_path(opened, checkout, id)?,
        Isolation::InPlace => {
            if delegation.base.is_some() {
                return Err(Error::BaseInPlace);
            }
            checkout.root().to_owned()
        }
    };
    let started = TaskStarted {
        tree: Tree::root(id),
        role: Role {
            fallbacks: settings.delegate.fallback.value == Fallback::Allow,
            on_success: match settings.branch.history.value {
                History::Turns => OnSuccess::Keep,
                History::Squash => OnSuccess::Squash,
            },
            ..roles::delegate()
        },
        wording: opened
            .directory()
            .map_or_else(roles::wording, |directory| roles::wording_from(&mask.apply(&directory))),
        assignment: Assignment::Brief(brief),
        models: Models { own: model, others: BTreeMap::new() },
        caps,
        workplace: WorkplaceSpec {
            host: HostName::Here,
            checkout: opened.text_path(checkout.root())?,
            base,
            branch,
            worktree: opened.text_path(&worktree)?,
            isolation: delegation.isolation,
            filters: checkout.filters().clone(),
            copy: settings.copied()?.to_vec(),
            setup,
        },
        commands: CommandRules {
            time_ms: settings.command_time_ms(),
            pass_env: settings.commands.pass_env.value.clone(),
            keep_output: tools::KEEP,
            sandbox: Sandbox::None,
        },
        files: FileLimits { deny: settings.files.denied(), max_untracked: settings.worktree.max_untracked.value },
        checks,
    };
    if started.workplace.isolation == Isolation::InPlace {
        opened.for_task(checkout, &started)?.refuse_in_place()?;
    }
    // as the worktree will be, or nearly
    let workspace = || repo::workspace::describe(checkout.root()).text;
    let (model, brief) = (started.model(), started.brief());
    let TaskStarted { role, wording, checks, .. } = &started;
    if let Some(found) = first_request::too_small(role, wording, model, brief, checks, workspace) {
        return Err(Error::Window(found));
    }
    let mut log = opened.log()?;
    if started.workplace.isolation == Isolation::InPlace {
        // before the task exists: it would only be paused
        log.hold_checkout(checkout.git_dir(), id)?;
    }
    Ok(Journal::begin(log, opened.clock(), id, started, subscribers)?)
}

/// A branch name that is free.
fn free_branch(checkout: &Checkout, name: &str) -> Result<String, Error> {
    if !checkout.is_branch_name(name)? {
        return Err(Error::BranchName { name: name.to_owned() });
    }
    match checkout.branch_in_the_way(name)? {
        Some(taken) => Err(Error::BranchTaken { name: name.to_owned(), taken }),
        None => Ok(name.to_owned()),
    }
}

/// Where the task's worktree is made.
fn worktree_path(opened: &Opened, checkout: &Checkout, id: TaskId) -> Result<PathBuf, Error> {
    let Some(dir) = &opened.settings.worktree.dir.value else {
        let place = opened.state_dir().join("worktrees").join(id.to_string());
        // a link that stands on the way later is none of ours
        return repo::real_path(&place).map_err(Error::Repo);
    };
    // the checkout's path has no links, so `..` can be resolved textually
    let mut place = PathBuf::new();
    for part in checkout.root().join(dir).components() {
        match part {
            Component::ParentDir => drop(place.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => place.push(part),
        }
    }
    if [checkout.root(), checkout.git_dir(), checkout.common_dir()].iter().any(|inside| place.starts_with(inside)) {
        return Err(Error::WorktreeInside { dir: place });
    }
    repo::real_path(&place.join(id.to_string())).map_err(Error::Repo)
}
