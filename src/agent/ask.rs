//! Sends requests to the model: the intent to spend is durable before the request leaves, and a reply is complete or absent.

use std::{fmt::Write as _, pin::pin, time::Duration};

use tokio::task::JoinHandle;

use super::{
    Error,
    budget::{self, Fit},
    masked::masked,
    outside::{Outside, Passing},
    retry,
    workplace::{Workplace, head},
};
use crate::{
    domain::{
        caps::Cap,
        event::EventKind,
        mask::Stream,
        message::Reply,
        outcome::Pause,
        role::ToolName,
        upstream::{Reaction, Trouble},
    },
    log::Journal,
    ports::llm::{self, Delta, Llm},
    repo,
};

/// Builds the request from the log, waits after an earlier failure, sends it, and records the result.
///
/// If the request does not fit, only records the eviction: the loop then tries again.
pub(super) async fn ask(journal: &mut Journal, place: &mut Workplace<'_>, outside: &Outside<'_>) -> Result<(), Error> {
    let llm = outside.llm()?;
    let mut request = match budget::fit(journal.task(), &mut place.view) {
        Fit::Send(request) => *request,
        Fit::Evict { through_turn } => {
            journal.push(EventKind::ContextEvicted { through_turn })?;
            return Ok(());
        }
        Fit::Full(cause) => {
            journal.push(EventKind::TaskPaused { pause: Pause::Gated, cause })?;
            return Ok(());
        }
    };
    if !wait(journal, outside).await {
        return Ok(());
    }
    let task = journal.task();
    let estimated_input = request.estimated_input();
    let left = task.started.caps.tokens.saturating_sub(task.spend.usage.total());
    if estimated_input >= left {
        journal.push(EventKind::RequestWithheld { cap: Cap::Tokens, estimated_input })?;
        return Ok(());
    }
    let bought = task.started.caps.output_that_money_buys(&request.model.prices, estimated_input, &task.spend);
    if bought == Some(0) {
        journal.push(EventKind::RequestWithheld { cap: Cap::Cost, estimated_input })?;
        return Ok(());
    }
    request.max_output = request.max_output.min(left - estimated_input).min(bought.unwrap_or(u64::MAX));
    let number = task.requests + 1;
    journal.push(EventKind::RequestSent {
        request: number,
        turn: request.turn,
        route: request.model.route,
        estimated_input,
        max_output: request.max_output,
    })?;
    journal.commit()?;
    let mut look = None;
    let exchanged = exchange(journal, place, outside, (llm, &request), &mut look).await;
    let recorded = match exchanged {
        Ok(reply) => {
            let runs = reply.calls().any(|call| call.name == ToolName::RunCommand.as_str());
            if runs && look.is_none() {
                look = begin_look(journal, place)?;
            }
            let reply = masked(reply, &outside.mask);
            let received = EventKind::ReplyReceived { request: number, turn: request.turn, reply };
            journal.push(received).and_then(|()| journal.commit()).map_err(Error::from)
        }
        Err(error) => failed(journal, outside, number, &error),
    };
    // nothing else is done in the worktree before it is over; what it could not look at, the next call finds out
    place.found = match look {
        Some(look) => look.await.ok().and_then(Result::ok),
        None => None,
    };
    recorded
}

/// A check of the tree that runs in the background.
type Look = JoinHandle<Result<Vec<String>, repo::Error>>;

/// Starts to check whether the tree is as in the last checkpoint.
fn begin_look(journal: &Journal, place: &Workplace<'_>) -> Result<Option<Look>, Error> {
    let Some(worktree) = place.worktree.clone() else { return Ok(None) };
    let head = head(journal.task())?;
    Ok(Some(tokio::task::spawn_blocking(move || worktree.differs_from(&head))))
}

/// Waits; false if the user stopped it. The wait is shorter than what is left of the time cap.
async fn wait(journal: &Journal, outside: &Outside<'_>) -> bool {
    let Some(ms) = journal.task().trouble.as_ref().and_then(|last| last.retry_in_ms).filter(|ms| *ms > 0) else {
        return true;
    };
    let clock = journal.clock();
    tokio::select! {
        () = outside.stop.wait() => false,
        () = clock.sleep(Duration::from_millis(ms)) => true,
    }
}

/// One attempt, ended by the user's stop or the time cap. At the first text of the reply, a check of the tree starts in the
/// background: the next command must find the tree as the last call left it.
async fn exchange(
    journal: &Journal,
    place: &Workplace<'_>,
    outside: &Outside<'_>,
    (llm, request): (&dyn Llm, &llm::Request),
    look: &mut Option<Look>,
) -> Result<Reply, llm::Error> {
    let ended =
        |trouble, message: &str| llm::Error { trouble, message: message.to_owned(), retry_after: None, usage: None };
    let (words, mut arriving) = tokio::sync::mpsc::unbounded_channel();
    let mut attempt = pin!(async {
        tokio::select! {
            reply = llm.ask(request, &words) => reply,
            () = outside.stop.wait() => Err(ended(Trouble::Stopped, "the request was cancelled")),
            () = tokio::time::sleep(journal.time_left()) => Err(ended(Trouble::Timeout, "the task's time cap ended the request")),
        }
    });
    let mut shown = Shown { text: Stream::new(&outside.mask), reasoning: Stream::new(&outside.mask) };
    loop {
        tokio::select! {
            biased;
            Some(delta) = arriving.recv() => {
                let words = matches!(delta, Delta::Text(_) | Delta::Reasoning(_));
                if words && look.is_none() {
                    *look = begin_look(journal, place).ok().flatten();
                }
                for shown in shown.take(delta) {
                    outside.show(Passing::Reply(shown));
                }
            }
            reply = &mut attempt => {
                let mut last = Vec::new();
                while let Ok(delta) = arriving.try_recv() {
                    last.extend(shown.take(delta));
                }
                last.extend(shown.rest());
                for shown in last {
                    outside.show(Passing::Reply(shown));
                }
                return reply;
            }
        }
    }
}

/// Streamed text for observers, masked.
struct Shown<'m> {
    text: Stream<'m>,
    reasoning: Stream<'m>,
}

impl Shown<'_> {
    /// What is shown by now. What waited for the rest of its word does so no longer when something else begins.
    fn take(&mut self, delta: Delta) -> Vec<Delta> {
        let mut shown = match &delta {
            Delta::Text(_) => Self::rest_of(&mut self.reasoning, Delta::Reasoning),
            Delta::Reasoning(_) => Self::rest_of(&mut self.text, Delta::Text),
            Delta::Call { .. } => self.rest(),
        };
        shown.push(match delta {
            Delta::Text(text) => Delta::Text(self.text.push(&text)),
            Delta::Reasoning(text) => Delta::Reasoning(self.reasoning.push(&text)),
            // a name, and how much there is
            call @ Delta::Call { .. } => call,
        });
        shown
    }

    fn rest(&mut self) -> Vec<Delta> {
        let reasoning = Self::rest_of(&mut self.reasoning, Delta::Reasoning);
        [reasoning, Self::rest_of(&mut self.text, Delta::Text)].concat()
    }

    fn rest_of(stream: &mut Stream<'_>, delta: fn(String) -> Delta) -> Vec<Delta> {
        let rest = stream.rest();
        if rest.is_empty() { Vec::new() } else { vec![delta(rest)] }
    }
}

fn failed(journal: &mut Journal, outside: &Outside<'_>, request: u32, error: &llm::Error) -> Result<(), Error> {
    let wait = retry::wait(journal.task(), journal.spent_ms(), journal.time_left(), error);
    let retry_in_ms = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    let mut message = outside.mask.apply(&error.message).into_owned();
    if let (None, Trouble::RateLimited, Some(told)) = (retry_in_ms, error.trouble, error.retry_after) {
        let seconds = jiff::SignedDuration::from_secs(i64::try_from(told.as_secs()).unwrap_or(i64::MAX));
        let _ = write!(message, "; the proxy asks to wait {seconds:#}");
    }
    journal.push(EventKind::RequestEnded {
        request,
        trouble: error.trouble,
        message: message.clone(),
        usage: error.usage,
        retry_in_ms,
    })?;
    journal.commit()?;
    match error.trouble.reaction() {
        Reaction::Configuration => Err(Error::Upstream { trouble: error.trouble, message }),
        Reaction::Retry
        | Reaction::Interrupt
        | Reaction::Evict
        | Reaction::Fail
        | Reaction::DropToolChoice
        | Reaction::Stop => Ok(()),
    }
}
