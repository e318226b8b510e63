//! Where a run is told: stdout, with a copy in a file if asked, and stderr.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
};

use super::RunError;
use crate::output::Bar;

/// The place. A bar that is drawn on the terminal is taken away before anything is printed.
pub struct Stage {
    copy: Option<File>,
    bar: Bar,
}

impl Stage {
    /// Without a copy.
    pub fn new() -> Self {
        Stage { copy: None, bar: Bar::new() }
    }

    /// `-log file=`: a copy of what is printed on stdout.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn copy_to(&mut self, path: &Path) -> Result<(), RunError> {
        let made = File::create(path).map_err(|source| RunError::File { path: path.to_owned(), source });
        self.copy = Some(made?);
        Ok(())
    }

    /// Prints a line, or several, on stdout. A reader that went away is no error of ours.
    pub fn line(&mut self, text: impl AsRef<str>) {
        self.bar.clear();
        let text = text.as_ref();
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
        if let Some(copy) = &mut self.copy {
            let _ = writeln!(copy, "{text}");
        }
    }

    /// Prints text as it is.
    pub fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.line(text.strip_suffix('\n').unwrap_or(text));
        }
    }

    /// Prints a line on stderr.
    pub fn aside(&mut self, text: impl AsRef<str>) {
        self.bar.clear();
        // Nobody is left to be told if stderr is gone.
        let _ = writeln!(io::stderr(), "{}", text.as_ref());
    }

    /// The bar.
    pub fn bar(&mut self) -> &mut Bar {
        &mut self.bar
    }
}

impl Default for Stage {
    fn default() -> Self {
        Stage::new()
    }
}
