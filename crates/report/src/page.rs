//! A page of text for a terminal.

use crate::table::{Paint, Table, wrap};

/// How it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether colours and bold may be used; the caller knows of terminals and `NO_COLOR`.
    pub color: bool,
    /// Columns; texts are broken there, tables need up to 100.
    pub width: usize,
}

/// What has been written so far.
pub(crate) struct Page {
    pub(crate) out: String,
    pub(crate) style: Style,
}

impl Page {
    pub(crate) fn new(style: Style) -> Self {
        Page { out: String::new(), style }
    }

    /// A text, broken into lines.
    pub(crate) fn line(&mut self, paint: Paint, text: &str) {
        let wrapped = wrap(text, self.style.width.max(40), 2);
        for line in wrapped.lines() {
            self.out += &paint.on(line, self.style.color);
            self.out.push('\n');
        }
    }

    /// An empty line and a title.
    pub(crate) fn section(&mut self, title: &str) {
        self.out.push('\n');
        self.line(Paint::Bold, title);
    }

    /// A table.
    pub(crate) fn table(&mut self, table: &Table) {
        self.out += &table.text(self.style.color);
    }
}
