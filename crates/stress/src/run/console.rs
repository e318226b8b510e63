//! The output of a run: stdout, with a copy in a file if requested, and stderr.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
};

use super::RunError;
use crate::output::Bar;

/// The output. A progress bar on the terminal is removed before anything is printed.
pub struct Console {
    copy: Option<File>,
    /// Why the copy is incomplete.
    broken: Option<io::Error>,
    bar: Bar,
    /// For a silent one: what it would have printed on stderr.
    kept: Option<Vec<String>>,
}

impl Console {
    /// Without a copy.
    pub fn new() -> Self {
        Console { copy: None, broken: None, bar: Bar::new(), kept: None }
    }

    /// One that prints nothing, where somebody else owns the terminal. What belongs on stderr is kept: [`Console::kept`].
    pub fn silent() -> Self {
        Console { kept: Some(Vec::new()), ..Console::new() }
    }

    /// What a silent one would have printed on stderr.
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

    /// Prints one or more lines on stdout. If nobody reads them any more, that is not our error.
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

    /// Why the copy lacks some of what was printed, if it does.
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
        // If stderr is gone, there is nobody left to tell.
        let _ = writeln!(io::stderr(), "{}", text.as_ref());
    }

    /// The bar.
    pub fn bar(&mut self) -> &mut Bar {
        &mut self.bar
    }
}

impl Default for Console {
    fn default() -> Self {
        Console::new()
    }
}
