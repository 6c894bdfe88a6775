//! Which events may follow in a task's state: its transition table.

use super::{
    apply::ApplyState,
    caps::Cap,
    checkout::Isolation,
    event::EventKind,
    gate::Answer,
    id::{CallId, IntentId},
    intent::{self, Intent, IntentKind, Move, SwitchTo},
    note::Note,
    outcome::End,
    task::{Phase, Task},
};

/// Whether `kind` may follow, and if not, why not.
pub fn is_legal(task: &Task, kind: &EventKind) -> Result<(), String> {
    let phase = task.phase();
    if !phase_allows(phase, kind) {
        return Err(format!("{} may not follow while the task is {phase:?}", kind.name()));
    }
    match kind {
        EventKind::TaskStarted(_)
        | EventKind::SpanStarted { .. }
        | EventKind::SetupRan { .. }
        | EventKind::WorktreeReady { .. }
        | EventKind::RequestWithheld { .. }
        | EventKind::Nudged { .. }
        | EventKind::Recovered { .. }
        | EventKind::WorktreeRepaired { .. }
        | EventKind::RepositoryChanged { .. }
        | EventKind::UncommittableMade { .. }
        | EventKind::KeptAside { .. }
        | EventKind::LocksRemoved { .. }
        | EventKind::TaskPaused { .. } => Ok(()),
        EventKind::FilesChanged { .. } => no_pending_intent(task),
        EventKind::LeftOut { .. } if task.left_out.is_none() && task.ready.is_some() => no_pending_intent(task),
        EventKind::LeftOut { .. } => Err("nothing can be left out, or it was told already".to_owned()),
        EventKind::ContextEvicted { through_turn } => {
            let last = task.last_turn().map_or(0, |turn| turn.number);
            if *through_turn > task.evicted_through && *through_turn <= last {
                Ok(())
            } else {
                Err(format!("turn {through_turn} cannot be evicted: {last} is the last, {} were", task.evicted_through))
            }
        }
        EventKind::RequestSent { request, turn, .. } => {
            no_pending_intent(task)?;
            let is_discard = |intent: &Intent| matches!(intent.kind, IntentKind::Discard { .. });
            if task.checkout_restored().is_some() || task.intents.iter().any(is_discard) {
                return Err("how the task ends is decided".to_owned());
            }
            same("request", *request, task.requests + 1)?;
            same("turn", *turn, next_turn(task))
        }
        EventKind::RequestEnded { request, .. } => same("request", *request, task.requests),
        EventKind::ReplyReceived { request, turn, reply } => {
            same("request", *request, task.requests)?;
            same("turn", *turn, next_turn(task))?;
            for (index, call) in reply.calls().enumerate() {
                if call.id != CallId::new(*turn, index) {
                    return Err(format!("call {} is not the one at place {index} of turn {turn}", call.id));
                }
            }
            Ok(())
        }
        EventKind::IntentOpened { intent, kind } => may_open(task, phase, *intent, kind),
        EventKind::IntentSettled { intent, .. } => may_move(task, phase, *intent, Move::Settle),
        EventKind::IntentAbandoned { intent, .. } => may_move(task, phase, *intent, Move::Abandon),
        EventKind::ToolResult(result) => is_next_call(task, &result.call),
        EventKind::EndingAccepted { call, .. } => {
            is_next_call(task, call)?;
            if task.last_turn().is_some_and(|turn| turn.ending.is_some()) {
                return Err("an ending call was accepted in this turn already".to_owned());
            }
            Ok(())
        }
        EventKind::GateAnswered { answer } => match answer {
            Answer::Rollback | Answer::Keep if task.ready.is_none() => Err("there is no worktree yet".to_owned()),
            Answer::Rollback | Answer::Keep if task.is_given_up() => Err("the task was given up".to_owned()),
            Answer::Rollback | Answer::Keep | Answer::Drop => Ok(()),
        },
        EventKind::CheckRan { call, .. } => is_accepted_ending(task, call),
        EventKind::TurnEnded { turn } => {
            no_pending_intent(task)?;
            same("turn", *turn, task.last_turn().map_or(0, |last| last.number))?;
            match task.unanswered() {
                Some(call) => Err(format!("call {} is not answered", call.id)),
                None => Ok(()),
            }
        }
        EventKind::TaskEnded { end, .. } => {
            if let Some(open) = task.pending_intents().find(|intent| !intent.kind.outlives_completion()) {
                return Err(format!("intent {} is pending", open.id));
            }
            match (end, task.note.as_ref().is_some_and(Note::claims_success)) {
                (End::Handback, false) => Err("no handback was accepted".to_owned()),
                (End::Handback, true) | (End::Failed | End::Capped(_) | End::Dropped, _) => Ok(()),
            }
        }
    }
}

/// The table: which event may stand in which phase.
fn phase_allows(phase: Phase, kind: &EventKind) -> bool {
    use Phase::{Acting, Asking, Ended, Idle, Paused, Preparing};
    match kind {
        EventKind::TaskStarted(_) => false,
        EventKind::SpanStarted { .. } => true,
        EventKind::WorktreeReady { .. } => phase == Preparing,
        EventKind::SetupRan { .. } | EventKind::WorktreeRepaired { .. } => matches!(phase, Preparing | Idle | Acting),
        EventKind::RequestEnded { .. } | EventKind::ReplyReceived { .. } => phase == Asking,
        EventKind::Nudged { .. }
        | EventKind::ToolResult(_)
        | EventKind::EndingAccepted { .. }
        | EventKind::CheckRan { .. }
        | EventKind::FilesChanged { .. }
        | EventKind::TurnEnded { .. } => phase == Acting,
        EventKind::IntentOpened { .. } | EventKind::IntentSettled { .. } | EventKind::IntentAbandoned { .. } => {
            matches!(phase, Preparing | Idle | Acting | Ended)
        }
        EventKind::Recovered { .. }
        | EventKind::RepositoryChanged { .. }
        | EventKind::UncommittableMade { .. }
        | EventKind::KeptAside { .. }
        | EventKind::LocksRemoved { .. } => !matches!(phase, Asking | Paused),
        EventKind::TaskPaused { .. } | EventKind::GateAnswered { .. } => matches!(phase, Preparing | Idle | Acting),
        EventKind::RequestSent { .. }
        | EventKind::RequestWithheld { .. }
        | EventKind::ContextEvicted { .. }
        | EventKind::LeftOut { .. } => phase == Idle,
        EventKind::TaskEnded { end, .. } => {
            phase == Idle || phase == Preparing && matches!(end, End::Dropped | End::Capped(Cap::Time))
        }
    }
}

fn may_open(task: &Task, phase: Phase, id: IntentId, kind: &IntentKind) -> Result<(), String> {
    same("intent", id.0, u32::try_from(task.intents.len()).unwrap_or(u32::MAX))?;
    if intent::next_status(kind, None, Move::Open).is_none() {
        return Err("an intent cannot be opened twice".to_owned());
    }
    match kind {
        IntentKind::Task => Err("the task's own intent is opened by task_started".to_owned()),
        IntentKind::FileEdit { call, .. } | IntentKind::Command { call, .. } => {
            no_pending_intent(task)?;
            in_phase(phase, Phase::Acting)?;
            is_next_call(task, call)
        }
        IntentKind::Check { call } => {
            no_pending_intent(task)?;
            in_phase(phase, Phase::Acting)?;
            is_accepted_ending(task, call)
        }
        IntentKind::Squash { .. } | IntentKind::Discard { .. } => {
            no_pending_intent(task)?;
            in_phase(phase, Phase::Idle)
        }
        IntentKind::CleanUp => in_phase(phase, Phase::Ended),
        IntentKind::CheckoutSwitch { way, .. } => {
            no_pending_intent(task)?;
            if task.started.workplace.isolation != Isolation::InPlace {
                return Err("the checkout of a task with a worktree of its own is left alone".to_owned());
            }
            in_phase(phase, if *way == SwitchTo::TaskBranch { Phase::Preparing } else { Phase::Idle })
        }
        IntentKind::Apply { .. } | IntentKind::UserCommit(_) => match (&task.ended, task.apply_state()) {
            (Some((End::Handback, _)), ApplyState::Applying(id) | ApplyState::PuttingBack(id)) => {
                Err(format!("intent {id} is pending"))
            }
            (Some((End::Handback, _)), _) => Ok(()),
            (Some((End::Failed | End::Capped(_) | End::Dropped, _)) | None, _) => {
                Err("nothing was handed back that could be applied".to_owned())
            }
        },
        IntentKind::PutBack { plan } => match task.apply_state() {
            ApplyState::PuttingBack(id) => Err(format!("intent {id} is pending")),
            ApplyState::NotApplied
            | ApplyState::Applying(_)
            | ApplyState::Uncommitted { .. }
            | ApplyState::Committed { .. }
            | ApplyState::Applied { .. }
                if task
                    .intents
                    .iter()
                    .any(|one| matches!(&one.kind, IntentKind::Apply { plan: of, .. } if of == plan)) =>
            {
                Ok(())
            }
            ApplyState::NotApplied
            | ApplyState::Applying(_)
            | ApplyState::Uncommitted { .. }
            | ApplyState::Committed { .. }
            | ApplyState::Applied { .. } => Err("that was never applied".to_owned()),
        },
    }
}

fn may_move(task: &Task, phase: Phase, id: IntentId, step: Move) -> Result<(), String> {
    let Some(open) = task.intent(id) else { return Err(format!("there is no intent {id}")) };
    if intent::next_status(&open.kind, Some(open.status), step).is_none() {
        return Err(format!("intent {id} is {:?} already", open.status));
    }
    let settles_task = open.kind == IntentKind::Task;
    if settles_task != (phase == Phase::Ended) && !open.kind.outlives_completion() {
        return Err(format!("intent {id} cannot move while the task is {phase:?}"));
    }
    Ok(())
}

fn next_turn(task: &Task) -> u32 {
    task.last_turn().map_or(0, |turn| turn.number) + 1
}

fn no_pending_intent(task: &Task) -> Result<(), String> {
    match task.pending_intents().next() {
        Some(open) => Err(format!("intent {} is pending", open.id)),
        None => Ok(()),
    }
}

fn is_next_call(task: &Task, call: &CallId) -> Result<(), String> {
    match task.unanswered() {
        Some(next) if next.id == *call => Ok(()),
        Some(next) => Err(format!("call {call} is not the next one, {} is", next.id)),
        None => Err(format!("call {call} waits for no answer")),
    }
}

fn is_accepted_ending(task: &Task, call: &CallId) -> Result<(), String> {
    is_next_call(task, call)?;
    match task.last_turn().and_then(|turn| turn.ending.as_ref()) {
        Some((ending, _)) if ending == call => Ok(()),
        Some(_) | None => Err(format!("call {call} is no accepted ending call")),
    }
}

fn in_phase(phase: Phase, wanted: Phase) -> Result<(), String> {
    if phase == wanted { Ok(()) } else { Err(format!("the task is {phase:?}, not {wanted:?}")) }
}

fn same(what: &str, given: u32, wanted: u32) -> Result<(), String> {
    if given == wanted { Ok(()) } else { Err(format!("{what} {given} where {wanted} comes next")) }
}
