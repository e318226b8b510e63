//! Which ordered pairs of hosts are measured, where there are too many for all of them.
//!
//! Probes are a load of their own, and each pair takes its rows in the record, second by second: so no more pairs are measured than a
//! lab of fifty nodes has. Those that faults hit come first; and each host has some from it and some to it, whoever is hit: by them
//! it is seen that others are spared, and where a fault goes that follows a role.

use std::collections::BTreeSet;

/// As many as fifty nodes and the load have.
pub(crate) const MOST: usize = 51 * 50;

/// The pairs to be measured of so many hosts, by their places, in order; none: all of them. `hit` are the pairs that faults hit.
pub(crate) fn choose(hosts: usize, hit: &BTreeSet<(usize, usize)>) -> Option<Vec<(usize, usize)>> {
    if hosts * hosts.saturating_sub(1) <= MOST {
        return None;
    }
    // Of those that are hit half of the room at most, spread over all of them.
    let every = hit.len().div_ceil(MOST / 2).max(1);
    let mut chosen: BTreeSet<(usize, usize)> = hit.iter().copied().step_by(every).collect();
    // In a circle, each host has the same number of others before it and behind it, near and far.
    let each = ((MOST - chosen.len()) / hosts).max(1);
    let far = |number: usize| 1 + number * (hosts - 1) / each;
    let around = |from: usize| (0..each).map(move |number| (from, (from + far(number)) % hosts));
    chosen.extend((0..hosts).flat_map(around));
    Some(chosen.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_lab_all_pairs_are_measured() {
        assert_eq!(choose(51, &BTreeSet::new()), None);
        assert_eq!(choose(0, &BTreeSet::new()), None);
    }

    #[test]
    fn of_many_hosts_each_has_some_from_it_and_some_to_it_and_those_that_are_hit_come_first() {
        for hosts in [52, 100, 501, 1_000] {
            let slow: BTreeSet<_> = (0..hosts).filter(|to| *to != 7).map(|to| (7, to)).collect();
            let chosen = choose(hosts, &slow).unwrap();
            assert!(chosen.len() <= MOST + hosts && chosen.len() > MOST / 3, "{hosts}: {}", chosen.len());
            assert!(chosen.iter().all(|(from, to)| from != to && *from < hosts && *to < hosts));
            let of = |is: &dyn Fn(&(usize, usize)) -> bool| chosen.iter().filter(|pair| is(pair)).count();
            assert_eq!(of(&|pair| slow.contains(pair)), slow.len(), "{hosts}: all of them have room");
            for host in 0..hosts {
                assert!(of(&|(from, _)| *from == host) > 0 && of(&|(_, to)| *to == host) > 0, "{hosts}: {host}");
            }
        }
    }

    #[test]
    fn where_faults_hit_nearly_all_pairs_some_that_are_spared_are_measured_all_the_same() {
        let hosts = 501;
        // Two halves, cut off from each other.
        let apart = |(one, other): &(usize, usize)| (one % 2) != (other % 2);
        let all = (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to)));
        let hit: BTreeSet<_> = all.filter(apart).collect();
        let chosen = choose(hosts, &hit).unwrap();
        let (cut, spared): (Vec<(usize, usize)>, Vec<_>) = chosen.iter().copied().partition(|pair| hit.contains(pair));
        assert!(cut.len() > MOST / 3 && spared.len() > hosts / 2, "{} and {}", cut.len(), spared.len());
        assert!(chosen.len() <= MOST, "{}", chosen.len());
    }
}
