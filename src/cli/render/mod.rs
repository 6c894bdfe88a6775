//! What people see. Only here is anything printed.

pub mod doctor;
pub mod models;
mod table;

/// `text` without control characters: much of it was written by others, and must not steer a terminal.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
