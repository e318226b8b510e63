//! The cells of a design: what their trials have shown, and what the faults did in each.

use brownout_record::{CellRow, HostDescription, LoadDescription, Objective, PhaseDescription, Run, SearchDescription};
use serde::Serialize;

use crate::{
    AnalysisError, CellEffect, DetectorSummary, Loss, MARGIN, OperationEffect, PhaseFindings, RecoveryOverTrials,
    TrialFindings, Validity, detector_summary, losses,
    membership::{is_compared, is_own},
    operations,
    phases::spread,
    recovery,
    sums::PhaseSums,
};

/// What varies, and how often each combination was to be tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DesignFindings {
    /// What varies; empty: nothing, there is one cell.
    pub factors: Vec<Factor>,
    /// How often each cell was to be run.
    pub blocks: u32,
    /// Trials without a fault beside it in each block.
    pub without_fault: u32,
    /// Times that a trial is tried until one is valid.
    pub attempts: u32,
    /// Trials planned, without those that are repeated; of a search how many at most.
    pub trials: u32,
    /// The number of the one trial that was to be run; none: all.
    pub only: Option<u32>,
    /// How many labs worked at once, at most.
    pub labs: u32,
    /// A relative change that is smaller is none.
    pub margin: f64,
    /// What is searched, as planned.
    #[serde(skip)]
    pub(crate) search: Option<SearchDescription>,
}

/// Something that varies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Factor {
    /// Its name in the file.
    pub name: String,
    /// Its levels, in the file's order; of a search in the order of the cells.
    pub levels: Vec<String>,
}

/// One combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellFindings {
    /// From 1.
    pub cell: u32,
    /// The name of its level of each factor.
    pub levels: Vec<String>,
    /// In words: "delay 10ms, consistency one"; empty where nothing varies.
    pub text: String,
    /// "Cassandra 5.0.9", "etcd 3.6.16".
    pub database: String,
    /// Whether the cluster was there before the run: its hosts and its network are none of the lab's.
    pub external: bool,
    /// The hosts of the lab; of an external cluster its nodes, as they were asked, and the load.
    pub hosts: Vec<HostDescription>,
    /// The network between them, in words; empty: one LAN without limits, or, of an external cluster, not known.
    pub network: Vec<String>,
    /// What the hosts' packets are carried in: `wireguard`; empty: nothing.
    pub overlay: String,
    /// What the database itself encrypts, in words, one line each; empty: nothing.
    pub encryption: Vec<String>,
    /// The load as planned.
    pub load: LoadDescription,
    /// What counts as good.
    pub objective: Objective,
    /// The phases as planned.
    pub planned_phases: Vec<PhaseDescription>,
    /// The faults as planned, in words.
    pub planned_faults: Vec<String>,
    /// Numbers of its valid trials.
    pub valid_trials: Vec<u32>,
    /// Numbers of the valid trials without a fault that it is compared with.
    pub compared_with: Vec<u32>,
    /// Each phase over its valid trials (if there is none, over all): percentiles of the union of their operations.
    pub phases: Vec<PhaseFindings>,
    /// What the faults took from each operation.
    pub operations: Vec<OperationEffect>,
    /// How long goodput took to come back, over its valid trials; none of fewer than two.
    pub recovery: Option<RecoveryOverTrials>,
    /// What its trials lost against their own baselines, with what arithmetic says of that: means over its valid trials that have a
    /// prediction.
    pub losses: Vec<Loss>,
    /// Whether anyone would have noticed: each detector over its valid trials and those without a fault that it is compared with.
    pub detectors: Vec<DetectorSummary>,
    /// What the faults did to goodput.
    pub effect: CellEffect,
    /// What the faults did to other figures: `delivered`, `p50`, `p99`.
    pub figures: Vec<CellEffect>,
    /// What follows for it, in one sentence.
    pub sentence: String,
}

/// The phases of a cell's trials, added up: of the valid ones, or while there is none, of all.
#[derive(Default)]
pub(crate) struct CellSums {
    is_valid: bool,
    phases: Vec<PhaseSums>,
}

impl CellSums {
    /// One trial more.
    pub(crate) fn add(&mut self, trial: &TrialFindings, phases: Vec<PhaseSums>) {
        let is_valid = trial.validity == Validity::Valid;
        if is_valid && !self.is_valid {
            *self = CellSums { is_valid, phases };
        } else if is_valid == self.is_valid {
            for phase in phases {
                match self.phases.iter_mut().find(|known| known.name() == phase.name()) {
                    Some(known) => known.add(&phase),
                    None => self.phases.push(phase),
                }
            }
        }
    }
}

/// The design of a run. One of before there were designs has one cell.
pub(crate) fn design(run: &Run, cells: &[CellRow]) -> Result<DesignFindings, AnalysisError> {
    let planned = cells.first().map_or(0, |cell| cell.description.trials);
    Ok(match run.design()? {
        Some(design) => DesignFindings {
            factors: design
                .factors
                .into_iter()
                .map(|one| Factor {
                    name: one.name,
                    // The cells of a search are made as they are chosen.
                    levels: match design.search {
                        Some(_) => cells.iter().filter_map(|cell| cell.levels.first().cloned()).collect(),
                        None => one.levels,
                    },
                })
                .collect(),
            search: design.search,
            blocks: design.blocks,
            without_fault: design.without_fault,
            attempts: design.attempts,
            trials: design.trials,
            only: design.only,
            labs: design.labs,
            margin: design.margin.unwrap_or(MARGIN),
        },
        None => DesignFindings {
            factors: Vec::new(),
            blocks: planned,
            without_fault: 0,
            attempts: 1,
            trials: planned,
            only: None,
            labs: 1,
            margin: MARGIN,
            search: None,
        },
    })
}

/// A cell's levels in words: "delay 10ms, consistency one"; empty where nothing varies.
pub(crate) fn text(design: &DesignFindings, row: &CellRow) -> String {
    let words = design.factors.iter().zip(&row.levels).map(|(factor, level)| format!("{} {level}", factor.name));
    words.collect::<Vec<_>>().join(", ")
}

/// The cells, before their effects are judged.
pub(crate) fn cells(
    design: &DesignFindings,
    rows: &[CellRow],
    trials: &[TrialFindings],
    sums: &[CellSums],
) -> Vec<CellFindings> {
    rows.iter().zip(sums).map(|(row, sums)| cell(design, row, trials, sums)).collect()
}

fn cell(design: &DesignFindings, row: &CellRow, trials: &[TrialFindings], sums: &CellSums) -> CellFindings {
    let own: Vec<&TrialFindings> = trials.iter().filter(|trial| is_own(row, trial)).collect();
    let valid: Vec<&TrialFindings> = own.iter().copied().filter(|trial| trial.validity == Validity::Valid).collect();
    let shown = if valid.is_empty() { own } else { valid.clone() };
    let description = &row.description;
    let merged = sums.phases.iter().map(|sums| {
        let mut phase = sums.findings(&description.objective);
        let same = shown.iter().flat_map(|trial| &trial.phases).filter(|one| one.name == phase.name);
        phase.spread = Some(spread(&same.cloned().collect::<Vec<_>>()));
        phase
    });
    let phases: Vec<PhaseFindings> = merged.collect();
    let numbers = |trials: Vec<&TrialFindings>| trials.into_iter().map(|trial| trial.trial).collect();
    let compared = trials.iter().filter(|trial| is_compared(row, trial) && trial.validity == Validity::Valid);
    CellFindings {
        cell: row.cell,
        levels: row.levels.clone(),
        text: text(design, row),
        database: description.database.clone(),
        external: description.external,
        hosts: description.hosts.clone(),
        network: description.network.clone(),
        overlay: description.overlay.clone(),
        encryption: description.encryption.clone(),
        load: description.load.clone(),
        objective: description.objective.clone(),
        planned_phases: description.phases.clone(),
        planned_faults: description.faults.clone(),
        compared_with: numbers(compared.collect()),
        operations: operations::effects(&phases, &shown),
        recovery: recovery::over_trials(&valid),
        losses: losses::over_trials(&valid),
        detectors: detector_summary::summaries(trials.iter().filter(|one| is_own(row, one) || is_compared(row, one))),
        valid_trials: numbers(valid),
        phases,
        effect: CellEffect::default(),
        figures: Vec::new(),
        sentence: String::new(),
    }
}
