//! `nisse init`: writes the settings files, but never changes an existing one.
//!
//! It writes the two commented samples under `examples/`: the user's own, filled in with the proxy's address, a model and
//! the list of the others, and the repository's unchanged. Neither runs anything by itself.

use std::{
    fmt::Write as _,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Error,
    models::{self, Row},
    open::for_git,
    settings::{Environment, Flags, Settings},
};
use crate::{
    domain::role::RoleName,
    repo::{self, Checkout},
};

/// The sample of the user's file.
const OWN: &str = include_str!("../../examples/config.toml");
/// The repository's.
const PROJECT: &str = include_str!("../../examples/nisse.toml");

/// What exists, and what the proxy offers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Found {
    own: Option<PathBuf>,
    project: Option<PathBuf>,
    address: Option<String>,
    /// The models that could do a task.
    pub offered: Vec<Row>,
    /// The model for the delegate, if that is clear.
    pub model: Option<String>,
    notes: Vec<String>,
}

/// What was written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// Version of this object's form.
    #[schemars(extend("const" = 1))]
    v: u32,
    /// `init`.
    #[schemars(extend("const" = "init"))]
    r#type: &'static str,
    /// Your own file, then the repository's, if there is a place for them.
    pub files: Vec<File>,
    /// The model of the role delegate in your own file, if one was filled in.
    pub model: Option<String>,
    /// What was not filled in, and why.
    pub notes: Vec<String>,
}

/// A settings file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct File {
    /// Where.
    pub path: String,
    /// Whether it was written; if not, it existed and is unchanged.
    pub written: bool,
}

/// Finds out what exists, and asks the proxy for its models if its address is known and they are needed.
///
/// # Errors
/// The environment holds a setting that is wrong, or there is no such directory.
pub async fn gather(environment: &Environment, flags: &Flags, directory: &Path) -> Result<Found, Error> {
    let settings = Settings::load_without_own_file(environment, flags)?;
    let mut found = Found { own: settings.config_file.clone(), ..Found::default() };
    match Checkout::open(directory, &for_git(environment)) {
        Ok(checkout) => found.project = Some(checkout.root().join("nisse.toml")),
        // who named it by mistake is not served by half of what they wanted
        Err(error @ repo::Error::NoDirectory { .. }) => return Err(error.into()),
        Err(error) => found.notes.push(format!("did not write nisse.toml: {error}")),
    }
    match &found.own {
        Some(own) if own.is_dir() => {
            return Err(Error::Unwritten { path: own.clone(), source: io::ErrorKind::IsADirectory.into() });
        }
        Some(own) if own.symlink_metadata().is_ok() => return Ok(found),
        Some(_) => {}
        None => {
            found
                .notes
                .push("did not write your own settings file: this system has no directory for it; name the file with --config".into());
            return Ok(found);
        }
    }
    found.address.clone_from(&settings.proxy.base_url.value);
    match models::models(&settings, environment, None).await {
        Ok(report) => found.take(report, &settings),
        Err(error) => {
            let why = super::advice(&error).map_or_else(String::new, |advice| format!(" ({advice})"));
            found.model = settings.roles.get(&RoleName::Delegate).map(|alias| alias.value.clone());
            found.notes.push(match &found.model {
                Some(named) => format!("filled in {named}, but could not check that the proxy offers it: {error}{why}"),
                None => format!("did not fill in a model: {error}{why}"),
            });
        }
    }
    Ok(found)
}

impl Found {
    /// A model is clear if the user has named it, or there is only one.
    fn take(&mut self, report: models::Report, settings: &Settings) {
        let named = settings.roles.get(&RoleName::Delegate).map(|alias| &alias.value);
        if let Some(named) = named.filter(|named| !report.models.iter().any(|row| row.alias == **named)) {
            self.notes.push(format!("filled in {named}, but the proxy does not offer it to your key"));
        }
        self.offered = report.models.into_iter().filter(Row::could_do_a_task).collect();
        self.model = match (named, self.offered.as_slice()) {
            (Some(named), _) => Some(named.clone()),
            (None, [one]) => Some(one.alias.clone()),
            (None, _) => None,
        };
    }
}

/// Writes the files that do not exist.
///
/// # Errors
/// One cannot be written.
pub fn write(found: Found) -> Result<Report, Error> {
    let mut files = Vec::new();
    let mut file = |path: &Option<PathBuf>, text: &str, mode| -> Result<bool, Error> {
        let Some(path) = path else { return Ok(false) };
        let written = create(path, text, mode)?;
        files.push(File { path: path.display().to_string(), written });
        Ok(written)
    };
    let wrote_own = file(&found.own, &own_text(&found), 0o600)?;
    file(&found.project, PROJECT, 0o666)?;
    let mut notes = found.notes;
    if wrote_own && found.model.is_none() && !found.offered.is_empty() {
        notes.push("the proxy offers several models; set roles.delegate in your file to one of them".to_owned());
    }
    Ok(Report { v: 1, r#type: "init", files, model: found.model.filter(|_| wrote_own), notes })
}

/// Creates the file, complete and synced; false if it exists.
fn create(path: &Path, text: &str, mode: u32) -> Result<bool, Error> {
    let failed = |source| Error::Unwritten { path: path.to_owned(), source };
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    }
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    match file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
        Ok(()) => Ok(true),
        Err(error) => {
            // a partial file would be taken for the user's own
            let _ = fs::remove_file(path);
            Err(failed(error))
        }
    }
}

/// The user's file, filled in with what is known; the rest stays a comment.
fn own_text(found: &Found) -> String {
    let priced = |row: &Row| row.input_cost_per_token.is_some() && row.output_cost_per_token.is_some();
    let chosen = found.model.as_ref().and_then(|alias| found.offered.iter().find(|row| row.alias == *alias));
    let mut text = String::new();
    for line in OWN.lines() {
        let line = match (line.split(" = ").next(), &found.address, &found.model) {
            (Some("base_url"), Some(address), _) => with_value(line, address),
            (Some("delegate"), _, Some(model)) => with_value(line, model),
            // a cost cap needs prices
            (Some("max_cost"), ..) if chosen.is_some_and(priced) => line.to_owned(),
            (Some("delegate" | "max_cost"), ..) => format!("# {}", line.replacen("   #", " #", 1)),
            _ => line.to_owned(),
        };
        if line == "[roles]" {
            tell_offers(&mut text, &found.offered);
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// A line of the sample with another value; its comment stays in its column, if there is room.
fn with_value(line: &str, value: &str) -> String {
    let key = line.split(" = ").next().unwrap_or(line);
    let set = format!("{key} = {}", quoted(value));
    match line.split_once(" # ") {
        Some((before, comment)) => format!("{set:<width$} # {comment}", width = before.len()),
        None => set,
    }
}

fn tell_offers(text: &mut String, offered: &[Row]) {
    if offered.is_empty() {
        return;
    }
    text.push_str("# When nisse wrote this file, the proxy offered your key:\n");
    for row in offered {
        // quoted, because an alias comes from outside and could end the comment
        let window =
            row.max_input_tokens.map_or_else(|| "window unknown".to_owned(), |tokens| format!("{tokens} tokens"));
        let _ = writeln!(text, "#   {}, {window}", quoted(&row.alias));
    }
}

/// A string as TOML has it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_that_is_filled_in_is_in_the_sample() {
        for key in ["base_url", "delegate", "max_cost"] {
            let lines = OWN.lines().filter(|line| line.starts_with(&format!("{key} = "))).count();
            assert_eq!(lines, 1, "{key}");
        }
        assert_eq!(OWN.lines().filter(|line| *line == "[roles]").count(), 1);
        // and what is left out keeps its comment in its column
        let column = |line: &str| line.rfind(" # NISSE_");
        let columns: Vec<_> = OWN.lines().filter(|line| line.starts_with("# max_")).map(column).collect();
        let left_out = own_text(&Found::default());
        let cost = left_out.lines().find(|line| line.starts_with("# max_cost")).unwrap();
        assert!(columns.contains(&column(cost)), "{cost}");
    }

    #[test]
    fn what_others_wrote_stays_a_word() {
        let odd = "a\"\n[proxy]\ntoken_command = \"x";
        let found = Found { model: Some(odd.to_owned()), address: Some("http://p".to_owned()), ..Found::default() };
        let table: toml::Table = own_text(&found).parse().unwrap();
        assert_eq!(table["roles"]["delegate"].as_str(), Some(odd));
        assert_eq!(table["proxy"].as_table().unwrap().keys().collect::<Vec<_>>(), ["base_url"]);
    }
}
