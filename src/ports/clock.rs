//! The time: civil for people, monotonic for decisions.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock: the system's, or a fixed one for tests.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The system's clocks; active time counts from `since`.
    System {
        /// When this process began to count.
        since: Instant,
    },
    /// Always the same moment; no time passes.
    Fixed {
        /// Milliseconds since 1970 UTC.
        at_ms: u64,
    },
}

impl Clock {
    /// The system's clock, counting from now.
    #[must_use]
    pub fn system() -> Self {
        Self::System { since: Instant::now() }
    }

    /// Civil time in milliseconds since 1970 UTC.
    #[must_use]
    pub fn civil_ms(&self) -> u64 {
        match self {
            Self::System { .. } => {
                #[expect(clippy::disallowed_methods, reason = "the one home of the system's clock")]
                let now = SystemTime::now();
                now.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
            }
            Self::Fixed { at_ms } => *at_ms,
        }
    }

    /// Time since this process began to count.
    #[must_use]
    pub fn active(&self) -> Duration {
        match self {
            Self::System { since } => since.elapsed(),
            Self::Fixed { .. } => Duration::ZERO,
        }
    }

    /// Waits; a fixed clock does not.
    pub async fn sleep(&self, time: Duration) {
        match self {
            Self::System { .. } => tokio::time::sleep(time).await,
            Self::Fixed { .. } => {}
        }
    }
}
