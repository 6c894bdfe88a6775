//! A command line, as shown to people.

/// Marks a line break in a command line.
const BREAK: &str = " ⏎ ";

/// A command line on one line, with a visible mark at each line break: two commands must not look like one.
#[must_use]
pub fn one_line(line: &str) -> String {
    line.lines().map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(BREAK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_lines_are_never_shown_as_one() {
        assert_eq!(one_line("make"), "make");
        assert_eq!(one_line("set -e\n\n  make test \n"), "set -e ⏎ make test");
    }
}
