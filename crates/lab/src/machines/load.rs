//! The part that sends its share of the operations.

use std::{path::Path, time::Duration};

use brownout_base::clock::monotonic_ns;
use brownout_load::{Bucket, Engine, Live, Pace, Part};
use brownout_record::{Arm, CpuRow, OperationRows, Recorder, percentile};
use brownout_stress::output::rows_of;

use super::{
    agent::{peers, silent},
    line::Line,
    message::{FromPart, PartTick, ToPart},
    part::{Axis, Left, TRIAL, Task, recorder},
};
use crate::{
    LabError,
    faults::Needs,
    live, load_engine,
    own_data::OwnData,
    paces,
    phases::{OPEN_AFTER_TIMEOUT, findings_of},
    testbed::Testbed,
    timeline::TimeLine,
    warmup,
};

/// Between two messages of a controller that sets a trial up.
const SET_UP_WITHIN: Duration = Duration::from_secs(180);
/// All loads have been told to end when the first was, so much later.
const TOLD_WITHIN: Duration = Duration::from_millis(300);
/// All loads miss a controller that is gone when the first does, so much later: it gives each a sign of life every second.
const MISSED_WITHIN: Duration = Duration::from_secs(2);
/// Between two looks at what was told.
const LOOK: Duration = Duration::from_millis(20);

/// Makes the part; what came of it, and what it leaves beside its record.
pub(super) fn load(
    task: &Task,
    part: Part,
    line: &Line,
    path: &Path,
) -> Result<(Result<(), LabError>, Left), LabError> {
    let mut testbed = Testbed::build(&task.spec, 1, task.seed, &Needs::default())?;
    line.tell(&FromPart::Ready(Box::default()));
    let peers = peers(line)?;
    let first = peers.first().map(|peer| peer.machine.clone());
    let clocks = std::sync::Arc::default();
    let axis = Axis::among(&task.machine, &peers, |peer| Some(&peer.machine) == first.as_ref(), true, &clocks)?;
    line.tell(&FromPart::Synchronised { error_ns: axis.wait(task.interrupts)? });
    let epoch_ns = loop {
        match line.wait(SET_UP_WITHIN)? {
            Some(ToPart::Begin { epoch_ns }) => break axis.on_own(epoch_ns)?,
            Some(ToPart::Stop) => return Err(LabError::Interrupted),
            Some(_) => {}
            None => return Err(silent()),
        }
    };
    let arm = if task.plan.faults.is_empty() { Arm::None } else { Arm::Fault };
    let mut recorder = recorder(path, epoch_ns, task.seed, arm)?;
    line.tell(&FromPart::Done);
    let mut sender = Sender {
        task,
        part,
        line,
        axis: &axis,
        testbed: &mut testbed,
        recorder: &mut recorder,
        epoch_ns,
        engine: None,
        last_ns: monotonic_ns(),
        last_cpu_ns: 0,
        last_process_ns: 0,
        ends_ns: u64::MAX,
        is_stopped: false,
    };
    let result = sender.trial();
    let ended = sender.end(result.is_err());
    // Whoever ends this one alone does not end the others, one of whom drops what it has made.
    let others_go_on =
        result.is_err() && part.of > 1 && sender.ends_ns != u64::MAX && !sender.is_stopped && line.is_heard();
    if let Some(own) = testbed.own_data.as_mut().filter(|_| others_go_on) {
        own.leave();
    }
    // What others write after it was dropped would be there again (of etcd). They have been told to end as this one has, or miss the
    // controller a little later than this one.
    if part.of > 1 && result.is_err() && testbed.own_data.is_some() {
        std::thread::sleep(if line.is_heard() { TOLD_WITHIN } else { MISSED_WITHIN });
    }
    // The one that has made it drops it.
    let dropped = testbed.own_data.as_mut().and_then(OwnData::end);
    dropped.into_iter().for_each(|text| line.tell(&FromPart::Note { text }));
    recorder.finish()?;
    Ok((result.and(ended), Left { exchanges: axis.exchanges(), zero_ns: epoch_ns }))
}

struct Sender<'a> {
    task: &'a Task,
    part: Part,
    line: &'a Line,
    axis: &'a Axis,
    testbed: &'a mut Testbed,
    recorder: &'a mut Recorder,
    epoch_ns: u64,
    /// None until it is to connect.
    engine: Option<Engine>,
    last_ns: u64,
    last_cpu_ns: u64,
    last_process_ns: u64,
    /// When nothing more is to start.
    ends_ns: u64,
    /// The controller has asked for the end.
    is_stopped: bool,
}

impl Sender<'_> {
    fn trial(&mut self) -> Result<(), LabError> {
        let time_line = TimeLine::from(self.epoch_ns, self.task.interrupts);
        loop {
            let mark = time_line.next_mark(monotonic_ns());
            while monotonic_ns() < mark {
                while let Some(message) = self.line.next() {
                    self.hear(message)?;
                }
                time_line.wait_until(mark.min(monotonic_ns() + LOOK.as_nanos() as u64))?;
            }
            self.tick()?;
            if mark >= self.ends_ns {
                return Ok(());
            }
        }
    }

    fn hear(&mut self, message: ToPart) -> Result<(), LabError> {
        let plan = &self.task.plan;
        match message {
            ToPart::MakeSchema { ours } => {
                if let Some(own) = &mut self.testbed.own_data {
                    if ours {
                        own.inherit(&plan.load.work);
                        own.clear()?;
                    }
                    let told = own.claim(&plan.load.work)?;
                    told.into_iter().for_each(|text| self.line.tell(&FromPart::Note { text }));
                }
                let coordinators = load_engine::coordinators(plan, self.testbed)?;
                load_engine::make_schema(plan, self.testbed, &coordinators, &|| self.task.interrupts.any())?;
                self.line.tell(&FromPart::Done);
            }
            ToPart::Inherit => {
                if let Some(own) = &mut self.testbed.own_data {
                    own.inherit(&plan.load.work);
                }
            }
            ToPart::Connect => {
                let coordinators = load_engine::coordinators(plan, self.testbed)?;
                let config = load_engine::config(plan, self.testbed, coordinators, self.task.seed, self.epoch_ns);
                let config = brownout_load::EngineConfig { part: self.part, ..config };
                self.engine = Some(load_engine::start(plan, config, &|| self.task.interrupts.any())?);
                self.line.tell(&FromPart::Done);
            }
            ToPart::Fill => {
                let pace = Pace::Populate { in_flight: warmup::POPULATE_IN_FLIGHT };
                self.engine()?.set_pace(pace)?;
            }
            ToPart::Flood { from_ns } => {
                let from_ns = self.axis.on_own(from_ns)?;
                paces::set(self.engine()?, plan, paces::flood(plan), from_ns)?;
            }
            ToPart::Pause { from_ns } => {
                let from_ns = self.axis.on_own(from_ns)?;
                self.engine()?.set_pace_from(from_ns, Pace::Idle)?;
            }
            ToPart::Measure { capacity, from_ns } => {
                let from_ns = self.axis.on_own(from_ns)?;
                let (measured, _) = paces::measured(plan, capacity)?;
                paces::set(self.engine()?, plan, measured, from_ns)?;
            }
            ToPart::End { at_ns } => {
                self.ends_ns = self.axis.on_own(at_ns)?;
                if let Some(engine) = &self.engine {
                    engine.set_pace_from(self.ends_ns, Pace::Idle)?;
                }
            }
            ToPart::Stop => {
                self.is_stopped = true;
                return Err(LabError::Interrupted);
            }
            // What only agents are told.
            _ => {}
        }
        Ok(())
    }

    fn engine(&self) -> Result<&Engine, LabError> {
        self.engine
            .as_ref()
            .ok_or_else(|| LabError::Trial("the load was asked to send before it was connected".to_owned()))
    }

    fn tick(&mut self) -> Result<(), LabError> {
        let now_ns = monotonic_ns();
        let seconds = (now_ns - self.last_ns) as f64 / 1e9;
        let error_ns = self.axis.now().ok().map(|(_, error_ns)| error_ns);
        let Some(engine) = &self.engine else {
            self.last_ns = now_ns;
            self.line.tell(&FromPart::Tick(PartTick { seconds, error_ns, ..PartTick::default() }));
            return Ok(());
        };
        engine.health()?;
        let (buckets, live, events) = (engine.drain(), engine.live(), engine.connection_events());
        let (filled, cpu_ns) = (engine.populated(), engine.cpu_ns());
        let operations = live::by_operation(&buckets, now_ns);
        self.record(&buckets, cpu_ns, now_ns)?;
        for event in events {
            let text = match &event.lost {
                Some(why) => format!("{}: a connection to {} was lost: {why}", self.task.machine, event.coordinator),
                None => format!("{}: connected to {}", self.task.machine, event.coordinator),
            };
            self.recorder.seen(TRIAL, event.at_ns, "connection", &event.coordinator, &text)?;
        }
        let refused =
            filled.refused.map(|refusal| format!("{} refused a row: {}", refusal.coordinator, refusal.reason));
        let Live { offered, delivered, failed, timed_out, never_sent, ref response, ref coordinators, .. } = live;
        self.line.tell(&FromPart::Tick(PartTick {
            offered,
            delivered,
            failed: failed + timed_out + never_sent,
            seconds,
            p50_ns: percentile(response, 50.0),
            p99_ns: percentile(response, 99.0),
            coordinators: coordinators.iter().map(|(name, times)| (name.clone(), percentile(times, 50.0))).collect(),
            operations: operations.into_iter().map(|one| (one.name, one.ok, one.timed_out, one.p50_ns)).collect(),
            faults: Vec::new(),
            busy: 0.0,
            filled: (filled.done, filled.total),
            refused,
            error_ns,
        }));
        Ok(())
    }

    fn record(&mut self, buckets: &[Bucket], cpu_ns: u64, now_ns: u64) -> Result<(), LabError> {
        let (starts_ns, length_ns) = (self.recorder.at(self.last_ns), (now_ns - self.last_ns).max(1));
        let busy_ns = cpu_ns.saturating_sub(std::mem::replace(&mut self.last_cpu_ns, cpu_ns));
        // All threads of this process: what they used since the last look, as far as they are still there.
        let process_ns: u64 = brownout_machine::threads("self").map(|thread| thread.ran_ns).sum();
        let own_ns = process_ns.saturating_sub(std::mem::replace(&mut self.last_process_ns, process_ns));
        self.last_ns = now_ns;
        let operations: Vec<OperationRows> =
            buckets.iter().map(|bucket| rows_of(bucket, self.recorder.at(bucket.start_ns))).collect();
        let rows = self.axis.rows(&self.task.machine, self.recorder);
        self.recorder.batch(|recorder| {
            operations.iter().try_for_each(|rows| recorder.operations(TRIAL, rows))?;
            rows.iter().try_for_each(|row| recorder.machine_clock(TRIAL, row))?;
            recorder.cpu(TRIAL, &CpuRow { starts_ns, length_ns, subject: "load".to_owned(), busy_ns })?;
            recorder.cpu(TRIAL, &CpuRow { starts_ns, length_ns, subject: "instrument".to_owned(), busy_ns: own_ns })
        })?;
        // The only load of a trial is not outlived by it.
        if self.part.of > 1 && !operations.is_empty() {
            self.line.tell(&FromPart::Operations(operations));
        }
        Ok(())
    }

    /// Waits until nothing is open, and records what there is.
    fn end(&mut self, at_once: bool) -> Result<(), LabError> {
        let Some(engine) = self.engine.take() else { return Ok(()) };
        engine.set_pace(Pace::Idle)?;
        let timeout = self.task.plan.experiment.load.timeout.duration();
        let until = monotonic_ns() + (timeout + OPEN_AFTER_TIMEOUT).as_nanos() as u64;
        while !at_once && monotonic_ns() < until && !self.task.interrupts.any() {
            let live = engine.live();
            if live.in_flight + live.waiting == 0 {
                break;
            }
            std::thread::sleep(LOOK);
        }
        let cpu_ns = engine.cpu_ns();
        let (buckets, balance) = engine.stop(if at_once { Duration::ZERO } else { OPEN_AFTER_TIMEOUT });
        self.record(&buckets, cpu_ns, monotonic_ns())?;
        let now_ns = monotonic_ns();
        if !balance.balances() {
            let text = format!("{}: the sheet does not balance: {balance:?}", self.task.machine);
            self.recorder.seen(TRIAL, now_ns, "balance", "load", &text)?;
        }
        for text in findings_of(&balance) {
            self.recorder.seen(TRIAL, now_ns, "warning", "load", &format!("{}: {text}", self.task.machine))?;
        }
        Ok(())
    }
}
