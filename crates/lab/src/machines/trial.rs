//! One trial over several machines, as the controller makes it.

mod lost;
mod shown;
mod warm_up;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use brownout_base::clock::{monotonic_ns, realtime_ns};
use brownout_clock::offset::{Exchange, Offsets};
use brownout_record::{Event, MachineRole, MachineRow, PhaseRow, Recorder, Run, TrialRow};

use super::{
    fleet::{Fleet, Heard, Part, Reach},
    left::{self, Left, Span},
    message::{FarHost, FromPart, Order, PartTick, Peer, Ready, Role, ToPart},
    scratch::Scratch,
    shares::Shares,
};
use crate::{
    LabError,
    ground::Interrupts,
    own_data,
    plan::{INTERVAL_NS, Phase, Plan},
    progress::{Course, Progress},
    trial::record_end,
};

/// Parts are attached, and have opened all that others need of them, by then.
const READY_WITHIN: Duration = Duration::from_secs(240);
/// They know each other's clocks by then.
const KNOWN_WITHIN: Duration = Duration::from_secs(60);
/// Schemas are made, and nodes connected to, by then.
const CONNECTED_WITHIN: Duration = Duration::from_secs(120);
/// How far ahead what comes next is told, ns: longer than any message takes.
const AHEAD_NS: u64 = 1_500_000_000;
/// A part has settled and given its record so long after the end, besides the time-out of operations.
const OVER_WITHIN: Duration = Duration::from_secs(120);
/// Between two looks at what parts say.
const LOOK: Duration = Duration::from_millis(20);

/// A machine that takes part, and how it is called to [`Reach`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) hosts: Vec<String>,
}

impl Member {
    fn row(&self) -> MachineRow {
        let role = if self.role == Role::Agent { MachineRole::Agent } else { MachineRole::Load };
        MachineRow { machine: self.name.clone(), role, hosts: self.hosts.clone() }
    }
}

/// One attempt at a trial.
pub(crate) struct MachinesTrial<'a> {
    pub(crate) plan: &'a Plan,
    /// How the record has it, before it has begun.
    pub(crate) row: TrialRow,
    pub(crate) title: String,
    pub(crate) course: Course,
    pub(crate) interrupts: Interrupts,
    /// Agents first; the first of them is the axis.
    pub(crate) members: Vec<Member>,
    pub(crate) reach: &'a dyn Reach,
    /// What all parts are told alike; machine and role are set for each.
    pub(crate) order: Order,
    /// The run's own, in which the parts' records lie until they are merged.
    pub(crate) directory: &'a Path,
    /// A load has made something in the cluster, and has not dropped it yet.
    pub(crate) undropped: &'a AtomicBool,
}

/// A moment of the axis, and when that was here, `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
struct AxisHere {
    axis_ns: u64,
    own_ns: u64,
}

impl AxisHere {
    fn own(self, axis_ns: u64) -> u64 {
        (self.own_ns + axis_ns).saturating_sub(self.axis_ns)
    }

    fn axis(self, own_ns: u64) -> u64 {
        (self.axis_ns + own_ns).saturating_sub(self.own_ns)
    }
}

/// What a part has left.
struct Ended {
    exchanges: Vec<Exchange>,
    zero_ns: u64,
    record: PathBuf,
}

impl MachinesTrial<'_> {
    /// Runs it and records it. The record says how it ended, also when this returns an error.
    pub(crate) fn run(mut self, recorder: &mut Recorder, progress: &mut dyn Progress) -> Result<(), LabError> {
        self.row.starts_ns = recorder.at(monotonic_ns());
        recorder.batch(|recorder| recorder.trial(&self.row))?;
        let result = self.with_all(recorder, progress);
        record_end(self.row, result, recorder)
    }

    fn with_all(&self, recorder: &mut Recorder, progress: &mut dyn Progress) -> Result<(), LabError> {
        let begun_ns = realtime_ns();
        let count = self.members.len();
        progress.step(&format!("{}: {count} machine{}", self.title, if count == 1 { "" } else { "s" }));
        let scratch = Scratch::below(self.directory)?;
        let mut parts = Vec::new();
        for machine in &self.members {
            let record = scratch.path().join(format!("{}.db", machine.name));
            parts.push(Part::start(self.reach, &machine.name, machine.row().role, &record)?);
        }
        let fleet = Fleet::of(parts)?;
        for (part, machine) in fleet.parts.iter().zip(&self.members) {
            let order = Order { machine: machine.name.clone(), role: machine.role, ..self.order.clone() };
            part.tell(&ToPart::Order(Box::new(order)));
        }
        let mut run = Running {
            trial: self,
            fleet: &fleet,
            recorder,
            progress,
            ticks: BTreeMap::new(),
            ended: BTreeMap::new(),
            here: AxisHere { axis_ns: 0, own_ns: 0 },
            next_ns: monotonic_ns(),
            heard_ns: BTreeMap::new(),
            shares: Shares::below(scratch.path()),
            ends_ns: None,
            until_ns: 0,
            owner: None,
            gone: None,
            lost: BTreeSet::new(),
            missing: BTreeSet::new(),
            is_stopped: false,
        };
        let result = run.through();
        // Whatever happened, parts heal, and what they have seen is kept, if they can still tell.
        let ended = run.collect(result.is_err());
        if self.undropped.load(Ordering::Relaxed) {
            let text = own_data::orphaned(self.plan.layout.kind(), &self.plan.load.work);
            run.progress.note(&format!("WARNING: {text}"));
        }
        let merged = run.merge();
        let happened = self.happened(begun_ns, recorder);
        result.and(ended).and(merged).and(happened)
    }

    /// Records what whoever runs the hosts did to them since then (`CLOCK_REALTIME`). Its clock is taken for this machine's.
    fn happened(&self, since_ns: u64, recorder: &mut Recorder) -> Result<(), LabError> {
        const MS: u64 = 1_000_000;
        let all = match self.reach.happened((since_ns / MS) as i64) {
            Ok(all) => all,
            Err(why) => {
                let text = format!("what was done to the hosts meanwhile is not known: {why}");
                return Ok(recorder.seen(self.row.trial, monotonic_ns(), "warning", "ground", &text)?);
            }
        };
        let hosts: BTreeSet<&String> = self.members.iter().flat_map(|member| &member.hosts).collect();
        let (real_ns, own_ns) = (realtime_ns(), monotonic_ns());
        for one in all.into_iter().filter(|one| hosts.contains(&one.host)) {
            // It was told by its beginning: the middle is as far from both ends.
            let error_ns = u64::from(one.error_ms) * MS / 2;
            let at_ns = (own_ns + one.unix_ms.unsigned_abs() * MS + error_ns).saturating_sub(real_ns);
            let event = Event {
                trial: Some(self.row.trial),
                at_ns: recorder.at(at_ns),
                error_ns,
                kind: "kubernetes".to_owned(),
                subject: one.host,
                text: one.text,
            };
            recorder.batch(|recorder| recorder.event(&event))?;
        }
        Ok(())
    }
}

/// A trial that goes on.
struct Running<'a> {
    trial: &'a MachinesTrial<'a>,
    fleet: &'a Fleet,
    recorder: &'a mut Recorder,
    progress: &'a mut dyn Progress,
    /// The last of each part that was not shown yet.
    ticks: BTreeMap<String, PartTick>,
    /// What parts have left, by machine.
    ended: BTreeMap<String, Ended>,
    /// The beginning of the intervals, once it is known.
    here: AxisHere,
    /// When the next tick is shown.
    next_ns: u64,
    /// When each part was last heard, `CLOCK_MONOTONIC`.
    heard_ns: BTreeMap<String, u64>,
    /// What the loads have told of their operations.
    shares: Shares,
    /// When the last phase ends, on the axis; none until all parts were told.
    ends_ns: Option<u64>,
    /// When it was over, on the axis: then, or before.
    until_ns: u64,
    /// The load that drops in the end what was made in the cluster; none: there is nothing, or nobody is left.
    owner: Option<String>,
    /// Why the trial cannot go on: what the first part has told that failed, or that it is gone.
    gone: Option<LabError>,
    /// Parts that are gone, and have left nothing.
    lost: BTreeSet<String>,
    /// Loads that the trial goes on without.
    missing: BTreeSet<String>,
    /// All parts were told to end.
    is_stopped: bool,
}

impl Running<'_> {
    fn through(&mut self) -> Result<(), LabError> {
        self.meet()?;
        let mut set_up = self.phase_row("set-up", self.here.axis_ns, None);
        self.write(&set_up)?;
        self.connect()?;
        let mut mark = self.next_mark();
        set_up.ends_ns = Some(self.run_ns(mark));
        set_up.ended_by = Some("time".to_owned());
        self.write(&set_up)?;
        let mut all_told = false;
        for planned in &self.trial.plan.phases {
            let (name, length_ns) = (planned.phase.name(), planned.length.ns());
            if planned.phase == Phase::WarmUp {
                let mut row = self.phase_row(name, mark, None);
                self.write(&row)?;
                let (ends, by) = self.warm_up(mark, length_ns)?;
                (row.ends_ns, row.ended_by) = (Some(self.run_ns(ends)), Some(by.to_owned()));
                self.write(&row)?;
                mark = ends;
                continue;
            }
            if !std::mem::replace(&mut all_told, true) {
                self.tell_ahead(mark);
            }
            let ends = mark + length_ns;
            let row = self.phase_row(name, mark, Some(ends));
            self.write(&row)?;
            self.until(ends, name)?;
            mark = ends;
        }
        Ok(())
    }

    /// Until all know of each other, and intervals have begun.
    fn meet(&mut self) -> Result<(), LabError> {
        let (fleet, interrupts) = (self.fleet, self.trial.interrupts);
        self.progress.step(&format!(
            "{}: attaching to {} nodes",
            self.trial.title,
            self.trial.plan.layout.hosts.nodes().count()
        ));
        let mut notes = Vec::new();
        let ready = |part: &Part, message: &FromPart| match message {
            FromPart::Ready(ready) => Some((part.machine.clone(), ready.as_ref().clone())),
            _ => None,
        };
        let all = fleet.wait_for(fleet.parts.iter(), READY_WITHIN, interrupts, ready, |part, other| {
            note(&mut notes, part, other)
        })?;
        let peer = |(machine, ready): &(String, Ready)| {
            let Ready { clock, relay, boot, pids, .. } = ready.clone();
            Some(Peer { machine: machine.clone(), clock: clock?, relay: relay?, boot, pids })
        };
        let peers: Vec<Peer> = all.iter().filter_map(peer).collect();
        let far: Vec<FarHost> = all.into_iter().flat_map(|(_, ready)| ready.far).collect();
        fleet.parts.iter().for_each(|part| part.tell(&ToPart::Peers(peers.clone())));
        self.progress.step(&format!("{}: comparing clocks", self.trial.title));
        let known = |_: &Part, message: &FromPart| match message {
            FromPart::Synchronised { error_ns } => Some(*error_ns),
            _ => None,
        };
        let errors = fleet.wait_for(fleet.parts.iter(), KNOWN_WITHIN, interrupts, known, |part, other| {
            note(&mut notes, part, other)
        })?;
        let worst = errors.into_iter().max().unwrap_or(0);
        self.progress.note(&format!(
            "clocks of {} machines known to within {}",
            fleet.parts.len(),
            brownout_units::format_ns(worst as f64)
        ));
        fleet.with(MachineRole::Agent).for_each(|part| part.tell(&ToPart::Far(far.clone())));

        let axis = fleet.parts.first().ok_or_else(|| LabError::Machine("there are no machines".to_owned()))?;
        let asked_ns = monotonic_ns();
        axis.tell(&ToPart::Now);
        let now = |_: &Part, message: &FromPart| match message {
            FromPart::Now { axis_ns } => Some(*axis_ns),
            _ => None,
        };
        let now = fleet
            .wait_for([axis].into_iter(), KNOWN_WITHIN, interrupts, now, |part, other| note(&mut notes, part, other))?;
        let own_ns = asked_ns + (monotonic_ns() - asked_ns) / 2;
        let compared = AxisHere { axis_ns: now.first().copied().unwrap_or(0), own_ns };
        let epoch_ns = compared.axis(monotonic_ns()) + AHEAD_NS;
        self.here = AxisHere { axis_ns: epoch_ns, own_ns: compared.own(epoch_ns) };
        fleet.parts.iter().for_each(|part| part.tell(&ToPart::Begin { epoch_ns }));
        self.done(fleet.parts.iter(), CONNECTED_WITHIN)?;
        notes.iter().for_each(|text| self.progress.note(text));
        Ok(())
    }

    fn connect(&mut self) -> Result<(), LabError> {
        self.progress.step(&format!("{}: making the schema", self.trial.title));
        let first = self.fleet.with(MachineRole::Load).next();
        let first = first.ok_or_else(|| LabError::Machine("no machine sends operations".to_owned()))?;
        first.tell(&ToPart::MakeSchema { ours: self.trial.undropped.load(Ordering::Relaxed) });
        self.done([first].into_iter(), CONNECTED_WITHIN)?;
        self.trial.undropped.store(true, Ordering::Relaxed);
        self.owner = Some(first.machine.clone());
        self.progress.step(&format!("{}: connecting the load", self.trial.title));
        self.fleet.with(MachineRole::Load).for_each(|part| part.tell(&ToPart::Connect));
        self.done(self.fleet.with(MachineRole::Load), CONNECTED_WITHIN)
    }

    /// Until each of these says that what it was asked is done.
    fn done<'b>(&mut self, parts: impl Iterator<Item = &'b Part>, within: Duration) -> Result<(), LabError> {
        let is_done = |_: &Part, message: &FromPart| matches!(message, FromPart::Done).then_some(());
        let mut others: Vec<(String, FromPart)> = Vec::new();
        let otherwise = |part: &Part, other: FromPart| others.push((part.machine.clone(), other));
        self.fleet.wait_for(parts, within, self.trial.interrupts, is_done, otherwise)?;
        others.into_iter().for_each(|(machine, message)| self.heard(&machine, message));
        Ok(())
    }

    /// What comes from now on: all parts know it, whatever becomes of the controller.
    fn tell_ahead(&mut self, starts: u64) {
        let phases = self.trial.plan.phases.iter().filter(|planned| planned.phase != Phase::WarmUp);
        let mut at_ns = starts;
        for planned in phases {
            if planned.phase == Phase::Fault {
                self.fleet.with(MachineRole::Agent).for_each(|part| part.tell(&ToPart::Faults { from_ns: at_ns }));
            }
            at_ns += planned.length.ns();
        }
        self.fleet.parts.iter().for_each(|part| part.tell(&ToPart::End { at_ns }));
        self.ends_ns = Some(at_ns);
    }

    fn tell_loads(&self, message: &ToPart) {
        self.fleet.with(MachineRole::Load).for_each(|part| part.tell(message));
    }

    fn axis_now(&self) -> u64 {
        self.here.axis(monotonic_ns())
    }

    fn ahead(&self) -> u64 {
        self.axis_now() + AHEAD_NS
    }

    fn next_mark(&self) -> u64 {
        self.next_mark_after(self.axis_now())
    }

    /// The first beginning of an interval after a time of the axis.
    fn next_mark_after(&self, axis_ns: u64) -> u64 {
        let epoch = self.here.axis_ns;
        epoch + (axis_ns.saturating_sub(epoch) / INTERVAL_NS + 1) * INTERVAL_NS
    }

    fn run_ns(&self, axis_ns: u64) -> u64 {
        self.recorder.at(self.here.own(axis_ns))
    }

    fn phase_row(&self, name: &str, starts: u64, ends: Option<u64>) -> PhaseRow {
        PhaseRow {
            trial: self.trial.row.trial,
            name: name.to_owned(),
            starts_ns: self.run_ns(starts),
            ends_ns: ends.map(|ends| self.run_ns(ends)),
            ended_by: ends.map(|_| "time".to_owned()),
        }
    }

    fn write(&mut self, row: &PhaseRow) -> Result<(), LabError> {
        Ok(self.recorder.batch(|recorder| recorder.phase(row))?)
    }

    fn seen(&mut self, kind: &str, subject: &str, text: &str) -> Result<(), LabError> {
        Ok(self.recorder.seen(self.trial.row.trial, monotonic_ns(), kind, subject, text)?)
    }

    /// Hears all parts until a time of the axis, and shows what they do, once in an interval.
    fn until(&mut self, axis_ns: u64, phase: &str) -> Result<(), LabError> {
        let own_ns = self.here.own(axis_ns);
        while monotonic_ns() < own_ns {
            if self.trial.interrupts.any() {
                return Err(LabError::Interrupted);
            }
            self.hear();
            self.miss_the_silent();
            if let Some(error) = self.gone.take() {
                return Err(error);
            }
            if monotonic_ns() >= self.next_ns {
                self.next_ns = monotonic_ns() + INTERVAL_NS;
                self.show(phase, own_ns);
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Takes what parts have said.
    fn hear(&mut self) {
        for part in &self.fleet.parts {
            while self.is_there(part) {
                let heard = part.hear(Duration::ZERO);
                if matches!(heard, Some(Heard::Message(_))) {
                    self.heard_ns.insert(part.machine.clone(), monotonic_ns());
                }
                match heard {
                    None => break,
                    Some(Heard::Message(FromPart::Failed { text, .. })) => self.is_lost(part, &text),
                    Some(Heard::Message(message)) => self.heard(&part.machine, message),
                    Some(Heard::Over { message, record }) => self.over(part, message, record),
                    Some(Heard::Gone(why)) => self.is_lost(part, &why),
                }
            }
        }
    }

    fn over(&mut self, part: &Part, message: FromPart, record: PathBuf) {
        let FromPart::Over { failure, interrupted, exchanges, zero_ns, .. } = message else { return };
        let exchange = |[asked_ns, came_ns, answered_ns, heard_ns]: [u64; 4]| Exchange {
            asked_ns,
            came_ns,
            answered_ns,
            heard_ns,
        };
        let exchanges = exchanges.into_iter().map(exchange).collect();
        self.ended.insert(part.machine.clone(), Ended { exchanges, zero_ns, record });
        let too_early = failure.or_else(|| interrupted.then(|| "it was ended on its machine".to_owned()));
        let too_early = too_early.filter(|_| !self.is_stopped);
        if let Some(why) = &too_early {
            self.is_missing(part, why);
        }
        if self.owner.as_ref() == Some(&part.machine) {
            match too_early.is_some() && self.ends_ns.is_some() {
                // It leaves what it has made to those that go on.
                true => self.is_inherited(),
                false => {
                    self.owner = None;
                    self.trial.undropped.store(false, Ordering::Relaxed);
                }
            }
        }
    }

    fn heard(&mut self, machine: &str, message: FromPart) {
        let others = || self.fleet.with(MachineRole::Agent).filter(|part| part.machine != machine);
        match message {
            FromPart::Tick(tick) => drop(self.ticks.insert(machine.to_owned(), tick)),
            FromPart::Operations(rows) => {
                if let Err(error) = self.shares.tells(machine, &rows) {
                    self.gone.get_or_insert(error);
                }
            }
            FromPart::Note { text } => self.progress.note(&text),
            FromPart::Left { host, since_ns } => {
                let left = ToPart::Left { host, since_ns };
                others().for_each(|part| part.tell(&left));
            }
            FromPart::Came(far) => {
                let far = ToPart::Far(vec![far]);
                others().for_each(|part| part.tell(&far));
            }
            _ => {}
        }
    }

    fn sum(&self, of: impl Fn(&PartTick) -> (u64, u64)) -> (u64, u64) {
        self.ticks.values().map(of).fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
    }

    fn per_second(&self, of: impl Fn(&PartTick) -> u64) -> f64 {
        let one = |tick: &PartTick| if tick.seconds > 0.0 { of(tick) as f64 / tick.seconds } else { 0.0 };
        self.ticks.values().map(one).sum()
    }

    /// Waits until all parts that are still there have healed and given their records. At once: something went wrong, and they are
    /// told to end.
    fn collect(&mut self, at_once: bool) -> Result<(), LabError> {
        self.until_ns = self.ends_ns.map_or(0, |ends_ns| ends_ns.min(self.axis_now()));
        self.is_stopped = at_once;
        if at_once {
            self.fleet.parts.iter().for_each(|part| part.tell(&ToPart::Stop));
        }
        self.progress.step("waiting for the last operations and probes");
        let timeout = self.trial.plan.experiment.load.timeout.duration();
        let until = monotonic_ns() + (OVER_WITHIN + timeout).as_nanos() as u64;
        while self.fleet.parts.iter().any(|part| self.is_there(part)) && monotonic_ns() < until {
            self.hear();
            std::thread::sleep(LOOK);
        }
        if let Some(part) = self.fleet.parts.iter().find(|part| self.is_there(part)) {
            return Err(part.failed("it does not end"));
        }
        match self.gone.take() {
            Some(error) if !at_once => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes one record of what all parts have left.
    fn merge(&mut self) -> Result<(), LabError> {
        let mut all = Vec::new();
        for (place, member) in self.trial.members.iter().enumerate() {
            let share = match member.role {
                Role::Load { number, of } => Some(brownout_load::Part { number, of }),
                Role::Agent => None,
            };
            all.push(match (self.ended.get(&member.name), member.role) {
                (Some(Ended { exchanges, zero_ns, record }), _) => Left {
                    machine: member.row(),
                    record: Run::open(record)?,
                    zero_ns: *zero_ns,
                    offsets: (place > 0).then(|| Offsets::of(exchanges.clone())),
                    share: share.filter(|_| self.missing.contains(&member.name)),
                },
                (None, Role::Load { .. }) => Left {
                    machine: member.row(),
                    record: self.shares.left_by(&member.name)?,
                    // What it has told has the times of intervals, which all have together.
                    zero_ns: self.here.axis_ns,
                    offsets: None,
                    share,
                },
                (None, Role::Agent) => continue,
            });
        }
        let span = Span {
            begins_ns: self.here.axis_ns,
            begins_run_ns: self.recorder.at(self.here.own_ns),
            until_ns: self.until_ns,
        };
        left::merge(self.recorder, self.trial.row.trial, &all, span, &self.shares)
    }
}

fn note(notes: &mut Vec<String>, part: &Part, message: FromPart) {
    if let FromPart::Note { text } = message {
        notes.push(format!("{}: {text}", part.machine));
    }
}
