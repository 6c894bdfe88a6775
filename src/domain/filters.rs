//! Content filters (Git LFS, git-crypt and the like): programs between files and what is committed.
//!
//! Filters run as they were configured before the task began: without them, secrets would be committed in the clear. One
//! configured later may come from a command, and is disabled.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parts of a filter that git looks at.
const PARTS: [&str; 4] = ["clean", "smudge", "process", "required"];

/// Content filters by name, each with its settings.
/// Stored as the settings that define them: `filter.lfs.clean=git-lfs clean -- %f`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(into = "Vec<String>", try_from = "Vec<String>")]
#[schemars(with = "Vec<String>")]
pub struct Filters(BTreeMap<String, BTreeMap<String, String>>);

impl From<Filters> for Vec<String> {
    fn from(filters: Filters) -> Self {
        let settings = |(name, parts): (&String, &BTreeMap<String, String>)| {
            parts.iter().map(|(part, value)| format!("filter.{name}.{part}={value}")).collect::<Vec<_>>()
        };
        filters.0.iter().flat_map(settings).collect()
    }
}

impl TryFrom<Vec<String>> for Filters {
    type Error = String;

    fn try_from(settings: Vec<String>) -> Result<Self, String> {
        let mut filters = Self::default();
        for setting in settings {
            // a filter's name may contain an equals sign, a part cannot: the first one after a part ends the key
            let ends = setting.match_indices('=').map(|(at, _)| at);
            let key = ends.into_iter().find_map(|at| filter_of(&setting[..at]).map(|key| (at, key)));
            let Some((at, (name, part))) = key else { return Err(format!("`{setting}` is no setting of a filter")) };
            filters.0.entry(name.to_owned()).or_default().insert(part.to_owned(), setting[at + 1..].to_owned());
        }
        Ok(filters)
    }
}

impl Filters {
    /// The filters of a configuration, in which later entries win.
    #[must_use]
    pub fn configured<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut filters = Self::default();
        for (key, value) in entries {
            if let Some((name, part)) = filter_of(key) {
                filters.0.entry(name.to_owned()).or_default().insert(part.to_owned(), value.to_owned());
            }
        }
        filters
    }

    /// The same, and whatever else is configured by now (names with a part of theirs) switched off. The error names a
    /// filter that cannot be had as it was: it has become a long-running process, which no setting takes back.
    pub fn and_no_other(&self, now: impl IntoIterator<Item = (String, String)>) -> Result<Self, String> {
        let mut all = self.clone();
        for (name, part) in now {
            match self.0.get(&name) {
                Some(parts) if part == "process" && !parts.contains_key("process") => return Err(name),
                Some(_) => {}
                None => drop(all.0.entry(name).or_insert_with(|| [("process".to_owned(), String::new())].into())),
            }
        }
        Ok(all)
    }

    /// The settings that make git use exactly these filters.
    pub fn settings(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().flat_map(|(name, parts)| {
            PARTS.iter().filter_map(move |part| {
                let unset = match *part {
                    // even an empty one would disable `clean` and `smudge`
                    "process" => None,
                    "required" => Some("false"),
                    _ => Some(""),
                };
                let value = parts.get(*part).map(String::as_str).or(unset)?;
                Some((format!("filter.{name}.{part}"), value.to_owned()))
            })
        })
    }

    /// The programs of a filter that must not be left out; none for one that may.
    #[must_use]
    pub fn needed(&self, name: &str) -> Vec<&str> {
        let Some(parts) = self.0.get(name) else { return Vec::new() };
        let off = ["", "false", "no", "off", "0"];
        let required = parts.get("required").is_some_and(|value| !off.contains(&value.to_ascii_lowercase().as_str()));
        let commands = match parts.get("process").filter(|command| !command.is_empty()) {
            Some(process) => vec![process],
            None => ["clean", "smudge"].iter().filter_map(|part| parts.get(*part)).collect(),
        };
        commands.into_iter().filter(|_| required).filter_map(|command| program(command)).collect()
    }

    /// Whether a filter goes by that name.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

/// The filter that a configuration key (`filter.lfs.clean`) is about, and which part of it.
#[must_use]
pub fn filter_of(key: &str) -> Option<(&str, &str)> {
    let rest = key.strip_prefix("filter.")?;
    rest.rsplit_once('.').filter(|(_, part)| PARTS.contains(part))
}

/// The filters that an attributes file asks for.
#[must_use]
pub fn asked_for(attributes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(attributes);
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.flat_map(str::split_whitespace).filter_map(|word| word.strip_prefix("filter=")).map(str::to_owned).collect()
}

/// The program that a command line starts, if that is clear.
fn program(command: &str) -> Option<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-');
    command.split_whitespace().next().filter(|word| word.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filters_name_may_hold_dots() {
        assert_eq!(filter_of("filter.a.b.clean"), Some(("a.b", "clean")));
        assert_eq!(filter_of("filter.lfs.process"), Some(("lfs", "process")));
        assert_eq!(filter_of("user.name"), None);
        assert_eq!(filter_of("filter.lfs.locksverify"), None);
    }

    #[test]
    fn a_filter_is_what_it_was_and_another_is_nothing() {
        let began = Filters::configured([("filter.tidy.clean", "old"), ("filter.tidy.clean", "tidy")]);
        let now = |name: &str, part: &str| (name.to_owned(), part.to_owned());
        let settings: Vec<_> =
            began.and_no_other([now("tidy", "smudge"), now("evil", "clean")]).unwrap().settings().collect();
        let value = |key: &str| settings.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        assert_eq!(value("filter.tidy.clean"), Some("tidy"));
        assert_eq!((value("filter.tidy.smudge"), value("filter.tidy.process")), (Some(""), None));
        assert_eq!(value("filter.evil.process"), Some(""));
        assert_eq!((value("filter.evil.clean"), value("filter.evil.required")), (Some(""), Some("false")));
        assert_eq!(began.and_no_other([now("tidy", "process")]), Err("tidy".to_owned()));
    }

    #[test]
    fn filters_are_stored_as_their_settings() {
        let filters = Filters::configured([("filter.a=b.c.clean", "sed s/x=y/z/"), ("filter.lfs.required", "true")]);
        let stored: Vec<String> = filters.clone().into();
        assert_eq!(stored, ["filter.a=b.c.clean=sed s/x=y/z/", "filter.lfs.required=true"]);
        assert_eq!(Filters::try_from(stored), Ok(filters));
        assert!(Filters::try_from(vec!["user.name=x".to_owned()]).is_err());
    }

    #[test]
    fn only_a_required_filters_programs_are_needed() {
        let filters = Filters::configured([
            ("filter.lfs.process", "git-lfs filter-process"),
            ("filter.lfs.required", "true"),
            ("filter.tidy.clean", "tidy"),
            ("filter.odd.clean", "\"/a b/c\" clean"),
            ("filter.odd.required", "true"),
        ]);
        assert_eq!(filters.needed("lfs"), ["git-lfs"]);
        assert!(filters.needed("tidy").is_empty() && filters.needed("odd").is_empty());
    }

    #[test]
    fn attributes_ask_for_filters() {
        let attributes = b"*.bin filter=lfs diff=lfs -text\n# *.x filter=no\n*.c filter=tidy\n*.y -filter";
        assert_eq!(asked_for(attributes), ["lfs", "tidy"]);
    }
}
