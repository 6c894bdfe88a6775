//! How long to retry after failures between nisse and a model. Pure: it only decides; the caller records and waits.

use std::time::Duration;

use crate::{
    domain::{
        task::Task,
        upstream::{Reaction, Trouble},
        window::STRONGER_EVICTIONS,
    },
    ports::llm,
};

/// Attempts for trouble of the transport or the upstream.
const TRIES: u32 = 6;
/// Attempts for a reply that is cut again and again.
const CUT_TRIES: u32 = 3;
/// No more attempts after failures have lasted this long.
const PATIENCE: Duration = Duration::from_mins(5);
/// The wait after a rate limit that names none (on the native route, often).
const UNTOLD_WAIT: Duration = Duration::from_secs(20);

/// The wait before the next attempt; none if there is no next one.
///
/// `spent_ms` is the task's active time, `left` what is left of its time cap.
#[must_use]
pub fn wait(task: &Task, spent_ms: u64, left: Duration, error: &llm::Error) -> Option<Duration> {
    let earlier = task.trouble.as_ref();
    let attempts = earlier.map_or(0, |last| last.attempts) + 1;
    match error.trouble.reaction() {
        Reaction::DropToolChoice => (!task.tool_choice_dropped).then_some(Duration::ZERO),
        Reaction::Evict => {
            let overflows = task.overflow.as_ref().map_or(0, |earlier| earlier.count);
            (overflows < STRONGER_EVICTIONS).then_some(Duration::ZERO)
        }
        Reaction::Retry => {
            let tries = if error.trouble == Trouble::Cut { CUT_TRIES } else { TRIES };
            let lasted = spent_ms.saturating_sub(earlier.map_or(spent_ms, |last| last.since_ms));
            if attempts >= tries || Duration::from_millis(lasted) >= PATIENCE {
                return None;
            }
            let backoff = Duration::from_secs(1u64 << (attempts - 1).min(5)).min(Duration::from_secs(30));
            let wait = match error.retry_after {
                // a wait that the proxy asked for and that did not help is not trusted again
                Some(told) if attempts == 1 => told.max(Duration::from_millis(100)),
                Some(told) => told.max(backoff),
                None if error.trouble == Trouble::RateLimited => UNTOLD_WAIT.max(backoff),
                None => backoff + jitter(task, backoff),
            };
            (wait < left && wait < PATIENCE).then_some(wait)
        }
        Reaction::Interrupt | Reaction::Fail | Reaction::Configuration | Reaction::Stop => None,
    }
}

/// Jitter of up to a quarter of the wait, so that many clients do not return at once; derived from the task's id and the
/// attempt's number, so that a transcript can be repeated.
fn jitter(task: &Task, wait: Duration) -> Duration {
    let (_, random) = task.id.0.as_u64_pair();
    // Fibonacci hashing: neighbouring attempts are drawn far apart
    let drawn = (random ^ u64::from(task.requests)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    wait * u32::try_from(drawn).unwrap_or(0) / 1024
}
