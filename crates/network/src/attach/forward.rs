//! The first way: what leaves by an interface is forwarded to a TAP, and leaves from there by a packet socket.

use std::{io, path::Path};

use super::{
    diversion::{Diversion, MARK, Place, refused},
    opened::Opened,
    selection::leaving,
    spec::{AttachedSpec, Exit},
};
use crate::{
    emulator::{self, Port},
    error::NetworkError,
    host::{INTERFACE_QUEUE, tun_error},
    limits::LARGEST_MTU,
    sys::{self, Diverter, PacketSocket, RawSockets, TUN_DEVICE, Tap},
};

const REMEDY: &str = "this needs Linux 5.17 with CONFIG_NF_TABLES_NETDEV, CONFIG_NETFILTER_EGRESS and CONFIG_NFT_FWD_NETDEV \
                      (`modprobe nft_fwd_netdev` loads it where it is a module)";

struct Forward {
    host: String,
    exit: Exit,
    /// The number of the interface.
    index: u32,
    /// The number of the TAP.
    tap: u32,
    /// `None` when all passes.
    diverter: Option<Diverter>,
}

/// Opens an exit in the namespace of the calling thread, by which nothing is diverted yet.
pub(super) fn open(host: &str, exit: &Exit) -> Result<(Opened, Port), NetworkError> {
    let interface = &exit.interface;
    let configure = |action: &str| {
        let (host, action) = (host.to_owned(), action.to_owned());
        move |source| NetworkError::Configure { host, action, source }
    };
    let index = sys::interface_index(interface).map_err(configure(&format!("find the interface {interface}")))?;
    if !sys::is_ethernet(interface).map_err(configure(&format!("ask of what kind the interface {interface} is")))? {
        return Err(NetworkError::Spec(format!(
            "the interface {interface} of host {host} is no Ethernet one, and what leaves by it cannot be diverted; leave the \
             host out, or connect it by a bridge"
        )));
    }
    let mtu = sys::interface_mtu(interface).map_err(configure(&format!("read the MTU of {interface}")))?;
    let tap_mtu = u16::try_from(mtu).unwrap_or(LARGEST_MTU).min(LARGEST_MTU);
    let tap = Tap::create(Path::new(TUN_DEVICE), tap_mtu, INTERFACE_QUEUE);
    let tap = tap.map_err(|error| tun_error(host.to_owned(), error))?;
    let packets = PacketSocket::open(index, MARK)
        .map_err(configure(&format!("open a packet socket on {interface} (CAP_NET_RAW is needed)")))?;
    let messages = RawSockets::open(MARK).map_err(configure("open a raw socket (CAP_NET_RAW is needed)"))?;
    let diverter = Diverter::open(interface)
        .map_err(configure("open a netlink socket to nf_tables (CONFIG_NF_TABLES is needed)"))?;
    let forward =
        Forward { host: host.to_owned(), exit: exit.clone(), index, tap: tap.index(), diverter: Some(diverter) };
    let opened = Opened::at(exit, index, mtu, tap.name().to_owned(), forward);
    Ok((opened, Port::Exit(emulator::Exit { tap, packets, messages })))
}

impl Forward {
    fn refused(&self, diverter: &Diverter, source: io::Error) -> NetworkError {
        let what = format!("what leaves by {}", self.exit.interface);
        refused((self.host.as_str(), what), source, diverter.holder(), REMEDY)
    }
}

impl Diversion for Forward {
    fn begin(&mut self, place: &Place<'_>) -> Result<(), NetworkError> {
        let Some(diverter) = &self.diverter else { return Ok(()) };
        let diverted = leaving(place.hosts, place.number, &self.exit);
        let started = diverter.start(&self.exit.interface, [self.index, self.tap], MARK, &diverted);
        started.map_err(|source| self.refused(diverter, source))
    }

    fn change(&mut self, before: &[AttachedSpec], place: &Place<'_>) -> Result<(), NetworkError> {
        let Some(diverter) = &self.diverter else { return Ok(()) };
        let diverted = leaving(place.hosts, place.number, &self.exit);
        if diverted == leaving(before, place.number, &self.exit) {
            return Ok(());
        }
        diverter.change(&diverted).map_err(|source| self.refused(diverter, source))
    }

    fn refresh(&self) -> Option<io::Result<bool>> {
        self.diverter.as_ref().map(Diverter::refresh)
    }

    fn pass(&mut self) {
        drop(self.diverter.take());
    }
}
