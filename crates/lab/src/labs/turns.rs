//! Which of several labs takes the next trial, and when.
//!
//! Trials begin in the order of the design. One that is to run beside so many others waits until no more are at work,
//! and none of those that are wants another number of them: so a trial has the neighbours that its cell says, or fewer
//! at the end of a group, and never others. Of labs that are free, the one that has had the fewest trials is next, so
//! that all serve all cells alike.

/// Labs, and what each of them is at.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    labs: Vec<Lab>,
}

#[derive(Debug, Clone, Default)]
struct Lab {
    /// Trials that it has taken.
    taken: u32,
    at: Option<At>,
}

/// A trial under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct At {
    /// Its number in the design.
    number: u32,
    /// How many may be under way with it.
    at_once: u32,
}

impl Turns {
    /// So many labs, all free.
    pub(crate) fn new(labs: usize) -> Turns {
        Turns { labs: vec![Lab::default(); labs] }
    }

    /// The trials under way, by their numbers in the design.
    pub(crate) fn under_way(&self) -> Vec<u32> {
        self.labs.iter().filter_map(|lab| Some(lab.at?.number)).collect()
    }

    /// Whether a lab that is free begins now what comes next, of which so many may be under way at once.
    pub(crate) fn may_take(&self, lab: usize, at_once: u32) -> bool {
        let at_work: Vec<At> = self.labs.iter().filter_map(|lab| lab.at).collect();
        let has_room = at_work.len() < at_once as usize && at_work.iter().all(|at| at.at_once == at_once);
        let free = self.labs.iter().enumerate().filter(|(_, lab)| lab.at.is_none());
        let first = free.min_by_key(|(number, lab)| (lab.taken, *number)).map(|(number, _)| number);
        has_room && first == Some(lab)
    }

    /// A lab begins a trial.
    pub(crate) fn take(&mut self, lab: usize, number: u32, at_once: u32) {
        if let Some(lab) = self.labs.get_mut(lab) {
            lab.taken += 1;
            lab.at = Some(At { number, at_once });
        }
    }

    /// A lab is done with its trial.
    pub(crate) fn done(&mut self, lab: usize) {
        if let Some(lab) = self.labs.get_mut(lab) {
            lab.at = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use brownout_base::random::Random;

    use super::*;

    /// Runs trials that may have so many under way, each for a random time, on `labs` labs. Says of each its lab, and
    /// how many were under way when it began.
    fn run(labs: usize, trials: &[u32], seed: u64) -> Vec<(usize, usize)> {
        let (mut turns, mut random) = (Turns::new(labs), Random::new(seed));
        let mut done = Vec::new();
        loop {
            let begun = (0..labs).find(|lab| {
                let next = trials.get(done.len());
                turns.labs[*lab].at.is_none() && next.is_some_and(|at_once| turns.may_take(*lab, *at_once))
            });
            if let Some(lab) = begun {
                let at_once = trials[done.len()];
                turns.take(lab, done.len() as u32 + 1, at_once);
                let under_way = turns.under_way();
                assert!(under_way.len() <= at_once as usize, "trial {}: {under_way:?}", done.len() + 1);
                assert!(under_way.iter().all(|number| trials[*number as usize - 1] == at_once), "{under_way:?}");
                done.push((lab, under_way.len()));
                continue;
            }
            let busy: Vec<usize> = (0..labs).filter(|lab| turns.labs[*lab].at.is_some()).collect();
            if busy.is_empty() {
                assert_eq!(done.len(), trials.len(), "nobody works, and {:?} is left", &trials[done.len()..]);
                return done;
            }
            turns.done(busy[random.below(busy.len() as u64) as usize]);
        }
    }

    #[test]
    fn every_trial_begins_in_order_with_its_own_neighbours_and_none_is_left() {
        let groups = [1, 1, 1, 3, 3, 3, 3, 2, 2, 2, 1, 1, 2, 3, 1, 1, 1, 1];
        for labs in 1..=3 {
            for seed in 0..200 {
                let at_once: Vec<u32> = groups.iter().map(|at_once| (*at_once).min(labs as u32)).collect();
                assert_eq!(run(labs, &at_once, seed).len(), groups.len());
            }
        }
    }

    #[test]
    fn labs_that_take_turns_serve_as_many_trials_each() {
        for seed in 0..20 {
            let alone = run(2, &[1; 12], seed);
            assert_eq!(alone.iter().filter(|(lab, _)| *lab == 0).count(), 6, "{alone:?}");
            assert!(alone.iter().all(|(_, under_way)| *under_way == 1));
        }
    }

    #[test]
    fn several_are_at_work_as_soon_as_they_may() {
        let both = run(2, &[2; 12], 1);
        assert_eq!(both.iter().filter(|(_, under_way)| *under_way == 2).count(), 11, "all but the first: {both:?}");
    }
}
