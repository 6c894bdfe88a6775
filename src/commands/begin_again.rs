//! The command that continues the work of a capped task: a new delegation from its kept commits.

use super::advice::quoted;
use crate::{
    domain::{caps::Cap, money::Money, task::Task},
    repo,
};

/// The longest brief that is repeated, in characters.
const BRIEF: usize = 200;

/// The command, with the reached cap doubled; `worked`: whether there are commits to start from.
pub(super) fn command(task: &Task, cap: Cap, worked: bool) -> String {
    let (started, caps) = (&task.started, &task.started.caps);
    let mut words = vec!["nisse delegate".to_owned()];
    if worked {
        words.push(format!("--base {}", repo::discarded_ref(task.id)));
    }
    words.push(match cap {
        Cap::Turns => format!("--max-turns {}", caps.turns.saturating_mul(2)),
        Cap::Tokens => format!("--max-tokens {}", caps.tokens.saturating_mul(2)),
        Cap::Cost => {
            format!("--max-cost {}", Money(caps.cost.unwrap_or_default().0.saturating_mul(2)).usd())
        }
        Cap::Time => format!("--max-time {}s", caps.time_ms.saturating_mul(2).div_ceil(1000)),
    });
    words.extend(started.checks.iter().map(|check| format!("--check {}", quoted(check))));
    let brief = started.brief().trim();
    let short = brief.chars().count() <= BRIEF && !brief.contains('\n');
    // the placeholder for a longer one is not a valid shell word, so that nobody runs it
    words.push(if short { quoted(brief) } else { "BRIEF (what you asked for)".to_owned() });
    words.join(" ")
}
