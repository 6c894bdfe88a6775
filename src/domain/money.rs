//! Money.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An amount of money in picodollars (10⁻¹² USD): whole numbers, so that sums are exact and survive JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Money(pub u64);

impl Money {
    /// From dollars; `None` if negative, not a number, or beyond what the type holds (about 18 million).
    #[must_use]
    pub fn from_usd(usd: f64) -> Option<Self> {
        let pico = (usd * 1e12).round();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
        (pico.is_finite() && (0.0..1.8e19).contains(&pico)).then_some(Self(pico as u64))
    }

    /// In dollars.
    #[must_use]
    pub fn usd(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "shown, never summed")]
        let pico = self.0 as f64;
        pico / 1e12
    }

    /// The sum, at most the largest amount.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Money {
    /// `$0.0042`; four places under ten cents, two from ten dollars on.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usd = self.usd();
        let places = if usd >= 10.0 {
            2
        } else if usd >= 0.1 {
            3
        } else {
            4
        };
        write!(f, "${usd:.places$}")
    }
}
