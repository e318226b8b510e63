//! The machines and pods that there are not.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

/// Where parts that are none are reached.
pub const HERE: &str = "127.0.0.1:9";

/// So many pods, evenly on so many nodes, and loads beside them.
#[derive(Debug, Clone, Copy)]
pub struct Fleet {
    pub pods: usize,
    pub nodes: usize,
    pub loads: usize,
}

impl Fleet {
    pub fn pod(number: usize) -> String {
        format!("pod-{number:03}")
    }

    fn node(number: usize) -> String {
        format!("node-{number:03}")
    }

    pub fn nodes(&self) -> impl Iterator<Item = String> {
        (0..self.nodes).map(Fleet::node)
    }

    pub fn load(number: usize) -> String {
        format!("sends-{number:03}")
    }

    /// The pod that is slow.
    pub fn slow(&self) -> &'static str {
        "pod-000"
    }

    fn pods_on(&self, node: usize) -> impl Iterator<Item = usize> {
        (0..self.pods).filter(move |pod| pod % self.nodes == node)
    }

    /// The hosts of a machine.
    pub fn hosts_of(&self, machine: &str) -> Vec<String> {
        let node = (0..self.nodes).find(|node| Fleet::node(*node) == machine);
        node.into_iter().flat_map(|node| self.pods_on(node)).map(Fleet::pod).collect()
    }

    fn address(pod: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 244, (pod / 200) as u8, (pod % 200) as u8 + 1)
    }

    /// Where the hosts of a machine are measured.
    pub fn far_hosts(&self, machine: &str) -> Vec<Value> {
        let one = |host: String| {
            let pod: usize = host.trim_start_matches("pod-").parse().unwrap();
            let own = Fleet::address(pod);
            json!({ "host": host, "machine": machine, "own": [own], "addresses": [format!("{own}:1"), format!("{own}:2"), format!("{own}:3")] })
        };
        self.hosts_of(machine).into_iter().map(one).collect()
    }

    /// What a look at a node shows.
    pub fn found_on(&self, node: usize) -> Value {
        let abilities = ["links", "pause", "kill", "restart", "cpu", "disk", "clock"];
        let abilities = abilities.map(|what| json!({ "what": what, "refused": null }));
        let container = |pod: usize| {
            let (name, address, end) = (Fleet::pod(pod), Fleet::address(pod), format!("veth{pod}"));
            json!({
                "name": name, "id": format!("{pod:064}"), "runtime": "containerd", "engine": "containerd 1.7", "pid": 1_000 + pod,
                "started": "2026-11-24T10:00:00Z", "addresses": [address], "interface": "eth0", "machine_interface": end,
                "interfaces": [{
                    "name": "eth0", "kind": "veth", "mac": null, "addresses": [address], "machine_interface": end,
                    "strict_reverse_path": false,
                }],
                "image": "etcd", "project": null, "service": null, "networks": ["pods"], "gateways": ["10.244.0.1"],
                "abilities": abilities, "socket": null,
            })
        };
        let containers: Vec<Value> = self.pods_on(node).map(container).collect();
        json!({
            "selection": { "names": ["all"], "socket": null }, "containers": containers, "machine": ["10.244.0.1"],
            "way": "forward",
        })
    }

    /// What the nodes of the database are, as they are looked for.
    pub fn software(&self, choice: &str) -> Value {
        let nodes: Vec<(String, String)> =
            (0..self.pods).map(|pod| (Fleet::pod(pod), format!("{}:2379", Fleet::address(pod)))).collect();
        let versions: serde_json::Map<String, Value> =
            (0..self.pods).map(|pod| (Fleet::pod(pod), json!("3.6.5"))).collect();
        json!([{
            "choice": choice,
            "found": { "External": {
                "nodes": nodes, "versions": versions,
                "access": { "ca": null, "certificate": null, "key": null, "names": [], "login": null },
            } },
        }])
    }

    /// The experiment, whose parts this program plays.
    pub fn experiment(&self, program: &str, phase_s: u64) -> String {
        let part = |number: usize| format!("{program} --part {number} {} {} {}", self.pods, self.nodes, self.loads);
        let node = |number: usize| {
            let (name, via) = (Fleet::node(number), part(number));
            format!("    {name}: {{ via: '{via}', program: x, containers: {{ names: [all] }} }}\n")
        };
        let load = |number: usize| {
            let via = part(self.nodes + number);
            format!("    {}: {{ via: '{via}', program: x }}\n", Fleet::load(number))
        };
        let machines = (0..self.nodes).map(node).chain((0..self.loads).map(load)).collect::<String>();
        let (before, after) = (phase_s / 3, phase_s / 3);
        format!(
            "ground:\n  machines:\n{machines}\
             cluster: {{ etcd: '3' }}\n\
             load: {{ mix: {{ put: 1, range: 1 }}, population: 1000, rate: 20000/s, timeout: 2s }}\n\
             phases: {{ warm-up: 20s, baseline: {before}s, fault: {}s, recovery: {after}s }}\n\
             faults: [{{ slow: {{ host: {}, delay: 50ms }} }}]\n\
             trials: 1\nwithout-fault: 0\nattempts: 1\nobjective: {{ p95: 100ms }}\n",
            phase_s - before - after,
            self.slow()
        )
    }
}
