//! Columns of text, as wide as necessary, with no row wider than the screen.

use unicode_width::UnicodeWidthStr as _;

use super::{Width, layout::BOLD, live::cut};

/// Rows under a header. The last column is not padded, so that no line ends in spaces.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

/// The minimum width of a cell that is cut.
const LEAST: usize = 8;

impl Table {
    pub(super) fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(|&title| title.to_owned()).collect()] }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table as text. If it is too wide, the columns in `giving` become narrower, in that order.
    pub(super) fn within(&self, width: Width, giving: &[usize]) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
        let mut widths: Vec<usize> = (0..columns).map(|column| widest(column).unwrap_or(0)).collect();
        if let Some(most) = width.columns() {
            for column in giving {
                let over = (widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1)).saturating_sub(most);
                if let Some(width) = widths.get_mut(*column) {
                    *width = (*width).min(width.saturating_sub(over).max(LEAST));
                }
            }
        }
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| {
                let cell = cut(cell, *width);
                format!("{cell}{:pad$}", "", pad = width.saturating_sub(cell.width()))
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let mut lines = self.rows.iter().map(line);
        let header = lines.next().unwrap_or_default();
        let rows: String = lines.map(|line| line + "\n").collect();
        format!("{BOLD}{header}{BOLD:#}\n{rows}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_column_that_gives_gives_first() {
        let mut table = Table::new(&["A", "B"]);
        table.row(vec!["alias-of-a-model".into(), "a model with a name".into()]);
        let text = |columns| anstream::adapter::strip_str(&table.within(Width::of(columns), &[1, 0])).to_string();
        assert_eq!(text(None), "A                 B\nalias-of-a-model  a model with a name\n");
        assert_eq!(text(Some(30)), "A                 B\nalias-of-a-model  a model wit…\n");
        assert_eq!(text(Some(20)), "A           B\nalias-of-…  a model…\n");
    }
}
