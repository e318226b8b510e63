//! Networks of hosts that others have made.

use brownout_base::{HostId, Link};

use super::Network;
use crate::{
    attach::{AttachSpec, AttachedSpec, Attachment, Prepared, attach_way},
    emulator::{self, Announcement},
    error::NetworkError,
    host::Host,
    limits::{ETHERNET_MTU, LARGEST_MTU},
    overlay::ServiceHost,
    way::Way,
};

impl Network {
    /// Diverts what hosts that run already send each other through an emulator of ours, with a link between every ordered pair,
    /// nothing impaired. What is on no link passes by. In which [`Way`], is tried out before: the first that works.
    ///
    /// Only IPv4 and IPv6 packets to one receiver are diverted, and of those not IPv6's neighbour discovery. Connections go
    /// on, when it begins as when it ends. All that is added to a host's namespace vanishes with this process, however it ends:
    /// for each exit an interface `brownout<n>`, with it a table `brownout-<interface>` of nf_tables or routes; or tables
    /// `brownout` and a queue. While it hangs for more than two seconds, packets pass as if it were not there, but for those
    /// that routes lead to it.
    ///
    /// Dropping the network lets go at once what its links hold, and then packets take their own way again.
    ///
    /// Needs `CAP_SYS_ADMIN`, `CAP_NET_ADMIN` and `CAP_NET_RAW` over the hosts' namespaces, `/dev/net/tun`, and a kernel with
    /// what [`attach_trials`](crate::attach_trials) tries.
    ///
    /// # Errors
    /// See [`NetworkError`]; nothing of an attachment that failed stays.
    pub fn attach(spec: AttachSpec) -> Result<Network, NetworkError> {
        Network::attach_within(spec, None)
    }

    /// The same with a share of the machine's memory, in bytes; see [`Network::start_within`].
    ///
    /// # Errors
    /// As of [`Network::attach`].
    pub fn attach_within(spec: AttachSpec, memory: Option<u64>) -> Result<Network, NetworkError> {
        Network::attach_by(attach_way()?, spec, memory)
    }

    /// The same in this way and no other.
    ///
    /// # Errors
    /// As of [`Network::attach`].
    pub fn attach_by(way: Way, spec: AttachSpec, memory: Option<u64>) -> Result<Network, NetworkError> {
        let AttachSpec { hosts: specs, seed, realtime } = spec;
        let Prepared { hosts, ports, routes, mtu, attachment } = Attachment::prepare(way, specs)?;
        let (emulator, thread, announcement) = emulator::start(hosts.len(), ports, routes, seed, realtime, memory)?;
        let Announcement { scheduling, schedstat } = announcement;
        // Whole before anything is diverted: if that fails, this ends what has begun.
        let mut network = Network {
            services: hosts.iter().cloned().map(ServiceHost).collect(),
            hosts,
            overlay: None,
            mtu: mtu.map_or(ETHERNET_MTU, |mtu| mtu.min(u32::from(LARGEST_MTU)) as u16),
            attachment: Some(attachment),
            emulator,
            thread: Some(thread),
            scheduling,
            schedstat,
        };
        if let Some(attachment) = &mut network.attachment {
            attachment.begin(&network.emulator, realtime)?;
        }
        Ok(network)
    }

    /// A host whose namespace, addresses or exits are others, since what runs there was started again: it has the same name, and
    /// is from now on where this says. What is in force on its links goes on. Exits that are as they were stay.
    ///
    /// # Errors
    /// [`NetworkError::Spec`] when this network was not attached to, has no such host, or could not have this one; as of
    /// [`Network::attach`] else, and then the host is without those exits that could not be opened, until this is tried again.
    pub fn reattach(&self, host: AttachedSpec) -> Result<(), NetworkError> {
        let Some(attachment) = &self.attachment else {
            let reason =
                format!("host {} cannot be attached to again: this network was made, not attached to", host.name);
            return Err(NetworkError::Spec(reason));
        };
        let Some(known) = self.host(&host.name) else {
            return Err(NetworkError::Spec(format!("it has no host named {} to be attached to again", host.name)));
        };
        attachment.reattach(known, host, &self.emulator)
    }

    /// Whether others have made this network.
    pub fn is_attached(&self) -> bool {
        self.attachment.is_some()
    }

    /// Whether a link is carried here. Of hosts on several machines each link is carried on one: where it begins, or, if it comes from
    /// outside, where it ends.
    pub fn carries(&self, link: Link) -> bool {
        let is_elsewhere = |host: HostId| self.hosts.get(host.index()).is_none_or(Host::is_elsewhere);
        let comes_from_outside = self.attachment.as_ref().is_some_and(|attachment| attachment.is_outside(link.from));
        !is_elsewhere(if comes_from_outside { link.to } else { link.from })
    }

    /// In which way it was attached to; `None` for a network that we have made. What links cannot do by it, they refuse:
    /// [`Way::refuses`] says so before.
    pub fn way(&self) -> Option<Way> {
        self.attachment.as_ref().map(Attachment::way)
    }

    /// How often packets of attached hosts may have passed by the emulator, because this process hung for two seconds, was
    /// stopped, or could not reach the kernel's filter; once for each exit. 0 for a network that we have made.
    pub fn lapses(&self) -> u64 {
        self.attachment.as_ref().map_or(0, Attachment::lapses)
    }
}
