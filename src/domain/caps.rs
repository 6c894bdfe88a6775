//! Hard limits on turns, tokens, money and time, and what has been spent of them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    amount::{counted, span},
    model::{Prices, Usage},
    money::Money,
};

/// The four caps of a task; reaching one (`>=`) breaches it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Caps {
    /// Replies allowed, including the one with the ending call.
    pub turns: u32,
    /// All input of all turns, cached or not, plus all output.
    pub tokens: u64,
    /// Money; none means no cap.
    pub cost: Option<Money>,
    /// Active time over all spans, in milliseconds.
    pub time_ms: u64,
}

/// What a task has spent, derived from its log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spend {
    /// Replies recorded.
    pub turns: u32,
    /// Tokens by kind, estimates of lost requests included.
    pub usage: Usage,
    /// Money, estimates included.
    pub cost: Money,
    /// Whether a part of the cost is unknown: neither the proxy nor the catalog says it.
    pub cost_unknown: bool,
}

/// Which cap was reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cap {
    /// Replies.
    Turns,
    /// Tokens.
    Tokens,
    /// Money.
    Cost,
    /// Active time.
    Time,
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Turns => "turns",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::Time => "time",
        })
    }
}

impl Caps {
    /// The cap among tokens, cost and time that is reached; these end a task in the middle of a turn.
    #[must_use]
    pub fn breached_within_turn(&self, spend: &Spend, spent_ms: u64) -> Option<Cap> {
        if spend.usage.total() >= self.tokens {
            Some(Cap::Tokens)
        } else if self.cost.is_some_and(|cap| spend.cost >= cap) {
            Some(Cap::Cost)
        } else if spent_ms >= self.time_ms {
            Some(Cap::Time)
        } else {
            None
        }
    }

    /// The cap that is reached, turns included; judged between turns.
    #[must_use]
    pub fn breached(&self, spend: &Spend, spent_ms: u64) -> Option<Cap> {
        self.breached_within_turn(spend, spent_ms).or_else(|| (spend.turns >= self.turns).then_some(Cap::Turns))
    }

    /// The output tokens that the remaining money buys after this input; none without a cost cap or without prices.
    #[must_use]
    pub fn output_that_money_buys(&self, prices: &Prices, estimated_input: u64, spend: &Spend) -> Option<u64> {
        let (cap, output) = (self.cost?, prices.output?);
        let left = cap.0.saturating_sub(spend.cost.0).saturating_sub(prices.of_input(estimated_input)?.0);
        Some(left.checked_div(output.0).unwrap_or(if left > 0 { u64::MAX } else { 0 }))
    }

    /// Why the next request is not sent: its estimated input alone would reach a cap.
    #[must_use]
    pub fn no_room(&self, cap: Cap, prices: &Prices, estimated_input: u64, spend: &Spend) -> String {
        let turns = counted(u64::from(spend.turns), "turn");
        match (cap, prices.of_input(estimated_input)) {
            (Cap::Cost, Some(cost)) => format!(
                "the cost cap of {} leaves no room for the next request (about {cost} for its input alone): {} spent in \
                 {turns}",
                self.cost.unwrap_or_default(),
                spend.cost
            ),
            (_, _) => format!(
                "the cap of {} tokens leaves no room for the next request (about {estimated_input} tokens): {} spent in \
                 {turns}",
                self.tokens,
                spend.usage.total()
            ),
        }
    }

    /// The sentence for the handback note: which cap, its value, what was spent, how many turns.
    #[must_use]
    pub fn describe(&self, cap: Cap, spend: &Spend, spent_ms: u64) -> String {
        let turns = counted(u64::from(spend.turns), "turn");
        match cap {
            Cap::Turns => {
                format!("the cap of {} was reached after {turns}", counted(u64::from(self.turns), "turn"))
            }
            Cap::Tokens => {
                format!("the cap of {} tokens was reached: {} spent in {turns}", self.tokens, spend.usage.total())
            }
            Cap::Cost => format!(
                "the cost cap of {} was reached: {} spent in {turns}",
                self.cost.unwrap_or_default(),
                spend.cost
            ),
            Cap::Time => {
                format!("the time cap of {} was reached: {} spent in {turns}", span(self.time_ms), span(spent_ms))
            }
        }
    }
}
