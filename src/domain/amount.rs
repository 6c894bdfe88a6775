//! Amounts in words: counts and durations.

/// A count: `1 turn`, `2 turns`.
#[must_use]
pub fn counted(number: u64, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// A number in at most four characters: `950`, `8.2k`, `128k`, `1.5M`, `12M`.
#[must_use]
pub fn short(number: u64) -> String {
    let (unit, letter) = match number {
        0..1_000 => return number.to_string(),
        1_000..999_500 => (1_000, 'k'),
        999_500..999_500_000 => (1_000_000, 'M'),
        _ => (1_000_000_000, 'G'),
    };
    // rounded to tenths first, so that 9,960 is 10k and not 10.0k
    let tenths = (number + unit / 20) * 10 / unit;
    match tenths {
        0..100 if !tenths.is_multiple_of(10) => format!("{}.{}{letter}", tenths / 10, tenths % 10),
        0..100 => format!("{}{letter}", tenths / 10),
        _ => format!("{}{letter}", (number + unit / 2) / unit),
    }
}

/// A duration for people: `850 ms`, `12 s`, `3 min 05 s`, `2 h 10 min`.
#[must_use]
pub fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms} ms"),
        1..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_spans_are_readable() {
        assert_eq!([0, 1, 2].map(|number| counted(number, "turn")), ["0 turns", "1 turn", "2 turns"]);
        assert_eq!([850, 12_000, 185_000, 7_800_000].map(span), ["850 ms", "12 s", "3 min 05 s", "2 h 10 min"]);
    }

    #[test]
    fn short_numbers_have_four_places_at_most() {
        let numbers = [950, 1000, 8192, 9_960, 131_072, 999_499, 999_999, 1_500_000, 200_000_000, 5_000_000_000];
        let wanted = ["950", "1k", "8.2k", "10k", "131k", "999k", "1M", "1.5M", "200M", "5G"];
        assert_eq!(numbers.map(short), wanted);
    }
}
