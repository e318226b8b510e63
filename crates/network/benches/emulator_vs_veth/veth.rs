//! The reference: two namespaces, joined by veth pairs and a bridge in a third.

use std::{net::Ipv4Addr, process::Command, time::Duration};

use super::{Hosts, namespace::Namespace};

pub struct Veth {
    hosts: [Namespace; 2],
    // Goes last: the bridge lives in it.
    _middle: Namespace,
}

impl Veth {
    pub fn start(congestion_control: &str) -> Veth {
        let middle = Namespace::new();
        let hosts = [Namespace::new(), Namespace::new()];
        middle.ip("link add br0 type bridge");
        middle.ip("link set br0 up");
        for (n, host) in hosts.iter().enumerate() {
            middle.ip(&format!("link add v{n} type veth peer name eth0 netns {}", host.path()));
            middle.ip(&format!("link set v{n} master br0 up"));
            host.ip(&format!("address add {}/32 dev eth0", address(n)));
            host.ip("link set lo up");
            host.ip("link set eth0 up");
            host.ip(&format!("route add 10.78.0.0/30 dev eth0 congctl {congestion_control}"));
        }
        Veth { hosts, _middle: middle }
    }
}

impl Veth {
    /// Delays all that the first host sends, by the kernel's own netem; what `tc` says if there is none.
    pub fn netem(&self, delay: Duration) -> Result<(), String> {
        // netem holds 1,000 packets and drops the rest in silence, unless it is told otherwise.
        let arguments = format!("qdisc replace dev eth0 root netem delay {}us limit 1000000", delay.as_micros());
        let run = || Command::new("tc").args(arguments.split(' ')).output();
        let output = self.hosts[0].run(run).map_err(|error| format!("tc: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("tc failed").to_owned()),
        }
    }

    /// No delay any more.
    pub fn clear(&self) {
        // Fails when there was none.
        let run = || Command::new("tc").args(["qdisc", "delete", "dev", "eth0", "root"]).output();
        let _ = self.hosts[0].run(run);
    }
}

fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 78, 0, 1 + host as u8)
}

impl Hosts for Veth {
    fn run<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        self.hosts[host].run(work)
    }

    fn address(&self, host: usize) -> Ipv4Addr {
        address(host)
    }
}
