//! `nisse delegate`: one bounded sub-task, on its own branch, ending in a handback note.

use super::{
    Error,
    open::{Model, Opened},
    result::TaskResult,
    run::{Watch, run},
    settings::History,
};
use crate::{
    agent::roles,
    domain::{checkout::Isolation, event::TaskStarted, model::PinnedModel, role::RoleName},
    log::Journal,
    repo,
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
pub async fn delegate(opened: &Opened, delegation: &Delegation, watch: Watch) -> Result<TaskResult, Error> {
    if delegation.brief.trim().is_empty() {
        return Err(Error::EmptyBrief);
    }
    let checks = opened.settings.checks()?.to_vec();
    let checkout = opened.checkout()?;
    let model = opened.model(&[RoleName::Delegate]).await?;
    let pinned = model.pin(opened, RoleName::Delegate)?;
    let started = start(opened, delegation, pinned, checks)?;
    work(opened, &model, started, watch, checkout).await
}

/// The first event of a delegation; nothing is touched yet.
pub(super) fn start(
    opened: &Opened,
    delegation: &Delegation,
    model: PinnedModel,
    checks: Vec<String>,
) -> Result<(crate::domain::id::TaskId, TaskStarted), Error> {
    let settings = &opened.settings;
    let checkout = opened.checkout()?;
    let caps = settings.delegate.caps();
    if caps.cost.is_some() && (model.prices.input.is_none() || model.prices.output.is_none()) {
        return Err(Error::UnknownPrices { alias: model.alias });
    }
    let id = opened.new_task_id();
    let branch = match &delegation.branch {
        Some(name) => checkout.free_branch(name)?,
        None => repo::branch_name(id, &delegation.brief),
    };
    let base = match &delegation.base {
        Some(revision) => checkout.resolve_base(revision)?,
        None => checkout.base()?,
    };
    let worktree = opened.state_dir().join("worktrees").join(id.to_string());
    let started = TaskStarted {
        role: roles::delegate(),
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
    Ok((id, started))
}

async fn work(
    opened: &Opened,
    model: &Model,
    (id, started): (crate::domain::id::TaskId, TaskStarted),
    watch: Watch,
    checkout: &repo::Checkout,
) -> Result<TaskResult, Error> {
    let journal = Journal::begin(opened.log()?, opened.clock(), id, started)?;
    run(opened, checkout, model.llm(), &model.secrets(), journal, watch).await
}
