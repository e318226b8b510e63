//! What a lab has to have from its start so that its faults can be injected and proven.

use brownout_units::Delay;

use crate::hosts::Hosts;

/// What faults need of the lab from its start, in every trial, and in its baseline too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Nodes whose directories lie on a disk that can be slow.
    pub disks: Vec<String>,
    /// What those disks do is counted.
    pub disk_counters: bool,
    /// Nodes whose clock can be wrong.
    pub clocks: Vec<String>,
    /// The clocks are watched.
    pub clock_witness: bool,
    /// All hosts ask each other what time it is.
    pub clock_matrix: bool,
    /// The nodes' processes and answers are watched.
    pub process_witness: bool,
    /// The shortest time for which a process is to be stopped: they are watched closely enough for that.
    pub shortest_stall: Option<Delay>,
    /// Bursts measure the rate of these links, and of as many that are spared.
    pub trains: Vec<TrainNeed>,
    /// The largest packets of these links (from, to, the size that is asked for) are found out, and of others.
    pub largest_packets: Vec<(String, String, u16)>,
}

/// A link whose rate bursts measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainNeed {
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// The rate that is asked for.
    pub expected: brownout_units::BitRate,
    /// Packets of a burst that fits into the queue.
    pub packets: u32,
}

impl Needs {
    /// Whether a lab that was built for these serves `other`, too. All else that is needed comes with each trial.
    pub fn built_for(&self, other: &Needs) -> bool {
        let has = |own: &[String], wanted: &[String]| wanted.iter().all(|one| own.contains(one));
        has(&self.disks, &other.disks) && has(&self.clocks, &other.clocks)
    }

    /// What is needed on a machine that has these hosts, where there are several.
    pub fn of_hosts(mut self, has: &dyn Fn(&str) -> bool) -> Needs {
        // What comes from outside is carried, and measured, where it arrives.
        let is_carried = |from: &str, to: &str| has(if from == Hosts::LOAD { to } else { from });
        self.disks.retain(|node| has(node));
        self.clocks.retain(|node| has(node));
        // Of a way back the burst is sent by whoever is there.
        self.trains.retain(|need| is_carried(&need.from, &need.to) || is_carried(&need.to, &need.from));
        self
    }

    /// What both need.
    pub fn and(mut self, other: Needs) -> Needs {
        fn join<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
            more.into_iter().for_each(|one| {
                if !all.contains(&one) {
                    all.push(one);
                }
            });
        }
        join(&mut self.disks, other.disks);
        join(&mut self.clocks, other.clocks);
        join(&mut self.trains, other.trains);
        join(&mut self.largest_packets, other.largest_packets);
        self.disk_counters |= other.disk_counters;
        self.clock_witness |= other.clock_witness;
        self.clock_matrix |= other.clock_matrix;
        self.process_witness |= other.process_witness;
        self.shortest_stall = [self.shortest_stall, other.shortest_stall].into_iter().flatten().min();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_serves_trials_that_only_watch_more_and_none_with_another_disk_or_clock() {
        let built = Needs { disks: vec!["n1".to_owned(), "n2".to_owned()], ..Needs::default() };
        let watched = Needs {
            disks: vec!["n2".to_owned()],
            process_witness: true,
            shortest_stall: Some(Delay::from_ms(200)),
            largest_packets: vec![("n1".to_owned(), "n2".to_owned(), 1_200)],
            ..Needs::default()
        };
        assert!(built.built_for(&watched));
        assert!(!built.built_for(&Needs { disks: vec!["n3".to_owned()], ..Needs::default() }));
        assert!(!built.built_for(&Needs { clocks: vec!["n1".to_owned()], ..Needs::default() }));
    }
}
