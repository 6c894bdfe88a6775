//! Progress on standard error: one live line on a terminal, one plain line a turn elsewhere.

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};

use super::{
    Manner, first_line, grouped, on_terminal, say, span,
    story::{self, shown_call},
};
use crate::{
    domain::{
        event::{Event, EventKind},
        intent::IntentKind,
        task::Task,
    },
    log::Subscriber,
    ports::llm::Delta,
};

/// A command that runs longer is named with its time.
const LONG: Duration = Duration::from_secs(10);
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Where a run's progress is shown.
#[derive(Clone)]
pub struct Progress {
    manner: Manner,
    bar: Option<ProgressBar>,
    /// Streamed text that has no line end yet.
    partial: Arc<Mutex<String>>,
    /// What runs now, and since when: for the plain form's word on long silences.
    running: Arc<Mutex<Option<String>>>,
}

impl Progress {
    /// Shows nothing yet.
    #[must_use]
    pub fn new(manner: Manner) -> Self {
        let live = on_terminal() && !manner.quiet && manner.color != anstream::ColorChoice::Never;
        let bar = live.then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self { manner, bar, partial: Arc::default(), running: Arc::default() }
    }

    /// Watches a task.
    #[must_use]
    pub fn subscriber(&self) -> Subscriber {
        let progress = self.clone();
        Box::new(move |event, task| progress.see(event, task))
    }

    /// Shows streamed text, dimmed, line by line.
    pub fn delta(&self, delta: &Delta) {
        if self.bar.is_none() {
            return;
        }
        let (Delta::Text(text) | Delta::Reasoning(text)) = delta;
        let mut partial = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
        partial.push_str(text);
        while let Some(end) = partial.find('\n') {
            let line: String = partial.drain(..=end).collect();
            self.print(&format!("{DIM}{}{PLAIN}", printable(&line)));
        }
    }

    /// Takes the live line away.
    pub fn finish(&self) {
        self.flush();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.set_running(None);
    }

    /// Says from time to time what has been running for long; ends when it is dropped.
    pub async fn break_silence(&self) {
        let mut last: Option<(String, tokio::time::Instant)> = None;
        loop {
            tokio::time::sleep(LONG).await;
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match (&running, &last) {
                (Some(now), Some((before, since))) if now == before => {
                    if self.bar.is_none() {
                        let ms = u64::try_from((since.elapsed() + LONG).as_millis()).unwrap_or(u64::MAX);
                        self.line(&format!("still running after {}: {now}", span(ms)));
                    }
                }
                (Some(now), _) => last = Some((now.clone(), tokio::time::Instant::now())),
                (None, _) => last = None,
            }
        }
    }

    fn see(&self, event: &Event, task: &Task) {
        if self.manner.verbose {
            for line in story::lines(event) {
                self.line(&line);
            }
        }
        match &event.kind {
            EventKind::WorktreeReady { notices, .. } => {
                for notice in notices {
                    self.line(&format!("note: {notice}"));
                }
            }
            EventKind::RequestSent { turn, .. } => {
                self.message(task, *turn, &format!("asking {}", task.started.model.alias));
            }
            EventKind::RequestEnded { trouble, message, retry_in_ms, .. } => {
                self.flush();
                let then = retry_in_ms.map_or_else(String::new, |ms| format!("; asking again in {}", span(ms)));
                self.line(&format!("no reply: {trouble}: {}{then}", first_line(message, 200)));
            }
            EventKind::ReplyReceived { .. } => self.flush(),
            EventKind::IntentOpened { kind: IntentKind::Command { command, .. }, .. } => {
                self.message(task, turn(task), &format!("running {}", first_line(command, 60)));
            }
            EventKind::IntentOpened { kind: IntentKind::Check { .. }, .. } => {
                self.message(task, turn(task), "running the checks");
            }
            EventKind::IntentSettled { .. } => self.set_running(None),
            EventKind::CheckRan { command, status, duration_ms, .. } => {
                let how = if *status == Some(0) { "passed" } else { "failed" };
                self.line(&format!("check `{}` {how} after {}", first_line(command, 80), span(*duration_ms)));
            }
            EventKind::TurnEnded { .. } => self.turn(task),
            EventKind::Recovered { cause, .. } => self.line(cause),
            EventKind::TaskStarted(_)
            | EventKind::SpanStarted { .. }
            | EventKind::RequestWithheld { .. }
            | EventKind::Nudged { .. }
            | EventKind::IntentOpened { .. }
            | EventKind::IntentAbandoned { .. }
            | EventKind::ToolResult(_)
            | EventKind::EndingAccepted { .. }
            | EventKind::GateAnswered { .. }
            | EventKind::TaskPaused { .. }
            | EventKind::TaskEnded { .. } => {}
        }
    }

    fn turn(&self, task: &Task) {
        let calls = task.last_turn().map_or_else(Vec::new, |turn| turn.reply.calls().map(shown_call).collect());
        let calls = if calls.is_empty() { "no call".to_owned() } else { first_line(&calls.join("; "), 100) };
        self.line(&format!("turn {}/{}  {}  {calls}", turn(task), task.started.caps.turns, spent(task)));
    }

    fn message(&self, task: &Task, turn: u32, doing: &str) {
        self.set_running(Some(doing.to_owned()));
        if let Some(bar) = &self.bar {
            bar.set_message(format!("turn {turn}/{}  {doing}  {}", task.started.caps.turns, spent(task)));
        }
    }

    fn set_running(&self, what: Option<String>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    fn flush(&self) {
        let rest = std::mem::take(&mut *self.partial.lock().unwrap_or_else(PoisonError::into_inner));
        if !rest.trim().is_empty() {
            self.print(&format!("{DIM}{}{PLAIN}", printable(&rest)));
        }
    }

    fn line(&self, line: &str) {
        self.print(&printable(line));
    }

    fn print(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(self.manner, line)),
            None if self.manner.quiet => {}
            None => say(self.manner, line),
        }
    }
}

fn turn(task: &Task) -> u32 {
    task.last_turn().map_or(0, |turn| turn.number)
}

fn spent(task: &Task) -> String {
    let mut text = format!("{} tokens", grouped(task.spend.usage.total()));
    if !task.spend.cost_unknown {
        let _ = write!(text, "  {}", task.spend.cost);
    }
    text
}

/// A model's text without what could move the cursor or colour the screen.
fn printable(text: &str) -> String {
    text.trim_end().chars().filter(|c| !c.is_control() || *c == '\t').collect()
}
