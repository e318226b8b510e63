//! Clusters that run already: who is asked, who is touched, and by whom.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use brownout_base::{Change, EnterableHost};
use brownout_units::Share;

use crate::{
    AttachedNode, Cluster, ClusterError, CpuHold, Database, DatabaseKind, Hands, NodeState, Question, Restart, Stopped,
    SystemSettings,
    database::{ClusterView, Heartbeat, Looker, Member, Program},
};

/// A database that runs elsewhere.
struct Elsewhere;

impl Database for Elsewhere {
    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Cassandra
    }
    fn program(&self) -> Option<&dyn Program> {
        None
    }
    fn answers(&self, _: &[Member], _: usize) -> Result<(), String> {
        Ok(())
    }
    fn view(&self, _: &[Member], _: usize) -> ClusterView {
        ClusterView { missing: Vec::new(), schema: Some("b".to_owned()) }
    }
    fn rest(&self, members: &[Member], index: usize) -> ClusterView {
        self.view(members, index)
    }
    fn heartbeat(&self, _: &[Member], _: usize, _: Question) -> Box<dyn Heartbeat> {
        unreachable!("nobody asks in these tests")
    }
    fn looker(&self, _: &[Member], _: usize, _: bool) -> Option<Box<dyn Looker>> {
        None
    }
    fn settings_in_force(&self, _: &[Member]) -> SystemSettings {
        SystemSettings::default()
    }
}

fn node(name: &str, port: u16) -> AttachedNode {
    AttachedNode { name: name.to_owned(), address: ([127, 0, 0, 1], port).into(), host: None, hands: None }
}

#[test]
fn nodes_that_are_not_ours_are_asked_and_never_touched() {
    let mut cluster = Cluster::attach(Box::new(Elsewhere), vec![node("n1", 9042), node("n2", 9043)]).unwrap();
    let ready = cluster.wait_ready(Duration::from_secs(60), &|| false, &mut |_| ()).unwrap();
    assert_eq!(ready.schema, "b");
    let control = cluster.control();
    assert_eq!(control.client("n2").unwrap(), ([127, 0, 0, 1], 9043).into());
    assert!(!control.has_hands("n2") && control.restarted("n2").unwrap().is_none());
    let refused = |error: ClusterError| matches!(error, ClusterError::NotOurs { node } if node == "n2");
    assert!(refused(control.pause("n2").unwrap_err()) && refused(control.kill("n2", libc::SIGKILL).unwrap_err()));
    assert!(refused(control.start("n2").unwrap_err()) && refused(control.tool("n2", &[]).unwrap_err()));
    assert!(refused(control.state("n2").unwrap_err()) && refused(control.log_path("n2").unwrap_err()));
    control.wait_answers("n2", Duration::from_secs(60), &|| false).unwrap();
    assert!(control.leader().unwrap_err().to_string().contains("no node of Cassandra leads"));
    assert_eq!((cluster.deaths().len(), cluster.nodes()[0].alive()), (0, false));
    assert!(cluster.stop(Duration::from_secs(1)), "there is nothing to wait for");
    let twice = vec![node("n1", 9042), node("n1", 9043)];
    let error = Cluster::attach(Box::new(Elsewhere), twice).err().unwrap().to_string();
    assert!(error.contains("share the name n1"), "{error}");
}

/// Hands that do nothing but remember what was asked of them.
#[derive(Default)]
struct Remembering(Mutex<Vec<&'static str>>);

impl Remembering {
    fn remember(&self, what: &'static str) -> Change {
        self.0.lock().unwrap().push(what);
        Change::between(1, 3)
    }
}

#[derive(Debug)]
struct Held(Change);

impl CpuHold for Held {
    fn since(&self) -> Change {
        self.0
    }
    fn heal(self: Box<Self>) -> Change {
        Change::between(5, 7)
    }
}

impl Hands for Remembering {
    fn state(&self) -> Result<NodeState, ClusterError> {
        Ok(NodeState::Paused)
    }
    fn pid(&self) -> Option<u32> {
        Some(77)
    }
    fn cpu_ns(&self) -> Option<u64> {
        Some(12)
    }
    fn pause(&self) -> Result<Change, ClusterError> {
        Ok(self.remember("pause"))
    }
    fn unpause(&self) -> Result<Change, ClusterError> {
        Ok(self.remember("unpause"))
    }
    fn kill(&self, _: i32) -> Result<Change, ClusterError> {
        Ok(self.remember("kill"))
    }
    fn stop(&self, _: Duration) -> Result<Stopped, ClusterError> {
        Ok(Stopped { change: self.remember("stop"), killed: true })
    }
    fn start(&self) -> Result<Change, ClusterError> {
        Ok(self.remember("start"))
    }
    fn limit_cpu(&self, _: Share) -> Result<Box<dyn CpuHold>, ClusterError> {
        Ok(Box::new(Held(self.remember("limit"))))
    }
    fn cpu_share(&self) -> Option<Share> {
        Some(Share::ALL)
    }
    fn held_ns(&self) -> u64 {
        34
    }
    fn restarted(&self) -> Option<Restart> {
        Some(Restart { at_ns: 9, gap_ns: 2, pid: 78 })
    }
}

#[test]
fn what_is_done_to_a_node_goes_to_its_hands_and_to_nobody_where_it_has_none() {
    let hands = Arc::new(Remembering::default());
    let held = AttachedNode { hands: Some(hands.clone()), ..node("n1", 9042) };
    let cluster = Cluster::attach(Box::new(Elsewhere), vec![held, node("n2", 9043)]).unwrap();
    let control = cluster.control();
    assert!(control.has_hands("n1") && !control.has_hands("n2") && !control.has_hands("n3") && !control.is_ours());
    let change = Change::between(1, 3);
    assert_eq!(control.pause("n1").unwrap(), change);
    assert_eq!(control.unpause("n1").unwrap(), change);
    assert_eq!(control.kill("n1", libc::SIGKILL).unwrap(), change);
    assert!(control.stop("n1", Duration::ZERO).unwrap().killed);
    assert_eq!(control.start("n1").unwrap(), change);
    let limit = control.limit_cpu("n1", Share::ALL).unwrap();
    assert_eq!((limit.since(), limit.heal()), (change, Change::between(5, 7)));
    assert_eq!(*hands.0.lock().unwrap(), ["pause", "unpause", "kill", "stop", "start", "limit"]);
    assert_eq!(control.state("n1").unwrap(), NodeState::Paused);
    assert_eq!((control.pid("n1").unwrap(), control.cpu_ns("n1").unwrap()), (Some(77), Some(12)));
    assert_eq!((control.cpu_share("n1").unwrap(), control.held_ns("n1").unwrap()), (Some(Share::ALL), 34));
    assert_eq!(control.restarted("n1").unwrap(), Some(Restart { at_ns: 9, gap_ns: 2, pid: 78 }));
    assert_eq!((control.pid("n2").unwrap(), control.cpu_ns("n2").unwrap()), (None, None));
    assert!(matches!(control.limit_cpu("n2", Share::ALL), Err(ClusterError::NotOurs { .. })));
    let nodes = cluster.nodes();
    assert_eq!((nodes[0].pid(), nodes[0].cpu_ns(), nodes[0].alive()), (77, Some(12), true));
    assert!(cluster.stop(Duration::from_secs(1)), "nothing that was started here remains");
}

/// A host that cannot be entered at first, as that of a container between its end and its next start.
struct Later(AtomicU32);

impl EnterableHost for Later {
    fn name(&self) -> &str {
        "n1"
    }
    fn address(&self) -> Ipv4Addr {
        Ipv4Addr::LOCALHOST
    }
    fn enter(&self) -> std::io::Result<()> {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Err(std::io::ErrorKind::NotFound.into()),
            _ => Ok(()),
        }
    }
}

#[test]
fn a_node_is_asked_from_its_host_which_is_entered_each_time() {
    let host = Arc::new(Later(AtomicU32::new(0)));
    let on_host = AttachedNode { host: Some(host.clone()), ..node("n1", 9042) };
    let mut cluster = Cluster::attach(Box::new(Elsewhere), vec![on_host]).unwrap();
    cluster.control().wait_answers("n1", Duration::from_secs(60), &|| false).unwrap();
    assert_eq!(host.0.load(Ordering::Relaxed), 3, "the first two were told, and it was tried again");
    cluster.wait_ready(Duration::from_secs(60), &|| false, &mut |_| ()).unwrap();
    assert!(host.0.load(Ordering::Relaxed) > 3);
}
