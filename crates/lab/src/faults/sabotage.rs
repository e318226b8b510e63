//! The negative control: a lab in which every fault is accepted and acknowledged, and none is put in force. A proof that
//! does not notice is no proof. All else is as ever, the distances between sites too: they are no fault.

use std::{sync::Arc, time::Duration};

use brownout_base::Change;
use brownout_cluster::{ClusterError, NodeState};
use brownout_disk::DiskFault;
use brownout_network::Impairment;
use brownout_units::Share;

use super::capabilities::{Applied, Capabilities, ControlNodes, ImpairDisks, ImpairLinks, ShiftClocks, now};
use crate::LabError;

/// The same lab, in which nothing that is asked of it happens.
pub fn sabotaged(capabilities: &Capabilities) -> Capabilities {
    Capabilities {
        links: Arc::new(Sabotaged(())),
        nodes: Arc::new(Sabotaged(Arc::clone(&capabilities.nodes))),
        disks: Arc::new(Sabotaged(())),
        clocks: Arc::new(Sabotaged(())),
        // It is only asked, and what is drawn by it shall be what the lab says.
        roles: Arc::clone(&capabilities.roles),
    }
}

/// Around a handle that is only asked, never told; none where there is nothing to ask.
struct Sabotaged<H>(H);

/// What is said to be in force, and is not.
pub(super) struct Untouched(pub(super) Change);

impl<T> Applied<T> for Untouched {
    fn change(&self) -> Change {
        self.0
    }

    fn amend(&mut self, _: &T) -> Result<Option<Change>, LabError> {
        Ok(Some(now()))
    }

    fn heal(self: Box<Self>) -> Result<Change, LabError> {
        Ok(now())
    }
}

impl ImpairLinks for Sabotaged<()> {
    fn impair(&self, _: &[(String, String)], _: &Impairment) -> Result<Box<dyn Applied<Impairment>>, LabError> {
        Ok(Box::new(Untouched(now())))
    }
}

impl ImpairDisks for Sabotaged<()> {
    fn impair(&self, _: &str, _: &str, _: &DiskFault) -> Result<Box<dyn Applied<DiskFault>>, LabError> {
        Ok(Box::new(Untouched(now())))
    }
}

impl ShiftClocks for Sabotaged<()> {
    fn shift(&self, _: &str, _: i64, _: i64) -> Result<Change, LabError> {
        Ok(now())
    }
}

impl ControlNodes for Sabotaged<Arc<dyn ControlNodes>> {
    fn state(&self, node: &str) -> Result<NodeState, ClusterError> {
        self.0.state(node)
    }

    fn pause(&self, _: &str) -> Result<Change, ClusterError> {
        Ok(now())
    }

    fn unpause(&self, _: &str) -> Result<Change, ClusterError> {
        Ok(now())
    }

    fn kill(&self, _: &str, _: i32) -> Result<Change, ClusterError> {
        Ok(now())
    }

    fn stop(&self, _: &str, _: Duration) -> Result<Change, ClusterError> {
        Ok(now())
    }

    fn start(&self, _: &str) -> Result<Change, ClusterError> {
        Ok(now())
    }

    fn wait_answers(&self, node: &str, within: Duration) -> Result<(), ClusterError> {
        self.0.wait_answers(node, within)
    }

    fn limit_cpu(&self, _: &str, _: Share) -> Result<Box<dyn Applied<Share>>, ClusterError> {
        Ok(Box::new(Untouched(now())))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use brownout_cluster::DatabaseKind;

    use super::{super::capabilities::TellRoles, *};
    use crate::{
        experiment::FaultEntry,
        faults::{Healing, Role, Roles, from_entry},
        hosts::Hosts,
    };

    /// Notes what it is told to do; answers what it is asked.
    #[derive(Default)]
    struct Noting(Mutex<Vec<String>>);

    impl Noting {
        fn note(&self, what: &str) -> Change {
            self.0.lock().unwrap().push(what.to_owned());
            now()
        }

        fn capabilities(self: &Arc<Self>) -> Capabilities {
            Capabilities {
                links: Arc::<Noting>::clone(self),
                nodes: Arc::<Noting>::clone(self),
                disks: Arc::<Noting>::clone(self),
                clocks: Arc::<Noting>::clone(self),
                roles: Arc::<Noting>::clone(self),
            }
        }
    }

    impl ImpairLinks for Noting {
        fn impair(&self, _: &[(String, String)], _: &Impairment) -> Result<Box<dyn Applied<Impairment>>, LabError> {
            Ok(Box::new(Untouched(self.note("impair"))))
        }
    }

    impl ImpairDisks for Noting {
        fn impair(&self, _: &str, _: &str, _: &DiskFault) -> Result<Box<dyn Applied<DiskFault>>, LabError> {
            Ok(Box::new(Untouched(self.note("disk"))))
        }
    }

    impl ShiftClocks for Noting {
        fn shift(&self, _: &str, _: i64, _: i64) -> Result<Change, LabError> {
            Ok(self.note("clock"))
        }
    }

    impl TellRoles for Noting {
        fn leader(&self) -> Result<String, ClusterError> {
            Ok("n2".to_owned())
        }
    }

    impl ControlNodes for Noting {
        fn state(&self, _: &str) -> Result<NodeState, ClusterError> {
            Ok(NodeState::Up)
        }

        fn pause(&self, _: &str) -> Result<Change, ClusterError> {
            Ok(self.note("pause"))
        }

        fn unpause(&self, _: &str) -> Result<Change, ClusterError> {
            Ok(self.note("unpause"))
        }

        fn kill(&self, _: &str, _: i32) -> Result<Change, ClusterError> {
            Ok(self.note("kill"))
        }

        fn stop(&self, _: &str, _: Duration) -> Result<Change, ClusterError> {
            Ok(self.note("stop"))
        }

        fn start(&self, _: &str) -> Result<Change, ClusterError> {
            Ok(self.note("start"))
        }

        fn wait_answers(&self, _: &str, _: Duration) -> Result<(), ClusterError> {
            Ok(())
        }

        fn limit_cpu(&self, _: &str, _: Share) -> Result<Box<dyn Applied<Share>>, ClusterError> {
            Ok(Box::new(Untouched(self.note("cpu"))))
        }
    }

    /// One of each kind that acts through a handle of its own, with what it does there.
    const KINDS: [(&str, &str); 8] = [
        (r#"{"slow":{"host":"n2","delay":"100ms"}}"#, "impair"),
        (r#"{"partition":{"isolate":"n2"}}"#, "impair"),
        (r#"{"pause":{"host":"n2"}}"#, "pause"),
        (r#"{"kill":{"host":"n2"}}"#, "kill"),
        (r#"{"stop":{"host":"n2"}}"#, "stop"),
        (r#"{"cpu":{"host":"n2","share":"30%"}}"#, "cpu"),
        (r#"{"disk":{"host":"n2","error":"io"}}"#, "disk"),
        (r#"{"clock":{"host":"n2","offset":"5s"}}"#, "clock"),
    ];

    #[test]
    fn every_kind_of_fault_acts_through_its_handle_and_a_sabotaged_one_is_acknowledged_and_does_nothing() {
        for (written, deed) in KINDS {
            let entry: FaultEntry = serde_json::from_str(written).unwrap();
            let fault = from_entry(&entry, &Hosts::new(3), 1).unwrap();
            let noting = Arc::new(Noting::default());
            for (capabilities, acts) in [(noting.capabilities(), true), (sabotaged(&noting.capabilities()), false)] {
                noting.0.lock().unwrap().clear();
                let mut guard = fault.inject(&capabilities).unwrap();
                while guard.is_settling() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let change = guard.change();
                assert!(change.at_ns > 0 && change.error_ns < 10_000_000_000, "{written}: {change:?}");
                guard.amend(fault.as_ref()).unwrap();
                guard.heal().and_then(Healing::wait).unwrap();
                let did = noting.0.lock().unwrap().clone();
                assert_eq!(did.iter().any(|did| did == deed), acts, "{written}: {did:?}");
                assert!(acts || did.is_empty(), "{written}: {did:?}");
            }
        }
    }

    #[test]
    fn a_sabotaged_lab_tells_who_leads_and_a_follower_that_was_drawn_stays_the_one_that_is_meant() {
        let capabilities = sabotaged(&Arc::new(Noting::default()).capabilities());
        let nodes = ["n1", "n2", "n3", "n4"].map(str::to_owned);
        let mut followers = std::collections::BTreeSet::new();
        for seed in 0..50 {
            let mut roles = Roles::new(seed);
            let mut draw = |role, stilled: &[String]| roles.draw(role, &nodes, stilled, &capabilities).unwrap();
            assert_eq!(draw(Role::Leader, &[]), "n2");
            let follower = draw(Role::Follower, &[]);
            assert_eq!(draw(Role::Follower, &[]), follower);
            let another = draw(Role::Follower, std::slice::from_ref(&follower));
            assert!(another != follower && another != "n2", "another fault is starting {follower} again");
            followers.insert(follower);
        }
        assert_eq!(followers.into_iter().collect::<Vec<_>>(), ["n1", "n3", "n4"]);
        assert!(Roles::new(1).draw(Role::Follower, &nodes[1..2], &[], &capabilities).is_err());
        assert!(Roles::new(1).draw(Role::Leader, &nodes, &nodes[1..2], &capabilities).is_err());
    }

    #[test]
    fn a_fault_of_a_role_acts_on_whoever_has_it() {
        let entry: FaultEntry = serde_json::from_str(r#"{"pause":{"host":"leader"}}"#).unwrap();
        let fault = from_entry(&entry, &Hosts::new(3).running(DatabaseKind::Etcd), 1).unwrap();
        let noting = Arc::new(Noting::default());
        let guard = fault.inject(&noting.capabilities()).unwrap();
        guard.heal().and_then(Healing::wait).unwrap();
        assert_eq!(*noting.0.lock().unwrap(), ["pause", "unpause"]);
    }

    #[test]
    fn a_clock_that_becomes_wrong_by_another_offset_is_moved_in_one_step_and_goes_back_whole() {
        #[derive(Default)]
        struct Steps(Mutex<Vec<i64>>);
        impl ShiftClocks for Steps {
            fn shift(&self, _: &str, by_ns: i64, _: i64) -> Result<Change, LabError> {
                self.0.lock().unwrap().push(by_ns);
                Ok(now())
            }
        }
        let of = |offset: &str| {
            let written = format!(r#"{{"clock":{{"host":"n2","offset":"{offset}"}}}}"#);
            from_entry(&serde_json::from_str(&written).unwrap(), &Hosts::new(3), 1).unwrap()
        };
        let steps = Arc::new(Steps::default());
        let capabilities =
            Capabilities { clocks: Arc::<Steps>::clone(&steps), ..Arc::new(Noting::default()).capabilities() };
        let mut guard = of("5s").inject(&capabilities).unwrap();
        assert!(guard.amend(of("-200ms").as_ref()).unwrap().is_some());
        guard.heal().and_then(Healing::wait).unwrap();
        let steps = steps.0.lock().unwrap().clone();
        assert_eq!(steps[..2], [5_000_000_000, -5_200_000_000]);
        assert_eq!(steps.iter().sum::<i64>(), 0, "{steps:?}");
    }
}
