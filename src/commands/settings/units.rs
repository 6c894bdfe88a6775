//! Durations, money and sizes as people write them, in files, variables and flags alike.

use std::time::Duration;

use jiff::SignedDuration;

use crate::domain::money::Money;

/// The longest duration that a setting takes: a year. Longer ones are mistakes, and sums of them could overflow.
const LONGEST: Duration = Duration::from_hours(365 * 24);

/// A duration above zero, up to a year: `90s`, `15m`, `1h30m`.
///
/// # Errors
/// A sentence that says how durations are written.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wanted = || format!("takes a duration such as 90s, 15m or 1h30m, not {text:?}");
    let signed: SignedDuration = text.trim().parse().map_err(|_| wanted())?;
    let duration = Duration::try_from(signed).map_err(|_| wanted())?;
    if duration < Duration::from_millis(1) || duration > LONGEST {
        return Err(format!("takes a duration between 1ms and a year, not {text:?}"));
    }
    Ok(duration)
}

/// A duration as [`duration`] reads it.
#[must_use]
pub fn show_duration(duration: Duration) -> String {
    SignedDuration::try_from(duration).map_or_else(|_| format!("{}s", duration.as_secs()), |d| format!("{d:#}"))
}

/// An amount in US dollars above zero: `2.50`.
///
/// # Errors
/// A sentence that says how amounts are written.
pub fn money(text: &str) -> Result<Money, String> {
    let plain = text.trim();
    let digits = plain.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    match plain.parse().ok().and_then(Money::from_usd) {
        Some(money) if digits && money > Money(0) => Ok(money),
        _ => Err(format!("takes an amount in US dollars above 0, such as 2.50, not {text:?}")),
    }
}

/// A size in bytes: `50MB`, `64KiB`, `0B`.
///
/// # Errors
/// A sentence that says how sizes are written.
pub fn size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 7] = [
        ("b", 1),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
    ];
    let plain = text.trim();
    let (number, unit) = plain.split_at(plain.find(|c: char| !c.is_ascii_digit()).unwrap_or(plain.len()));
    let unit = unit.trim().to_ascii_lowercase();
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    factor
        .and_then(|factor| number.parse::<u64>().ok()?.checked_mul(factor))
        .ok_or_else(|| format!("takes a size such as 50MB or 64KiB, not {text:?}"))
}

/// A size as [`size`] reads it, in the largest unit that keeps it whole.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")]
        .into_iter()
        .find(|(factor, _)| bytes > 0 && bytes.is_multiple_of(*factor))
        .map_or_else(|| format!("{bytes}B"), |(factor, unit)| format!("{}{unit}", bytes / factor))
}

/// A size for people, rounded: `39 MB`, `1.1 GB`.
#[must_use]
pub fn about(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        1_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{}.{} GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10),
    }
}

/// A whole number from 1.
///
/// # Errors
/// A sentence that says what is taken.
pub fn count(text: &str) -> Result<u64, String> {
    let digits: String = text.trim().chars().filter(|c| *c != '_').collect();
    match digits.parse() {
        Ok(0) | Err(_) => Err(format!("takes a whole number of at least 1, not {text:?}")),
        Ok(number) => Ok(number),
    }
}

/// A whole number from 1 that fits 32 bits.
///
/// # Errors
/// A sentence that says what is taken.
pub fn small_count(text: &str) -> Result<u32, String> {
    u32::try_from(count(text)?).map_err(|_| format!("takes a whole number up to {}, not {text:?}", u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("1h30m", 5400), ("1h 30m", 5400), (" 2h ", 7200)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "15", "-5m", "0s", "m", "400d", "9999999999h", "15x", "NaNs"] {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["15m", "1h 30m", "90ms"] {
            let read = duration(text).unwrap();
            assert_eq!(duration(&show_duration(read)), Ok(read), "{text}");
        }
    }

    #[test]
    fn amounts() {
        assert_eq!(money("2.50"), Ok(Money(2_500_000_000_000)));
        assert_eq!(money("3"), Ok(Money(3_000_000_000_000)));
        for text in ["", "0", "-1", "1e3", "inf", "nan", "2,50", "1.2.3", "."] {
            assert!(money(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [("50MB", 50_000_000), ("64KiB", 65_536), ("0B", 0), ("1 gb", 1_000_000_000)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
            assert_eq!(size(&show_size(bytes)), Ok(bytes), "{text}");
        }
        for text in ["", "50", "MB", "-1MB", "1.5MB", "99999999999999999999GB", "18446744073709551615kB", "5 parsecs"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_for_people() {
        let told = [999, 39_500_000, 1_100_000_000].map(about);
        assert_eq!(told, ["999 B", "39 MB", "1.1 GB"]);
    }

    #[test]
    fn counts() {
        assert_eq!(count("1_500_000"), Ok(1_500_000));
        for text in ["0", "-1", "1.5", "", "many"] {
            assert!(count(text).is_err(), "{text}");
        }
        assert!(small_count("4294967296").is_err());
    }
}
