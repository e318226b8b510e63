//! The findings of a run: the JSON object of `--json`, documented in `docs/json.md`.

use brownout_record::{Description, Environment, HostDescription, LoadDescription, Objective, PhaseDescription, Run};
use serde::Serialize;

use crate::{
    AnalysisError, NodeDeath, OperationEffect, PhaseFindings, TrialEvidence, TrialFindings, Validity, Verdict, balance,
    explained::{self, Measured},
    goodput, harm, instrument, little, operations,
    phases::spread,
    proof, standstill,
    sums::PhaseSums,
    verdict, warnings,
};

/// Version of the JSON object; raised when a field changes its meaning or goes.
pub const FORMAT: u32 = 2;

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
    /// "Cassandra 5.0.9".
    pub system: String,
    /// The hosts of the lab.
    pub hosts: Vec<HostDescription>,
    /// The network between them, in words; empty: one LAN without limits.
    pub network: Vec<String>,
    /// The load as planned.
    pub load: LoadDescription,
    /// What counts as good.
    pub objective: Objective,
    /// The phases as planned.
    pub planned_phases: Vec<PhaseDescription>,
    /// The faults as planned, in words.
    pub planned_faults: Vec<String>,
    /// Trials planned.
    pub planned_trials: u32,
    /// Length of an interval of the series, ns.
    pub interval_ns: u64,
    /// The machine and the versions; none if the run was killed before they were known.
    pub environment: Option<Environment>,
    /// The verdict.
    pub verdict: Verdict,
    /// Each phase over all trials: percentiles of the union of their operations.
    pub phases: Vec<PhaseFindings>,
    /// What the fault took from each operation.
    pub operations: Vec<OperationEffect>,
    /// Each trial.
    pub trials: Vec<TrialFindings>,
    /// Things to check before trusting the result.
    pub warnings: Vec<String>,
}

/// Analyses a run: a pure function of its file. Works on interrupted, killed and still running ones.
pub fn findings(run: &Run) -> Result<Findings, AnalysisError> {
    let description = run.description()?;
    let environment = run.environment()?;
    let events = run.events()?;
    let mut union: Vec<PhaseSums> = Vec::new();
    let mut trials = Vec::new();
    for row in run.trials()? {
        let evidence = TrialEvidence::read_all(run, &row)?;
        let mut sums = Vec::new();
        for window in &evidence.phases {
            sums.push(PhaseSums::of(&evidence, window, &description.objective));
        }
        trials.push(trial(&description, &evidence, &sums)?);
        for phase in sums {
            match union.iter_mut().find(|known| known.name() == phase.name()) {
                Some(known) => known.add(&phase),
                None => union.push(phase),
            }
        }
    }
    let seed = environment.as_ref().map_or(0, |environment| environment.seed);
    let verdict = verdict::verdict(&description, &trials, &events, seed);
    let merged = union.iter().map(|sums| {
        let mut phase = sums.findings(&description.objective);
        let same = trials.iter().flat_map(|trial| &trial.phases).filter(|one| one.name == phase.name);
        phase.spread = Some(spread(&same.cloned().collect::<Vec<_>>()));
        phase
    });
    let phases: Vec<PhaseFindings> = merged.collect();
    Ok(Findings {
        format: FORMAT,
        started_unix_ms: run.started_unix_ms()?,
        environment,
        verdict,
        operations: operations::effects(&phases, &trials),
        phases,
        warnings: warnings::warnings(&description, &events, &trials),
        trials,
        name: description.name,
        question: description.question,
        set: run.document("set")?.unwrap_or_default().lines().map(str::to_owned).collect(),
        system: description.system,
        hosts: description.hosts,
        network: description.network,
        load: description.load,
        objective: description.objective,
        planned_phases: description.phases,
        planned_faults: description.faults,
        planned_trials: description.trials,
        interval_ns: description.interval_ns,
    })
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
        text: event.text.clone(),
    });
    let faults = proof::proofs(evidence)?;
    let closed_loop = little::closed_loop(description, evidence, &phases);
    let mut trial = TrialFindings {
        trial: evidence.row.trial,
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
        closed_loop,
        standstill: standstill::standstill(description, evidence, sums, &phases),
        phases,
        effect,
        harm: harm::harm(description, evidence, &faults)?,
        faults,
        instrument: instrument::instrument(evidence)?,
        balance: balance::balance(evidence),
        deaths: deaths.collect(),
    };
    (trial.validity, trial.invalid) = verdict::of_trial(description, evidence, &trial);
    Ok(trial)
}
