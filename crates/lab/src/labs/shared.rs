//! What the labs of a run share: the design, what is settled of it, and what comes next.

use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use brownout_analysis::Lesson;
use brownout_record::{CellRow, Recorder};

use super::turns::Turns;
use crate::{
    LabError,
    design::{Design, PlannedTrial},
    experiment::Source,
    ground::Interrupts,
    made::Made,
    plan::Plan,
    planner::{Expected, Next, Planner, Which},
    progress::Course,
    shares::Labs,
};

/// How long a lab that waits for its turn may not notice an interrupt.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The run, as all of its labs see it.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// A trial was begun or settled, or all is to end.
    changed: Condvar,
    labs: Labs,
    interrupts: Interrupts,
}

struct State {
    design: Design,
    planner: Planner,
    made: Made,
    turns: Turns,
    /// How long each trial was expected to take, by its number.
    expected: BTreeMap<u32, Expected>,
    /// What those that were tried have taken, and what was expected of them.
    taken: Duration,
    expected_of_taken: Duration,
    /// Whether this session has had a stand.
    stood: bool,
    /// A lab cannot go on, and so none does.
    stopped: bool,
}

/// A trial that a lab is to run now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    /// The trial.
    pub(crate) planned: PlannedTrial,
    /// How often it was tried before.
    pub(crate) attempts: u32,
    /// How often it is tried at most.
    pub(crate) most_attempts: u32,
}

/// One attempt at a trial.
pub(crate) struct Attempt {
    /// What its randomness is drawn from.
    pub(crate) seed: u64,
    /// Its plan.
    pub(crate) plan: Plan,
    /// The number of its layout.
    pub(crate) layout: usize,
    /// The first cell with the same load.
    pub(crate) load: usize,
    /// What it is called.
    pub(crate) title: String,
    /// Its own number: from 1, in the order in which trials were begun.
    pub(crate) number: u32,
    /// Its index among all.
    pub(crate) course: Course,
}

impl Shared {
    /// A run of which so much is made. `working` are the labs that will ask, of those that there are room and
    /// processors for.
    pub(crate) fn new(
        design: Design,
        only: Option<u32>,
        made: Made,
        labs: Labs,
        working: usize,
        interrupts: Interrupts,
    ) -> Self {
        let planner = Planner::new(&design).only(only);
        let state = State {
            expected: planner.expected(&design),
            planner,
            design,
            made,
            turns: Turns::new(working),
            taken: Duration::ZERO,
            expected_of_taken: Duration::ZERO,
            stood: false,
            stopped: false,
        };
        Shared { state: Mutex::new(state), changed: Condvar::new(), labs, interrupts }
    }

    /// A lab that panicked is the end of the run; until then the others only have to end their trials.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the labs were promised of the machine.
    pub(crate) fn labs(&self) -> &Labs {
        &self.labs
    }

    /// What asks for the end.
    pub(crate) fn interrupts(&self) -> Interrupts {
        self.interrupts
    }

    /// The next trial for a lab, by its number from 0, once it may begin; none: there is none left. A cell that nobody
    /// has chosen before is recorded as `row` describes it.
    pub(crate) fn take(
        &self,
        lab: usize,
        recorder: &mut Recorder,
        row: &dyn Fn(&Design, usize) -> CellRow,
    ) -> Result<Option<Ready>, LabError> {
        let mut state = self.state();
        loop {
            if state.stopped {
                return Ok(None);
            }
            let under_way = state.turns.under_way();
            let Some(next) = state.planner.next_beside(&state.made.settled, &under_way) else { return Ok(None) };
            let at_once = self.labs.at_once(state.parallel(&next));
            if state.turns.may_take(lab, at_once) {
                let planned = state.planned(next, recorder, row)?;
                state.turns.take(lab, planned.number, at_once);
                // The next one may have its turn now.
                self.changed.notify_all();
                let attempts = state.made.attempts.get(&planned.number).copied().unwrap_or_default();
                return Ok(Some(Ready { planned, attempts, most_attempts: state.design.attempts }));
            }
            if self.interrupts.any() {
                return Err(LabError::Interrupted);
            }
            state = self.changed.wait_timeout(state, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A lab is done with a trial, and this is what a search learns from it; none: no attempt is valid.
    pub(crate) fn settle(&self, lab: usize, planned: PlannedTrial, lesson: Option<Option<Lesson>>) {
        let mut state = self.state();
        let lesson = lesson.unwrap_or_else(|| state.nothing(planned));
        state.made.settled.insert(planned.number, lesson);
        state.turns.done(lab);
        self.changed.notify_all();
    }

    /// An attempt at a trial begins.
    pub(crate) fn attempt(&self, planned: PlannedTrial, attempt: u32) -> Result<Attempt, LabError> {
        let mut state = self.state();
        let (seed, plan) = state.design.drawn(planned, attempt)?;
        state.made.trials += 1;
        let number = state.made.trials;
        let trials = state.planner.most_trials() as u32;
        let again = if attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
        let title = format!("{}{again}", state.design.title(planned, trials as usize));
        let course = Course { trial: planned.number, trials, behind: state.left(&self.labs) };
        let cell = &state.design.cells[planned.cell];
        let (layout, load) = (cell.layout, cell.sharing);
        Ok(Attempt { seed, plan, layout, load, title, number, course })
    }

    /// An attempt took so long, for what will be left after others.
    pub(crate) fn took(&self, planned: PlannedTrial, taken: Duration) {
        let mut state = self.state();
        state.taken += taken;
        let expected = state.expected.get(&planned.number).map_or(Duration::ZERO, |expected| expected.length);
        state.expected_of_taken += expected;
    }

    /// Whether this session has had a stand.
    pub(crate) fn stood(&self) -> bool {
        self.state().stood
    }

    /// A lab stands. The environment is known from now on; whether it was not.
    pub(crate) fn stands(&self) -> bool {
        let mut state = self.state();
        state.stood = true;
        !std::mem::replace(&mut state.made.environment, true)
    }

    /// Of a search, the levels that have become cells, in order; else none.
    pub(crate) fn levels(&self) -> Vec<String> {
        let state = self.state();
        let cells = if state.design.search.is_some() { state.design.cells.len() } else { 0 };
        (0..cells).map(|cell| state.design.level(cell).to_owned()).collect()
    }

    /// From now on trials are of this file, which asks the same of hosts that are elsewhere now.
    pub(crate) fn hosts_moved(&self, source: &Source) -> Result<(), LabError> {
        let mut design = Design::new(source)?;
        self.levels().iter().try_for_each(|level| design.cell_of(level).map(drop))?;
        self.state().design = design;
        Ok(())
    }

    /// What all randomness of the run is drawn from.
    pub(crate) fn seed(&self) -> u64 {
        self.state().design.seed
    }

    /// A lab cannot go on: the others heal and end, as after an interrupt.
    pub(crate) fn stop(&self) {
        self.state().stopped = true;
        self.interrupts.raise();
        self.changed.notify_all();
    }
}

impl State {
    /// How many may be under way with what comes next, as its file says. A search has one at a time.
    fn parallel(&self, next: &Next) -> Option<u32> {
        match (&next.cell, self.design.search.is_some()) {
            (Which::Known(cell), false) => self.design.cells[*cell].plan.parallel,
            _ => Some(1),
        }
    }

    /// A trial with its cell.
    fn planned(
        &mut self,
        next: Next,
        recorder: &mut Recorder,
        row: &dyn Fn(&Design, usize) -> CellRow,
    ) -> Result<PlannedTrial, LabError> {
        let cell = match &next.cell {
            Which::Known(cell) => *cell,
            Which::Of(level) => {
                let known = self.design.cells.len();
                let cell = self.design.cell_of(level)?;
                if cell >= known {
                    let row = row(&self.design, cell);
                    recorder.batch(|recorder| recorder.cell(&row))?;
                }
                cell
            }
        };
        Ok(PlannedTrial { number: next.number, block: next.block, cell, arm: next.arm })
    }

    /// What a search learns from a trial of which no attempt is valid.
    fn nothing(&self, trial: PlannedTrial) -> Option<Lesson> {
        self.design.search.as_ref()?;
        let level = self.design.level(trial.cell).to_owned();
        Some(Lesson { level, arm: trial.arm, log_ratio: None, kept: None })
    }

    /// What the trials that have not begun will take, by what others took.
    fn left(&self, labs: &Labs) -> Duration {
        let under_way = self.turns.under_way();
        let is_behind = |number: &u32| !under_way.contains(number) && !self.made.settled.contains_key(number);
        let behind = self.expected.iter().filter(|(number, _)| is_behind(number));
        let expected: Duration =
            behind.map(|(_, expected)| expected.shared_by(|parallel| labs.at_once(parallel))).sum();
        match self.expected_of_taken.is_zero() {
            true => expected,
            false => expected.mul_f64(self.taken.as_secs_f64() / self.expected_of_taken.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, thread};

    use super::*;
    use crate::planner::Settled;

    const FILE: &str = "\
load: { rate: 400/s, population: 1_000 }
phases: { warm-up: 20s, baseline: 10s, fault: 20s, recovery: 10s }
faults: [{ slow: { host: n2, delay: \"${delay}\" } }]
objective: { p95: 100ms }
trials: 4
";

    /// Three labs work off a design without doing anything; of each trial its number, and how many were under way.
    fn worked(vary: &str, settled: Settled) -> Vec<(PlannedTrial, u32, usize)> {
        let source = Source::from_text(Path::new("some.yaml"), format!("{FILE}{vary}")).unwrap();
        let design = Design::new(&source).unwrap();
        let labs = Labs { processors: vec![vec![0], vec![1], vec![2]], reason: String::new() };
        let made = Made { trials: 7, stands: 0, environment: false, settled, attempts: BTreeMap::new() };
        let shared = Shared::new(design, None, made, labs, 3, Interrupts::unheard());
        let (directory, done) = (tempfile::tempdir().unwrap(), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for lab in 0..3 {
                let (shared, done, path) = (&shared, &done, directory.path().join(format!("{lab}.db")));
                scope.spawn(move || {
                    let mut recorder = Recorder::create(&path, 0, 0).unwrap();
                    let known = |_: &Design, _: usize| -> CellRow { unreachable!("all cells are known") };
                    while let Some(ready) = shared.take(lab, &mut recorder, &known).unwrap() {
                        let attempt = shared.attempt(ready.planned, ready.attempts + 1).unwrap();
                        let under_way = shared.state().turns.under_way().len();
                        done.lock().unwrap().push((ready.planned, attempt.number, under_way));
                        thread::sleep(Duration::from_millis(1));
                        shared.took(ready.planned, Duration::from_secs(60));
                        shared.settle(lab, ready.planned, None);
                    }
                });
            }
        });
        done.into_inner().unwrap()
    }

    #[test]
    fn labs_that_ask_at_once_get_every_missing_trial_once_and_numbers_of_their_own() {
        let settled = Settled::from([(2, None), (9, None)]);
        let mut done = worked("vary: { delay: [50ms, 60ms, 70ms] }\nparallel: 3\n", settled);
        assert!(done.iter().all(|(_, _, under_way)| *under_way <= 3), "{done:?}");
        done.sort_by_key(|(_, number, _)| *number);
        assert_eq!(done.iter().map(|(_, number, _)| *number).collect::<Vec<_>>(), (8..=21).collect::<Vec<_>>());
        done.sort_by_key(|(planned, ..)| planned.number);
        let missing: Vec<u32> = (1..=16).filter(|number| ![2, 9].contains(number)).collect();
        assert_eq!(done.iter().map(|(planned, ..)| planned.number).collect::<Vec<_>>(), missing);
    }

    #[test]
    fn a_trial_that_is_to_be_alone_is() {
        let done = worked("vary: { delay: [50ms], parallel: [1, 3] }\n", Settled::new());
        assert_eq!(done.len(), 16);
        // The first cell is that of parallel: 1.
        let alone = done.iter().filter(|(planned, ..)| planned.cell == 0);
        assert!(alone.clone().count() == 8 && alone.clone().all(|(_, _, under_way)| *under_way == 1), "{done:?}");
    }
}
