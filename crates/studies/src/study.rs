//! A study's directory: what was published, what is kept of our runs, the README and the plots made of both.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::{StudyError, plots, published::Published, readme, stored::Stored, tables};

/// Of a line that differs, in letters.
const MOST_SHOWN: usize = 400;

/// Where a README has its plots.
const PLOTS: &str = "<!-- table: plots -->";

/// A study.
#[derive(Debug)]
pub struct Study {
    directory: PathBuf,
    published: Published,
    /// By the names of their files.
    findings: BTreeMap<String, Stored>,
}

impl Study {
    /// Reads a study; findings are those of `findings`, or else its own.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(directory: &Path, findings: Option<&Path>) -> Result<Study, StudyError> {
        let from = findings.map_or_else(|| directory.join("findings"), Path::to_owned);
        let listed = fs::read_dir(&from).map_err(|error| StudyError::file(&from, error))?;
        let mut known = BTreeMap::new();
        for entry in listed {
            let path = entry.map_err(|error| StudyError::file(&from, error))?.path();
            let stem = path.file_stem().filter(|_| path.extension().is_some_and(|ending| ending == "json"));
            if let Some(name) = stem {
                known.insert(name.to_string_lossy().into_owned(), Stored::read(&path)?);
            }
        }
        let published = Published::read(&directory.join("published.json"))?;
        Ok(Study { directory: directory.to_owned(), published, findings: known })
    }

    /// A table by name; none if there is no such table.
    pub fn table(&self, name: &str) -> Option<String> {
        match name {
            "plots" => Some(plots::list(&self.findings)),
            _ => tables::table(name, &self.published, &self.findings),
        }
    }

    /// All tables that have something of ours, for the terminal.
    pub fn printed(&self) -> String {
        let told = |text: &String| !text.starts_with(tables::NOT_MEASURED);
        let table = |name: &&str| Some(format!("{name}\n\n{}\n", self.table(name).filter(told)?));
        tables::names(&self.published).iter().filter_map(table).collect()
    }

    /// The files that are made: the README and the plots.
    ///
    /// # Errors
    /// The README cannot be read or has markers that cannot be followed.
    pub fn made(&self) -> Result<BTreeMap<PathBuf, String>, StudyError> {
        let path = self.directory.join("README.md");
        let text = fs::read_to_string(&path).map_err(|error| StudyError::file(&path, error))?;
        let mut made = BTreeMap::from([(path, readme::filled(&text, |name| self.table(name))?)]);
        // A study that shows no plots has none.
        let shown = if text.contains(PLOTS) { plots::plots(&self.findings) } else { BTreeMap::new() };
        for (name, drawing) in shown {
            made.insert(self.directory.join("plots").join(name), drawing);
        }
        Ok(made)
    }

    /// What differs between the files and what they would be if they were made now; empty: nothing.
    ///
    /// # Errors
    /// The README cannot be read or has markers that cannot be followed.
    pub fn differences(&self) -> Result<Vec<String>, StudyError> {
        let made = self.made()?;
        let mut differences = Vec::new();
        for (path, should) in &made {
            let is = fs::read_to_string(path).unwrap_or_default();
            if let Some((line, is, should)) = readme::first_difference(&is, should) {
                // A plot is one long line.
                let [is, should] = [is, should].map(|text| text.chars().take(MOST_SHOWN).collect::<String>());
                differences.push(format!("{} line {line}: it is\n  {is}\nand should be\n  {should}", path.display()));
            }
        }
        // A plot of findings that are no longer there.
        for entry in fs::read_dir(self.directory.join("plots")).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "svg") && !made.contains_key(&path) {
                differences.push(format!("{}: no findings have this plot", path.display()));
            }
        }
        Ok(differences)
    }

    /// Writes what is made.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn write(&self) -> Result<(), StudyError> {
        for (path, text) in self.made()? {
            let parent = path.parent().unwrap_or(&self.directory);
            fs::create_dir_all(parent).map_err(|error| StudyError::file(parent, error))?;
            fs::write(&path, text).map_err(|error| StudyError::file(&path, error))?;
        }
        Ok(())
    }
}
