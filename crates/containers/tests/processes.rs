//! Processes that are found as containers are, paused, limited and killed. They take root.

use std::{
    process::{Child, Command},
    time::{Duration, Instant},
};

use brownout_cluster::{Hands, NodeState};
use brownout_containers::{By, ContainerHands, Selection, find};

/// It is killed at the end.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn until(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_process_that_is_named_by_its_number_is_touched_as_a_container_is() {
    let process = Process(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
    let selection = Selection { by: By::Pids(vec![process.0.id()]), socket: None };
    let found = find(&selection).unwrap();
    let hands = ContainerHands::new(&found[0]).unwrap();
    assert_eq!((hands.state().unwrap(), hands.pid()), (NodeState::Up, Some(process.0.id())));
    until(|| hands.cpu_ns().unwrap() > 20_000_000);

    hands.pause().unwrap();
    let before = hands.cpu_ns();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!((hands.state().unwrap(), hands.cpu_ns()), (NodeState::Paused, before));
    hands.unpause().unwrap();
    until(|| hands.cpu_ns() > before);

    let limit = hands.limit_cpu("1%".parse().unwrap()).unwrap();
    assert_eq!(hands.cpu_share(), Some("1%".parse().unwrap()));
    limit.heal();
    assert_eq!(hands.cpu_share(), None);

    hands.kill(libc::SIGKILL).unwrap();
    assert_eq!((hands.state().unwrap(), hands.pid()), (NodeState::Down, None));
    let error = hands.start().unwrap_err().to_string();
    assert!(error.contains("start it where it was started"), "{error}");
    assert_eq!(hands.restarted(), None);
    assert!(ContainerHands::new(&found[0]).is_err(), "it is gone");
}

#[test]
fn of_a_network_namespace_no_process_is_known_and_that_is_said() {
    let namespace = format!("/proc/{}/ns/net", std::process::id());
    let found = find(&Selection { by: By::Namespaces(vec![namespace.into()]), socket: None }).unwrap();
    let hands = ContainerHands::new(&found[0]).unwrap();
    assert_eq!((hands.pid(), hands.cpu_ns()), (None, None));
    for error in [hands.state().err(), hands.pause().err(), hands.kill(9).err(), hands.start().err()] {
        let error = error.unwrap().to_string();
        assert!(error.contains("name it by one of its processes"), "{error}");
    }
}
