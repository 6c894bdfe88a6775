//! How long, or how much, of the turns of finished tasks a repository keeps.

use std::{fmt, time::Duration};

use super::{given::Given, units};

/// A day.
const DAY: Duration = Duration::from_hours(24);

/// What is kept of the single commits behind the one that a finished task hands back (`refs/nisse/turns`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeepTurns {
    /// Those of tasks that ended no longer ago than this.
    For(Duration),
    /// Those of the newest tasks, as many as together take no more bytes than this, and for 30 days.
    UpTo(u64),
}

impl Default for KeepTurns {
    fn default() -> Self {
        Self::For(DAY * 30)
    }
}

impl KeepTurns {
    pub(super) fn read(given: &Given<'_>) -> Result<Self, String> {
        let wanted = || format!("takes a time such as \"30d\" or a size such as \"500MB\", not {}", given.quoted());
        let text = given.string().ok_or_else(wanted)?;
        let days = text.trim().strip_suffix('d').and_then(|days| days.trim().parse::<u32>().ok());
        match days {
            Some(1..=365) => return Ok(Self::For(DAY * days.unwrap_or(1))),
            Some(_) => return Err(format!("takes between 1d and 365d, not {}", given.quoted())),
            None => {}
        }
        units::duration(text).map(Self::For).or_else(|_| units::size(text).map(Self::UpTo)).map_err(|_| wanted())
    }

    /// How long they are kept at most.
    #[must_use]
    pub fn at_most(self) -> Duration {
        match self {
            Self::For(time) => time,
            Self::UpTo(_) => DAY * 30,
        }
    }
}

impl fmt::Display for KeepTurns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::For(time) if time.as_secs() % DAY.as_secs() == 0 => write!(f, "{}d", time.as_secs() / DAY.as_secs()),
            Self::For(time) => f.write_str(&units::show_duration(*time)),
            Self::UpTo(bytes) => f.write_str(&units::show_size(*bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{
        super::{given::Raw, source::Source},
        *,
    };

    fn read(text: &str) -> Result<KeepTurns, String> {
        KeepTurns::read(&Given { raw: Raw::Text(text), source: Source::Default, base: Path::new("/"), home: None })
    }

    #[test]
    fn a_size_keeps_nothing_longer_than_no_setting_does() {
        assert_eq!(KeepTurns::default().at_most(), DAY * 30);
        assert_eq!(KeepTurns::UpTo(1).at_most(), DAY * 30);
        assert_eq!(KeepTurns::For(DAY * 90).at_most(), DAY * 90);
    }

    #[test]
    fn a_time_or_a_size() {
        assert_eq!(read("30d"), Ok(KeepTurns::default()));
        assert_eq!(read("12h"), Ok(KeepTurns::For(DAY / 2)));
        assert_eq!(read("500MB"), Ok(KeepTurns::UpTo(500_000_000)));
        assert_eq!(read("0B"), Ok(KeepTurns::UpTo(0)));
        for text in ["", "30", "0d", "366d", "-1d", "d", "for ever", "5 parsecs"] {
            assert!(read(text).is_err(), "{text}");
        }
        for text in ["30d", "1d", "12h", "500MB"] {
            assert_eq!(read(text).map(|keep| keep.to_string()), Ok(text.to_owned()));
        }
    }
}
