//! A lab file, or an experiment file as a lab by hand uses it.

use std::path::Path;

use super::Failure;
use crate::{experiment::Source, plan::Layout};

/// The sections that make a lab; an experiment's others say what happens in one.
const USED: [&str; 3] = ["network", "cluster", "seed"];
/// The section that names containers; only a lab that is attached has it.
pub(super) const GROUND: &str = "ground";
/// What the reader of experiment files wants to see, and a lab by hand has no use for.
const UNUSED: [&str; 5] =
    ["load={rate: 1/s}", "phases={warm-up: 20s, baseline: 3s}", "objective={p99: 1s}", "faults=[]", "trials=1"];

/// What a lab is made of, as written.
pub struct LabFile {
    /// Hosts, distances, cluster.
    pub layout: Layout,
    /// All randomness is drawn from it.
    pub seed: u64,
    /// Sections of the file that say what happens in an experiment; nothing is done about them.
    pub ignored: Vec<String>,
}

impl LabFile {
    /// Reads `network:`, `cluster:` and `seed:` of a text.
    pub fn read(file: &Path, text: &str, set: &[String]) -> Result<LabFile, Failure> {
        LabFile::of(Source::from_text(file, text.to_owned())?, set)
    }

    /// The same of a text that has been read; it may name the containers that the lab is attached to (`ground:`).
    pub(super) fn of(mut source: Source, set: &[String]) -> Result<LabFile, Failure> {
        set.iter().try_for_each(|assignment| is_used(assignment))?;
        let known = |section: &&str| USED.contains(section) || ["question", GROUND].contains(section);
        let ignored = source.sections().into_iter().filter(|section| !known(section));
        let ignored = ignored.map(str::to_owned).collect();
        let missing = |section: &&str| !source.sections().contains(section);
        let empty: Vec<String> = ["network", "cluster"]
            .iter()
            .filter(|section| missing(section))
            .map(|section| format!("{section}={{}}"))
            .collect();
        // So that a value can be set in a section that the file leaves out.
        empty.iter().try_for_each(|assignment| source.set(assignment))?;
        set.iter().try_for_each(|assignment| source.set(assignment))?;
        UNUSED.iter().try_for_each(|assignment| source.set(assignment))?;
        let experiment = source.experiment()?;
        let layout = Layout::new(&source, &experiment)?;
        Ok(LabFile { layout, seed: experiment.seed.0, ignored })
    }
}

/// Refuses to set what a lab by hand has no use for: nothing would come of it.
fn is_used(assignment: &str) -> Result<(), Failure> {
    let section = |assignment: &str| assignment.split(['.', '=']).next().unwrap_or_default().trim().to_owned();
    let named = section(assignment);
    if named != "question" && !UNUSED.iter().any(|unused| section(unused) == named) {
        return Ok(());
    }
    Err(Failure::wrong(format!(
        "--set {assignment}: a lab by hand does not use {named}; it uses {}, so leave this out",
        USED.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, set: &[&str]) -> Result<LabFile, Failure> {
        LabFile::read(Path::new("x.yaml"), text, &set.iter().map(|set| (*set).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_file_with_a_network_and_a_cluster_alone_makes_a_lab() {
        let lab = read("network: { topology: lan }\ncluster: { nodes: 2 }\nseed: 7\n", &[]).unwrap();
        assert_eq!((lab.layout.hosts.nodes().count(), lab.seed), (2, 7));
        assert!(lab.ignored.is_empty() && !lab.layout.distances.is_empty());
        assert_eq!(read("seed: 1", &["cluster.nodes=1"]).unwrap().layout.hosts.nodes().count(), 1);
        assert_eq!(read("seed: 1", &[]).unwrap().layout.hosts.nodes().count(), 3);
    }

    #[test]
    fn what_an_experiment_says_beside_is_named_and_unused() {
        let lab = read("cluster: { nodes: 3 }\nphases: { warm-up: 1s }\nload: nonsense\n", &[]).unwrap();
        assert_eq!(lab.ignored, ["phases", "load"]);
    }

    #[test]
    fn what_a_lab_has_no_use_for_cannot_be_set() {
        let whole = "cluster: { nodes: 3 }\nload: { rate: 400/s }\n";
        for set in [
            "load.rate=abc",
            "load={}",
            "phases.baseline=5s",
            "faults=[]",
            "objective={p99: 1s}",
            "trials=2",
            "question=?",
        ] {
            let failure = read(whole, &["cluster.nodes=1", set]).err().unwrap();
            assert!(
                failure.code == 2 && failure.message.contains("it uses network, cluster, seed"),
                "{set}: {failure}"
            );
        }
        assert!(read(whole, &["network.topology=lan", "seed=3"]).is_ok());
    }

    #[test]
    fn mistakes_keep_their_place() {
        let failure = read("cluster: { nodez: 3 }", &[]).err().unwrap();
        assert!(
            failure.message.starts_with("x.yaml:1:") && failure.message.contains("did you mean 'nodes'"),
            "{failure}"
        );
        assert_eq!(failure.code, 2);
        assert!(read("networc: {}", &[]).is_err());
    }
}
