//! Progress on standard error. On a terminal, a live line below the model's text as it streams, its reasoning set apart;
//! elsewhere, one plain line per turn. Both report what takes long, with its time.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anstream::{AutoStream, ColorChoice, adapter::strip_str};

use super::{
    Manner, first_line, grouped, live, on_terminal, plain, say,
    status::{Status, spent},
    story::{self, shown_call},
};
use crate::{
    agent::outside::Passing,
    domain::{
        event::{Event, EventKind},
        id::TaskId,
        message::{Part, Reply},
        task::Task,
    },
    log::Subscriber,
    ports::llm::Delta,
};

/// How often the live line is redrawn.
const TICK: Duration = Duration::from_millis(100);
const DIM: &str = "\x1b[2m";
const DIM_ITALIC: &str = "\x1b[2;3m";
const PLAIN: &str = "\x1b[0m";

/// Where a run's progress is shown.
#[derive(Clone)]
pub struct Progress {
    manner: Manner,
    /// Whether there is a live line; else only plain lines.
    live: bool,
    /// Whether to print the model's text without a live line.
    words: bool,
    color: bool,
    state: Arc<Mutex<State>>,
}

struct State {
    status: Status,
    task: Option<TaskId>,
    /// Streamed text that does not fill a line yet, and its kind.
    partial: String,
    voice: Voice,
    finished: bool,
}

/// The kind of streamed text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Voice {
    /// Text.
    Says,
    /// Reasoning.
    Thinks,
}

impl Progress {
    /// Before the first event.
    #[must_use]
    pub fn new(manner: Manner) -> Self {
        // JSON on the same screen would overwrite the live line
        let shared = manner.json && std::io::IsTerminal::is_terminal(&std::io::stdout());
        let choice = match manner.color_of(&std::io::stderr()) {
            ColorChoice::Auto => AutoStream::choice(&std::io::stderr()),
            chosen => chosen,
        };
        Self {
            manner,
            live: on_terminal() && manner.moves_cursor && !manner.quiet && !shared,
            words: false,
            color: choice != ColorChoice::Never,
            state: Arc::new(Mutex::new(State {
                status: Status::new(Instant::now()),
                task: None,
                partial: String::new(),
                voice: Voice::Says,
                finished: false,
            })),
        }
    }

    /// Prints the model's text without a live line, too.
    #[must_use]
    pub fn with_words(self) -> Self {
        Self { words: true, ..self }
    }

    /// A subscriber for a task's events.
    #[must_use]
    pub fn subscriber(&self) -> Subscriber {
        let progress = self.clone();
        Box::new(move |event, task| progress.see(event, task))
    }

    /// The task, once it has begun.
    #[must_use]
    pub fn task(&self) -> Option<TaskId> {
        self.state().task
    }

    /// Redraws the live line, or reports what takes long. Runs until it is dropped.
    pub async fn keep_telling(self) {
        loop {
            tokio::time::sleep(TICK).await;
            let mut state = self.state();
            let long = if self.live { None } else { state.status.long(Instant::now()) };
            match long {
                Some(told) => self.put(&mut state, &[told]),
                None if self.live => self.put(&mut state, &[]),
                None => {}
            }
        }
    }

    /// Shows what happens between two events: streamed text and a command's output.
    pub fn pass(&self, passing: &Passing) {
        let mut state = self.state();
        let (voice, text) = match passing {
            Passing::Output(line) => {
                state.status.says(line);
                return;
            }
            Passing::Reply(delta) => {
                state.status.hears(delta, Instant::now());
                match delta {
                    Delta::Text(text) => (Voice::Says, text),
                    Delta::Reasoning(text) => (Voice::Thinks, text),
                    Delta::Call { .. } => return self.flush(&mut state),
                }
            }
        };
        if !self.live {
            return;
        }
        if voice != state.voice {
            self.flush(&mut state);
            state.voice = voice;
        }
        state.partial.push_str(text);
        let mut lines = Vec::new();
        while let Some(end) = state.partial.find('\n') {
            let line: String = state.partial.drain(..=end).collect();
            lines.extend(voice.lines(&line));
        }
        // of a text longer than a line, the lines that it fills are shown
        let mut filled = live::wrap(&state.partial, voice.width());
        if filled.len() > 1 {
            state.partial = filled.pop().unwrap_or_default();
            lines.extend(filled.iter().flat_map(|line| voice.lines(line)));
        }
        self.put(&mut state, &lines);
    }

    /// Prints a note.
    pub fn note(&self, text: &str) {
        let mut state = self.state();
        if self.live {
            self.put(&mut state, &folded(text));
        } else {
            say(self.manner, text);
        }
    }

    /// Removes the live line; nothing is shown after this.
    pub fn finish(&self) {
        let mut state = self.state();
        self.flush(&mut state);
        state.finished = true;
        live::erase();
    }

    fn see(&self, event: &Event, task: &Task) {
        let mut state = self.state();
        state.task = Some(task.id);
        state.status.see(event, task, Instant::now());
        if matches!(event.kind, EventKind::ReplyReceived { .. } | EventKind::RequestEnded { .. }) {
            self.flush(&mut state);
        }
        let mut lines = if self.manner.verbose { story::lines(event) } else { milestone_lines(event) };
        if let EventKind::ReplyReceived { reply, .. } = &event.kind
            && self.words
            && !self.live
            && !self.manner.verbose
        {
            lines.splice(0..0, reply.text().lines().map(str::to_owned));
        }
        if let EventKind::ReplyReceived { turn, .. } = &event.kind {
            // only at the second such reply, and so once per task
            let found = task.cut_prompts().filter(|found| found.replies == 2 && found.turn == *turn);
            lines.extend(found.map(|found| format!("note: {found}")));
        }
        lines = if self.live {
            // output is quoted, a line is a line
            let quoted = |line: &str| line.starts_with("  │ ").then(|| vec![live::cut(&screened(line), width())]);
            lines.iter().flat_map(|line| quoted(line).unwrap_or_else(|| folded(line))).collect()
        } else {
            lines.iter().map(|line| plain(line)).collect()
        };
        if let EventKind::TurnEnded { turn: number } = &event.kind {
            let turn = plain(&turn(task, *number));
            lines.push(if self.live { live::cut(&turn, width()) } else { turn });
        }
        if self.live || !lines.is_empty() {
            self.put(&mut state, &lines);
        }
    }

    /// Prints lines, above the live line if there is one.
    fn put(&self, state: &mut State, lines: &[String]) {
        if state.finished || self.manner.quiet {
            return;
        }
        if !self.live {
            for line in lines {
                say(self.manner, line);
            }
            return;
        }
        let shown = |line: &String| if self.color { line.clone() } else { strip_str(line).to_string() };
        let lines: Vec<String> = lines.iter().map(shown).collect();
        let arrives = match state.status.arriving() {
            Some(arriving) => Some(format!("{DIM}{}{PLAIN}", live::cut(arriving, width()))),
            None => state.voice.lines(&state.partial).pop(),
        };
        live::draw(&lines, arrives.as_ref().map(shown).as_deref(), &state.status.line(Instant::now(), width()));
    }

    fn flush(&self, state: &mut State) {
        let rest = std::mem::take(&mut state.partial);
        let lines = state.voice.lines(&rest);
        if !lines.is_empty() {
            self.put(state, &lines);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lines for an event other than those for its turn.
fn milestone_lines(event: &Event) -> Vec<String> {
    match &event.kind {
        EventKind::WorktreeReady { notices, .. } => notices.iter().map(|notice| format!("note: {notice}")).collect(),
        EventKind::ReplyReceived { reply, .. } => story::remarks(reply),
        EventKind::RequestEnded { .. }
        | EventKind::RequestWithheld { .. }
        | EventKind::ContextEvicted { .. }
        | EventKind::SetupRan { .. }
        | EventKind::CheckRan { .. }
        | EventKind::FilesChanged { .. }
        | EventKind::WorktreeRepaired { .. }
        | EventKind::RepositoryChanged { .. }
        | EventKind::UncommittableMade { .. }
        | EventKind::KeptAside { .. }
        | EventKind::LocksRemoved { .. }
        | EventKind::LeftOut { .. }
        | EventKind::Recovered { .. } => story::lines(event),
        EventKind::TaskStarted(_)
        | EventKind::SpanStarted { .. }
        | EventKind::RequestSent { .. }
        | EventKind::Nudged { .. }
        | EventKind::IntentOpened { .. }
        | EventKind::IntentSettled { .. }
        | EventKind::IntentAbandoned { .. }
        | EventKind::ToolResult(_)
        | EventKind::EndingAccepted { .. }
        | EventKind::TurnEnded { .. }
        | EventKind::GateAnswered { .. }
        | EventKind::TaskPaused { .. }
        | EventKind::TaskEnded { .. } => Vec::new(),
    }
}

/// A turn in one line: what was spent so far, and the calls.
fn turn(task: &Task, number: u32) -> String {
    let turn = task.turns.iter().find(|turn| turn.number == number);
    let done = turn.map_or_else(String::new, |turn| {
        let calls: Vec<_> = turn.reply.calls().map(shown_call).collect();
        let mut done = if calls.is_empty() { no_call(&turn.reply) } else { first_line(&calls.join("; "), 100) };
        for told in &turn.nudges {
            done = format!("{done}; told: {}", first_line(told, 80));
        }
        done
    });
    format!("turn {number}/{}  {}  {done}", task.started.caps.turns, spent(task, grouped))
}

/// What a reply without a call had instead.
fn no_call(reply: &Reply) -> String {
    let text = reply.text();
    let begins = text.trim_start();
    if !begins.is_empty() {
        return format!("no call, but text: {:?}", first_line(begins, 60));
    }
    let reasoned = reply.parts.iter().any(|part| matches!(part, Part::Reasoning(_)));
    if reasoned { "no call, only reasoning".to_owned() } else { "no call, an empty reply".to_owned() }
}

/// A model's text without what could move the cursor or colour the screen.
fn screened(text: &str) -> String {
    let text = text.trim_end().replace('\t', "    ");
    text.chars().filter(|c| !c.is_control()).collect()
}

impl Voice {
    /// A text as styled lines of the screen; none if it is blank.
    fn lines(self, text: &str) -> Vec<String> {
        if text.trim().is_empty() {
            return Vec::new();
        }
        let (style, mark) = match self {
            Self::Says => (DIM, ""),
            // distinguishable without colour
            Self::Thinks => (DIM_ITALIC, "┊ "),
        };
        let folded = live::wrap(&screened(text), self.width());
        folded.into_iter().map(|line| format!("{style}{mark}{line}{PLAIN}")).collect()
    }

    /// The columns for its text.
    fn width(self) -> usize {
        match self {
            Self::Says => width(),
            Self::Thinks => width().saturating_sub(2).max(1),
        }
    }
}

fn folded(text: &str) -> Vec<String> {
    live::wrap(&screened(text), width())
}

/// The usable columns. The last one stays free, because some terminals wrap a line that reaches it.
fn width() -> usize {
    live::columns() - 1
}
