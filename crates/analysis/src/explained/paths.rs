//! A way that an operation can take: who coordinates it, which paths to replicas it waits for, and how long.

use brownout_record::OperationPlacement;

/// An operation with all its ways.
pub(super) struct Operation<'a> {
    pub(super) plan: &'a OperationPlacement,
    pub(super) ways: Vec<Way>,
}

/// A coordinator and a set of replicas, and what the database can choose between.
pub(super) struct Way {
    /// Of all operations of its kind, 0 to 1.
    pub(super) share: f64,
    /// Its index among the hosts.
    pub(super) coordinator: usize,
    /// Whom a read asks, it chooses; of a write, who forwards it in other data centres.
    pub(super) choices: Choices,
}

pub(super) enum Choices {
    /// As many as are needed, any of them.
    Read(Routes),
    /// One of these.
    Write(Vec<Routes>),
    /// A round of these, and before it what is left of a round that is under way: nothing, or up to all of it.
    Round(Routes),
}

/// Groups of paths, of each of which the coordinator needs answers.
pub(super) struct Routes(pub(super) Vec<Awaited>);

/// The coordinator waits until so many of these paths have brought an answer.
pub(super) struct Awaited {
    pub(super) paths: Vec<Path>,
    pub(super) needed: usize,
}

/// From the coordinator to a replica and back; without hops the coordinator is the replica.
#[derive(Clone)]
pub(super) struct Path {
    pub(super) replica: usize,
    /// Ordered pairs of hosts.
    pub(super) hops: Vec<(usize, usize)>,
}

impl Routes {
    /// What the coordinator waits for: of each group the last answer that it needs if the first that come count, of all groups the
    /// longest.
    fn waits(&self, time: &impl Fn(&Path) -> f64) -> f64 {
        let last = |group: &Awaited| group.quickest(time).last().map_or(0.0, |path| time(path));
        self.0.iter().map(last).fold(0.0, f64::max)
    }

    /// By how much more a read waits at most with other times, whomever it asked.
    ///
    /// Of whom it asks, one answers last: with it, those that were quickest before make the most of the difference.
    fn grows(&self, before: &impl Fn(&Path) -> f64, after: &impl Fn(&Path) -> f64) -> f64 {
        let quickest: Vec<Vec<&Path>> = self.0.iter().map(|group| group.quickest(before)).collect();
        let longest =
            |asked: &[&Path], time: &dyn Fn(&Path) -> f64| asked.iter().map(|path| time(path)).fold(0.0, f64::max);
        let mut most = 0.0_f64;
        for (at, group) in self.0.iter().enumerate().filter(|(_, group)| group.needed > 0) {
            for last in &group.paths {
                let own = quickest[at].iter().filter(|path| path.replica != last.replica).take(group.needed - 1);
                let others = quickest.iter().enumerate().filter(|(other, _)| *other != at).flat_map(|(_, asked)| asked);
                let asked: Vec<&Path> = own.chain(others).copied().chain([last]).collect();
                most = most.max(longest(&asked, after) - longest(&asked, before));
            }
        }
        most
    }
}

impl Awaited {
    /// As many as are needed, the quickest.
    fn quickest(&self, time: &impl Fn(&Path) -> f64) -> Vec<&Path> {
        let mut paths: Vec<&Path> = self.paths.iter().collect();
        paths.sort_by(|one, other| time(one).total_cmp(&time(other)));
        paths.truncate(self.needed);
        paths
    }
}

impl Way {
    /// What the coordinator waits for with the best choice.
    pub(super) fn best(&self, time: &impl Fn(&Path) -> f64) -> f64 {
        match &self.choices {
            Choices::Read(routes) | Choices::Round(routes) => routes.waits(time),
            Choices::Write(all) => all.iter().map(|routes| routes.waits(time)).fold(f64::INFINITY, f64::min),
        }
    }

    /// By how much more it waits with other times and the same choice, that to which most is added.
    pub(super) fn grows(&self, before: &impl Fn(&Path) -> f64, after: &impl Fn(&Path) -> f64) -> f64 {
        match &self.choices {
            Choices::Read(routes) => routes.grows(before, after),
            Choices::Write(all) => {
                all.iter().map(|routes| routes.waits(after) - routes.waits(before)).fold(0.0, f64::max)
            }
            // It comes when a round has just begun, and waits for two.
            Choices::Round(routes) => 2.0 * (routes.waits(after) - routes.waits(before)).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use brownout_base::random::Random;

    use super::*;

    /// Every way to choose as many of each group as it needs.
    fn asked(routes: &Routes) -> Vec<Vec<&Path>> {
        let mut all = vec![Vec::new()];
        for group in &routes.0 {
            let subsets = (0..1_usize << group.paths.len()).filter(|set| set.count_ones() as usize == group.needed);
            let chosen = |set: usize| {
                let within = group.paths.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
                within.map(|(_, path)| path).collect::<Vec<&Path>>()
            };
            let subsets: Vec<Vec<&Path>> = subsets.map(chosen).collect();
            all = all.iter().flat_map(|before| subsets.iter().map(|set| [before.as_slice(), set].concat())).collect();
        }
        all
    }

    #[test]
    fn the_best_and_the_worst_of_a_read_are_those_of_all_whom_it_can_ask() {
        let mut seeded = Random::new(1);
        let mut random = |below: u64| seeded.below(below);
        for round in 0..500 {
            let mut replica = 0;
            let mut group = |members: u64, needed: u64| {
                let mut path = || {
                    replica += 1;
                    Path { replica: replica - 1, hops: Vec::new() }
                };
                Awaited { paths: (0..members).map(|_| path()).collect(), needed: needed as usize }
            };
            let sizes: Vec<u64> = (0..1 + random(3)).map(|_| 1 + random(4)).collect();
            let routes = Routes(sizes.iter().map(|size| group(*size, random(size + 1))).collect());
            // Few different times, so that there are ties.
            let mut times = || (0..replica).map(|_| random(5) as f64).collect::<Vec<f64>>();
            let (before, after) = (times(), times().iter().map(|time| time * 3.0).collect::<Vec<f64>>());
            let (before, after) = (|path: &Path| before[path.replica], |path: &Path| after[path.replica]);
            let last =
                |asked: &[&Path], time: &dyn Fn(&Path) -> f64| asked.iter().map(|one| time(one)).fold(0.0, f64::max);
            let all = asked(&routes);
            let best = all.iter().map(|asked| last(asked, &after)).fold(f64::INFINITY, f64::min);
            let grows = all.iter().map(|asked| last(asked, &after) - last(asked, &before)).fold(0.0, f64::max);
            assert_eq!((routes.waits(&after), routes.grows(&before, &after)), (best, grows), "round {round}");
        }
    }
}
