//! Competition for the processors: how long the nodes waited, and which programs outside of the lab used them.

use std::{collections::BTreeMap, fs::File, io};

use brownout_cluster::Cluster;
use brownout_machine::{Program, Programs, Waits, pressure_ns};

use crate::machines::PART;

/// A program is recorded by name when it used this share of a processor …
const NAMED_SHARE: f64 = 0.01;
/// … and so many of them at most.
const NAMED: usize = 5;

/// How long somebody waited for a processor from one reading to the next: a row of the record, ns. What is not known has
/// none: nobody may take it for "did not wait".
pub fn waiting(subject: &str, before_ns: Option<u64>, now_ns: Option<u64>) -> Option<(String, u64)> {
    Some((subject.to_owned(), now_ns?.saturating_sub(before_ns?)))
}

/// Looks at who competes, from interval to interval.
pub struct Competition {
    programs: Programs,
    beside: Vec<u32>,
    waits: BTreeMap<String, Waits>,
    pressure_ns: Option<u64>,
}

/// What the lab itself used of its processors in an interval, ns.
#[derive(Debug, Clone, Copy)]
pub struct Own {
    /// Length of the interval, ns.
    pub length_ns: u64,
    /// Whether the machine has processors that are not the lab's: programs may then run where they disturb nobody.
    pub are_a_part: bool,
    /// What was used of the lab's processors by others than the lab and interrupts.
    pub by_others_ns: u64,
}

impl Competition {
    /// Begins to look. `proc` is the machine's `/proc`, as it is seen from outside of the lab.
    /// `beside` are processes of the same run that others look after.
    pub fn begin(proc: &File, cluster: &Cluster, beside: &[u32]) -> io::Result<Self> {
        let programs = Programs::watch(proc.try_clone()?)?;
        let beside = beside.to_vec();
        let mut competition = Competition { programs, beside, waits: BTreeMap::new(), pressure_ns: pressure_ns() };
        competition.waited(cluster);
        Ok(competition)
    }

    /// Who competed since the last look: rows of the record, ns.
    pub fn look(&mut self, cluster: &Cluster, own: Own) -> io::Result<Vec<(String, u64)>> {
        let mut rows = self.waited(cluster);
        // Those of the lab's own are numbered otherwise, and come from its first process anyway.
        let control = cluster.control();
        let attached = cluster.nodes().iter().filter(|node| node.alive() && control.has_hands(&node.name));
        let attached: Vec<u32> = attached.map(|node| node.pid()).chain(self.beside.iter().copied()).collect();
        let mut others = self.programs.read(&attached)?;
        // Where several parts of a run are on one machine, the others are of the instrument, as this one is.
        others.programs.retain(|program| !is_part_of_a_run(program));
        let programs_ns = others.programs_ns();
        // Programs that share no processor with the lab do not compete with it. Who ran where is not told; how much was
        // used of the lab's processors is.
        let counted_ns = if own.are_a_part { programs_ns.min(own.by_others_ns) } else { programs_ns };
        rows.push(("programs".to_owned(), counted_ns));
        rows.push(("kernel".to_owned(), others.kernel_ns));
        let counted = counted_ns as f64 / programs_ns.max(1) as f64;
        let used = others.programs.iter().map(|program| (program, (program.used_ns as f64 * counted) as u64));
        let used = used.filter(|(_, used_ns)| *used_ns as f64 > NAMED_SHARE * own.length_ns as f64).take(NAMED);
        rows.extend(used.map(|(program, used_ns)| (format!("program:{}:{}", program.pid, program.name), used_ns)));
        if let Some(now) = pressure_ns() {
            let before = self.pressure_ns.replace(now).unwrap_or(now);
            rows.push(("pressure".to_owned(), now.saturating_sub(before)));
        }
        Ok(rows)
    }

    /// How long the threads of each node waited since the last look. Of a node that is not there, or of which the kernel
    /// does not tell, there is no row.
    fn waited(&mut self, cluster: &Cluster) -> Vec<(String, u64)> {
        let nodes = cluster.nodes().iter().filter(|node| node.alive());
        let waited = nodes.filter_map(|node| {
            let waits = self.waits.entry(node.name.clone()).or_default();
            Some((format!("waited:{}", node.name), waits.read(node.pid())?))
        });
        waited.collect()
    }
}

/// Whether it is this program, as it makes a part of a run over several machines.
fn is_part_of_a_run(program: &Program) -> bool {
    let own = env!("CARGO_PKG_NAME").split('-').next().unwrap_or_default();
    // Others are asked nothing: there may be many.
    program.name == own && {
        let words = std::fs::read(format!("/proc/{}/cmdline", program.pid)).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(PART.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_that_is_not_known_has_no_row() {
        let row = |ns: u64| Some(("load-waited".to_owned(), ns));
        assert_eq!(waiting("load-waited", Some(5), Some(12)), row(7));
        // A thread that ended took its count with it.
        assert_eq!(waiting("load-waited", Some(12), Some(5)), row(0));
        for (before, now) in [(None, Some(12)), (Some(5), None), (None, None)] {
            assert_eq!(waiting("load-waited", before, now), None);
        }
    }
}
