//! What the sides were asked for and ran on, where that is not the same.

use brownout_record::{Description, HostDescription, Run};

use super::object::Setting;
use crate::{AnalysisError, cells};

/// All settings of a side's runs, in words: of each what its runs say, each text once.
pub(super) struct Settings(Vec<Given>);

/// One setting; of a plan, of one of its cells.
struct Given {
    /// The cell's levels in words; empty where nothing varies, and for what all cells ran on.
    cell: String,
    name: &'static str,
    texts: Vec<String>,
}

impl Given {
    fn is(&self, cell: &str, name: &str) -> bool {
        self.cell == cell && self.name == name
    }
}

impl Settings {
    /// Those of some runs.
    pub(super) fn of(runs: &[Run]) -> Result<Self, AnalysisError> {
        let mut all: Vec<Given> = Vec::new();
        for run in runs {
            for (cell, name, text) in given(run)? {
                match all.iter_mut().find(|known| known.is(&cell, name)) {
                    Some(known) if known.texts.contains(&text) => {}
                    Some(known) => known.texts.push(text),
                    None => all.push(Given { cell, name, texts: vec![text] }),
                }
            }
        }
        all.iter_mut().for_each(|given| given.texts.sort_unstable());
        Ok(Settings(all))
    }

    /// What the other side does not have in common with this one, in the cells that both have: once, where it differs in all of
    /// them alike.
    pub(super) fn differing(&self, b: &Settings) -> Vec<Setting> {
        let both = |a: &Given| Some((joined(&a.texts), joined(&b.0.iter().find(|one| one.is(&a.cell, a.name))?.texts)));
        let mut all: Vec<Setting> = Vec::new();
        for given in &self.0 {
            let Some((a, b)) = both(given).filter(|(a, b)| a != b) else { continue };
            let mut same = self.0.iter().filter(|other| other.name == given.name).filter_map(both);
            let is_alike = same.all(|other| other == (a.clone(), b.clone()));
            let name = if is_alike { given.name.to_owned() } else { named(given) };
            if all.iter().all(|known| known.name != name) {
                all.push(Setting { name, a, b });
            }
        }
        all
    }

    /// What the runs of this side do not have in common: `load: a | b`.
    pub(super) fn mixed(&self) -> Vec<String> {
        let mut all = Vec::new();
        for given in self.0.iter().filter(|given| given.texts.len() > 1) {
            let is_alike = self.0.iter().filter(|other| other.name == given.name).all(|one| one.texts == given.texts);
            let name = if is_alike { given.name.to_owned() } else { named(given) };
            let text = format!("{name}: {}", joined(&given.texts));
            if !all.contains(&text) {
                all.push(text);
            }
        }
        all
    }
}

fn named(given: &Given) -> String {
    if given.cell.is_empty() { given.name.to_owned() } else { format!("{}, {}", given.name, given.cell) }
}

fn joined(texts: &[String]) -> String {
    texts.join(" | ")
}

/// The cell that it is of, its name, and what was given.
type Of = (String, &'static str, String);

fn given(run: &Run) -> Result<Vec<Of>, AnalysisError> {
    let rows = run.cells()?;
    let design = cells::design(run, &rows)?;
    let environment = run.environment()?.unwrap_or_default();
    // Beside others a trial may be slower than alone.
    let labs = design.labs;
    let mut all: Vec<Of> = Vec::new();
    for row in &rows {
        let cell = cells::text(&design, row);
        all.extend(planned(&row.description).into_iter().map(|(name, text)| (cell.clone(), name, text)));
    }
    let ran_on = [
        ("its settings", environment.system_settings),
        ("java", environment.java),
        ("congestion control", environment.congestion_control),
        ("brownout", environment.version),
        ("kernel", environment.kernel),
        ("processor", format!("{} × {}", environment.cores, environment.cpu)),
        ("labs at once", labs.to_string()),
        ("clock source", environment.clock_source),
        ("emulator", environment.emulator_scheduling),
        ("idle processors", environment.idle),
    ];
    all.extend(ran_on.map(|(name, text)| (String::new(), name, text)));
    Ok(all)
}

fn planned(plan: &Description) -> [(&'static str, String); 14] {
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
    [
        ("database", plan.database.clone()),
        ("ground", ground(plan).to_owned()),
        ("cluster", cluster(plan.external, &plan.hosts)),
        ("nodes", nodes.to_string()),
        ("network", plan.network.join("; ")),
        ("overlay", if plan.overlay.is_empty() { "none" } else { plan.overlay.as_str() }.to_owned()),
        ("encryption", if plan.encryption.is_empty() { "none".to_owned() } else { plan.encryption.join("; ") }),
        ("load", plan.load.text.clone()),
        ("consistency", plan.load.consistency.clone()),
        ("replication", plan.load.replication.to_string()),
        ("time-out", brownout_units::format_ns(plan.load.timeout_ns as f64)),
        ("good", good),
        ("phases", phases.join(", ")),
        ("faults", plan.faults.join("; ")),
    ]
}

/// What it was run on.
fn ground(plan: &Description) -> &str {
    match plan.external {
        _ if !plan.ground.is_empty() => plan.ground.as_str(),
        true => "a cluster that is only asked",
        false => "a lab",
    }
}

/// Which cluster it is: one that was there before is known by where its nodes answer, in whatever order they were named.
fn cluster(external: bool, hosts: &[HostDescription]) -> String {
    if !external {
        return "of the lab".to_owned();
    }
    let nodes = hosts.iter().filter(|host| host.role == "node");
    let mut addresses: Vec<&str> = nodes.map(|host| host.address.as_str()).collect();
    addresses.sort_unstable();
    format!("external: {}", addresses.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_they_were_run_on_is_told_in_words() {
        let written = serde_json::json!({
            "name": "x", "question": null, "hosts": [], "database": "etcd 3.6.16", "phases": [], "faults": [], "trials": 1,
            "load": {
                "text": "open", "rate": null, "threads": null, "consistency": "quorum", "replication": 3, "timeout_ns": 1
            },
            "objective": { "response_ns": 1, "share": 0.95, "phases": [] }, "interval_ns": 1, "warnings": [],
        });
        // A run of a version that did not tell was on a lab, or only asked.
        let lab: Description = serde_json::from_value(written).unwrap();
        assert_eq!(ground(&lab), "a lab");
        let asked = Description { external: true, ..lab.clone() };
        assert_eq!(ground(&asked), "a cluster that is only asked");
        let words = "3 containers of the Compose project shop, Docker 20.10.24";
        let attached = Description { ground: words.to_owned(), ..asked };
        assert_eq!(ground(&attached), words);
        let given = |plan: &Description| {
            Settings(planned(plan).map(|(name, text)| Given { cell: String::new(), name, texts: vec![text] }).into())
        };
        let differs = given(&lab).differing(&given(&attached));
        let names: Vec<&str> = differs.iter().map(|setting| setting.name.as_str()).collect();
        assert_eq!(names, ["ground", "cluster"]);
        assert_eq!((differs[0].a.as_str(), differs[0].b.as_str()), ("a lab", words));
    }

    #[test]
    fn clusters_that_were_there_before_differ_by_where_they_answer() {
        let at = |addresses: &[&str]| {
            let node = |(at, address): (usize, &&str)| HostDescription {
                name: format!("n{}", at + 1),
                address: (*address).to_owned(),
                role: "node".to_owned(),
            };
            let load = HostDescription { name: "load".to_owned(), address: String::new(), role: "load".to_owned() };
            addresses.iter().enumerate().map(node).chain([load]).collect::<Vec<_>>()
        };
        let one = cluster(true, &at(&["10.0.0.5:9042", "10.0.0.6:9042"]));
        assert_eq!(one, "external: 10.0.0.5:9042 10.0.0.6:9042");
        assert_eq!(one, cluster(true, &at(&["10.0.0.6:9042", "10.0.0.5:9042"])));
        assert_ne!(one, cluster(true, &at(&["10.0.1.5:9042", "10.0.1.6:9042"])));
        assert_eq!(cluster(false, &at(&["10.77.0.1"])), cluster(false, &at(&["10.77.0.2"])));
    }
}
