//! The second way: what has come to a host waits in a queue of the kernel's, until the emulator lets it pass.

use std::io;

use super::{
    diversion::{Diversion, MARK, Place, refused},
    opened::Opened,
    selection::arriving,
    spec::AttachedSpec,
};
use crate::{
    emulator::{self, Port},
    error::NetworkError,
    limits::ETHERNET_MTU,
    sys::{self, PacketQueue, Queueing, RawSockets},
};

/// The queue's number in each namespace: "br".
const QUEUE: u16 = 0x6272;

const REMEDY: &str = "this needs Linux 5.12 with CONFIG_NF_TABLES, CONFIG_NETFILTER_NETLINK_QUEUE, and CONFIG_NFT_QUEUE or, in \
                      its place, CONFIG_NFT_COMPAT and CONFIG_NETFILTER_XT_TARGET_NFQUEUE";

struct Queue {
    host: String,
    queueing: Queueing,
}

/// Opens the queue of a host in the namespace of the calling thread, in which nothing waits yet.
pub(super) fn open(spec: &AttachedSpec) -> Result<(Opened, Port), NetworkError> {
    let host = &spec.name;
    let configure = |action: &str| {
        let (host, action) = (host.clone(), action.to_owned());
        move |source| NetworkError::Configure { host, action, source }
    };
    let mut mtu = None::<u32>;
    for exit in &spec.exits {
        let interface = &exit.interface;
        let of_this = sys::interface_mtu(interface).map_err(configure(&format!("read the MTU of {interface}")))?;
        mtu = Some(mtu.map_or(of_this, |least| least.min(of_this)));
    }
    let queueing = Queueing::open(spec.is_outside())
        .map_err(configure("open a netlink socket to nf_tables (CONFIG_NF_TABLES is needed)"))?;
    let packets = PacketQueue::open(QUEUE)
        .map_err(|source| refused((host.as_str(), arrivals()), source, queueing.holder(), REMEDY))?;
    let messages = RawSockets::open(MARK).map_err(configure("open a raw socket (CAP_NET_RAW is needed)"))?;
    let opened = Opened::at_arrival(mtu.unwrap_or(u32::from(ETHERNET_MTU)), Queue { host: host.clone(), queueing });
    Ok((opened, Port::Queue(emulator::Queue { packets, messages })))
}

fn arrivals() -> String {
    "what comes in".to_owned()
}

impl Queue {
    fn refused(&self, source: io::Error) -> NetworkError {
        refused((self.host.as_str(), arrivals()), source, self.queueing.holder(), REMEDY)
    }
}

impl Diversion for Queue {
    fn begin(&mut self, place: &Place<'_>) -> Result<(), NetworkError> {
        let started = self.queueing.start(QUEUE, &arriving(place.hosts, place.number));
        started.map_err(|source| self.refused(source))
    }

    fn change(&mut self, before: &[AttachedSpec], place: &Place<'_>) -> Result<(), NetworkError> {
        let diverted = arriving(place.hosts, place.number);
        if diverted == arriving(before, place.number) {
            return Ok(());
        }
        self.queueing.change(&diverted).map_err(|source| self.refused(source))
    }

    fn refresh(&self) -> Option<io::Result<bool>> {
        Some(self.queueing.refresh())
    }

    fn pass(&mut self) {
        // Taking the tables away would drop all that waits. Where this fails, they go next, and it is lost.
        let _ = self.queueing.lapse();
    }
}
