//! Whose answers a consistency level waits for.

use std::collections::BTreeMap;

use brownout_record::NodePlacement;

/// Of these replicas so many have to answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    pub(super) members: Vec<usize>,
    pub(super) needed: usize,
}

/// Whom a coordinator waits for: of each group enough. `Err` with the reason where that cannot be said.
///
/// At ANY a hint is an answer, so no replica has to be waited for.
pub(super) fn groups(
    consistency: &str,
    ring: &[NodePlacement],
    coordinator: usize,
    replicas: &[usize],
) -> Result<Vec<Group>, String> {
    let majority = |members: &[usize]| members.len() / 2 + 1;
    let all = |needed: usize| vec![Group { members: replicas.to_vec(), needed }];
    let site = ring[coordinator].site.as_str();
    let near = |needed: Option<usize>| {
        let members: Vec<usize> = replicas.iter().copied().filter(|at| ring[*at].site == site).collect();
        vec![Group { needed: needed.unwrap_or(majority(&members)), members }]
    };
    let found = match consistency.to_ascii_lowercase().replace('_', "-").as_str() {
        "any" => all(0),
        "one" => all(1),
        "two" => all(2),
        "three" => all(3),
        "quorum" => all(majority(replicas)),
        "all" => all(replicas.len()),
        "local-one" => near(Some(1)),
        "local-quorum" => near(None),
        "each-quorum" => {
            let mut sites: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
            for at in replicas {
                sites.entry(ring[*at].site.as_str()).or_default().push(*at);
            }
            sites.into_values().map(|members| Group { needed: majority(&members), members }).collect()
        }
        other => return Err(format!("whom an operation at {other} waits for follows from no plan")),
    };
    match found.iter().find(|group| group.needed > group.members.len()) {
        Some(group) => Err(format!(
            "{consistency} asked of {} needs {} replicas, and there are {}",
            ring[coordinator].node,
            group.needed,
            group.members.len()
        )),
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed(consistency: &str, coordinator: usize, replicas: &[usize]) -> Result<Vec<(usize, usize)>, String> {
        let node = |at: usize| NodePlacement {
            node: format!("n{}", at + 1),
            token: at as i64,
            site: if at < 3 { "a" } else { "b" }.to_owned(),
            rack: "r".to_owned(),
        };
        let ring: Vec<NodePlacement> = (0..6).map(node).collect();
        let groups = groups(consistency, &ring, coordinator, replicas)?;
        Ok(groups.into_iter().map(|group| (group.needed, group.members.len())).collect())
    }

    #[test]
    fn levels_wait_for_as_many_as_they_say() {
        let all = [0, 1, 2, 3, 4];
        for (level, groups) in [
            ("ANY", vec![(0, 5)]),
            ("one", vec![(1, 5)]),
            ("three", vec![(3, 5)]),
            ("QUORUM", vec![(3, 5)]),
            ("all", vec![(5, 5)]),
            ("LOCAL_ONE", vec![(1, 3)]),
            ("local-quorum", vec![(2, 3)]),
            ("each_quorum", vec![(2, 3), (2, 2)]),
        ] {
            assert_eq!(needed(level, 1, &all), Ok(groups), "{level}");
        }
        assert_eq!(needed("local-quorum", 4, &all), Ok(vec![(2, 2)]));
    }

    #[test]
    fn what_no_replica_can_answer_is_told() {
        assert!(needed("local-quorum", 4, &[0, 1]).unwrap_err().contains("n5 needs 1 replicas, and there are 0"));
        assert!(needed("serial", 0, &[0, 1]).is_err());
    }
}
