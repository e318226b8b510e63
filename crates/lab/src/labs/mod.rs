//! Labs that work at once: how many there are, and what of the machine each of them has.
//!
//! All of them live in the lab's first process, each in a thread of its own that is bound to processors of its own, as
//! is whatever it starts: emulator, probes, load, nodes. They share the record, a batch at a time, and the choice of
//! what comes next (`shared.rs`).

mod labelled;
mod room;
mod shared;
mod turns;

use std::path::Path;

use brownout_machine::{Core, Processors, available_memory};

pub(crate) use self::{
    labelled::Labelled,
    shared::{Ready, Shared},
};
pub use crate::shares::Labs;
use crate::{LabError, design::Design, machine, planner::Planner};

/// What the machine has for labs.
#[derive(Debug, Clone)]
pub struct Room {
    /// Its cores, as far as they may be used.
    pub cores: Vec<Core>,
    /// Processors' worth of time.
    pub capacity: f64,
    /// Bytes of memory that can be taken; none where nobody tells.
    pub memory: Option<u64>,
    /// Bytes of room for runs on the disk; none where nobody tells.
    pub disk: Option<u64>,
}

impl Room {
    /// What there is now, for runs below this directory.
    pub fn of_this_machine(runs: &Path) -> Room {
        let processors = Processors::of_this_process();
        Room {
            cores: processors.cores(),
            capacity: processors.capacity(),
            memory: available_memory(),
            disk: machine::free_space_of(runs),
        }
    }

    fn processors(&self) -> usize {
        self.cores.iter().map(|core| core.cpus.len()).sum()
    }

    /// "12 processors (6 cores)", "8 processors, of which a quota gives 2".
    fn words(&self) -> String {
        let (processors, cores) = (self.processors(), self.cores.len());
        let s = if processors == 1 { "" } else { "s" };
        let mut words = format!("{processors} processor{s}");
        if cores != processors {
            words.push_str(&format!(" ({cores} core{})", if cores == 1 { "" } else { "s" }));
        }
        if self.capacity < processors as f64 {
            words.push_str(&format!(", of which a quota gives {:.2}", self.capacity));
        }
        words
    }
}

/// What a lab takes: the most of all layouts of a design.
#[derive(Debug, Clone, Copy, Default)]
struct Takes {
    nodes: usize,
    memory: u64,
}

impl Takes {
    fn of(design: &Design) -> Takes {
        design.layouts().iter().fold(Takes::default(), |most, layout| {
            let nodes = layout.hosts.nodes().count();
            Takes { nodes: most.nodes.max(nodes), memory: most.memory.max(layout.memory_needed()) }
        })
    }

    /// "a lab of 3 nodes".
    fn words(self) -> String {
        let nodes = self.nodes;
        format!("a lab of {nodes} node{}", if nodes == 1 { "" } else { "s" })
    }
}

/// Those of a design. `before` is how many earlier sessions of the run had: so many there have to be again where
/// the file leaves it to the machine.
///
/// # Errors
/// The machine has no room for as many as are asked for.
pub fn of(design: &Design, room: &Room, before: Option<u32>) -> Result<Labs, LabError> {
    let takes = Takes::of(design);
    let numbers = design.cells.iter().filter_map(|cell| cell.plan.parallel);
    let said = numbers.max();
    let is_said = said.is_some();
    let is_over_machines = design.first().layout.is_over_machines();
    let asked = if design.search.is_some() || is_over_machines { Some(1) } else { said.or(before) };
    let Some(asked) = asked else { return Ok(as_many_as_fit(design, room, takes)) };
    let reason = match (design.search.is_some(), is_said, asked) {
        _ if is_over_machines => "all machines make each trial together".to_owned(),
        (true, ..) => "a search chooses each trial by those before it".to_owned(),
        (false, false, _) => "parallel: auto, as in the run's earlier sessions".to_owned(),
        (false, true, 1) => "parallel: 1".to_owned(),
        (false, true, _) => format!("parallel: {asked}, of {}", room.words()),
    };
    let labs = usize::try_from(asked).unwrap_or(usize::MAX);
    if labs > 1 {
        refuse(labs, room, takes)?;
    }
    Ok(among(room, labs, reason))
}

fn as_many_as_fit(design: &Design, room: &Room, takes: Takes) -> Labs {
    let wanted = room::wanted(takes.nodes);
    let by_processors = room::most(&room.cores, room.capacity, wanted);
    let by = |there_is: Option<u64>, each: u64| {
        there_is.map_or(usize::MAX, |there_is| usize::try_from(there_is / each.max(1)).unwrap_or(usize::MAX))
    };
    let (by_memory, by_disk) = (by(room.memory, takes.memory), by(room.disk, machine::DISK_NEEDED));
    let trials = Planner::new(design).most_trials();
    let labs = by_processors.min(by_memory).min(by_disk).min(trials).max(1);
    let limit = [
        (trials, format!("the design has {trials} trial{}", if trials == 1 { "" } else { "s" })),
        (by_processors, format!("{} wants {wanted} processors, and there are {}", takes.words(), room.words())),
        (
            by_memory,
            format!(
                "{} needs {} MB, and {} MB are available",
                takes.words(),
                takes.memory >> 20,
                room.memory.unwrap_or(0) >> 20
            ),
        ),
        (
            by_disk,
            format!(
                "each needs up to {} MB of disk, and {} MB are free",
                machine::DISK_NEEDED >> 20,
                room.disk.unwrap_or(0) >> 20
            ),
        ),
    ];
    let reason = limit.into_iter().min_by_key(|(most, _)| *most).map(|(_, words)| words).unwrap_or_default();
    among(room, labs, format!("parallel: auto; {reason}"))
}

fn among(room: &Room, labs: usize, reason: String) -> Labs {
    if labs > 1 {
        return Labs { processors: room::share_out(&room.cores, room.capacity, labs), reason };
    }
    // One has all, shared with nobody but other programs: it is bound to nothing.
    let mut all: Vec<usize> = room.cores.iter().flat_map(|core| core.cpus.iter().copied()).collect();
    all.sort_unstable();
    Labs { processors: vec![all], reason }
}

/// Refuses more labs than there is room for.
fn refuse(labs: usize, room: &Room, takes: Takes) -> Result<(), LabError> {
    let lab = takes.words();
    let least = room::least(takes.nodes);
    let fit = room::most(&room.cores, room.capacity, least);
    if fit < labs {
        let s = if least == 1 { "" } else { "s" };
        return Err(LabError::Machine(format!(
            "parallel: {labs}: {lab} needs {least} processor{s} at least, and no core can be of two labs; there are {}, enough \
             for {fit} at once; write a smaller number (auto finds one), or fewer nodes (cluster.nodes)",
            room.words()
        )));
    }
    let needed = takes.memory.saturating_mul(labs as u64);
    if let Some(memory) = room.memory.filter(|memory| *memory < needed) {
        return Err(LabError::Machine(format!(
            "parallel: {labs}: {lab} needs {} MB of memory, {labs} of them {} MB, and {} MB are available; write a smaller \
             number (auto finds one), fewer nodes (cluster.nodes), a smaller heap (cluster.heap, at least 128MiB), or free \
             some memory",
            takes.memory >> 20,
            needed >> 20,
            memory >> 20
        )));
    }
    let needed = machine::DISK_NEEDED.saturating_mul(labs as u64);
    if let Some(disk) = room.disk.filter(|disk| *disk < needed) {
        return Err(LabError::Machine(format!(
            "parallel: {labs}: so many labs need up to {} MB of disk, and {} MB are free; write a smaller number, free some \
             space or choose another directory with --out",
            needed >> 20,
            disk >> 20
        )));
    }
    Ok(())
}
