//! A run that goes on: what it was asked is read from its file, and has to be what it would be asked now.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use brownout_machine::Processors;
use brownout_record::{CellRow, Environment, Run};

use crate::{
    LabError,
    design::Design,
    experiment::Source,
    ground::{NO_PRIVILEGE, Privilege},
    machine,
    made::Made,
    planner::Planner,
};

/// What a run that goes on is asked.
pub struct Resumed {
    /// Its directory.
    pub directory: PathBuf,
    /// Its file, with what was set.
    pub source: Source,
    /// Its design.
    pub design: Design,
    /// What was set, and is now.
    pub set: Vec<String>,
    /// The number of the one trial that it was asked for; none: all.
    pub only: Option<u32>,
    /// Its faults are not put in force.
    pub sabotage: bool,
    /// How many labs at once it had so far; none: it was killed before that was written.
    pub labs: Option<u32>,
    /// Trials that are still to be made.
    pub missing: usize,
}

/// The document of a run whose faults are not put in force: trials with and without sabotage are not of one run.
pub(crate) const SABOTAGE: &str = "sabotage";
/// By this part of the memory one boot of a machine differs from another: the kernel keeps more or less for itself.
const MEMORY_OF_A_BOOT: u64 = 50;
/// So many differences of files are told.
const TOLD: usize = 6;

/// What is added to a design.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct More {
    /// Blocks.
    pub blocks: u32,
    /// Attempts at each trial of which none is valid.
    pub attempts: u32,
}

/// Reads what a run was asked, and adds to it.
///
/// # Errors
/// The run cannot be read, this machine is another one, or `file` asks something else.
pub fn resume(path: &Path, file: Option<&Path>, more: More) -> Result<Resumed, LabError> {
    let run = Run::open(path)?;
    let made_in = run.document("experiment path")?;
    let (Some(made_in), Some(text)) = (made_in, run.document("experiment")?) else {
        let why = match run.cells()?.is_empty() && run.trials()?.is_empty() {
            true => "it was killed before it began, and nothing of it was made; begin it again",
            false => "it was made by an earlier version, or by another command",
        };
        return Err(LabError::Resume(why.to_owned()));
    };
    let attached: BTreeMap<String, String> = run
        .documents()?
        .into_iter()
        .filter_map(|(name, text)| Some((name.strip_prefix("file ")?.to_owned(), text)))
        .collect();
    let mut set = run.set()?;
    let read = |set: &[String]| -> Result<Source, LabError> {
        let mut source = Source::from_text(Path::new(&made_in), text.clone())?.with_attached(attached.clone());
        set.iter().try_for_each(|assignment| source.set(assignment))?;
        Ok(source)
    };
    let mut source = read(&set)?;
    if let Some(file) = file {
        let mut now = Source::read(file)?;
        set.iter().try_for_each(|assignment| now.set(assignment))?;
        refuse_another_file(file, &source.differences(&now))?;
    }
    if let Some(before) = run.environment()? {
        refuse_another_machine(&before)?;
    }
    if more.blocks > 0 && source.search()?.is_some() {
        return Err(LabError::Resume("a search decides itself how many trials it takes; none can be added".to_owned()));
    }
    let described = run.design()?;
    let only = described.as_ref().and_then(|design| design.only);
    let labs = described.map(|design| design.labs);
    let sabotage = run.document(SABOTAGE)?.is_some();
    if let Some(only) = only.filter(|_| more.blocks > 0) {
        let why = format!("it was asked for trial {only} of its design alone; blocks are added to whole designs");
        return Err(LabError::Resume(why));
    }
    if more != More::default() {
        set = extended(&Design::new(&source)?, &set, more);
        source = read(&set)?;
    }
    let mut design = Design::new(&source)?;
    if let Some(moved) = containers_now(&design, &source)? {
        source = moved;
        design = Design::new(&source)?;
    }
    let settled = Made::read(path, design.attempts)?.settled;
    let missing = Planner::new(&design).only(only).missing(&settled);
    let failed = |source| LabError::Directory { doing: "find", path: path.to_owned(), source };
    let directory = run.path().canonicalize().map_err(failed)?;
    let directory = directory.parent().map_or_else(|| directory.clone(), Path::to_owned);
    Ok(Resumed { directory, design, source, set, only, sabotage, labs, missing })
}

/// What is to be set so that a design has more, and what it has stays as it is.
fn extended(design: &Design, set: &[String], more: More) -> Vec<String> {
    let mut set = set.to_vec();
    let mut put = |key: &str, value: u32| {
        set.retain(|assignment| assignment.split_once('=').is_none_or(|(set, _)| set.trim() != key));
        set.push(format!("{key}={value}"));
    };
    if more.blocks > 0 {
        put("trials", design.blocks + more.blocks);
        // What it is by default depends on the number of blocks.
        put("without-fault", design.without_fault);
    }
    if more.attempts > 0 {
        put("attempts", design.attempts + more.attempts);
    }
    set
}

fn refuse_another_file(file: &Path, differences: &[String]) -> Result<(), LabError> {
    if differences.is_empty() {
        return Ok(());
    }
    let told = differences.iter().take(TOLD).map(|difference| format!("\n  {difference}")).collect::<String>();
    let more = differences.len().saturating_sub(TOLD);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    Err(LabError::Resume(format!(
        "{} asks something else than what it was begun with:{told}{more}\nBegin a new run for it, or leave the file out.",
        file.display()
    )))
}

/// Trials of one run are made on the same containers; they may have been started again. Pods may be elsewhere now: then the file is
/// returned with them as they are.
fn containers_now(design: &Design, source: &Source) -> Result<Option<Source>, LabError> {
    let layout = design.layouts().into_iter().find(|layout| layout.containers.is_some());
    let Some((layout, found)) = layout.and_then(|layout| Some((layout, layout.containers.as_ref()?))) else {
        return Ok(None);
    };
    let Some(now) = source.elsewhere_now()? else {
        found.again().map_err(LabError::Resume)?;
        return Ok(None);
    };
    let are_pods = layout.pods.is_some();
    let now = if are_pods { now.of(&found.names()) } else { now };
    let others = if are_pods { found.others(&now) } else { found.differences(&now) };
    match others.is_empty() {
        true => Ok(are_pods.then(|| source.clone().with_pods(&now))),
        false => Err(LabError::Resume(format!("{}; begin a new run with those that are there now", others.join("; ")))),
    }
}

/// Trials of one run have to be made on one machine, by one version.
fn refuse_another_machine(before: &Environment) -> Result<(), LabError> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let memory = brownout_machine::total_memory();
    let same_memory = memory.abs_diff(before.memory) <= before.memory / MEMORY_OF_A_BOOT;
    let memory = if same_memory { before.memory } else { memory };
    // On a cluster that is not ours whoever goes on needs none, either.
    let privilege = if before.privilege == NO_PRIVILEGE { NO_PRIVILEGE } else { Privilege::of_labs().name() };
    let now = [
        ("Brownout", &before.version, env!("CARGO_PKG_VERSION").to_owned()),
        ("the processor", &before.cpu, machine::cpu_model()),
        ("the number of processors", &before.cores.to_string(), Processors::of_this_process().whole().to_string()),
        ("the memory in bytes", &before.memory.to_string(), memory.to_string()),
        ("the kernel", &before.kernel, kernel.trim().to_owned()),
        ("the privilege", &before.privilege, privilege.to_owned()),
    ];
    let other: Vec<String> = now
        .iter()
        .filter(|(_, before, now)| *before != now)
        .map(|(what, before, now)| format!("{what} was {before} and is {now}"))
        .collect();
    match other.is_empty() {
        true => Ok(()),
        false => Err(LabError::Resume(format!(
            "{}; trials of one run are made on one machine, by one version",
            other.join(", ")
        ))),
    }
}

/// What is found on the machine now has to be what earlier trials ran on: what each cell would run, and a Java for each.
pub(crate) fn refuse_other_software(run: &Path, cells: &[CellRow], javas: &[String]) -> Result<(), LabError> {
    let run = Run::open(run)?;
    let mut other: Vec<String> = run
        .cells()?
        .iter()
        .zip(cells)
        .map(|(before, now)| (&before.description.database, &now.description.database))
        .filter(|(before, now)| before != now)
        .map(|(before, now)| format!("it ran {before}, and {now} is what there is now"))
        .collect();
    other.dedup();
    if let Some(before) = run.environment()?.filter(|before| !javas.contains(&before.java)) {
        other.push(format!("Java was {} and is {}", before.java, javas.first().map_or("", String::as_str)));
    }
    match other.is_empty() {
        true => Ok(()),
        false => Err(LabError::Resume(format!("{}; begin a new run with it", other.join("; ")))),
    }
}

#[cfg(test)]
mod tests {
    use brownout_record::Recorder;

    use super::*;
    use crate::planner::Matrix;

    const FILE: &str = "\
load: { rate: 400/s, population: 1_000 }
phases: { warm-up: 20s, baseline: 10s, fault: 20s, recovery: 10s }
faults: [{ slow: { host: n2, delay: 50ms } }]
objective: { p95: 100ms }
";

    fn design(text: &str, set: &[String]) -> Design {
        let mut source = Source::from_text(Path::new("some.yaml"), text.to_owned()).unwrap();
        set.iter().for_each(|assignment| source.set(assignment).unwrap());
        Design::new(&source).unwrap()
    }

    #[test]
    fn a_run_that_was_killed_before_anything_was_written_says_so_and_one_of_another_command_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.db");
        let refused = || resume(directory.path(), None, More::default()).err().unwrap().to_string();
        let mut recorder = Recorder::create(&path, 0, 0).unwrap();
        assert!(refused().contains("it was killed before it began"), "{}", refused());
        let cells = design(FILE, &[]).cell_rows(|_| String::new());
        recorder.batch(|recorder| cells.iter().try_for_each(|row| recorder.cell(row))).unwrap();
        assert!(refused().contains("by an earlier version, or by another command"), "{}", refused());
    }

    #[test]
    fn the_trials_of_an_extended_design_are_those_of_the_design_and_more() {
        let vary = FILE.replace("50ms", "\"${delay}\"") + "vary: { delay: [50ms, 60ms] }\n";
        let set = |all: &[&str]| -> Vec<String> { all.iter().map(|one| (*one).to_owned()).collect() };
        for (text, set) in [
            (FILE, set(&[])),
            (FILE, set(&["trials=1"])),
            (FILE, set(&["trials = 3", "without-fault=2"])),
            (vary.as_str(), set(&["trials=2", "seed=7"])),
            (vary.as_str(), set(&["without-fault=0"])),
        ] {
            let before = design(text, &set);
            let after = extended(&before, &set, More { blocks: 2, attempts: 0 });
            let after = design(text, &after);
            let (few, many) = (Matrix::new(&before), Matrix::new(&after));
            let (few, many) = (few.trials(), many.trials());
            assert_eq!(after.blocks, before.blocks + 2);
            assert_eq!(many[..few.len()], *few, "{set:?}");
            let seeds = |design: &Design| few.iter().map(|trial| design.seed_of(*trial, 1)).collect::<Vec<_>>();
            assert_eq!(seeds(&after), seeds(&before));
            let per_block = few.len() / before.blocks as usize;
            assert_eq!(many.len(), few.len() + 2 * per_block);
        }
    }

    #[test]
    fn attempts_are_added_to_a_design_that_stays_as_it_is() {
        let set = ["seed=7", "attempts=2"].map(str::to_owned);
        let before = design(FILE, &set);
        let after = design(FILE, &extended(&before, &set, More { blocks: 0, attempts: 3 }));
        assert_eq!((before.attempts, after.attempts), (2, 5));
        assert_eq!(Matrix::new(&after).trials(), Matrix::new(&before).trials());
        let by_default = design(FILE, &extended(&design(FILE, &[]), &[], More { blocks: 1, attempts: 1 }));
        assert_eq!((by_default.attempts, by_default.blocks), (4, 2));
    }

    #[test]
    fn what_was_asked_comes_back_with_all_that_was_set_and_what_was_sabotaged() {
        for sabotaged in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let set = ["trials=3", "question=of two\nlines"].map(str::to_owned);
            let mut recorder = Recorder::create(&directory.path().join("run.db"), 0, 0).unwrap();
            recorder
                .batch(|recorder| {
                    recorder.document("experiment", FILE)?;
                    recorder.document("experiment path", "some.yaml")?;
                    recorder.set(&set)?;
                    if sabotaged { recorder.document(SABOTAGE, "") } else { Ok(()) }
                })
                .unwrap();
            recorder.finish().unwrap();
            let resumed = resume(directory.path(), None, More::default()).unwrap();
            assert_eq!((resumed.set, resumed.sabotage), (set.to_vec(), sabotaged));
            assert_eq!((resumed.design.blocks, resumed.missing), (3, 6));
        }
    }

    #[test]
    fn a_file_that_asks_something_else_is_refused_with_its_keys() {
        assert!(refuse_another_file(Path::new("a.yaml"), &[]).is_ok());
        let many: Vec<String> = (0..9).map(|at| format!("key{at} was 1 and is 2")).collect();
        let said = refuse_another_file(Path::new("a.yaml"), &many).unwrap_err();
        assert_eq!(said.exit_code(), 2);
        for part in ["a.yaml asks something else", "key0 was 1", "key5 was 1", "and 3 more"] {
            assert!(said.to_string().contains(part), "{said}");
        }
        let said = refuse_another_file(Path::new("a.yaml"), &many[..6]).unwrap_err().to_string();
        assert!(said.contains("key5") && !said.contains("more"), "{said}");
    }

    #[test]
    fn a_machine_is_the_same_after_a_reboot_and_another_one_with_other_memory() {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let with = |memory: u64| Environment {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: kernel.trim().to_owned(),
            cpu: machine::cpu_model(),
            cores: Processors::of_this_process().whole(),
            memory,
            privilege: Privilege::of_labs().name().to_owned(),
            ..Environment::default()
        };
        let memory = brownout_machine::total_memory();
        for same in [memory, memory - memory / 1_000, memory + memory / 1_000] {
            assert!(refuse_another_machine(&with(same)).is_ok(), "{same} of {memory}");
        }
        let said = refuse_another_machine(&with(memory * 2)).unwrap_err();
        assert!(said.to_string().contains("the memory in bytes was"), "{said}");
        let said = refuse_another_machine(&Environment { kernel: "1.0".to_owned(), ..with(memory) }).unwrap_err();
        assert!(said.to_string().contains("the kernel was 1.0 and is"), "{said}");
        let said = refuse_another_machine(&Environment { privilege: "luck".to_owned(), ..with(memory) }).unwrap_err();
        assert!(said.to_string().contains("the privilege was luck and is"), "{said}");
    }

    #[test]
    fn trials_of_another_cassandra_or_java_are_not_added() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.db");
        let cells = |version: &str| design(FILE, &[]).cell_rows(|_| format!("Cassandra {version}"));
        let mut recorder = Recorder::create(&path, 0, 0).unwrap();
        let environment = Environment { java: "17.0.15, /java".to_owned(), ..Environment::default() };
        recorder
            .batch(|recorder| {
                recorder.json("environment", &environment)?;
                cells("5.0.6").iter().try_for_each(|row| recorder.cell(row))
            })
            .unwrap();
        recorder.finish().unwrap();
        let refused = |version: &str, java: &str| {
            refuse_other_software(&path, &cells(version), &[java.to_owned()]).err().map(|error| error.to_string())
        };
        assert_eq!(refused("5.0.6", "17.0.15, /java"), None);
        let said = refused("5.0.7", "17.0.16, /java").unwrap();
        for part in ["it ran Cassandra 5.0.6, and Cassandra 5.0.7", "Java was 17.0.15, /java and is 17.0.16, /java"] {
            assert!(said.contains(part), "{said}");
        }
    }
}
