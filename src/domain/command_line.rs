//! A command line as people are shown it.

/// Stands where a command line has a line break.
const BREAK: &str = " ⏎ ";

/// A command line on one line: where it has several, each break is to be seen, since two commands are not one.
#[must_use]
pub fn shown(line: &str) -> String {
    line.lines().map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(BREAK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_lines_are_never_shown_as_one() {
        assert_eq!(shown("make"), "make");
        assert_eq!(shown("set -e\n\n  make test \n"), "set -e ⏎ make test");
    }
}
