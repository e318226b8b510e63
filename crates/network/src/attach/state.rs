//! What is diverted at this moment, and where.

use std::net::IpAddr;

use brownout_base::HostId;

use super::{diversion::Place, opened::Opened, spec::AttachedSpec};
use crate::{emulator::Routes, error::NetworkError, way::Way};

/// All hosts, and what is open in each.
pub(super) struct State {
    pub(super) way: Way,
    pub(super) specs: Vec<AttachedSpec>,
    /// By the hosts' numbers.
    pub(super) opened: Vec<Vec<Opened>>,
}

impl State {
    /// Begins to divert.
    pub(super) fn begin(&mut self) -> Result<(), NetworkError> {
        self.each(Opened::begin)
    }

    /// Diverts what is on a link now, where hosts are others than they were.
    pub(super) fn change(&mut self, before: &[AttachedSpec]) -> Result<(), NetworkError> {
        self.each(|one, place| one.change(before, place))
    }

    fn each(
        &mut self,
        mut work: impl FnMut(&mut Opened, &Place<'_>) -> Result<(), NetworkError>,
    ) -> Result<(), NetworkError> {
        for (number, opened) in self.opened.iter_mut().enumerate() {
            let devices = devices(opened.iter());
            let place = Place { hosts: &self.specs, number, devices: &devices };
            opened.iter_mut().try_for_each(|one| work(one, &place))?;
        }
        Ok(())
    }

    /// Which host has which address.
    pub(super) fn routes(&self) -> Routes {
        routes(&self.specs)
    }
}

/// The interfaces of ours among these.
pub(super) fn devices<'a>(opened: impl Iterator<Item = &'a Opened>) -> Vec<String> {
    opened.filter_map(|one| one.device.clone()).collect()
}

/// Which host has which address.
pub(super) fn routes(specs: &[AttachedSpec]) -> Routes {
    let addresses =
        hosts(specs).flat_map(|(id, spec)| spec.addresses.iter().map(move |address: &IpAddr| (*address, id)));
    Routes::new(addresses, outside(specs))
}

/// The host that stands for all that is outside.
pub(super) fn outside(specs: &[AttachedSpec]) -> Option<HostId> {
    hosts(specs).find(|(_, spec)| spec.is_outside()).map(|(id, _)| id)
}

fn hosts(specs: &[AttachedSpec]) -> impl Iterator<Item = (HostId, &AttachedSpec)> {
    (0..).map(HostId).zip(specs)
}
