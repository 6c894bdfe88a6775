//! The list of models: a line for each alias that could do a task, models of roles first, `?` for what is unknown, and
//! notes below. With `-v` every column.

use std::fmt::Write as _;

use super::{
    Width,
    layout::{BOLD, Fields, YELLOW},
    plain,
    table::Table,
};
use crate::{
    commands::{
        models::{Report, Row},
        quoted,
    },
    domain::{
        amount::{counted, short},
        reasoning::Reasoning,
    },
};

/// How much of the list is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Detail {
    /// Show models that are declared unable to do a task.
    pub all: bool,
    /// Every column.
    pub columns: bool,
}

/// The whole report as text.
#[must_use]
pub fn text(report: &Report, detail: Detail, width: Width) -> String {
    let mut rows: Vec<&Row> = report.models.iter().filter(|row| detail.all || row.could_do_a_task()).collect();
    // stable: else in the proxy's order
    rows.sort_by_key(|row| (row.roles.is_empty(), row.tools != Some(true)));
    let hidden = report.models.len() - rows.len();
    let mut text = if report.models.is_empty() {
        let what = report.filter.as_ref().map_or_else(String::new, |filter| format!(" with {filter:?} in its name"));
        format!("{} offers no model{} to this key\n", plain(&report.proxy), plain(&what))
    } else if rows.is_empty() {
        String::new()
    } else if detail.columns {
        let mut table = Table::new(&[
            "ALIAS",
            "MODEL",
            "PROVIDER",
            "ROUTE",
            "WINDOW",
            "OUTPUT",
            "TOOLS",
            "TOOL CHOICE",
            "REASONING",
            "$/M IN/OUT",
            "$/M CACHE R/W",
            "ROLES",
        ]);
        for row in &rows {
            table.row(every_cell(row));
        }
        table.within(width, &[1, 0, 2])
    } else {
        let mut table = Table::new(&["ALIAS", "MODEL", "WINDOW", "OUTPUT", "$/M", "TOOLS", "ROLES"]);
        for row in &rows {
            table.row(cells(row));
        }
        table.within(width, &[1, 0, 6])
    };
    let mut notes = Fields::new(width, 1);
    for note in &report.notes {
        notes.styled("!", YELLOW, &plain(note));
    }
    for row in rows {
        let alias = plain(&row.alias);
        for note in &row.notes {
            notes.styled("!", YELLOW, &format!("{alias}: {}", plain(note)));
        }
        if !row.fallbacks.is_empty() {
            notes.styled(
                "!",
                YELLOW,
                &format!("{alias}: the proxy falls back to {}", plain(&row.fallbacks.join(", "))),
            );
        }
    }
    for missing in &report.missing {
        let near = if missing.near.is_empty() {
            String::new()
        } else {
            format!("; similar names: {}", missing.near.join(", "))
        };
        let note = format!(
            "role {} (from {}): the proxy offers no model {:?} to this key{near}",
            missing.role, missing.source, missing.alias
        );
        notes.styled("!", YELLOW, &plain(&note));
    }
    if hidden > 0 {
        let more = counted(hidden as u64, "more model");
        let filter = report.filter.as_ref().map_or_else(String::new, |filter| format!("{} ", quoted(filter)));
        notes.styled("…", BOLD, &format!("{more} without tools: nisse models {}--all", plain(&filter)));
    }
    let notes = notes.into_text();
    if !notes.is_empty() {
        let apart = if text.is_empty() { "" } else { "\n" };
        let _ = write!(text, "{apart}{notes}");
    }
    text
}

fn or_unknown(value: Option<String>) -> String {
    value.map_or_else(|| "?".to_owned(), |value| plain(&value))
}

fn ability(value: Option<bool>) -> String {
    or_unknown(value.map(|can| if can { "yes" } else { "no" }.to_owned()))
}

fn cells(row: &Row) -> Vec<String> {
    // the provider prefix does not distinguish models
    let short_name = |name: &String| {
        let prefix = format!("{}/", row.provider.as_deref().unwrap_or_default());
        name.strip_prefix(&prefix).unwrap_or(name).to_owned()
    };
    vec![
        plain(&row.alias),
        or_unknown(row.backing.as_ref().map(short_name)),
        or_unknown(row.max_input_tokens.map(size)),
        or_unknown(row.max_output_tokens.map(size)),
        prices(row.input_cost_per_token, row.output_cost_per_token),
        ability(row.tools),
        roles(row),
    ]
}

fn every_cell(row: &Row) -> Vec<String> {
    vec![
        plain(&row.alias),
        or_unknown(row.backing.clone()),
        or_unknown(row.provider.clone()),
        or_unknown(row.route.map(|route| route.to_string())),
        or_unknown(row.max_input_tokens.map(|limit| limit.to_string())),
        or_unknown(row.max_output_tokens.map(|limit| limit.to_string())),
        ability(row.tools),
        ability(row.tool_choice),
        reasoning(row),
        prices(row.input_cost_per_token, row.output_cost_per_token),
        prices(row.cache_read_cost_per_token, row.cache_write_cost_per_token),
        roles(row),
    ]
}

fn roles(row: &Row) -> String {
    row.roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(" ")
}

/// A number of tokens as models are advertised: both 131,072 and 128,000 are 128k.
fn size(tokens: u64) -> String {
    let by_1024 = !tokens.is_multiple_of(1000) && tokens.is_multiple_of(1024);
    short(if by_1024 && tokens < 1 << 20 { tokens / 1024 * 1000 } else { tokens })
}

/// Two prices of a million tokens, in dollars: `3/15`, `0.15/0.6`, `?` if unknown.
fn prices(first: Option<f64>, second: Option<f64>) -> String {
    // at most four decimals, without trailing zeros
    let price = |usd: f64| {
        let text = format!("{:.4}", usd * 1e6);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match (first, second) {
        (None, None) => "?".to_owned(),
        (first, second) => format!("${}/{}", or_unknown(first.map(price)), or_unknown(second.map(price))),
    }
}

/// Whether it can reason, and the effort that is set.
fn reasoning(row: &Row) -> String {
    match (row.reasoning_effort, row.reasoning) {
        (Reasoning::Off, Some(true)) => "yes".to_owned(),
        (Reasoning::Off, Some(false)) => "no".to_owned(),
        (Reasoning::Off, None) => "?".to_owned(),
        (effort, _) => effort.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_that_models_are_known_by() {
        let sizes = [131_072, 128_000, 200_000, 8192, 1_048_576, 10_922];
        assert_eq!(sizes.map(size), ["128k", "128k", "200k", "8k", "1M", "11k"]);
    }

    #[test]
    fn prices_are_short() {
        assert_eq!(prices(Some(3e-6), Some(15e-6)), "$3/15");
        assert_eq!(prices(Some(0.15e-6), Some(0.6e-6)), "$0.15/0.6");
        assert_eq!(prices(Some(0.0), None), "$0/?");
        assert_eq!(prices(None, None), "?");
    }
}
