//! A table in Markdown.

/// A table: a head, and rows of as many columns.
#[derive(Debug, Clone, Default)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Without a row yet.
    pub fn new<const COLUMNS: usize>(head: [&str; COLUMNS]) -> Table {
        Table { head: head.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    /// The same with a head whose length is known only now.
    pub fn of(head: Vec<String>) -> Table {
        Table { head, rows: Vec::new() }
    }

    /// One row more.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        // A bar would be the end of a column.
        self.rows.push(cells.into_iter().map(|cell| cell.replace('|', "\\|")).collect());
    }

    /// As Markdown, with columns that line up for whoever reads the source.
    pub fn text(&self) -> String {
        let wide = |text: &str| text.chars().count();
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column)).chain(self.head.get(column));
                cells.map(|cell| wide(cell)).max().unwrap_or(0).max(3)
            })
            .collect();
        let line = |cells: &[String]| {
            let padded =
                cells.iter().zip(&widths).map(|(cell, width)| format!(" {cell}{} ", " ".repeat(width - wide(cell))));
            format!("|{}|\n", padded.collect::<Vec<_>>().join("|"))
        };
        let rule: Vec<String> = widths
            .iter()
            .enumerate()
            .map(|(at, width)| if at == 0 { "-".repeat(*width) } else { format!("{}:", "-".repeat(width - 1)) })
            .collect();
        std::iter::once(&self.head).chain([&rule]).chain(&self.rows).map(|row| line(row)).collect()
    }
}
