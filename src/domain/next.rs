//! What happens next: a pure function of the log and the current time.
//!
//! It sends no request while a call is unanswered or an intent other than the task's own is open.

use super::{
    amount::counted,
    caps::Cap,
    command_line,
    event::ResultStatus,
    id::{CallId, IntentId},
    intent::{IntentKind, Status},
    line::one_line,
    message::Stop,
    outcome::{End, Outcome, Pause},
    repetition,
    role::WhenMet,
    task::Task,
    upstream::Reaction,
    window::STRONGER_EVICTIONS,
    written_call::written_call,
};

/// What is not in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// The task's active time, in milliseconds.
    pub spent_ms: u64,
    /// The user asked to stop.
    pub stop: bool,
}

/// What comes next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Make snapshot, branch and worktree.
    Prepare,
    /// Recover what a dead process left, before any new work.
    Recover(Recovery),
    /// Run this call.
    Act(CallId),
    /// Answer this call without running it.
    Skip(CallId, Skip),
    /// Judge the accepted ending call: compare the tree, run the checks.
    Check(CallId),
    /// Record the turn's end.
    Close,
    /// Build the request from the log, send it, record the complete reply.
    Ask,
    /// Settle and return.
    Finish(Outcome),
}

/// What recovery examines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// An open intent.
    Intent(IntentId),
    /// Branch and worktree, if no intent is open.
    Worktree,
}

/// Why a call is not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Skip {
    /// The reply was cut off by the output limit.
    Truncated,
    /// It comes after the ending call.
    AfterEnding,
    /// A cap was reached.
    Capped,
    /// The user asked to stop.
    Stopped,
    /// The user gave the task up.
    GivenUp,
}

/// The decision.
#[must_use]
pub fn next(task: &Task, now: Now) -> Step {
    if let Some(outcome) = task.outcome() {
        return after_outcome(task, outcome);
    }
    if task.is_given_up() {
        return give_up(task);
    }
    if task.ready.is_none() {
        let caps = &task.started.caps;
        return match caps.breached(&task.spend, now.spent_ms) {
            _ if now.stop => stopped(),
            // the setup took all of it
            Some(Cap::Time) => ended(End::Capped(Cap::Time), &caps.describe(Cap::Time, &task.spend, now.spent_ms)),
            Some(Cap::Turns | Cap::Tokens | Cap::Cost) | None => Step::Prepare,
        };
    }
    if let Some(step) = pending(task) {
        return step;
    }
    if let Some(step) = after_discard(task) {
        return step;
    }
    if let Some((end, cause)) = task.checkout_restored() {
        return ended(end.clone(), cause);
    }
    if task.uninspected {
        return Step::Recover(Recovery::Worktree);
    }
    match task.last_turn() {
        Some(turn) if !turn.closed => within_turn(task, now),
        Some(_) | None => between_turns(task, now),
    }
}

/// An effect that began and whose end is unknown.
fn pending(task: &Task) -> Option<Step> {
    let open = task.pending_intents().find(|intent| !intent.kind.outlives_completion())?;
    Some(Step::Recover(Recovery::Intent(open.id)))
}

/// What remains to be done before a task that was given up can end.
fn give_up(task: &Task) -> Step {
    if let Some(step) = pending(task).or_else(|| after_discard(task)) {
        return step;
    }
    match (task.unanswered(), task.last_turn()) {
        (Some(call), _) => Step::Skip(call.id.clone(), Skip::GivenUp),
        (None, Some(turn)) if !turn.closed => Step::Close,
        (None, Some(_) | None) => ended(End::Dropped, "given up by the person"),
    }
}

/// For a task that ended, a settlement, a discard or a clean-up may remain; for a paused one, nothing.
fn after_outcome(task: &Task, outcome: Outcome) -> Step {
    if task.ended.is_some() {
        if task.intent(IntentId::TASK).is_some_and(|own| own.status == Status::Pending) {
            return Step::Recover(Recovery::Intent(IntentId::TASK));
        }
        if task.uninspected
            && let Some(intent) = task.pending_intents().next()
        {
            return Step::Recover(Recovery::Intent(intent.id));
        }
    }
    Step::Finish(outcome)
}

/// Once a discard has begun, how the task ends is decided.
fn after_discard(task: &Task) -> Option<Step> {
    task.intents.iter().find_map(|intent| {
        let IntentKind::Discard { end, cause, .. } = &intent.kind else { return None };
        Some(match intent.status {
            Status::Pending if task.uninspected => Step::Recover(Recovery::Intent(intent.id)),
            Status::Pending | Status::Settled | Status::Abandoned => ended(end.clone(), cause),
        })
    })
}

fn within_turn(task: &Task, now: Now) -> Step {
    let (Some(turn), Some(call)) = (task.last_turn(), task.unanswered()) else { return Step::Close };
    let id = call.id.clone();
    let ending = task.started.role.ending.as_str();
    let after_ending = turn.reply.calls().take(turn.results.len()).any(|earlier| earlier.name == ending);
    let skip = if now.stop {
        Some(Skip::Stopped)
    } else if task.no_room.is_some() || task.started.caps.breached_within_turn(&task.spend, now.spent_ms).is_some() {
        Some(Skip::Capped)
    } else if turn.reply.stop == Stop::Truncated {
        Some(Skip::Truncated)
    } else if after_ending {
        Some(Skip::AfterEnding)
    } else {
        None
    };
    match (skip, &turn.ending) {
        (Some(skip), _) => Step::Skip(id, skip),
        (None, Some((accepted, _))) if *accepted == id => Step::Check(id),
        (None, Some(_) | None) => Step::Act(id),
    }
}

fn between_turns(task: &Task, now: Now) -> Step {
    if let Some(note) = &task.note {
        return if note.claims_success() {
            ended(End::Handback, &checked(task))
        } else {
            ended(End::Failed, "the model handed the work back as not done")
        };
    }
    if let Some(cause) = failure(task) {
        return match task.started.role.limits.when_met {
            WhenMet::Fail => ended(End::Failed, &cause),
        };
    }
    if now.stop {
        return stopped();
    }
    let caps = &task.started.caps;
    if let Some(cap) = caps.breached(&task.spend, now.spent_ms) {
        return ended(End::Capped(cap), &caps.describe(cap, &task.spend, now.spent_ms));
    }
    if let Some((cap, estimated)) = task.no_room {
        return ended(End::Capped(cap), &caps.no_room(cap, &task.started.models.own.prices, estimated, &task.spend));
    }
    if let Some(overflow) = &task.overflow
        && overflow.count > STRONGER_EVICTIONS
    {
        let alias = &task.started.models.own.alias;
        let (times, message) = (overflow.count, &overflow.message);
        return paused(
            Pause::Gated,
            &format!(
                "the request did not fit the window of {alias}, {times} times, each smaller than the one before: {message}; {}",
                task.room_for_window()
            ),
        );
    }
    match &task.trouble {
        Some(last) if last.retry_in_ms.is_none() => {
            let cause = format!("{}: {}", last.trouble, last.message);
            match last.trouble.reaction() {
                Reaction::Fail => ended(End::Failed, &cause),
                Reaction::Evict => paused(Pause::Gated, &cause),
                Reaction::Stop => stopped(),
                Reaction::Retry | Reaction::Interrupt | Reaction::Configuration | Reaction::DropToolChoice => {
                    paused(Pause::Interrupted, &cause)
                }
            }
        }
        Some(_) | None => Step::Ask,
    }
}

/// What confirms the work that was handed back, other than the model.
fn checked(task: &Task) -> String {
    match task.started.checks.len() {
        0 => "not checked: no check is set".to_owned(),
        1 => "the check passed".to_owned(),
        checks => format!("all {checks} checks passed"),
    }
}

/// Why the task has failed, if it has; decided without the model.
fn failure(task: &Task) -> Option<String> {
    let role = &task.started.role;
    let turn = task.last_turn()?;
    if let Stop::Declined(text) = &turn.reply.stop {
        return Some(format!("the model declined: {text}"));
    }
    if task.unchanged_claims >= 2 {
        return Some("success was claimed twice although nothing had changed".to_owned());
    }
    if task.failed_checks > role.limits.failed_checks {
        let failed = turn.checks.last().map_or_else(String::new, |check| {
            let how =
                check.status.map_or_else(|| "was ended".to_owned(), |status| format!("exited with status {status}"));
            format!("; the last time `{}` {how}", command_line::one_line(&check.command))
        });
        return Some(format!("the check failed {}{failed}", counted(u64::from(task.failed_checks), "time")));
    }
    if task.bad_replies >= role.limits.bad_replies {
        let replies =
            if task.bad_replies == 1 { "1 reply".to_owned() } else { format!("{} replies", task.bad_replies) };
        return Some(format!("no usable tool call in {} in a row{}", replies, why_none(task)));
    }
    if task.repeat.told > 0 && task.repeat.count > task.repeat.told && task.repeat.count >= role.limits.repeats {
        let last = turn.results.iter().rev().find(|result| result.status != ResultStatus::NotRun);
        let call = last.and_then(|result| turn.reply.calls().find(|call| call.id == result.call));
        let name = call.map_or("call", |call| call.name.as_str());
        return Some(format!("a loop: the same {name} with the same result {} times in a row", task.repeat.count));
    }
    None
}

/// What may be wrong if a model makes no calls, judging by its replies.
fn why_none(task: &Task) -> String {
    let bad = task.turns.iter().rev().take(task.bad_replies as usize);
    let (mut written, mut endless, mut cut) = (0, 0, 0);
    for turn in bad {
        written += u32::from(written_call(&turn.reply.text(), &task.started.role.tools));
        match turn.reply.stop {
            Stop::Truncated if repetition::ends_repeating(&turn.reply) => endless += 1,
            Stop::Truncated => cut += 1,
            Stop::Calls | Stop::End | Stop::Declined(_) => {}
        }
    }
    let model = &task.started.models.own;
    if written > 0 {
        return format!(
            "; it wrote its calls out as text: the server behind {} does not turn this model's calls into tool calls \
             (llama.cpp: --jinja; vLLM: --enable-auto-tool-choice and the right --tool-call-parser; Ollama: a model whose \
             template has tools)",
            model.alias
        );
    }
    if endless > 0 {
        return format!("; {endless} of them repeated the same over and over, and were stopped");
    }
    if cut > 0 {
        return format!(
            "; its replies were cut off by the output ceiling of {} tokens (NISSE_MAX_OUTPUT_TOKENS, or \
             max_output_tokens under [models.{:?}])",
            model.max_output, model.alias
        );
    }
    String::new()
}

fn ended(end: End, cause: &str) -> Step {
    Step::Finish(Outcome::Ended { end, cause: one_line(cause) })
}

fn paused(pause: Pause, cause: &str) -> Step {
    Step::Finish(Outcome::Paused { pause, cause: one_line(cause) })
}

fn stopped() -> Step {
    paused(Pause::Stopped, "stopped on request")
}
