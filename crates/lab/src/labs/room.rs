//! The processors of each of several labs: whole cores, and no core of two.

use brownout_machine::Core;

/// What a lab of so many nodes needs so that its database and its instrument do not wait for each other: a processor
/// for each node, one for the emulator, one for the load. What `auto` gives.
pub fn wanted(nodes: usize) -> usize {
    nodes + 2
}

/// What it takes at least: the emulator goes before everything else on a processor, and several nodes on one wait for
/// each other.
pub fn least(nodes: usize) -> usize {
    if nodes > 1 { 2 } else { 1 }
}

/// The processors of each of so many labs, ascending: whole cores, neighbours as far as possible, and as many of each
/// kind (threads, strength) in each lab, since trials of unlike labs could not be compared. What is left over is no
/// lab's. All together stay within `capacity`, processors' worth of time. Of too few cores labs get none.
pub fn share_out(cores: &[Core], capacity: f64, labs: usize) -> Vec<Vec<usize>> {
    let mut shares: Vec<Vec<&Core>> = vec![Vec::new(); labs];
    let mut kinds: Vec<(usize, u32)> = Vec::new();
    for kind in cores.iter().map(kind) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    // The strongest first: where a quota allows less, the others are left out.
    kinds.sort_by_key(|(threads, strength)| (std::cmp::Reverse(*strength), *threads));
    for wanted in kinds {
        let of_kind: Vec<&Core> = cores.iter().filter(|core| kind(core) == wanted).collect();
        let each = of_kind.len() / labs.max(1);
        if each > 0 {
            shares.iter_mut().zip(of_kind.chunks_exact(each)).for_each(|(share, own)| share.extend(own));
        }
    }
    let processors = |share: &[&Core]| share.iter().map(|core| core.cpus.len()).sum::<usize>();
    while shares.first().is_some_and(|share| (processors(share) * labs) as f64 > capacity && !share.is_empty()) {
        for share in &mut shares {
            share.pop();
        }
    }
    let numbers = |share: Vec<&Core>| {
        let mut numbers: Vec<usize> = share.iter().flat_map(|core| core.cpus.iter().copied()).collect();
        numbers.sort_unstable();
        numbers
    };
    shares.into_iter().map(numbers).collect()
}

fn kind(core: &Core) -> (usize, u32) {
    (core.cpus.len(), core.strength)
}

/// How many labs can have so many processors each.
pub fn most(cores: &[Core], capacity: f64, each: usize) -> usize {
    let fits = |labs: &usize| share_out(cores, capacity, *labs).first().is_some_and(|share| share.len() >= each);
    (1..=cores.len()).take_while(fits).last().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Cores of `threads` processors each, numbered as most kernels do: first one of each core, then the other.
    fn machine(count: usize, threads: usize) -> Vec<Core> {
        let core = |number: usize| Core {
            cpus: (0..threads).map(|thread| number + thread * count).collect(),
            strength: 1_024,
            near: (number / 4, 0),
        };
        (0..count).map(core).collect()
    }

    #[test]
    fn no_two_labs_share_a_core_and_all_have_as_much() {
        for count in 1..=24 {
            for threads in 1..=2 {
                let cores = machine(count, threads);
                for labs in 1..=count + 2 {
                    let shares = share_out(&cores, f64::INFINITY, labs);
                    assert_eq!(shares.len(), labs);
                    let each: BTreeSet<usize> = shares.iter().map(Vec::len).collect();
                    assert_eq!(each, BTreeSet::from([count / labs * threads]), "{shares:?}");
                    for core in &cores {
                        let of = |share: &&Vec<usize>| core.cpus.iter().any(|cpu| share.contains(cpu));
                        let users: Vec<&Vec<usize>> = shares.iter().filter(of).collect();
                        assert!(users.len() <= 1, "{core:?} of {shares:?}");
                        assert!(users.iter().all(|share| core.cpus.iter().all(|cpu| share.contains(cpu))));
                    }
                }
            }
        }
    }

    #[test]
    fn neighbours_stay_together_and_what_is_left_over_is_no_labs() {
        assert_eq!(share_out(&machine(8, 1), 8.0, 2), [vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
        assert_eq!(share_out(&machine(5, 2), 10.0, 2), [vec![0, 1, 5, 6], vec![2, 3, 7, 8]]);
        assert_eq!(share_out(&machine(2, 1), 2.0, 2), [vec![0], vec![1]]);
        assert_eq!(share_out(&machine(1, 2), 2.0, 2), [Vec::<usize>::new(), Vec::new()], "one core is no two labs'");
        assert!(share_out(&machine(3, 1), 3.0, 0).is_empty());
    }

    #[test]
    fn unlike_cores_are_dealt_to_all_labs_alike() {
        let mut cores = machine(4, 2);
        let weak = |cpu: usize| Core { cpus: vec![cpu], strength: 512, near: (9, 9) };
        cores.extend((8..13).map(weak));
        // Two strong cores and two weak ones each; the fifth weak one is left over.
        assert_eq!(share_out(&cores, 13.0, 2), [vec![0, 1, 4, 5, 8, 9], vec![2, 3, 6, 7, 10, 11]]);
        assert_eq!(share_out(&cores, 13.0, 4).iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 3, 3]);
    }

    #[test]
    fn labs_together_stay_within_a_quota() {
        let cores = machine(8, 1);
        assert_eq!(share_out(&cores, 4.0, 2), [vec![0, 1], vec![4, 5]]);
        assert_eq!(share_out(&cores, 5.5, 2), [vec![0, 1], vec![4, 5]]);
        assert_eq!(share_out(&cores, 1.5, 2), [Vec::<usize>::new(), Vec::new()]);
    }

    #[test]
    fn as_many_labs_fit_as_have_their_processors() {
        assert_eq!(most(&machine(2, 1), 2.0, wanted(3)), 0);
        assert_eq!(most(&machine(2, 1), 2.0, least(3)), 1);
        assert_eq!(most(&machine(2, 1), 2.0, least(1)), 2);
        assert_eq!(most(&machine(16, 1), 16.0, wanted(3)), 3);
        assert_eq!(most(&machine(16, 1), 8.0, wanted(3)), 1, "a quota");
        assert_eq!(most(&machine(8, 2), 16.0, wanted(3)), 2, "three would have two cores each: four processors");
    }
}
