//! The catalog as a table: unknown is `?`, and what differs or is missing stands below.

use std::fmt::Write as _;

use super::{plain, table::Table};
use crate::{
    commands::models::{Report, Row},
    domain::reasoning::Reasoning,
};

/// The whole report as text.
#[must_use]
pub fn text(report: &Report) -> String {
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
        "$/M IN",
        "$/M OUT",
        "$/M CACHE R/W",
        "ROLES",
    ]);
    for row in &report.models {
        table.row(cells(row));
    }
    let mut text = if report.models.is_empty() {
        format!("{} offers no model to this key\n", plain(&report.proxy))
    } else {
        table.to_string()
    };
    let mut notes: Vec<String> = report.notes.iter().map(|note| plain(note)).collect();
    for row in &report.models {
        let alias = plain(&row.alias);
        notes.extend(row.notes.iter().map(|note| format!("{alias}: {}", plain(note))));
        if !row.fallbacks.is_empty() {
            notes.push(format!("{alias}: the proxy falls back to {}", plain(&row.fallbacks.join(", "))));
        }
    }
    for missing in &report.missing {
        let near =
            if missing.near.is_empty() { String::new() } else { format!("; near it are {}", missing.near.join(", ")) };
        notes.push(plain(&format!(
            "role {} (from {}): the proxy offers no model {:?} to this key{near}",
            missing.role, missing.source, missing.alias
        )));
    }
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in notes {
        let _ = writeln!(text, "! {note}");
    }
    text
}

fn cells(row: &Row) -> Vec<String> {
    let told = |value: Option<String>| value.map_or_else(|| "?".to_owned(), |value| plain(&value));
    let ability = |value: Option<bool>| told(value.map(|can| if can { "yes" } else { "no" }.to_owned()));
    let price = |value: Option<f64>| told(value.map(|usd| format!("{:.2}", usd * 1e6)));
    let cached = match (row.cache_read_cost_per_token, row.cache_write_cost_per_token) {
        (None, None) => "?".to_owned(),
        (read, write) => format!("{}/{}", price(read), price(write)),
    };
    let roles: Vec<&str> = row.roles.iter().map(|role| role.as_str()).collect();
    vec![
        plain(&row.alias),
        told(row.backing.clone()),
        told(row.provider.clone()),
        told(row.route.map(|route| route.to_string())),
        told(row.max_input_tokens.map(|limit| limit.to_string())),
        told(row.max_output_tokens.map(|limit| limit.to_string())),
        ability(row.tools),
        ability(row.tool_choice),
        reasoning(row),
        price(row.input_cost_per_token),
        price(row.output_cost_per_token),
        cached,
        roles.join(" "),
    ]
}

/// Whether it can, and how much it is asked to.
fn reasoning(row: &Row) -> String {
    match (row.reasoning_effort, row.reasoning) {
        (Reasoning::Off, Some(true)) => "yes".to_owned(),
        (Reasoning::Off, Some(false)) => "no".to_owned(),
        (Reasoning::Off, None) => "?".to_owned(),
        (effort, _) => effort.to_string(),
    }
}
