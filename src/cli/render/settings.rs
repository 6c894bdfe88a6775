//! The results of `nisse init` and `nisse trust`, for people.

use std::path::Path;

use super::{
    Width,
    layout::{Fields, GREEN, YELLOW},
    plain,
};
use crate::commands::{init, quoted, trust};

/// Columns of the names of settings.
pub(super) const NAMES: usize = 15;

/// What `nisse init` wrote, and what to do next; `config` is the file that --config named.
#[must_use]
pub fn written(report: &init::Report, config: Option<&Path>, width: Width) -> String {
    let mut fields = Fields::new(width, 6);
    for file in &report.files {
        if file.written {
            fields.styled("wrote", GREEN, &plain(&file.path));
        } else {
            fields.field("kept", &format!("{} (it existed already)", plain(&file.path)));
        }
    }
    if let Some(model) = &report.model {
        fields.field("model", &format!("{} for the role delegate", plain(model)));
    }
    for note in &report.notes {
        fields.styled("note", YELLOW, &plain(note));
    }
    let named =
        config.map_or_else(String::new, |path| format!(" --config {}", quoted(&plain(&path.display().to_string()))));
    fields.whole("next", &format!("nisse doctor{named}"));
    fields.into_text()
}

/// What `nisse trust` trusts or no longer trusts.
#[must_use]
pub fn trust(report: &trust::Report, width: Width) -> String {
    let mut fields = Fields::new(width, NAMES);
    let path = plain(&report.path);
    let how = if report.trusted { "trusted until it changes" } else { "not trusted" };
    fields.line(&format!("{how}: {path}"));
    for line in effects(report) {
        fields.field(line.0, &line.1);
    }
    if report.effects.is_empty() {
        fields.line("it contains nothing that needs trust: no checks, no setup command, no copies");
    }
    fields.into_text()
}

/// The settings in the file that need trust, and their values.
pub(super) fn effects(report: &trust::Report) -> impl Iterator<Item = (&'static str, String)> {
    report.effects.iter().flat_map(|effect| {
        // an empty list counts too: it overrides the user's own
        let none = effect.values.is_empty().then(|| (effect.key, "(none)".to_owned()));
        none.into_iter().chain(effect.values.iter().map(|value| (effect.key, plain(value))))
    })
}
