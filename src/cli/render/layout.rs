//! Names in a column with their texts beside them, wrapped with a hanging indent.

use std::io::IsTerminal as _;

use clap::builder::styling::{AnsiColor, Effects, Style};

use super::live::{columns_of, wrap};

/// Good.
pub(super) const GREEN: Style = Style::new().fg_color(Some(clap::builder::styling::Color::Ansi(AnsiColor::Green)));
/// Worth a look.
pub(super) const YELLOW: Style = Style::new().fg_color(Some(clap::builder::styling::Color::Ansi(AnsiColor::Yellow)));
/// Bad.
pub(super) const RED: Style = Style::new().fg_color(Some(clap::builder::styling::Color::Ansi(AnsiColor::Red)));
/// Emphasis.
pub(super) const BOLD: Style = Style::new().effects(Effects::BOLD);
/// De-emphasis.
pub(super) const DIM: Style = Style::new().effects(Effects::DIMMED);

/// The width of output: that of a terminal, or none for a file or pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Width(Option<usize>);

impl Width {
    /// As wide as the terminal at standard output, if there is one.
    #[must_use]
    pub fn of_stdout() -> Self {
        let out = std::io::stdout();
        Self(out.is_terminal().then(|| columns_of(&out)))
    }

    /// As wide as the terminal at standard error, if there is one.
    #[must_use]
    pub fn of_stderr() -> Self {
        let out = std::io::stderr();
        Self(out.is_terminal().then(|| columns_of(&out)))
    }

    /// A number of columns; none for no limit.
    #[must_use]
    pub fn of(columns: Option<usize>) -> Self {
        Self(columns)
    }

    /// The columns, if there is a limit.
    #[must_use]
    pub fn columns(self) -> Option<usize> {
        self.0
    }

    /// A text in lines, each wrapped to the width that an indent leaves.
    pub(super) fn folded(self, text: &str, indent: usize) -> Vec<String> {
        let lines = text.lines();
        match self.0 {
            Some(columns) => {
                let most = columns.saturating_sub(indent).max(20);
                lines.flat_map(|line| wrap(line, most)).map(|line| line.trim_end().to_owned()).collect()
            }
            None => lines.map(|line| line.trim_end().to_owned()).collect(),
        }
    }
}

/// Lines that begin with a name.
pub(super) struct Fields {
    width: Width,
    /// Columns of the names.
    names: usize,
    text: String,
}

impl Fields {
    pub(super) fn new(width: Width, names: usize) -> Self {
        Self { width, names, text: String::new() }
    }

    /// A name and its text, wrapped beside it.
    pub(super) fn field(&mut self, name: &str, content: &str) {
        self.styled(name, Style::new(), content);
    }

    /// The same with a style for the name.
    pub(super) fn styled(&mut self, name: &str, style: Style, content: &str) {
        let indent = self.names + 1;
        let mut lines = self.width.folded(content, indent).into_iter();
        let first = lines.next().unwrap_or_default();
        let pad = self.names.saturating_sub(unicode_width::UnicodeWidthStr::width(name));
        self.push(&format!("{style}{name}{style:#}{:pad$} {first}", ""));
        for line in lines {
            self.push(&format!("{:indent$}{line}", ""));
        }
    }

    /// A name and a line that is cut to the width.
    pub(super) fn cut(&mut self, name: &str, style: Style, content: &str) {
        let most = self.width.columns().map_or(usize::MAX, |columns| columns.saturating_sub(self.names + 1));
        self.styled(name, style, &super::live::cut(content, most));
    }

    /// A name and a line that is not wrapped, so that it can be copied.
    pub(super) fn whole(&mut self, name: &str, content: &str) {
        self.push(&format!("{name:<names$} {content}", names = self.names));
    }

    /// Lines of output beside a bar, each cut to the width.
    pub(super) fn quoted<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        let indent = self.names + 1;
        for line in lines {
            let line = format!("{:indent$}│ {line}", "");
            let line = self.width.columns().map_or_else(|| line.clone(), |most| super::live::cut(&line, most));
            self.push(&format!("{DIM}{line}{DIM:#}"));
        }
    }

    /// A line as it is.
    pub(super) fn line(&mut self, line: &str) {
        self.push(line);
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_hangs_beside_its_name() {
        let told = |columns| {
            let mut fields = Fields::new(Width::of(columns), 6);
            fields.field("next", "one two three four five six seven\nand a line");
            fields.into_text()
        };
        assert_eq!(told(None), "next   one two three four five six seven\n       and a line\n");
        assert_eq!(told(Some(30)), "next   one two three four\n       five six seven\n       and a line\n");
    }
}
