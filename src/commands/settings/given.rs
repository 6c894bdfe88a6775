//! A value from a file or a variable, and how to read it for a key.
//!
//! Every reader reports a wrong value with words that follow the key's name: `takes …, not …`.

use std::path::{Path, PathBuf};

use globset::Glob;
use toml::de::DeValue;

use super::{source::Source, units};
use crate::domain::{model::Route, money::Money, reasoning::Reasoning};

/// A value as it was written.
#[derive(Clone, Copy)]
pub(super) enum Raw<'a> {
    /// In a file.
    Toml(&'a DeValue<'a>),
    /// In an environment variable.
    Text(&'a str),
}

/// A value with where it was given.
pub(super) struct Given<'a> {
    pub(super) raw: Raw<'a>,
    pub(super) source: Source,
    /// Relative paths start here.
    pub(super) base: &'a Path,
    /// `~/` is this.
    pub(super) home: Option<&'a Path>,
}

impl Given<'_> {
    /// A text that is not blank and holds no control characters.
    pub(super) fn text(&self) -> Result<String, String> {
        let text = self.string().ok_or_else(|| format!("takes a text in quotes, not {}", self.quoted()))?;
        if text.trim().is_empty() {
            return Err("is empty; remove it, or give it a value".to_owned());
        }
        if text.chars().any(char::is_control) {
            return Err(format!("takes a text without control characters, not {}", self.quoted()));
        }
        Ok(text.to_owned())
    }

    /// A path: `~/` is the home directory; relative ones start at the file that names them, or where nisse was started.
    pub(super) fn path(&self) -> Result<PathBuf, String> {
        let text = self.text()?;
        match (text.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => Ok(home.join(rest)),
            (Some(_), None) => Err("starts with ~/, but no home directory is known".to_owned()),
            (None, _) => Ok(self.base.join(text)),
        }
    }

    /// A path: `~/` is the home directory; relative ones start at the checkout of the task, wherever they were given.
    pub(super) fn path_from_checkout(&self) -> Result<PathBuf, String> {
        let text = self.text()?;
        if text.starts_with("~/") { self.path() } else { Ok(PathBuf::from(text)) }
    }

    /// A whole number from 1.
    pub(super) fn count(&self) -> Result<u64, String> {
        match self.raw {
            Raw::Text(text) => units::count(text),
            Raw::Toml(value) => value
                .as_integer()
                .and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok())
                .filter(|number| *number > 0)
                .ok_or_else(|| format!("takes a whole number of at least 1, not {}", self.quoted())),
        }
    }

    /// A whole number from 1 that fits 32 bits.
    pub(super) fn small_count(&self) -> Result<u32, String> {
        u32::try_from(self.count()?)
            .map_err(|_| format!("takes a whole number up to {}, not {}", u32::MAX, self.quoted()))
    }

    /// `true` or `false`.
    pub(super) fn switch(&self) -> Result<bool, String> {
        let read = match self.raw {
            Raw::Text(text) => text.parse().ok(),
            Raw::Toml(value) => value.as_bool(),
        };
        read.ok_or_else(|| format!("takes true or false, not {}", self.quoted()))
    }

    /// A duration.
    pub(super) fn duration(&self) -> Result<std::time::Duration, String> {
        match self.string() {
            Some(text) => units::duration(text),
            None => Err(format!("takes a duration in quotes such as \"15m\", not {}", self.quoted())),
        }
    }

    /// A size in bytes.
    pub(super) fn size(&self) -> Result<u64, String> {
        match self.string() {
            Some(text) => units::size(text),
            None => Err(format!("takes a size in quotes such as \"50MB\", not {}", self.quoted())),
        }
    }

    /// An amount of US dollars above zero.
    pub(super) fn money(&self) -> Result<Money, String> {
        match (self.string(), self.number()) {
            (Some(text), _) => units::money(text),
            (None, Some(usd)) => Money::from_usd(usd)
                .filter(|money| *money > Money(0))
                .ok_or_else(|| format!("takes an amount in US dollars above 0, not {}", self.quoted())),
            (None, None) => Err(format!("takes an amount in US dollars such as 2.50, not {}", self.quoted())),
        }
    }

    /// A price per token in US dollars; 0 for what costs nothing.
    pub(super) fn price(&self) -> Result<Money, String> {
        self.number()
            .and_then(Money::from_usd)
            .ok_or_else(|| format!("takes a price in US dollars a token such as 0.000003, not {}", self.quoted()))
    }

    /// A model's route.
    pub(super) fn route(&self) -> Result<Route, String> {
        match self.string() {
            Some("native") => Ok(Route::Native),
            Some("normalized") => Ok(Route::Normalized),
            Some(_) | None => Err(format!("takes \"native\" or \"normalized\", not {}", self.quoted())),
        }
    }

    /// How much a model is asked to reason.
    pub(super) fn reasoning(&self) -> Result<Reasoning, String> {
        let given = self.string();
        Reasoning::ALL
            .into_iter()
            .find(|effort| given == Some(effort.as_str()))
            .ok_or_else(|| format!("takes \"off\", \"low\", \"medium\" or \"high\", not {}", self.quoted()))
    }

    /// A list of texts that are not blank; in a variable, one per line.
    pub(super) fn list(&self) -> Result<Vec<String>, String> {
        let wrong = || format!("takes a list of texts, not {}", self.quoted());
        let items: Vec<String> = match self.raw {
            Raw::Text(text) => text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect(),
            Raw::Toml(DeValue::Array(items)) => {
                let texts: Option<Vec<_>> =
                    items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect();
                texts.ok_or_else(wrong)?
            }
            Raw::Toml(
                DeValue::String(_)
                | DeValue::Integer(_)
                | DeValue::Float(_)
                | DeValue::Boolean(_)
                | DeValue::Datetime(_)
                | DeValue::Table(_),
            ) => return Err(wrong()),
        };
        match items.iter().find(|item| item.trim().is_empty() || item.contains('\0')) {
            Some(item) => Err(format!("has {item:?}, which is empty or contains a NUL character")),
            None => Ok(items),
        }
    }

    /// A list of globs.
    pub(super) fn globs(&self) -> Result<Vec<String>, String> {
        let globs = self.list()?;
        for glob in &globs {
            Glob::new(glob).map_err(|error| format!("has {glob:?}, which is not a glob: {}", error.kind()))?;
        }
        Ok(globs)
    }

    /// A list of names of environment variables that commands may see; none of nisse's own.
    pub(super) fn variable_names(&self) -> Result<Vec<String>, String> {
        let names = self.list()?;
        for name in &names {
            if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return Err(format!("has {name:?}, which is not a variable name"));
            }
            if name.starts_with("NISSE_") {
                return Err(format!("has {name}, but no command sees nisse's own variables"));
            }
        }
        Ok(names)
    }

    /// The text, where it is one.
    pub(super) fn string(&self) -> Option<&str> {
        match self.raw {
            Raw::Text(text) => Some(text),
            Raw::Toml(value) => value.as_str(),
        }
    }

    fn number(&self) -> Option<f64> {
        match self.raw {
            Raw::Text(text) => text.parse().ok(),
            Raw::Toml(value) => match (value.as_float(), value.as_integer()) {
                (Some(float), _) => float.as_str().parse().ok(),
                (None, Some(integer)) => integer.as_str().parse().ok(),
                (None, None) => None,
            },
        }
    }

    /// The value for an error: escaped and bounded, because a repository may have written it.
    pub(super) fn quoted(&self) -> String {
        match self.raw {
            Raw::Text(text) => format!("{:?}", bounded(text)),
            Raw::Toml(value) => match value {
                DeValue::String(text) => format!("{:?}", bounded(text)),
                DeValue::Integer(number) => format!("the number {}", bounded(number.as_str())),
                DeValue::Float(number) => format!("the number {}", bounded(number.as_str())),
                DeValue::Boolean(switch) => switch.to_string(),
                DeValue::Datetime(_) => "a date".to_owned(),
                DeValue::Array(_) => "a list".to_owned(),
                DeValue::Table(_) => "a section".to_owned(),
            },
        }
    }
}

fn bounded(text: &str) -> String {
    let mut shown: String = text.chars().take(60).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
