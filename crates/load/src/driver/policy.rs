//! Records which coordinators the driver chooses.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use scylla::{
    cluster::{ClusterState, Node, NodeRef},
    errors::RequestAttemptError,
    policies::load_balancing::{FallbackPlan, LoadBalancingPolicy, RoutingInfo},
    routing::Shard,
};

use super::Chosen;

/// Exchanged between the task of a request and the policy: the pin one way, the chosen coordinator back.
#[derive(Debug, Clone)]
pub(super) struct Asking {
    pub(super) chosen: Chosen,
    /// The only coordinator that it may go to.
    pub(super) pin: Option<u16>,
}

tokio::task_local! {
    /// Of the request being executed.
    pub(super) static ASKED: Asking;
}

/// Where a node answers CQL.
pub(super) fn address(node: &Node) -> SocketAddr {
    SocketAddr::new(node.address.ip(), node.address.port())
}

/// A policy that records its choices for the account, with two additions of ours: requests may be bound to one
/// coordinator, and coordinators of a farther tier come after all of the nearer ones.
#[derive(Debug)]
pub(super) struct Recording {
    inner: Arc<dyn LoadBalancingPolicy>,
    /// The coordinators with their tier numbers.
    nodes: Vec<(SocketAddr, usize)>,
}

impl Recording {
    pub(super) fn new(inner: Arc<dyn LoadBalancingPolicy>, addresses: &[SocketAddr], tiers: &[usize]) -> Self {
        let tier = |place: usize| tiers.iter().filter(|end| place >= **end).count();
        let nodes = addresses.iter().enumerate().map(|(place, address)| (*address, tier(place))).collect();
        Recording { inner, nodes }
    }

    fn place(&self, node: &Node) -> Option<usize> {
        let address = address(node);
        self.nodes.iter().position(|(known, _)| *known == address)
    }

    fn tier(&self, node: &Node) -> usize {
        self.place(node).map_or(usize::MAX, |place| self.nodes[place].1)
    }

    fn record(&self, node: &Node) {
        if let Some(place) = self.place(node).and_then(|place| u16::try_from(place).ok()) {
            // Fails for the driver's own requests, which are not accounted.
            let _ = ASKED.try_with(|asking| asking.chosen.set(place));
        }
    }
}

fn pin() -> Option<u16> {
    ASKED.try_with(|asking| asking.pin).ok().flatten()
}

impl LoadBalancingPolicy for Recording {
    fn pick<'a>(&'a self, request: &'a RoutingInfo, cluster: &'a ClusterState) -> Option<(NodeRef<'a>, Option<Shard>)> {
        let picked = match pin() {
            Some(pin) => {
                let (wanted, _) = self.nodes.get(usize::from(pin))?;
                cluster.get_nodes_info().iter().find(|node| address(node) == *wanted).map(|node| (node, None))?
            }
            None => {
                let picked = self.inner.pick(request, cluster)?;
                // The fallback plan lists the nodes in the order of their tiers.
                if self.tier(picked.0) > 0 {
                    return None;
                }
                picked
            }
        };
        self.record(picked.0);
        Some(picked)
    }

    fn fallback<'a>(&'a self, request: &'a RoutingInfo, cluster: &'a ClusterState) -> FallbackPlan<'a> {
        if pin().is_some() {
            return Box::new(std::iter::empty());
        }
        let mut plan: Vec<_> = self.inner.fallback(request, cluster).collect();
        plan.sort_by_key(|(node, _)| self.tier(node));
        Box::new(plan.into_iter().inspect(|(node, _)| self.record(node)))
    }

    fn on_request_success(&self, request: &RoutingInfo, latency: Duration, node: NodeRef<'_>) {
        self.inner.on_request_success(request, latency, node);
    }

    fn on_request_failure(
        &self,
        request: &RoutingInfo,
        latency: Duration,
        node: NodeRef<'_>,
        error: &RequestAttemptError,
    ) {
        self.inner.on_request_failure(request, latency, node, error);
    }

    fn name(&self) -> String {
        self.inner.name()
    }
}
