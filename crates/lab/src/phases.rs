//! The phases of a trial, once its testbed is ready.

use std::time::Duration;

use brownout_load::{Balance, Engine, Pace};
use brownout_record::{PhaseRow, percentile};

use crate::{
    LabError,
    filling::Filling,
    observer::{Look, Observer},
    paces,
    plan::{Phase, Plan, PlannedPhase},
    progress::{Course, Progress, Tick},
    schedule::Schedule,
    timeline::TimeLine,
    warmup::{self, Second, Settling},
};

/// What is still open this long after its time-out will never be answered.
pub(crate) const OPEN_AFTER_TIMEOUT: Duration = Duration::from_millis(200);
/// What a tick takes at most, nearly always: it puts a second's observations into the record.
const TICK_TAKES: Duration = Duration::from_millis(100);
/// What it takes a cluster to forget, nearly always.
const FORGETTING_TAKES: Duration = Duration::from_secs(1);
/// Between two looks at whether anything is still open.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The trial once everything stands.
pub struct PhaseRunner<'a> {
    /// What is to happen.
    pub plan: &'a Plan,
    /// Of the trial, from 1.
    pub number: u32,
    /// Its index among all.
    pub course: Course,
    /// Its marks.
    pub time_line: TimeLine,
    /// The load, idle.
    pub engine: Engine,
    /// What fills the tables, idle, if the load itself does not; none as soon as they are full.
    pub filling: Option<Filling>,
    /// Writes down what is seen.
    pub observer: Observer<'a>,
    /// The faults.
    pub schedule: Schedule<'a>,
    /// Who is told.
    pub progress: &'a mut dyn Progress,
    /// The phase that ends when this begins.
    pub set_up: PhaseRow,
    /// What is known of a cluster that has served trials before; none: it is new.
    pub warm: Option<Warm>,
}

/// A cluster that was flooded in a trial before.
#[derive(Debug, Clone, Copy)]
pub struct Warm {
    /// Operations per second that the same load's flood was answered at; none: it was another load's.
    pub capacity: Option<f64>,
}

/// How a phase ended, as the record says it.
#[derive(Clone, Copy)]
enum EndedBy {
    Time,
    Stationary,
    Limit,
    Interrupt,
    Failure,
}

impl EndedBy {
    fn name(self) -> &'static str {
        match self {
            EndedBy::Time => "time",
            EndedBy::Stationary => "stationary",
            EndedBy::Limit => "limit",
            EndedBy::Interrupt => "interrupt",
            EndedBy::Failure => "failure",
        }
    }
}

impl PhaseRunner<'_> {
    /// Drives it to its end, whichever that is. Returns the operations per second that its flood was answered at, if it had one.
    pub fn run(mut self) -> Result<Option<f64>, LabError> {
        let mut flooded = None;
        let result = self.phases(&mut flooded).map_err(of_trial);
        // Whatever happened: heal, let every open operation end, and keep what was seen.
        let ended = self.end(matches!(result, Err(LabError::Interrupted)), result.is_err()).map_err(of_trial);
        result.and(ended).map(|()| flooded)
    }

    fn phases(&mut self, flooded: &mut Option<f64>) -> Result<(), LabError> {
        let mut mark = self.time_line.next_mark(brownout_base::clock::monotonic_ns());
        self.time_line.wait_until(mark)?;
        self.observer.look(None)?;
        let mut set_up = self.set_up.clone();
        self.phase_row(&mut set_up, mark, EndedBy::Time)?;
        for phase in self.plan.phases.clone() {
            let mut row = PhaseRow {
                trial: self.number,
                name: phase.phase.name().to_owned(),
                starts_ns: self.observer.recorder().at(mark),
                ends_ns: None,
                ended_by: None,
            };
            self.observer.recorder().batch(|recorder| recorder.phase(&row))?;
            let ended = match phase.phase {
                Phase::WarmUp => self.warm_up(mark, phase, flooded),
                _ => self.measure(mark, phase).map(|ends| (ends, EndedBy::Time)),
            };
            match ended {
                Ok((ends, by)) => {
                    self.phase_row(&mut row, ends, by)?;
                    mark = ends;
                }
                Err(error) => {
                    let interrupted = matches!(error, LabError::Interrupted);
                    let by = if interrupted { EndedBy::Interrupt } else { EndedBy::Failure };
                    // What went wrong first is what a person has to know.
                    let _ = self.phase_row(&mut row, brownout_base::clock::monotonic_ns(), by);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn phase_row(&mut self, row: &mut PhaseRow, ends: u64, by: EndedBy) -> Result<(), LabError> {
        row.ends_ns = Some(self.observer.recorder().at(ends));
        row.ended_by = Some(by.name().to_owned());
        Ok(self.observer.recorder().batch(|recorder| recorder.phase(row))?)
    }

    /// A phase of fixed length, with the faults' actions where the schedule has them. Returns its end.
    fn measure(&mut self, starts: u64, phase: PlannedPhase) -> Result<u64, LabError> {
        let ends = starts + phase.length.ns();
        if phase.phase == Phase::Fault {
            self.schedule.begin(starts);
        }
        loop {
            let mark = self.time_line.next_mark(brownout_base::clock::monotonic_ns());
            // A tick takes its time, so what is due soon after it comes first: faults come and go when they are to.
            let before_tick = if mark >= ends { mark } else { mark + TICK_TAKES.as_nanos() as u64 };
            while let Some(due) = self.schedule.next_action().filter(|at| *at <= before_tick) {
                self.time_line.wait_until(due)?;
                self.act()?;
            }
            self.time_line.wait_until(mark)?;
            self.act()?;
            self.tick(phase.phase.name(), ends)?;
            if mark >= ends {
                return Ok(ends);
            }
        }
    }

    fn act(&mut self) -> Result<(), LabError> {
        let told = self.schedule.act(self.number, &mut self.observer)?;
        told.iter().for_each(|told| self.progress.note(told));
        Ok(())
    }

    /// Fills the table, floods, has the nodes forget, settles; returns the end and why.
    ///
    /// A cluster that is warm is flooded only with a load that it has not served in a valid trial yet, since its code may be
    /// another; briefly, unless what it carries is asked for.
    fn warm_up(
        &mut self,
        starts: u64,
        phase: PlannedPhase,
        flooded: &mut Option<f64>,
    ) -> Result<(u64, EndedBy), LabError> {
        let limit = starts + phase.length.ns();
        if self.filling.is_some() {
            self.fill_tables(limit, phase)?;
        } else {
            self.populate(limit, phase)?;
        }
        let (capacity, learned) = match self.warm {
            Some(Warm { capacity: Some(known) }) => (known, "of an earlier trial "),
            warm => {
                let is_brief = warm.is_some() && !paces::is_of_capacity(self.plan);
                let share = if is_brief { 0.0 } else { warmup::FLOOD_SHARE };
                let flood = (phase.length.ns() as f64 * share) as u64;
                let flood_until = starts + flood.saturating_sub(FORGETTING_TAKES.as_nanos() as u64);
                (*flooded.insert(self.flood(flood_until, limit)?), "")
            }
        };
        self.forget()?;
        let (measured, words) = paces::measured(self.plan, capacity)?;
        paces::set(&self.engine, self.plan, measured, 0)?;
        let text = format!("the flood {learned}was answered at {capacity:.0}/s; the load from here on is {words}");
        self.observer.event("capacity", "load", &text, brownout_base::clock::monotonic_ns(), 0)?;
        self.progress.note(&text);
        let mut settling = match self.warm {
            Some(_) => Settling::of_warm_cluster(),
            None => Settling::within(limit.saturating_sub(brownout_base::clock::monotonic_ns())),
        };
        loop {
            let (mark, seen) = self.next_tick("warm-up (settling)", limit)?;
            if let Some(live) = seen.live {
                settling.add(Second {
                    offered: live.offered,
                    delivered: live.delivered,
                    p50_ns: percentile(&live.response, 50.0),
                });
            }
            if settling.is_over() {
                return Ok((mark, EndedBy::Stationary));
            }
            if mark >= limit {
                let Some(doubt) = settling.doubt() else { return Ok((mark, EndedBy::Stationary)) };
                let text = format!(
                    "the warm-up ended at its limit of {} before latency was stationary: {doubt}; give phases.warm-up more \
                     time",
                    phase.length
                );
                let now = brownout_base::clock::monotonic_ns();
                self.observer.event("warning", "warm-up", &text, now, 0)?;
                self.progress.note(&text);
                return Ok((mark, EndedBy::Limit));
            }
        }
    }

    /// Lets the load pause, and has the nodes forget what filling and flood have taught them. Whoever was slow once under a load
    /// that nobody measures would not be read from for the rest of the trial by some coordinator, and in another trial he would.
    fn forget(&mut self) -> Result<(), LabError> {
        self.pause()?;
        self.observer.forget()
    }

    /// As much as the cluster takes, until then and for two seconds at least; returns what was answered, per second.
    fn flood(&mut self, until: u64, limit: u64) -> Result<f64, LabError> {
        paces::set(&self.engine, self.plan, paces::flood(self.plan), 0)?;
        let mut flood = Vec::new();
        loop {
            let (mark, seen) = self.next_tick("warm-up (flood)", limit)?;
            flood.extend(seen.live.map(|live| live.delivered as f64 / seen.seconds));
            // At least two whole seconds: without them there is no capacity to take a share of.
            if mark >= until && flood.len() >= 2 {
                break;
            }
        }
        let newer = &flood[flood.len() / 2..];
        Ok(newer.iter().sum::<f64>() / newer.len() as f64)
    }

    /// Writes every row of the short form once.
    fn populate(&mut self, limit: u64, phase: PlannedPhase) -> Result<(), LabError> {
        self.engine.set_pace(Pace::Populate { in_flight: warmup::POPULATE_IN_FLIGHT })?;
        loop {
            let (mark, _) = self.next_tick(FILLING, limit)?;
            let filled = self.engine.populated();
            if filled.done >= filled.total {
                return Ok(());
            }
            if let Some(refusal) = filled.refused {
                return Err(LabError::Trial(format!(
                    "the table cannot be filled: {} refused a row: {}",
                    refusal.coordinator, refusal.reason
                )));
            }
            if mark >= limit {
                return Err(too_short(phase, "rows", filled.total, filled.done, "load.population"));
            }
        }
    }

    /// Writes every partition of every table of the profiles once.
    fn fill_tables(&mut self, limit: u64, phase: PlannedPhase) -> Result<(), LabError> {
        let Some(filling) = &self.filling else { return Ok(()) };
        filling.begin()?;
        loop {
            let (mark, _) = self.next_tick(FILLING, limit)?;
            let Some(filling) = &self.filling else { return Ok(()) };
            if let Some(reason) = filling.refused() {
                return Err(LabError::Trial(format!("the tables cannot be filled: {reason}")));
            }
            if filling.is_done() {
                break;
            }
            if mark >= limit {
                let (all, begun) = filling.progress();
                return Err(too_short(phase, "partitions", all, begun, "load.partitions"));
            }
        }
        self.end_filling(Duration::ZERO)?;
        // Two engines in one interval would write its rows over one another: the load begins in the next.
        self.next_tick(FILLING, limit).map(drop)
    }

    /// Records what the filling still has, and lets go of it.
    fn end_filling(&mut self, grace: Duration) -> Result<(), LabError> {
        let Some(filling) = self.filling.take() else { return Ok(()) };
        let (buckets, balance) = filling.stop(grace);
        self.observer.buckets(&buckets)?;
        tell_unbalanced(&mut self.observer, &balance)
    }

    fn next_tick(&mut self, phase: &str, ends: u64) -> Result<(u64, Look), LabError> {
        let mark = self.time_line.next_mark(brownout_base::clock::monotonic_ns());
        self.time_line.wait_until(mark)?;
        Ok((mark, self.tick(phase, ends)?))
    }

    fn tick(&mut self, phase: &str, ends: u64) -> Result<Look, LabError> {
        let engine = self.filling.as_ref().map_or(&self.engine, Filling::engine);
        engine.health()?;
        let seen = self.observer.look(Some(engine))?;
        for death in &seen.deaths {
            self.progress.note(death);
        }
        if self.observer.dead().len() >= self.plan.layout.hosts.nodes().count() {
            let what = match self.plan.layout.is_external() {
                true => "no node answers any more; look at them where they run",
                false => "every node has died; their logs are in the run's directory",
            };
            return Err(LabError::Trial(what.to_owned()));
        }
        if let Some(live) = &seen.live {
            let left = ends.saturating_sub(brownout_base::clock::monotonic_ns());
            let median = |times| percentile(times, 50.0);
            self.progress.tick(&Tick {
                course: self.course,
                left_of_run: self.left_of_run(phase, left),
                phase: phase.to_owned(),
                left: Duration::from_nanos(left),
                offered: live.offered as f64 / seen.seconds,
                delivered: live.delivered as f64 / seen.seconds,
                failed: live.failed + live.timed_out + live.never_sent,
                p50_ns: median(&live.response),
                p99_ns: percentile(&live.response, 99.0),
                coordinators: live.coordinators.iter().map(|(name, latency)| (name.clone(), median(latency))).collect(),
                operations: seen.operations.clone(),
                faults: self.schedule.in_force(),
                busy: seen.busy,
            });
        }
        Ok(seen)
    }

    /// What is left of this phase, of those behind it, and of the trials behind this one.
    fn left_of_run(&self, phase: &str, left: u64) -> Duration {
        // A part of the warm-up is called after it: `warm-up (flood)`.
        let now = self.plan.phases.iter().position(|planned| phase.starts_with(planned.phase.name()));
        let behind = self.plan.phases.iter().skip(now.map_or(0, |at| at + 1));
        let behind: Duration = behind.map(|planned| planned.length.duration()).sum();
        Duration::from_nanos(left) + behind + self.course.behind
    }

    /// Heals, stops the load, and records what is left. After an interrupt, nothing is waited for.
    ///
    /// After a failure no database is started again: nobody would look at it.
    fn end(mut self, mut interrupted: bool, failed: bool) -> Result<(), LabError> {
        let line = self.time_line;
        // A filling that was broken off.
        let filled = self.end_filling(Duration::ZERO);
        let at_once = || failed || interrupted || line.interrupted();
        let healed = self.schedule.heal_all(&at_once, self.number, &mut self.observer);
        interrupted |= line.interrupted();
        let mut last = Ok(());
        if !interrupted {
            self.progress.step("waiting for the last operations and probes");
            last = self.wait_for_the_last();
        }
        let grace = if interrupted || last.is_err() { Duration::ZERO } else { OPEN_AFTER_TIMEOUT };
        let (buckets, balance) = self.engine.stop(grace);
        // What it says of a host that failed is told after all that is left has been recorded.
        let looked = self.observer.look(None);
        self.observer.buckets(&buckets)?;
        self.observer.last_probes()?;
        tell_unbalanced(&mut self.observer, &balance)?;
        let now = brownout_base::clock::monotonic_ns();
        for text in findings_of(&balance) {
            self.observer.event("warning", "load", &text, now, 0)?;
        }
        self.observer.own_faults()?;
        healed.and(filled).and(unless_interrupted(last)).and(looked.map(drop))
    }

    /// Starts no more operations, and waits until none is open.
    fn pause(&mut self) -> Result<(), LabError> {
        self.engine.set_pace(Pace::Idle)?;
        let longest = self.plan.experiment.load.timeout.duration() + OPEN_AFTER_TIMEOUT;
        let until = brownout_base::clock::monotonic_ns() + longest.as_nanos() as u64;
        while brownout_base::clock::monotonic_ns() < until {
            let live = self.engine.live();
            if live.in_flight + live.waiting == 0 {
                break;
            }
            self.time_line.wait_until(brownout_base::clock::monotonic_ns() + LOOK_EVERY.as_nanos() as u64)?;
        }
        Ok(())
    }

    /// Until no operation is open and every probe has arrived or is lost.
    fn wait_for_the_last(&mut self) -> Result<(), LabError> {
        let probes = self.observer.probes_settle_within() + OPEN_AFTER_TIMEOUT;
        let probes = brownout_base::clock::monotonic_ns() + probes.as_nanos() as u64;
        self.pause()?;
        self.time_line.wait_until(probes)?;
        // No tick comes after this: what died since the last one is seen here.
        Ok(self.engine.health()?)
    }
}

/// What went wrong in a trial. The lab stood, so whatever it was, it is not that this machine cannot build one.
fn of_trial(error: LabError) -> LabError {
    match error {
        LabError::Interrupted | LabError::Record(_) | LabError::Trial(_) => error,
        other => LabError::Trial(other.to_string()),
    }
}

/// An interrupted wait is only shorter; what else ends it has gone wrong.
fn unless_interrupted(waited: Result<(), LabError>) -> Result<(), LabError> {
    match waited {
        Err(LabError::Interrupted) => Ok(()),
        waited => waited,
    }
}

/// What a warm-up is called while tables are filled.
const FILLING: &str = "warm-up (filling)";

fn too_short(phase: PlannedPhase, what: &str, all: u64, done: u64, key: &str) -> LabError {
    LabError::Trial(format!(
        "the warm-up's {} were too short to write {all} {what} ({done} written); write a longer phases.warm-up or a \
         smaller {key}",
        phase.length
    ))
}

/// Tells of an account that does not balance.
fn tell_unbalanced(observer: &mut Observer<'_>, balance: &Balance) -> Result<(), LabError> {
    if balance.balances() {
        return Ok(());
    }
    let text = format!("the balance sheet of the load does not balance: {balance:?}");
    observer.event("balance", "load", &text, brownout_base::clock::monotonic_ns(), 0)
}

/// What a person should know of the load beside its latencies.
pub(crate) fn findings_of(balance: &Balance) -> Vec<String> {
    [
        (
            balance.missing,
            "reads found no row where a write had been acknowledged: data was lost, or is not visible yet",
        ),
        (balance.mismatched, "reads returned bytes that no write had written: data is corrupted"),
        (balance.stale, "reads returned an older version than one acknowledged before they were sent"),
        (balance.lost, "acknowledged writes were not there when a later read looked for them"),
        (balance.rerouted, "operations went to another coordinator because their own had no connection"),
        (balance.garbage, "connections were closed because they received bytes that make no sense"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect()
}

#[cfg(test)]
mod tests {
    use brownout_load::LoadError;

    use super::*;

    #[test]
    fn a_load_that_dies_while_the_last_answers_are_awaited_fails_the_trial_and_an_interrupt_does_not() {
        let died = || LabError::from(LoadError::ThreadDied { thread: 0, reason: "it panicked".to_owned() });
        let waited = unless_interrupted(Err(died())).map_err(of_trial);
        assert!(waited.is_err_and(|error| error.exit_code() == 3 && error.to_string().contains("it panicked")));
        assert!(unless_interrupted(Err(LabError::Interrupted)).is_ok());
        assert!(unless_interrupted(Ok(())).is_ok());
    }
}
