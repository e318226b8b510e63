//! Experiments on containers that run already: their hosts, and the faults that can be done to them.

use brownout_containers::{Container, What};
use brownout_network::Way;
use brownout_record::Subject;

use super::{PlannedFault, check::Check};
use crate::{
    experiment::{ContainersFound, FileError},
    faults::Fault,
    hosts::Hosts,
};

impl Check<'_> {
    /// The containers as hosts, by their own names, and this machine.
    pub(super) fn hosts_of(&self, found: &ContainersFound) -> Result<Hosts, FileError> {
        let Some(machine) = found.machine_address() else {
            let message = "the containers cannot be reached from this machine, and the load runs here; give them a network \
                           of this machine, as a bridge is";
            return self.complain("ground.containers", message.to_owned());
        };
        let hosts = Hosts::named(found.names().into_iter().zip(found.addresses()), machine);
        Ok(hosts.on_machines(|host| found.container(host)?.machine.clone()))
    }

    /// Refuses faults that cannot be done to these containers. `entries`: of each fault, the index of its entry in the file.
    pub(super) fn able(&self, hosts: &Hosts, faults: &[PlannedFault], entries: &[usize]) -> Result<(), FileError> {
        let Some(found) = &self.experiment.found else { return Ok(()) };
        for (fault, entry) in faults.iter().zip(entries) {
            for severity in &fault.severities {
                if let Some(message) = found.refuses(severity.as_ref(), hosts) {
                    return self.complain(&format!("faults.{entry}"), message);
                }
            }
        }
        Ok(())
    }
}

impl ContainersFound {
    /// Why a fault cannot be done to these containers; none if it can.
    pub fn refuses(&self, fault: &dyn Fault, hosts: &Hosts) -> Option<String> {
        if let Some((way, why)) = self.refuses_by_way(fault) {
            let (kind, best) = (fault.kind(), Way::ALL[0].name());
            return Some(format!(
                "{kind} cannot be done here: a network whose packets are {way} {why}; leave this fault out, or leave ground out \
                 for a lab; `brownout doctor` says what the way `{best}` lacks here, by which all can be done"
            ));
        }
        self.refuses_to(fault, hosts).map(|(name, why)| {
            let kind = fault.kind();
            format!(
                "{kind} cannot be done to {name}: {why}; leave this fault out, strike another host, or leave ground out for a \
                 lab"
            )
        })
    }

    /// Why it cannot be done in the way in which packets are diverted here, whoever is hit.
    fn refuses_by_way(&self, fault: &dyn Fault) -> Option<(Way, &'static str)> {
        let way = self.way?;
        let is_from_outside = fault.links().iter().any(|(from, _)| from == Hosts::LOAD);
        let by_impairment = fault.impairment().and_then(|impairment| way.refuses(&impairment));
        let why = by_impairment.or_else(|| way.refuses_outside().filter(|_| is_from_outside))?;
        Some((way, why))
    }

    /// The first of them to which it cannot be done, and why.
    fn refuses_to(&self, fault: &dyn Fault, hosts: &Hosts) -> Option<(String, String)> {
        let needs = fault.needs();
        for (nodes, what) in [(&needs.clocks, What::Clock), (&needs.disks, What::Disk)] {
            let refused = |container: &Container| Some((container.name.clone(), container.refusal(what)?.to_owned()));
            if let Some(refused) = nodes.iter().filter_map(|node| self.container(node)).find_map(refused) {
                return Some(refused);
            }
        }
        let asked: &[What] = match fault.kind() {
            "pause" => &[What::Pause],
            "kill" | "stop" => &[What::Kill, What::Restart],
            "cpu" => &[What::Cpu],
            _ => &[],
        };
        let hit = fault.expectations(hosts).into_iter().filter(|one| one.hit);
        let nodes = hit.filter_map(|one| if let Subject::Host { host } = one.subject { Some(host) } else { None });
        for container in nodes.filter_map(|node| self.container(&node)) {
            if let Some(why) = asked.iter().find_map(|what| container.refusal(*what)) {
                return Some((container.name.clone(), why.to_owned()));
            }
        }
        let is_cut_off = |name: &str| {
            let container = self.container(name)?;
            let is_here = container.interfaces.iter().any(|interface| interface.machine_interface.is_some());
            (!is_here).then(|| container.name.clone())
        };
        let mut from_here = fault.links().iter().filter(|(from, _)| from == Hosts::LOAD);
        let name = from_here.find_map(|(_, to)| is_cut_off(to))?;
        let load = Hosts::LOAD;
        let why =
            format!("what {load} sends it cannot be held, as the other end of its interface is not on this machine");
        Some((name, why))
    }
}
