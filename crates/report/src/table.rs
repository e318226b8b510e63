//! Tables and paragraphs of plain text.

/// How a piece of text is meant; shown only in colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paint {
    /// As it is.
    #[default]
    Plain,
    /// Of first importance.
    Bold,
    /// Of second importance.
    Dim,
    /// As it should be.
    Good,
    /// To be checked.
    Warn,
    /// As it should not be.
    Bad,
}

impl Paint {
    /// The text with its escape sequences, if colours may be used.
    pub fn on(self, text: &str, color: bool) -> String {
        let code = match self {
            Paint::Plain => return text.to_owned(),
            _ if !color => return text.to_owned(),
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Good => "32",
            Paint::Warn => "33",
            Paint::Bad => "1;31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// A table; the first column is flush left, all others flush right.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<(Paint, Vec<String>)>,
    left: Vec<usize>,
}

impl Table {
    /// With a row of headings.
    pub fn new(headings: &[&str]) -> Self {
        let mut table = Table { rows: Vec::new(), left: vec![0] };
        table.row(Paint::Dim, headings.iter().map(|text| (*text).to_owned()).collect());
        table
    }

    /// Makes a column flush left.
    pub fn left(mut self, column: usize) -> Self {
        self.left.push(column);
        self
    }

    /// Adds a row.
    pub fn row(&mut self, paint: Paint, cells: Vec<String>) {
        self.rows.push((paint, cells));
    }

    /// The table, each line indented by two.
    pub fn text(&self, color: bool) -> String {
        let columns = self.rows.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
        let width = |text: &str| text.chars().count();
        let widths: Vec<usize> = (0..columns)
            .map(|at| {
                self.rows.iter().filter_map(|(_, cells)| cells.get(at)).map(|text| width(text)).max().unwrap_or(0)
            })
            .collect();
        let mut out = String::new();
        for (paint, cells) in &self.rows {
            let mut line = String::new();
            for (at, cell) in cells.iter().enumerate() {
                let pad = " ".repeat(widths[at] - width(cell));
                line += "  ";
                line += &if self.left.contains(&at) { format!("{cell}{pad}") } else { format!("{pad}{cell}") };
            }
            out += &paint.on(line.trim_end(), color);
            out.push('\n');
        }
        out
    }
}

/// Breaks a text at spaces so that no line passes `width`; lines after the first are indented. Lines the text has
/// already stay apart.
pub fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    for (number, paragraph) in text.lines().enumerate() {
        if number > 0 {
            out.push('\n');
            out += &" ".repeat(indent);
        }
        let lead = paragraph.len() - paragraph.trim_start_matches(' ').len();
        out += &" ".repeat(lead);
        let mut column = lead + if number > 0 { indent } else { 0 };
        let mut first = true;
        for word in paragraph.split(' ').filter(|word| !word.is_empty()) {
            let length = word.chars().count();
            if !first && column + 1 + length > width {
                out.push('\n');
                out += &" ".repeat(indent);
                column = indent;
            } else if !first {
                out.push(' ');
                column += 1;
            }
            out += word;
            column += length;
            first = false;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_stands_in_them() {
        let mut table = Table::new(&["pair", "asked"]);
        table.row(Paint::Plain, vec!["n1 → n2".to_owned(), "+1ms".to_owned()]);
        assert_eq!(table.text(false), "  pair     asked\n  n1 → n2   +1ms\n");
    }

    #[test]
    fn no_line_is_wider_than_asked() {
        let text = wrap("one two three four five six seven", 12, 2);
        assert!(text.lines().all(|line| line.chars().count() <= 12), "{text}");
        assert_eq!(text.split_whitespace().count(), 7);
    }

    #[test]
    fn without_colour_there_is_no_escape() {
        assert_eq!(Paint::Bad.on("x", false), "x");
        assert_eq!(Paint::Bad.on("x", true), "\u{1b}[1;31mx\u{1b}[0m");
    }
}
