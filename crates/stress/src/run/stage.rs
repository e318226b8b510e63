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
    /// Why the copy is not whole.
    broken: Option<io::Error>,
    bar: Bar,
    /// Of a silent one: what it would have said on stderr.
    kept: Option<Vec<String>>,
}

impl Stage {
    /// Without a copy.
    pub fn new() -> Self {
        Stage { copy: None, broken: None, bar: Bar::new(), kept: None }
    }

    /// One that prints nothing, where somebody else owns the terminal. What belongs on stderr is kept: [`Stage::kept`].
    pub fn silent() -> Self {
        Stage { kept: Some(Vec::new()), ..Stage::new() }
    }

    /// What a silent one was told for stderr.
    pub fn kept(self) -> Vec<String> {
        self.kept.unwrap_or_default()
    }

    /// `-log file=`: a copy of what is printed on stdout.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn copy_to(&mut self, path: &Path) -> Result<(), RunError> {
        let failed = |source| RunError::Unwritable { option: "-log file=", path: path.to_owned(), source };
        self.copy = Some(File::create(path).map_err(failed)?);
        Ok(())
    }

    /// Prints a line, or several, on stdout. A reader that went away is no error of ours.
    pub fn line(&mut self, text: impl AsRef<str>) {
        if self.kept.is_some() {
            return;
        }
        self.bar.clear();
        let text = text.as_ref();
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
        if let Some(copy) = &mut self.copy {
            let done = writeln!(copy, "{text}");
            if let Err(error) = done {
                self.copy = None;
                self.broken = Some(error);
            }
        }
    }

    /// Why the copy has not all that was printed, if it has not.
    pub fn broken(&self) -> Option<&io::Error> {
        self.broken.as_ref()
    }

    /// Prints text as it is.
    pub fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.line(text.strip_suffix('\n').unwrap_or(text));
        }
    }

    /// Prints a line on stderr.
    pub fn aside(&mut self, text: impl AsRef<str>) {
        if let Some(kept) = &mut self.kept {
            kept.push(text.as_ref().to_owned());
            return;
        }
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
