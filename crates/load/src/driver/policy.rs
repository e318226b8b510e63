//! The driver's own choice of coordinators, written down.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use scylla::{
    cluster::{ClusterState, Node, NodeRef},
    errors::RequestAttemptError,
    policies::load_balancing::{FallbackPlan, LoadBalancingPolicy, RoutingInfo},
    routing::Shard,
};

use super::Chosen;

/// What the task of a request tells the policy, and hears from it.
#[derive(Debug, Clone)]
pub(super) struct Asking {
    pub(super) chosen: Chosen,
    /// The one coordinator that it may go to.
    pub(super) pin: Option<u16>,
}

tokio::task_local! {
    /// Of the request that is being asked.
    pub(super) static ASKED: Asking;
}

/// Where a node answers CQL.
pub(super) fn address(node: &Node) -> SocketAddr {
    SocketAddr::new(node.address.ip(), node.address.port())
}

/// A policy whose choices are kept for the account, with two additions of ours: requests may be bound to one coordinator,
/// and coordinators of a farther tier come after all of the nearer ones.
#[derive(Debug)]
pub(super) struct Recording {
    inner: Arc<dyn LoadBalancingPolicy>,
    /// The coordinators, with the number of their tiers.
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
            // What the driver asks on its own account has no account here.
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
                // The plan has them in their order.
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
