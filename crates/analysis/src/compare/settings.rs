//! What the sides were asked for and ran on, where that is not the same.

use brownout_record::Run;

use super::object::Setting;
use crate::AnalysisError;

/// All settings of a side's runs, in words: of each what its runs say, each text once.
pub(super) struct Settings(Vec<(&'static str, Vec<String>)>);

impl Settings {
    /// Those of some runs.
    pub(super) fn of(runs: &[Run]) -> Result<Self, AnalysisError> {
        let mut all: Vec<(&'static str, Vec<String>)> = Vec::new();
        for run in runs {
            for (name, text) in given(run)? {
                match all.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, texts)) if texts.contains(&text) => {}
                    Some((_, texts)) => texts.push(text),
                    None => all.push((name, vec![text])),
                }
            }
        }
        all.iter_mut().for_each(|(_, texts)| texts.sort_unstable());
        Ok(Settings(all))
    }

    /// What the other side does not have in common with this one.
    pub(super) fn differing(&self, b: &Settings) -> Vec<Setting> {
        let differ = self.0.iter().zip(&b.0).filter(|((_, a), (_, b))| a != b);
        differ.map(|((name, a), (_, b))| Setting { name: (*name).to_owned(), a: joined(a), b: joined(b) }).collect()
    }

    /// What the runs of this side do not have in common: `load: a | b`.
    pub(super) fn mixed(&self) -> impl Iterator<Item = String> {
        let mixed = self.0.iter().filter(|(_, texts)| texts.len() > 1);
        mixed.map(|(name, texts)| format!("{name}: {}", joined(texts)))
    }
}

fn joined(texts: &[String]) -> String {
    texts.join(" | ")
}

fn given(run: &Run) -> Result<Vec<(&'static str, String)>, AnalysisError> {
    let plan = run.description()?;
    // Beside others a trial may be slower than alone.
    let labs = run.design()?.map_or(1, |design| design.labs);
    let environment = run.environment()?.unwrap_or_default();
    let nodes = plan.hosts.iter().filter(|host| host.role == "node").count();
    let phases: Vec<String> = plan
        .phases
        .iter()
        .map(|phase| format!("{} {}", phase.name, brownout_units::format_ns(phase.length_ns as f64)))
        .collect();
    let objective = &plan.objective;
    let good = format!(
        "{:.2}% within {}{}",
        objective.share * 100.0,
        brownout_units::format_ns(objective.response_ns as f64),
        objective.operation.as_ref().map_or_else(String::new, |name| format!(" of {name}"))
    );
    Ok(vec![
        ("system", plan.system),
        ("its settings", environment.system_settings),
        ("java", environment.java),
        ("nodes", nodes.to_string()),
        ("network", plan.network.join("; ")),
        ("congestion control", environment.congestion_control),
        ("load", plan.load.text),
        ("consistency", plan.load.consistency),
        ("replication", plan.load.replication.to_string()),
        ("time-out", brownout_units::format_ns(plan.load.timeout_ns as f64)),
        ("good", good),
        ("phases", phases.join(", ")),
        ("faults", plan.faults.join("; ")),
        ("brownout", environment.version),
        ("kernel", environment.kernel),
        ("processor", format!("{} × {}", environment.cores, environment.cpu)),
        ("labs at once", labs.to_string()),
        ("clock source", environment.clock_source),
        ("emulator", environment.emulator_scheduling),
    ])
}
