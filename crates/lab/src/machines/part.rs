//! A part of a trial: what it is told, what it tells, and its end.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use brownout_base::clock::monotonic_ns;
use brownout_record::{MachineClockRow, Recorder, TrialRow};

use super::{
    LEASE, agent,
    line::Line,
    load,
    message::{FromPart, Order, PartTick, Peer, Role, ToPart},
    relay::Clocks,
    scratch::Scratch,
};
use crate::{
    Design, LabError,
    experiment::ContainersFound,
    ground::Interrupts,
    plan::Plan,
    progress::{Progress, Tick},
    provided::Found,
    spec::{LabSpec, Runs},
};

/// Between two looks at whether the controller is still there.
const LOOK: Duration = Duration::from_millis(100);
/// Exchanges with each other machine until its clock is known well enough to begin.
const ENOUGH_EXCHANGES: usize = 12;
/// For those.
const KNOWN_WITHIN: Duration = Duration::from_secs(20);
/// The number of the only trial in a part's record.
pub(super) const TRIAL: u32 = 1;

/// What is known of the trial.
pub(super) struct Task {
    pub(super) machine: String,
    pub(super) plan: Plan,
    pub(super) seed: u64,
    pub(super) sabotage: bool,
    pub(super) interrupts: Interrupts,
    pub(super) spec: LabSpec,
}

/// What a part leaves.
pub(super) struct Left {
    /// Of all exchanges with the axis; none: it is the axis.
    pub(super) exchanges: Vec<[u64; 4]>,
    /// The zero of its record, by its own clock.
    pub(super) zero_ns: u64,
}

/// How the axis' times are this machine's.
#[derive(Clone)]
pub(super) struct Axis {
    /// Whose clock the axis is; none: this machine's own.
    machine: Option<String>,
    pub(super) clocks: Arc<Mutex<Clocks>>,
}

impl Axis {
    /// Begins to ask all of these machines for their clocks; the first of them is the axis.
    pub(super) fn among(
        own: &str,
        peers: &[Peer],
        asked: impl Fn(&Peer) -> bool,
        realtime: bool,
        clocks: &Arc<Mutex<Clocks>>,
    ) -> Result<Axis, LabError> {
        let axis = peers.first().filter(|axis| axis.machine != own).map(|axis| axis.machine.clone());
        let others = peers.iter().filter(|peer| peer.machine != own && asked(peer));
        let others: BTreeMap<String, SocketAddr> = others.map(|peer| (peer.machine.clone(), peer.clock)).collect();
        let any = std::net::Ipv4Addr::UNSPECIFIED.into();
        let asking = Clocks::ask(others.into_iter(), any, realtime)?;
        *clocks.lock().unwrap_or_else(PoisonError::into_inner) = asking;
        Ok(Axis { machine: axis, clocks: Arc::clone(clocks) })
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Clocks> {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all clocks are known; how exactly the axis' is, ns.
    pub(super) fn wait(&self, interrupts: Interrupts) -> Result<u64, LabError> {
        let until = monotonic_ns() + KNOWN_WITHIN.as_nanos() as u64;
        loop {
            let unknown: Vec<String> = {
                let clocks = self.known();
                let few = |machine: &&str| clocks.exchanges(machine).len() < ENOUGH_EXCHANGES;
                clocks.machines().filter(few).map(str::to_owned).collect()
            };
            if unknown.is_empty() {
                return match &self.machine {
                    None => Ok(0),
                    Some(_) => self.now().map(|(_, error_ns)| error_ns),
                };
            }
            if interrupts.any() {
                return Err(LabError::Interrupted);
            }
            if monotonic_ns() > until {
                return Err(LabError::Machine(format!(
                    "{} does not answer for its clock: machines have to reach each other by UDP (is there a firewall, or a \
                     network policy?)",
                    unknown.join(", ")
                )));
            }
            thread::sleep(LOOK);
        }
    }

    /// This moment on the axis, and how exactly that is known, ns.
    pub(super) fn now(&self) -> Result<(u64, u64), LabError> {
        self.on_axis(monotonic_ns())
    }

    pub(super) fn on_axis(&self, own_ns: u64) -> Result<(u64, u64), LabError> {
        let Some(machine) = &self.machine else { return Ok((own_ns, 0)) };
        let offsets = self.known().newest(machine);
        offsets.and_then(|offsets| offsets.on_server(own_ns)).ok_or_else(|| apart(machine))
    }

    /// A time of the axis by this machine's clock.
    pub(super) fn on_own(&self, axis_ns: u64) -> Result<u64, LabError> {
        let Some(machine) = &self.machine else { return Ok(axis_ns) };
        let offsets = self.known().newest(machine);
        offsets.and_then(|offsets| offsets.on_asking(axis_ns)).map(|(own_ns, _)| own_ns).ok_or_else(|| apart(machine))
    }

    /// What is known of other clocks at this moment, for the record: of all of them, or, of many, of some in turn.
    pub(super) fn rows(&self, own: &str, recorder: &Recorder) -> Vec<MachineClockRow> {
        let (clocks, now_ns) = (self.known(), monotonic_ns());
        let others: Vec<&str> = clocks.machines().collect();
        let turns = turns(others.len());
        let turn = recorder.at(now_ns) / 1_000_000_000 % turns;
        let row = |other: &str| {
            let offset = clocks.newest(other)?.at(now_ns)?;
            Some(MachineClockRow {
                machine: own.to_owned(),
                other: other.to_owned(),
                at_ns: recorder.at(now_ns),
                ahead_ns: offset.ahead_ns,
                error_ns: offset.error_ns,
            })
        };
        let in_turn = (0_u64..).zip(others).filter(|(place, _)| place % turns == turn);
        in_turn.filter_map(|(_, other)| row(other)).collect()
    }

    /// All that was exchanged with the axis.
    pub(super) fn exchanges(&self) -> Vec<[u64; 4]> {
        let Some(machine) = &self.machine else { return Vec::new() };
        let all = self.known().exchanges(machine);
        all.into_iter().map(|one| [one.asked_ns, one.came_ns, one.answered_ns, one.heard_ns]).collect()
    }
}

/// What all machines together record of each other's clocks in a second, at most.
const MOST_CLOCK_ROWS: usize = 2_000;

/// In how many seconds each of so many others has its turn.
fn turns(others: usize) -> u64 {
    let at_once = (MOST_CLOCK_ROWS / (others + 1)).max(1);
    others.div_ceil(at_once).max(1) as u64
}

fn apart(machine: &str) -> LabError {
    LabError::Trial(format!(
        "the clock of {machine} is not known any more: it has been set or stopped, or nobody answers"
    ))
}

/// Makes a part of a trial, as it is told over `from`, and tells over `to`. Ends when the trial does, or when the controller is gone.
/// Returns an exit code.
pub fn part(from: impl Read + Send + 'static, to: impl Write + Send + 'static, interrupts: Interrupts) -> u8 {
    let line = match Line::open(from, to, interrupts) {
        Ok(line) => line,
        // Nobody can be told.
        Err(error) => return error.exit_code(),
    };
    let code = match work(&line, interrupts) {
        Ok(()) => 0,
        Err(error) => {
            line.tell(&FromPart::Failed { text: error.to_string(), exit_code: error.exit_code() });
            error.exit_code()
        }
    };
    // Who does not hear the last word misses this part.
    let _ = line.all_told();
    code
}

fn work(line: &Line, interrupts: Interrupts) -> Result<(), LabError> {
    let order = loop {
        match line.wait(LEASE)? {
            Some(ToPart::Order(order)) => break order,
            Some(ToPart::Look(selection)) => {
                let found = ContainersFound::find(&selection).map_err(LabError::Machine)?;
                let text = serde_json::to_string(&found).map_err(|error| LabError::Machine(error.to_string()))?;
                line.tell(&FromPart::Found { text });
                return Ok(());
            }
            Some(ToPart::Survey(asked)) => {
                let source = asked.source()?;
                let design = Design::new(&source)?;
                let found = Found::find(&design.clusters(), source.file(), interrupts, &mut Silent)?;
                line.tell(&FromPart::Surveyed { software: found.in_directory(Path::new("")).software });
                return Ok(());
            }
            Some(ToPart::Hello { version }) if version != env!("CARGO_PKG_VERSION") => {
                let own = env!("CARGO_PKG_VERSION");
                return Err(LabError::Machine(format!(
                    "this is version {own} of Brownout, and the run is made by {version}; have the same on all machines"
                )));
            }
            Some(_) => {}
            None => return Err(LabError::Interrupted),
        }
    };
    let scratch = Scratch::below(&std::env::temp_dir())?;
    let directory = scratch.path();
    let role = order.role;
    let task = task(*order, directory, interrupts)?;
    let path = directory.join("part.db");
    let (ended, left) = match role {
        Role::Agent => agent::agent(&task, line, &path)?,
        Role::Load { number, of } => load::load(&task, brownout_load::Part { number, of }, line, &path)?,
    };
    // Whatever happened: what was seen is told.
    let interrupted = matches!(ended, Err(LabError::Interrupted));
    let failure = ended.err().filter(|_| !interrupted).map(|error| error.to_string());
    let failed = |source| LabError::Directory { doing: "read the record of", path: path.clone(), source };
    let record = fs::metadata(&path).map_err(failed)?.len();
    let Left { exchanges, zero_ns } = left;
    let over = FromPart::Over { failure, interrupted, exchanges, zero_ns, record };
    line.tell(&over);
    line.give(&path);
    let told = line.all_told();
    told.map_err(|source| LabError::Ground { doing: "give the controller the record", source })
}

/// Nobody looks on.
struct Silent;

impl Progress for Silent {
    fn of_lab(&mut self, _: u32) {}
    fn step(&mut self, _: &str) {}
    fn note(&mut self, _: &str) {}
    fn hand_over(&mut self) {}
    fn tick(&mut self, _: &Tick) {}
}

fn task(order: Order, directory: &Path, interrupts: Interrupts) -> Result<Task, LabError> {
    let Order { asked, mut provided, levels, planned, attempt, sabotage, machine, role } = order;
    let mut design = Design::new(&asked.source()?)?;
    levels.iter().try_for_each(|level| design.cell_of(level).map(drop))?;
    let (seed, plan) = design.drawn(planned.into(), attempt)?;
    directory.clone_into(&mut provided.directory);
    let spec = provided.furnish(&[&plan.layout])?.pop();
    let mut spec = spec.ok_or_else(|| LabError::Machine("there is nothing to be made".to_owned()))?;
    if let Runs::External { ground, .. } = &mut spec.runs {
        // A load only asks them.
        *ground = ground.take().filter(|_| role == Role::Agent).map(|found| found.on(&machine));
    }
    Ok(Task { machine, plan, seed, sabotage, interrupts, spec })
}

/// The record of a part, with its only trial.
pub(super) fn recorder(path: &Path, zero_ns: u64, seed: u64, arm: brownout_record::Arm) -> Result<Recorder, LabError> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let started_unix_ms = u64::try_from(since.as_millis()).unwrap_or(0);
    let mut recorder = Recorder::create(path, zero_ns, started_unix_ms)?;
    recorder.batch(|recorder| recorder.trial(&TrialRow::single(seed, 0, arm)))?;
    Ok(recorder)
}

/// A tick of a part that sends nothing.
pub(super) fn tick_of(faults: Vec<String>, busy: f64, seconds: f64, error_ns: Option<u64>) -> FromPart {
    FromPart::Tick(PartTick { faults, busy, seconds, error_ns, ..PartTick::default() })
}

#[cfg(test)]
mod tests {
    use std::io;

    use brownout_containers::{By, Selection};

    use super::{super::message::write_message, *};

    /// Why a part fails that is greeted by that version, and asked for containers that there are not.
    fn greeted_by(version: &str) -> String {
        let mut told = Vec::new();
        let nowhere = Selection { by: By::Namespaces(vec!["/nowhere/at/all".into()]), socket: None };
        write_message(&mut told, &ToPart::Hello { version: version.to_owned() }).unwrap();
        write_message(&mut told, &ToPart::Look(nowhere)).unwrap();
        let line = Line::open(io::Cursor::new(told), io::sink(), Interrupts::unheard()).unwrap();
        work(&line, Interrupts::unheard()).unwrap_err().to_string()
    }

    #[test]
    fn few_clocks_are_recorded_each_second_and_many_in_turn() {
        assert_eq!([0, 1, 3, 44].map(turns), [1; 4]);
        // 100 machines record 2,000 rows in a second.
        assert_eq!([99, 999].map(turns), [5, 500]);
    }

    #[test]
    fn a_part_of_another_version_says_so_and_looks_at_nothing() {
        let own = env!("CARGO_PKG_VERSION");
        let refused = greeted_by("0.0.1");
        assert!(refused.contains("0.0.1") && refused.contains(own), "{refused}");
        let looked = greeted_by(own);
        assert!(looked.contains("/nowhere/at/all"), "{looked}");
    }
}
