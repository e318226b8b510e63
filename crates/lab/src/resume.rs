//! A run that goes on: what it was asked is read from its file, and has to be what it would be asked now.

use std::{collections::BTreeMap, path::Path};

use brownout_machine::Processors;
use brownout_record::{Environment, Run};

use crate::{LabError, design::Design, experiment::Source, machine};

/// What a run that goes on is asked.
pub struct Resumed {
    /// Its file, with what was set.
    pub source: Source,
    /// Its design.
    pub design: Design,
    /// What was set, and is now.
    pub set: Vec<String>,
}

/// Reads what a run was asked; `blocks` more are added to its design.
///
/// # Errors
/// The run cannot be read, this machine is another one, or `file` asks something else.
pub fn resume(run: &Path, file: Option<&Path>, blocks: u32) -> Result<Resumed, LabError> {
    let run = Run::open(run)?;
    let path = run.document("experiment path")?;
    let (Some(path), Some(text)) = (path, run.document("experiment")?) else {
        return Err(LabError::Resume("it was made by an earlier version, or by another command".to_owned()));
    };
    let attached: BTreeMap<String, String> = run
        .documents()?
        .into_iter()
        .filter_map(|(name, text)| Some((name.strip_prefix("file ")?.to_owned(), text)))
        .collect();
    let set = run.document("set")?.unwrap_or_default();
    let mut set: Vec<String> = set.lines().map(str::to_owned).collect();
    let read = |text: String, set: &[String]| -> Result<Source, LabError> {
        let mut source = Source::from_text(Path::new(&path), text)?.with_attached(attached.clone());
        set.iter().try_for_each(|assignment| source.set(assignment))?;
        Ok(source)
    };
    let mut source = read(text.clone(), &set)?;
    if let Some(file) = file {
        let mut now = Source::read(file)?;
        set.iter().try_for_each(|assignment| now.set(assignment))?;
        if !source.asks_the_same_as(&now) {
            let file = file.display();
            let why = format!("{file} asks something else than this run was begun with; begin a new one for it");
            return Err(LabError::Resume(why));
        }
    }
    if let Some(before) = run.environment()? {
        refuse_another_machine(&before)?;
    }
    if blocks > 0 && source.search()?.is_some() {
        return Err(LabError::Resume("a search decides itself how many trials it takes; none can be added".to_owned()));
    }
    if blocks > 0 {
        let trials = Design::new(&source)?.blocks + blocks;
        set.retain(|assignment| !assignment.starts_with("trials="));
        set.push(format!("trials={trials}"));
        source = read(text, &set)?;
    }
    Ok(Resumed { design: Design::new(&source)?, source, set })
}

/// Trials of one run have to be made on one machine, by one version.
fn refuse_another_machine(before: &Environment) -> Result<(), LabError> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let now = [
        ("Brownout", &before.version, env!("CARGO_PKG_VERSION").to_owned()),
        ("the processor", &before.cpu, machine::cpu_model()),
        ("the number of processors", &before.cores.to_string(), Processors::of_this_process().whole().to_string()),
        ("the memory in bytes", &before.memory.to_string(), brownout_machine::total_memory().to_string()),
        ("the kernel", &before.kernel, kernel.trim().to_owned()),
    ];
    let other: Vec<String> = now
        .iter()
        .filter(|(_, before, now)| *before != now)
        .map(|(what, before, now)| format!("{what} was {before} and is {now}"))
        .collect();
    match other.is_empty() {
        true => Ok(()),
        false => Err(LabError::Resume(format!("{}; trials of two machines cannot be compared", other.join(", ")))),
    }
}
