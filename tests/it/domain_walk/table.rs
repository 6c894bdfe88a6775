//! The transition table, said once more in other words, for every event: that it may follow, and that it may not.

use std::collections::BTreeMap;

use nisse::domain::{
    apply::ApplyState,
    caps::Cap,
    checkout::Isolation,
    event::EventKind,
    gate::Answer,
    id::{CallId, IntentId},
    intent::{self, Intent, IntentKind, Move, Status, SwitchTo},
    note::Note,
    outcome::End,
    task::Task,
};

/// Which events may stand where (`+`), and which never do (`-`). The walks must have tried each in each phase.
const TABLE: &str = "
                       Preparing  Idle  Asking  Acting  Paused  Ended
    task_started           -       -      -       -       -       -
    span_started           +       +      +       +       +       +
    setup_ran              +       +      -       +       -       -
    worktree_ready         +       -      -       -       -       -
    request_sent           -       +      -       -       -       -
    request_ended          -       -      +       -       -       -
    request_withheld       -       +      -       -       -       -
    context_evicted        -       +      -       -       -       -
    reply_received         -       -      +       -       -       -
    nudged                 -       -      -       +       -       -
    intent_opened          +       +      -       +       -       +
    intent_settled         +       +      -       +       -       +
    intent_abandoned       +       +      -       +       -       +
    tool_result            -       -      -       +       -       -
    ending_accepted        -       -      -       +       -       -
    check_ran              -       -      -       +       -       -
    turn_ended             -       -      -       +       -       -
    left_out               -       +      -       -       -       -
    files_changed          -       -      -       +       -       -
    worktree_repaired      +       +      -       +       -       -
    uncommittable_made     +       +      -       +       -       +
    kept_aside             +       +      -       +       -       +
    repository_changed     +       +      -       +       -       +
    locks_removed          +       +      -       +       -       +
    recovered              +       +      -       +       -       +
    gate_answered          +       +      -       +       -       -
    task_paused            +       +      -       +       -       -
    task_ended             +       +      -       -       -       -
";

/// How often each event was let pass, and refused, in each phase.
#[derive(Default)]
pub(super) struct Tried(BTreeMap<(&'static str, String), [usize; 2]>);

impl Tried {
    pub(super) fn count(&mut self, task: &Task, kind: &EventKind, legal: bool) {
        let place = (kind.name(), format!("{:?}", task.phase()));
        self.0.entry(place).or_default()[usize::from(legal)] += 1;
    }

    /// Asserts that every event was tried in every phase, and was let pass where the table has a `+`, and only there.
    pub(super) fn are_the_table(&self) {
        let mut lines = TABLE.lines().filter(|line| !line.is_empty());
        let phases: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
        let mut known = 0;
        for line in lines {
            let mut words = line.split_whitespace();
            let name = words.next().unwrap();
            for (phase, mark) in phases.iter().zip(words) {
                let tried = self.0.iter().find(|((event, place), _)| *event == name && place == phase);
                let Some((_, [refused, passed])) = tried else { panic!("{name} was never tried in {phase}") };
                assert_eq!(
                    *passed > 0,
                    mark == "+",
                    "{name} in {phase}: {passed} times let pass, {refused} times refused"
                );
                known += 1;
            }
        }
        assert_eq!(self.0.len(), known, "the table lacks an event or a phase");
    }
}

/// What a rule looks at.
struct Stands<'a> {
    task: &'a Task,
    /// The turn that is being worked off has a call that waits for an answer: this one.
    next_call: Option<&'a CallId>,
    /// Its accepted ending call.
    accepted: Option<&'a CallId>,
    /// A turn is being worked off.
    acting: bool,
    /// It has begun, no turn is open, nothing is in flight, it neither rests nor has it ended.
    idle: bool,
    /// It rests neither, nor has it ended, nor is a request in flight.
    at_work: bool,
    /// Intents that are pending, the task's own aside.
    pending: Vec<&'a Intent>,
    turns: u32,
}

impl<'a> Stands<'a> {
    fn new(task: &'a Task) -> Self {
        let at_work = task.ended.is_none() && task.paused.is_none() && task.request.is_none();
        let last = task.turns.last();
        let open = last.filter(|turn| !turn.closed && at_work && task.ready.is_some());
        Self {
            task,
            next_call: open.and_then(|turn| turn.reply.calls().nth(turn.results.len())).map(|call| &call.id),
            accepted: open.and_then(|turn| turn.ending.as_ref()).map(|(call, _)| call),
            acting: open.is_some(),
            idle: at_work && task.ready.is_some() && last.is_none_or(|turn| turn.closed),
            at_work,
            pending: task.intents[1..].iter().filter(|intent| intent.status == Status::Pending).collect(),
            turns: u32::try_from(task.turns.len()).unwrap(),
        }
    }

    fn nothing_pending(&self) -> bool {
        self.pending.is_empty()
    }
}

/// Whether the design lets an event follow.
pub(super) fn may_follow(task: &Task, kind: &EventKind) -> bool {
    let at = Stands::new(task);
    let nothing_pending = at.nothing_pending();
    let asking = task.request.filter(|_| task.ended.is_none() && task.paused.is_none());
    // what is seen in the repository is told at any time, save while a reply is awaited or it rests
    let may_tell = task.ended.is_some() || at.at_work;
    match kind {
        EventKind::TaskStarted(_) => false,
        EventKind::SpanStarted { .. } => true,
        EventKind::WorktreeReady { .. } => at.at_work && task.ready.is_none(),
        EventKind::SetupRan { .. } | EventKind::WorktreeRepaired { .. } | EventKind::TaskPaused { .. } => at.at_work,
        EventKind::RequestSent { request, turn, .. } => {
            let discards = task.intents.iter().any(|intent| matches!(intent.kind, IntentKind::Discard { .. }));
            let decided = discards || task.checkout_restored().is_some();
            let next = (*request, *turn) == (task.requests + 1, at.turns + 1);
            at.idle && nothing_pending && !decided && next
        }
        EventKind::RequestEnded { request, .. } => asking.is_some_and(|open| open.request == *request),
        EventKind::RequestWithheld { .. } => at.idle,
        EventKind::ContextEvicted { through_turn } => {
            at.idle && (task.evicted_through + 1..=at.turns).contains(through_turn)
        }
        EventKind::ReplyReceived { request, turn, reply } => {
            let ids = reply.calls().map(|call| call.id.clone());
            let in_order = ids.enumerate().all(|(index, id)| id == CallId::new(*turn, index));
            asking.is_some_and(|open| open.request == *request) && *turn == at.turns + 1 && in_order
        }
        EventKind::Nudged { .. } => at.acting,
        EventKind::ToolResult(result) => at.next_call == Some(&result.call),
        EventKind::EndingAccepted { call, .. } => at.next_call == Some(call) && at.accepted.is_none(),
        EventKind::CheckRan { call, .. } => at.next_call == Some(call) && at.accepted == Some(call),
        EventKind::TurnEnded { turn } => at.acting && at.next_call.is_none() && nothing_pending && *turn == at.turns,
        EventKind::LeftOut { .. } => at.idle && nothing_pending && task.left_out.is_none(),
        EventKind::FilesChanged { .. } => at.acting && nothing_pending,
        EventKind::RepositoryChanged { .. }
        | EventKind::UncommittableMade { .. }
        | EventKind::KeptAside { .. }
        | EventKind::LocksRemoved { .. }
        | EventKind::Recovered { .. } => may_tell,
        EventKind::GateAnswered { answer } => {
            let about_files = task.ready.is_some() && !task.is_given_up();
            at.at_work && (*answer == Answer::Drop || about_files)
        }
        EventKind::IntentOpened { intent, kind } => {
            intent.0 as usize == task.intents.len() && (task.ended.is_some() || at.at_work) && may_open(&at, kind)
        }
        EventKind::IntentSettled { intent, .. } => may_move(&at, *intent),
        EventKind::IntentAbandoned { intent, .. } => *intent != IntentId::TASK && may_move(&at, *intent),
        EventKind::TaskEnded { end, .. } => {
            let before_it_stands =
                at.at_work && task.ready.is_none() && matches!(end, End::Dropped | End::Capped(Cap::Time));
            let owed = at.pending.iter().all(|one| outlives(&one.kind));
            let earned = *end != End::Handback || task.note.as_ref().is_some_and(Note::claims_success);
            (at.idle || before_it_stands) && owed && earned
        }
    }
}

/// What may be carried out after a task has ended.
fn outlives(kind: &IntentKind) -> bool {
    matches!(
        kind,
        IntentKind::Discard { .. }
            | IntentKind::CleanUp
            | IntentKind::Apply { .. }
            | IntentKind::UserCommit(_)
            | IntentKind::PutBack { .. }
    )
}

fn may_open(at: &Stands<'_>, kind: &IntentKind) -> bool {
    let task = at.task;
    let alone = at.nothing_pending();
    match kind {
        IntentKind::Task => false,
        IntentKind::FileEdit { call, .. } | IntentKind::Command { call, .. } => alone && at.next_call == Some(call),
        IntentKind::Check { call } => alone && at.next_call == Some(call) && at.accepted == Some(call),
        IntentKind::Squash { .. } | IntentKind::Discard { .. } => alone && at.idle,
        IntentKind::CleanUp => task.ended.is_some(),
        IntentKind::CheckoutSwitch { way, .. } => {
            let place = if *way == SwitchTo::TaskBranch { at.at_work && task.ready.is_none() } else { at.idle };
            alone && place && task.started.workplace.isolation == Isolation::InPlace
        }
        IntentKind::Apply { .. } | IntentKind::UserCommit(_) => {
            let underway = matches!(task.apply_state(), ApplyState::Applying(_) | ApplyState::PuttingBack(_));
            matches!(task.ended, Some((End::Handback, _))) && !underway
        }
        IntentKind::PutBack { plan } => {
            let brought = |one: &Intent| matches!(&one.kind, IntentKind::Apply { plan: of, .. } if of == plan);
            !matches!(task.apply_state(), ApplyState::PuttingBack(_)) && task.intents.iter().any(brought)
        }
    }
}

/// Settled or abandoned: once, the task's own after its end, those of its work before.
fn may_move(at: &Stands<'_>, id: IntentId) -> bool {
    let Some(open) = at.task.intent(id).filter(|intent| intent.status == Status::Pending) else { return false };
    let ended = at.task.ended.is_some();
    let its_time = outlives(&open.kind) || ended == (open.kind == IntentKind::Task);
    its_time && (ended || at.at_work)
}

#[test]
fn the_intents_table_is_what_it_should_be() {
    let (edit, own) = (IntentKind::CleanUp, IntentKind::Task);
    let states = [None, Some(Status::Pending), Some(Status::Settled), Some(Status::Abandoned)];
    for now in states {
        for step in [Move::Open, Move::Settle, Move::Abandon] {
            let wanted = match (now, step) {
                (None, Move::Open) => Some(Status::Pending),
                (Some(Status::Pending), Move::Settle) => Some(Status::Settled),
                (Some(Status::Pending), Move::Abandon) => Some(Status::Abandoned),
                _ => None,
            };
            assert_eq!(intent::next_status(&edit, now, step), wanted, "{now:?} {step:?}");
            let wanted = wanted.filter(|status| *status != Status::Abandoned);
            assert_eq!(intent::next_status(&own, now, step), wanted, "the task's own: {now:?} {step:?}");
        }
    }
}
