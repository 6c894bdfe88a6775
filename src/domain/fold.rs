//! The only fold: events in, state out.
//!
//! [`Task::apply`] refuses what [`legal::is_legal`](super::legal::is_legal) or the intents' table
//! ([`intent::next_status`](super::intent::next_status)) forbids, both when an event is about to be written and when a
//! stored one is read: an illegal event cannot be written, and a stored one is corruption.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    caps::{Cap, Spend},
    event::{Event, EventKind, ResultStatus, Seen, ToolResult},
    gate::{Answer, Decision},
    id::{Hash, IntentId, TaskId},
    intent::{self, Intent, IntentKind, Move, Status},
    legal,
    message::{Reply, Stop},
    model::Usage,
    money::Money,
    task::{CheckResult, LastTrouble, OpenRequest, Overflow, Ready, Repeat, Task, Turn},
    upstream::{Reaction, Trouble},
    wording::Wording,
};

/// An event that is illegal at its place in the log.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("task {task:#}, event {seq}: {what}")]
pub struct Illegal {
    /// The task.
    pub task: TaskId,
    /// The event.
    pub seq: u64,
    /// What is wrong with it.
    pub what: String,
}

impl Task {
    /// The state after `events`.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Option<Self>, Illegal> {
        let mut events = events.into_iter();
        let Some(first) = events.next() else { return Ok(None) };
        let mut task = Self::begin(first)?;
        for event in events {
            task.apply(event)?;
        }
        Ok(Some(task))
    }

    /// The state after a task's first event.
    pub fn begin(first: &Event) -> Result<Self, Illegal> {
        let illegal = |what: &str| Illegal { task: first.task, seq: first.seq, what: what.to_owned() };
        let EventKind::TaskStarted(started) = &first.kind else {
            return Err(illegal("a task begins with task_started"));
        };
        if first.seq != 1 {
            return Err(illegal("a task's first event has the number 1"));
        }
        if !(1..=Wording::NEWEST).contains(&started.wording.version) {
            return Err(illegal("the version of its wording is not known"));
        }
        Ok(Self {
            id: first.task,
            seq: 1,
            spent_ms: first.spent_ms,
            span: 1,
            started: Arc::new((**started).clone()),
            ready: None,
            turns: Vec::new(),
            intents: vec![Intent {
                id: IntentId::TASK,
                kind: IntentKind::Task,
                status: Status::Pending,
                at_ms: first.at_ms,
            }],
            request: None,
            requests: 0,
            trouble: None,
            evicted_through: 0,
            overflow: None,
            no_room: None,
            spend: Spend::default(),
            head: None,
            seen: BTreeMap::new(),
            tool_choice_dropped: false,
            bad_replies: 0,
            repeat: Repeat::default(),
            failed_checks: 0,
            unchanged_claims: 0,
            note: None,
            uninspected: false,
            changes: Vec::new(),
            made: BTreeSet::new(),
            kept_aside: Vec::new(),
            left_out: None,
            decision: None,
            paused: None,
            ended: None,
        })
    }

    /// Applies the next event. After an error the state is unchanged.
    pub fn apply(&mut self, event: &Event) -> Result<(), Illegal> {
        let illegal = |what: String| Illegal { task: self.id, seq: event.seq, what };
        if event.task != self.id {
            return Err(illegal(format!("it belongs to task {}", event.task)));
        }
        if event.seq != self.seq + 1 {
            return Err(illegal(format!("it follows event {}", self.seq)));
        }
        if event.spent_ms < self.spent_ms {
            return Err(illegal("active time runs backwards".to_owned()));
        }
        legal::is_legal(self, &event.kind).map_err(illegal)?;
        self.seq = event.seq;
        self.spent_ms = event.spent_ms;
        self.take(&event.kind, event.at_ms);
        Ok(())
    }

    /// The effect of a legal event.
    fn take(&mut self, kind: &EventKind, at_ms: u64) {
        match kind {
            // a task's first event is `begin`'s, and the table allows it nowhere else; of the others nothing is decided
            EventKind::TaskStarted(_)
            | EventKind::SetupRan { .. }
            | EventKind::WorktreeRepaired { .. }
            | EventKind::LocksRemoved { .. } => {}
            EventKind::SpanStarted { .. } => {
                self.span = self.seq;
                self.lose_request();
                // the user may have enlarged the window before resuming
                if self.paused.take().is_some() {
                    self.overflow = None;
                }
                self.trouble = None;
                self.uninspected = self.ready.is_some();
            }
            EventKind::WorktreeReady { snapshot, dirty, workspace, notices } => {
                self.ready = Some(Ready {
                    snapshot: snapshot.clone(),
                    dirty: *dirty,
                    workspace: workspace.clone(),
                    notices: notices.clone(),
                });
                self.head = Some(snapshot.clone());
                self.uninspected = false;
            }
            EventKind::RequestSent { request, turn, estimated_input, max_output, .. } => {
                self.requests = *request;
                self.request = Some(OpenRequest {
                    request: *request,
                    turn: *turn,
                    estimated_input: *estimated_input,
                    max_output: *max_output,
                });
            }
            EventKind::RequestEnded { trouble, message, usage, retry_in_ms, .. } => {
                self.end_request(*trouble, message, *usage, *retry_in_ms);
            }
            EventKind::RequestWithheld { cap, estimated_input } => self.no_room = Some((*cap, *estimated_input)),
            EventKind::ContextEvicted { through_turn } => self.evict(*through_turn),
            EventKind::ReplyReceived { turn, reply, .. } => self.take_reply(*turn, reply),
            EventKind::Nudged { text } => {
                if self.repeat.count + 1 >= self.started.role.limits.repeats && self.repeat.told == 0 {
                    self.repeat.told = self.repeat.count;
                }
                if let Some(turn) = self.turns.last_mut() {
                    turn.nudges.push(text.clone());
                }
            }
            EventKind::IntentOpened { intent, kind } => {
                self.intents.push(Intent { id: *intent, kind: kind.clone(), status: Status::Pending, at_ms });
            }
            EventKind::IntentSettled { intent, .. } => {
                self.move_intent(*intent, Move::Settle);
                if let Some(IntentKind::Squash { to, .. }) = self.intent(*intent).map(|intent| intent.kind.clone()) {
                    self.head = Some(to);
                }
            }
            EventKind::IntentAbandoned { intent, .. } => self.move_intent(*intent, Move::Abandon),
            EventKind::ToolResult(result) => {
                self.answer_taken();
                self.take_result(result);
            }
            EventKind::EndingAccepted { call, note } => {
                if let Some(turn) = self.turns.last_mut() {
                    turn.ending = Some((call.clone(), note.clone()));
                }
            }
            EventKind::CheckRan { command, status, output_tail, .. } => {
                if let Some(turn) = self.turns.last_mut() {
                    turn.checks.push(CheckResult {
                        command: command.clone(),
                        status: *status,
                        output_tail: output_tail.clone(),
                    });
                }
            }
            EventKind::TurnEnded { .. } => self.close_turn(),
            EventKind::Recovered { checkpoint, .. } => {
                self.uninspected = false;
                self.answer_taken();
                if checkpoint.is_some() {
                    self.head.clone_from(checkpoint);
                }
            }
            EventKind::FilesChanged { .. } => self.uninspected = true,
            EventKind::GateAnswered { answer } => {
                self.decision = Some(Decision { answer: *answer, seq: self.seq, at_ms });
            }
            EventKind::TaskPaused { pause, cause } => {
                self.answer_taken();
                self.paused = Some((*pause, cause.clone()));
            }
            EventKind::RepositoryChanged { changes } => self.changes.extend_from_slice(changes),
            EventKind::UncommittableMade { paths } => self.made.extend(paths.iter().cloned()),
            EventKind::KeptAside { paths, place } => self.kept_aside.push((place.clone(), paths.clone())),
            EventKind::LeftOut { paths } => self.left_out = Some(paths.clone()),
            EventKind::TaskEnded { end, cause } => self.ended = Some((end.clone(), cause.clone())),
        }
    }

    /// An answer about the files has had its effect, or had none.
    fn answer_taken(&mut self) {
        self.decision = self.decision.filter(|decision| decision.answer == Answer::Drop);
    }

    /// Charges a request that may have been answered: it may have cost money.
    fn lose_request(&mut self) {
        if let Some(open) = self.request.take() {
            self.charge(&Usage::estimate(open.estimated_input, open.max_output), None);
        }
    }

    fn end_request(&mut self, trouble: Trouble, message: &str, usage: Option<Usage>, retry_in_ms: Option<u64>) {
        if let Some(open) = self.request.take() {
            if trouble == Trouble::ContextOverflow {
                self.overflow = Some(Overflow {
                    count: self.overflow.as_ref().map_or(0, |earlier| earlier.count) + 1,
                    estimated_input: open.estimated_input,
                    message: message.to_owned(),
                });
            }
            match usage {
                Some(usage) => self.charge(&usage, None),
                None if trouble.is_charged() => {
                    self.charge(&Usage::estimate(open.estimated_input, open.max_output), None);
                }
                None => {}
            }
        }
        if trouble.reaction() == Reaction::DropToolChoice {
            self.tool_choice_dropped = true;
        }
        let (attempts, since_ms) =
            self.trouble.as_ref().map_or((0, self.spent_ms), |last| (last.attempts, last.since_ms));
        self.trouble =
            Some(LastTrouble { trouble, message: message.to_owned(), retry_in_ms, attempts: attempts + 1, since_ms });
    }

    fn take_reply(&mut self, number: u32, reply: &Reply) {
        let request = self.request.take();
        if let Some(open) = request {
            let left = self.started.caps.tokens.saturating_sub(self.spend.usage.total());
            let by_tokens = open.estimated_input.saturating_add(open.max_output) >= left;
            let usage = reply.usage.unwrap_or_else(|| Usage::estimate(open.estimated_input, open.max_output));
            let fallback = reply.fallback();
            let prices = fallback.and_then(|who| who.prices.as_ref()).filter(|_| reply.usage.is_some());
            let told = reply.cost.or_else(|| prices?.cost(&usage));
            self.charge(&usage, told);
            // counted by the pinned model's prices, so that the cap acts, and told as unknown
            self.spend.cost_unknown |= fallback.is_some() && told.is_none();
            // reaching an output limit that was lowered for the cap counts as reaching the cap
            if reply.stop == Stop::Truncated && open.max_output < self.started.models.own.max_output {
                self.no_room = Some((if by_tokens { Cap::Tokens } else { Cap::Cost }, open.estimated_input));
            }
        }
        self.spend.turns += 1;
        self.trouble = None;
        self.overflow = None;
        self.turns.push(Turn {
            number,
            estimated_input: request.map_or(0, |open| open.estimated_input),
            reply: reply.clone(),
            results: Vec::new(),
            nudges: Vec::new(),
            ending: None,
            checks: Vec::new(),
            closed: false,
        });
    }

    fn charge(&mut self, usage: &Usage, cost: Option<Money>) {
        self.spend.usage.add(usage);
        match cost.or_else(|| self.started.models.own.prices.cost(usage)) {
            Some(cost) => self.spend.cost = self.spend.cost.plus(cost),
            None => self.spend.cost_unknown = true,
        }
    }

    fn take_result(&mut self, result: &ToolResult) {
        if let Some(checkpoint) = &result.checkpoint {
            self.head = Some(checkpoint.clone());
        }
        if let Some(Seen { path, hash }) = &result.seen {
            self.seen.insert(path.clone(), hash.clone());
        }
        let ending = self.started.role.ending.as_str();
        let Some(turn) = self.turns.last_mut() else { return };
        turn.results.push(result.clone());
        if let Some((call, note)) = &turn.ending
            && *call == result.call
        {
            match result.status {
                ResultStatus::Done => self.note = Some(note.clone()),
                ResultStatus::Failed => self.failed_checks += 1,
                ResultStatus::Refused => self.unchanged_claims += 1,
                ResultStatus::Unreadable | ResultStatus::NotRun => {}
            }
        }
        let Some(call) = turn.reply.calls().find(|call| call.id == result.call) else { return };
        let accepted = turn.ending.as_ref().is_some_and(|(ending, _)| *ending == result.call);
        if result.status == ResultStatus::NotRun || accepted {
            return;
        }
        // a call that changed the tree is not a useless repetition
        if result.checkpoint.is_some() {
            self.repeat = Repeat::default();
            return;
        }
        // a note refused for the same reason counts as the same note, whatever its wording
        let arguments = if call.name == ending { "" } else { call.arguments.as_str() };
        let text = format!("{}\0{arguments}\0{:?}\0{}", call.name, result.status, result.content);
        let key = Some(Hash::of(text.as_bytes()));
        if self.repeat.key == key {
            self.repeat.count += 1;
        } else {
            self.repeat = Repeat { key, count: 1, told: 0 };
        }
    }

    fn close_turn(&mut self) {
        let Some(turn) = self.turns.last_mut() else { return };
        turn.closed = true;
        // the cap, not the model, cut this reply short
        let bad = turn.is_bad() && self.no_room.is_none();
        self.bad_replies = if bad { self.bad_replies + 1 } else { 0 };
    }

    fn move_intent(&mut self, id: IntentId, step: Move) {
        if let Some(intent) = self.intents.get_mut(id.0 as usize)
            && let Some(status) = intent::next_status(&intent.kind, Some(intent.status), step)
        {
            intent.status = status;
        }
    }
}
