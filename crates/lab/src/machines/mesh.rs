//! Hosts on several machines, as those who measure see them from one.

use std::sync::Arc;

use brownout_base::{ArrivalsElsewhere, EnterableHost, HostId, LongestHold, Mesh};
use brownout_network::Network;

use super::relay::{AllTold, Stream};

/// A network whose hosts of other machines are told of.
pub(super) struct MachinesMesh<'a> {
    pub(super) network: &'a Network,
    pub(super) told: &'a AllTold,
    /// Whose datagrams.
    pub(super) stream: Stream,
}

impl Mesh for MachinesMesh<'_> {
    fn enterable_hosts(&self) -> Vec<&dyn EnterableHost> {
        self.network.enterable_hosts()
    }

    fn mtu(&self) -> u16 {
        self.network.mtu()
    }

    fn is_realtime(&self) -> bool {
        Mesh::is_realtime(self.network)
    }

    fn holds(&self) -> Arc<dyn LongestHold> {
        self.network.holds()
    }

    fn elsewhere(&self, host: HostId) -> Option<Arc<dyn ArrivalsElsewhere>> {
        self.network.hosts().get(host.index()).filter(|host| host.is_elsewhere())?;
        self.told.of(host, self.stream).map(|told| told as Arc<dyn ArrivalsElsewhere>)
    }
}
