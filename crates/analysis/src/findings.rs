//! The findings of a run: the JSON object of `--json`, documented in `docs/json.md`.

use brownout_record::{Arm, CellRow, Description, Environment, Event, RecordError, Run, SearchDescription, TrialRow};
use serde::Serialize;

use crate::{
    AnalysisError, CellFindings, DesignFindings, FactorFindings, LabFindings, Lesson, NodeDeath, PhaseFindings,
    SearchFindings, TrialEvidence, TrialFindings, Validity, Verdict, balance,
    cells::{self, CellSums},
    clocks, database, detectors, drift, effects,
    explained::{self, Measured},
    factors, gave_up, goodput, harm, instrument, labs, little, machines,
    membership::is_own,
    proof, search, standstill,
    sums::PhaseSums,
    verdict, warnings, watches,
};

/// Version of the JSON object; raised when a field changes its meaning or goes.
pub const FORMAT: u32 = 5;

/// All that a run says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    /// Version of this object.
    pub format: u32,
    /// The experiment's name.
    pub name: String,
    /// The question it asks.
    pub question: Option<String>,
    /// What was changed in the file for this run (`--set`), each as KEY=VALUE.
    pub set: Vec<String>,
    /// Wall-clock time of the run's start, ms since 1970 UTC.
    pub started_unix_ms: u64,
    /// What varies, and how often each combination was to be tried.
    pub design: DesignFindings,
    /// Length of an interval of the series, ns.
    pub interval_ns: u64,
    /// The machine and the versions; none if the run was killed before they were known.
    pub environment: Option<Environment>,
    /// The verdict.
    pub verdict: Verdict,
    /// Each combination of levels; one, where nothing varies.
    pub cells: Vec<CellFindings>,
    /// What each factor does by itself, and with another.
    pub factors: Vec<FactorFindings>,
    /// What a search has found; none: nothing was searched.
    pub search: Option<SearchFindings>,
    /// The labs that ran trials; one, where none ran beside another.
    pub labs: Vec<LabFindings>,
    /// Each trial.
    pub trials: Vec<TrialFindings>,
    /// Things to check before trusting the result.
    pub warnings: Vec<String>,
}

/// Analyses a run: a pure function of its file. Works on interrupted, killed and still running ones.
pub fn findings(run: &Run) -> Result<Findings, AnalysisError> {
    let rows = run.cells()?;
    let first = run.description()?;
    let events = run.events()?;
    let design = cells::design(run, &rows)?;
    let mut sums: Vec<CellSums> = rows.iter().map(|_| CellSums::default()).collect();
    let mut trials = Vec::new();
    for row in run.trials()? {
        let (trial, phases) = of_trial(run, &row, &rows)?;
        let own = rows.iter().position(|cell| is_own(cell, &trial));
        if let Some(own) = own {
            sums[own].add(&trial, phases);
        }
        trials.push(trial);
    }
    let mut cells = cells::cells(&design, &rows, &trials, &sums);
    let search = search::search(&design, &rows, &trials)?;
    match &search {
        // A search gives levels its trials, not cells their blocks.
        Some(_) => {
            effects::not_judged(&mut cells, &rows, &trials, "a search judges where limits are, not single cells")
        }
        None => effects::judge(&mut cells, &rows, &trials, design.margin),
    }
    // What ended an earlier session, another one has gone on after.
    let session_ns = run.sessions()?.last().map_or(0, |session| session.starts_ns);
    let latest: Vec<Event> =
        events.iter().filter(|event| event.trial.is_some() || event.at_ns >= session_ns).cloned().collect();
    let verdict = verdict::verdict(&design, search.as_ref(), &mut cells, &trials, &latest);
    Ok(Findings {
        format: FORMAT,
        started_unix_ms: run.started_unix_ms()?,
        environment: run.environment()?,
        verdict,
        factors: if search.is_none() { factors::factors(&design, &rows, &trials) } else { Vec::new() },
        search,
        warnings: warnings::warnings(&design, &rows, &events, &trials),
        cells,
        labs: labs::labs(&trials),
        trials,
        name: first.name,
        question: first.question,
        set: run.set()?,
        design,
        interval_ns: first.interval_ns,
    })
}

/// What one trial has shown, of a run that is still being made.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Whether its evidence can be used.
    pub validity: Validity,
    /// Why not.
    pub reasons: Vec<String>,
    /// What a search learns from it; none: nothing is searched.
    pub lesson: Option<Lesson>,
}

/// Judges trials one by one.
pub struct Judge<'a> {
    run: &'a Run,
    cells: Vec<CellRow>,
    search: Option<SearchDescription>,
}

impl<'a> Judge<'a> {
    /// That of a run.
    ///
    /// # Errors
    /// The run's design cannot be read.
    pub fn new(run: &'a Run) -> Result<Self, AnalysisError> {
        Ok(Judge { run, cells: run.cells()?, search: run.design()?.and_then(|design| design.search) })
    }

    /// What one trial has shown.
    ///
    /// # Errors
    /// The trial cannot be read.
    pub fn judged(&self, row: &TrialRow) -> Result<Judged, AnalysisError> {
        let (trial, _) = of_trial(self.run, row, &self.cells)?;
        let cell = self.cells.iter().find(|cell| cell.cell == row.cell);
        let lesson = self.search.as_ref().zip(cell).map(|(search, cell)| search::lesson(search, cell, &trial));
        Ok(Judged { validity: trial.validity, reasons: trial.invalid, lesson })
    }
}

fn of_trial(run: &Run, row: &TrialRow, cells: &[CellRow]) -> Result<(TrialFindings, Vec<PhaseSums>), AnalysisError> {
    let cell = cells.iter().find(|cell| cell.cell == row.cell);
    let missing = || format!("trial {} is of cell {}, which is not there", row.trial, row.cell);
    let cell = cell.ok_or_else(|| RecordError::Damaged { what: "trial", why: missing() })?;
    let mut description = cell.description.clone();
    if row.arm == Arm::None {
        description.faults.clear();
    }
    let evidence = TrialEvidence::read_all(run, row)?;
    let of_window = |window| PhaseSums::of(&evidence, window, &description.objective);
    let sums: Vec<PhaseSums> = evidence.phases.iter().map(of_window).collect();
    Ok((trial(&description, &evidence, &sums)?, sums))
}

fn trial(
    description: &Description,
    evidence: &TrialEvidence,
    sums: &[PhaseSums],
) -> Result<TrialFindings, AnalysisError> {
    let phases: Vec<PhaseFindings> = sums.iter().map(|sums| sums.findings(&description.objective)).collect();
    let effect = goodput::effect(evidence, &description.objective);
    let deaths = evidence.events.iter().filter(|event| event.kind == "node-died").map(|event| NodeDeath {
        node: event.subject.clone(),
        at_ns: event.at_ns,
        of_its_disk: gave_up::of_its_disk(&evidence.faults, &event.subject, event.at_ns),
        text: event.text.clone(),
    });
    let faults = proof::proofs(evidence)?;
    let closed_loop = little::closed_loop(description, evidence, &phases);
    let mut trial = TrialFindings {
        trial: evidence.row.trial,
        planned: evidence.row.planned,
        cell: evidence.row.cell,
        block: evidence.row.block,
        arm: evidence.row.arm,
        attempt: evidence.row.attempt,
        stand: evidence.row.stand,
        lab: evidence.row.lab,
        processors: Some(evidence.row.processors.clone()).filter(|list| !list.is_empty()),
        seed: evidence.row.seed,
        state: evidence.row.state.to_string(),
        cut: evidence.cut(),
        starts_ns: evidence.row.starts_ns,
        ends_ns: evidence.ends_ns,
        validity: Validity::Valid,
        invalid: Vec::new(),
        explained: explained::explained(
            description,
            evidence,
            &Measured { sums, phases: &phases, closed_loop: closed_loop.as_ref(), effect: &effect },
        ),
        baseline_change: drift::of_baseline(evidence),
        closed_loop,
        standstill: standstill::standstill(description, evidence, sums, &phases),
        phases,
        effect,
        harm: harm::harm(description, evidence, &faults)?,
        harm_not_judged: harm::not_judged(description, evidence),
        faults,
        instrument: instrument::instrument(evidence)?,
        balance: balance::balance(evidence),
        detectors: detectors::detectors(description, evidence),
        clocks: clocks::clock_matrices(evidence),
        machines: machines::machines(evidence),
        watches: watches::watches(evidence),
        database: database::database(description, evidence),
        encryption: proof::encryption(description, evidence),
        deaths: deaths.collect(),
        meanwhile: machines::meanwhile(evidence),
    };
    (trial.validity, trial.invalid) = verdict::of_trial(description, evidence, &trial);
    Ok(trial)
}
