//! The hosts of a lab: their names and addresses.

use std::net::Ipv4Addr;

/// One host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPlan {
    /// `n1`, `n2`, … or `load`.
    pub name: String,
    /// Inside the lab.
    pub address: Ipv4Addr,
}

/// All hosts of a lab: the nodes in order, then the host of the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts(Vec<HostPlan>);

impl Hosts {
    /// The host that the load runs on.
    pub const LOAD: &str = "load";

    /// `nodes` nodes and the host of the load.
    pub fn new(nodes: u8) -> Self {
        let node = |index: u8| HostPlan { name: format!("n{index}"), address: crate::plan::address(index) };
        let load = HostPlan { name: Self::LOAD.to_owned(), address: crate::plan::address(250) };
        Hosts((1..=nodes).map(node).chain([load]).collect())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &HostPlan> {
        self.0.iter()
    }

    /// The nodes alone.
    pub fn nodes(&self) -> impl Iterator<Item = &HostPlan> {
        self.0.iter().filter(|host| host.name != Self::LOAD)
    }

    /// By name.
    pub fn find(&self, name: &str) -> Option<&HostPlan> {
        self.0.iter().find(|host| host.name == name)
    }

    /// Every ordered pair, `from → to`.
    pub fn pairs(&self) -> impl Iterator<Item = (&HostPlan, &HostPlan)> {
        self.0.iter().flat_map(|from| self.0.iter().filter(move |to| to.name != from.name).map(move |to| (from, to)))
    }
}
