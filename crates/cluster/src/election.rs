//! Who leads, of what nodes say of it.

use crate::{
    ClusterError,
    database::{Led, Member},
};

/// Whom the newest election has made the leader, of all that nodes told. One that is cut off takes itself for the leader for a
/// while after the others have lost it: it counts only if no more know of none than follow it, itself included.
pub(crate) fn elected(members: &[Member], answers: &[Result<Option<Led>, String>]) -> Result<String, ClusterError> {
    let told: Vec<Led> = answers.iter().filter_map(|answer| answer.as_ref().ok().copied().flatten()).collect();
    let newest = told.iter().max_by_key(|led| led.term);
    let following = told.iter().filter(|led| newest.is_some_and(|newest| newest.term == led.term)).count();
    let without = answers.iter().filter(|answer| matches!(answer, Ok(None))).count();
    let leader = newest.filter(|_| following >= without).and_then(|led| members.get(led.leader));
    leader.map(|member| member.name.clone()).ok_or_else(|| {
        let called = |led: &Led| members.get(led.leader).map_or("an unknown node", |leader| leader.name.as_str());
        let said = members.iter().zip(answers).map(|(member, answer)| match answer {
            Ok(Some(led)) => format!("{} says {} (term {})", member.name, called(led), led.term),
            Ok(None) => format!("{} knows of none", member.name),
            Err(why) => format!("{} does not say ({why})", member.name),
        });
        ClusterError::NoLeader { why: said.collect::<Vec<_>>().join(", ") }
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn the_leader_is_whom_the_newest_election_made_one_and_nobody_knows_is_an_error() {
        let member = |name: &str| Member {
            name: name.to_owned(),
            address: [127, 0, 0, 1].into(),
            client: ([127, 0, 0, 1], 2379).into(),
            home: PathBuf::new(),
            logs: PathBuf::new(),
        };
        let members = ["n1", "n2", "n3"].map(member);
        let led = |leader, term| Ok(Some(Led { leader, term }));
        let silent = || Err("no answer in time".to_owned());
        // n1 was cut off, and still takes itself for the leader.
        assert_eq!(elected(&members, &[led(0, 2), led(2, 3), silent()]).unwrap(), "n3");
        assert_eq!(elected(&members, &[led(0, 2), led(1, 3), Ok(None)]).unwrap(), "n2");
        // The others have lost it, and have not elected another one yet.
        let error = elected(&members, &[led(0, 2), Ok(None), Ok(None)]).unwrap_err().to_string();
        assert!(error.contains("n1 says n1 (term 2), n2 knows of none, n3 knows of none"), "{error}");
        let error = elected(&members, &[Ok(None), silent(), Ok(None)]).unwrap_err().to_string();
        assert!(error.contains("n1 knows of none, n2 does not say (no answer in time), n3 knows of none"), "{error}");
    }
}
