//! `nisse delegate`: one bounded sub-task, on its own branch, ending in a handback note.

use super::{
    Error, leftovers,
    open::Opened,
    proxy,
    result::TaskResult,
    run::{Watch, run},
    settings::{Fallback, History},
};
use crate::{
    agent::roles,
    domain::{checkout::Isolation, event::TaskStarted, model::PinnedModel, role::Role},
    log::{Journal, Subscriber},
    repo::{self, Checkout},
};

/// What is asked of a delegate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delegation {
    /// What is to be done.
    pub brief: String,
    /// The branch's name, if the person chose one.
    pub branch: Option<String>,
    /// The revision to start from, instead of the checkout as it is.
    pub base: Option<String>,
}

/// Starts a delegation with the configured proxy and works it.
pub async fn delegate(opened: &Opened, delegation: &Delegation, mut watch: Watch) -> Result<TaskResult, Error> {
    let checks = opened.settings.checks()?.to_vec();
    let checkout = opened.checkout()?;
    checkout.ready()?;
    let proxy = proxy::connect(&opened.settings, &opened.environment)?;
    let catalog = proxy::catalog(&proxy, &opened.settings).await?;
    let model = proxy::pin_delegate(&catalog, &opened.settings)?;
    let subscribers = std::mem::take(&mut watch.subscribers);
    let journal = begin(opened, checkout, delegation, model, checks, subscribers)?;
    let pruned = leftovers::prune(&opened.log()?, checkout, opened.clock().civil_ms());
    match run(opened, checkout, &proxy, &[proxy.token().clone()], journal, watch).await {
        Err(error) => Err(proxy::with_offers(&proxy, error).await),
        Ok(mut done) => {
            // no reason not to work
            done.notices.extend(pruned.err().map(|error| format!("old refs could not be pruned: {error}")));
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
    subscribers: Vec<Subscriber>,
) -> Result<Journal, Error> {
    let settings = &opened.settings;
    let caps = settings.delegate.caps();
    let id = opened.new_task_id();
    let branch = match &delegation.branch {
        Some(name) => free_branch(checkout, name)?,
        None => repo::branch_name(id, &delegation.brief),
    };
    let base = match &delegation.base {
        Some(revision) => checkout.resolve_base(revision)?,
        None => checkout.base()?,
    };
    let worktree = opened.state_dir().join("worktrees").join(id.to_string());
    let started = TaskStarted {
        role: Role { fallbacks: settings.delegate.fallback.value == Fallback::Allow, ..roles::delegate() },
        brief: delegation.brief.clone(),
        model,
        caps,
        checkout: opened.text_path(checkout.root())?,
        base,
        branch,
        worktree: opened.text_path(&worktree)?,
        isolation: Isolation::Worktree,
        checks,
        command_time_ms: settings.command_time_ms(),
        deny: settings.files.denied(),
        max_untracked: settings.worktree.max_untracked.value,
        pass_env: settings.commands.pass_env.value.clone(),
        keep_turns: settings.branch.history.value == History::Turns,
    };
    Ok(Journal::begin(opened.log()?, opened.clock(), id, started, subscribers)?)
}

/// A branch name that is not taken.
fn free_branch(checkout: &Checkout, name: &str) -> Result<String, Error> {
    if checkout.branch_exists(name)? {
        return Err(Error::BranchTaken { name: name.to_owned() });
    }
    Ok(name.to_owned())
}
