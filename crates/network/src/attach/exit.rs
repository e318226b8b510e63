//! Opening an exit: the devices by which the emulator reads and writes what leaves by an interface, and what diverts it.

use std::{io, net::IpAddr, path::Path, sync::Arc};

use super::{AttachedSpec, Exit};
use crate::{
    emulator::{self, Port},
    error::NetworkError,
    host::{Found, INTERFACE_QUEUE, tun_error},
    network::LARGEST_MTU,
    sys::{self, Diverted, Diverter, PacketSocket, RawSockets, TUN_DEVICE, Tap},
};

/// What the emulator sends carries this mark on its way out, so that it is not diverted again: "brow".
const MARK: u32 = 0x6272_6F77;

/// An exit that is open.
pub(super) struct Opened {
    pub(super) spec: Exit,
    /// The interface's number in its namespace.
    pub(super) index: u32,
    /// The largest packet, in bytes, that leaves by it.
    pub(super) mtu: u32,
    /// The name of the TAP.
    pub(super) tap: String,
    tap_index: u32,
    /// The number of the emulator's port.
    pub(super) port: usize,
    /// `None` when nothing is diverted any more.
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
    let device = Path::new(TUN_DEVICE);
    let tap_mtu = u16::try_from(mtu).unwrap_or(LARGEST_MTU).min(LARGEST_MTU);
    let tap = Tap::create(device, tap_mtu, INTERFACE_QUEUE).map_err(|error| tun_error(host.to_owned(), error))?;
    let packets = PacketSocket::open(index, MARK)
        .map_err(configure(&format!("open a packet socket on {interface} (CAP_NET_RAW is needed)")))?;
    let messages = RawSockets::open(MARK).map_err(configure("open a raw socket (CAP_NET_RAW is needed)"))?;
    let diverter = Diverter::open(interface)
        .map_err(configure("open a netlink socket to nf_tables (CONFIG_NF_TABLES is needed)"))?;
    let opened = Opened {
        spec: exit.clone(),
        index,
        mtu,
        tap: tap.name().to_owned(),
        tap_index: tap.index(),
        port: 0,
        diverter: Some(diverter),
    };
    Ok((opened, Port::Exit(emulator::Exit { tap, packets, messages })))
}

/// What is known of a host with these exits.
pub(super) fn found_in<'a>(host: &AttachedSpec, exits: impl Iterator<Item = &'a Opened>) -> Found {
    let v4 = host.addresses.iter().find_map(|address| match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    });
    let v6 = host.addresses.iter().find_map(|address| match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(*address),
    });
    Found {
        // It has been checked that there is one.
        address: v4.unwrap_or(std::net::Ipv4Addr::UNSPECIFIED),
        address6: v6,
        namespace: Arc::clone(&host.namespace),
        interfaces: exits.map(|exit| exit.tap.clone()).collect(),
    }
}

impl Opened {
    /// Diverts from now on.
    pub(super) fn divert(&self, host: &str, diverted: &Diverted) -> Result<(), NetworkError> {
        let Some(diverter) = &self.diverter else { return Ok(()) };
        let interface = &self.spec.interface;
        let started = diverter.start(interface, self.tap_index, MARK, diverted);
        started.map_err(|source| self.refused(host, diverter, source))
    }

    /// Diverts other addresses from now on.
    pub(super) fn change(&self, host: &str, diverted: &Diverted) -> Result<(), NetworkError> {
        let Some(diverter) = &self.diverter else { return Ok(()) };
        diverter.change(diverted).map_err(|source| self.refused(host, diverter, source))
    }

    /// Diverts for another two seconds; whether it came in time. `None` where nothing is diverted.
    pub(super) fn refresh(&self) -> Option<io::Result<bool>> {
        self.diverter.as_ref().map(Diverter::refresh)
    }

    /// Diverts nothing any more.
    pub(super) fn divert_no_more(&mut self) {
        drop(self.diverter.take());
    }

    fn refused(&self, host: &str, diverter: &Diverter, source: io::Error) -> NetworkError {
        let (host, interface) = (host.to_owned(), self.spec.interface.clone());
        let is_taken = [libc::EPERM, libc::EEXIST, libc::EBUSY].map(Some).contains(&source.raw_os_error());
        match diverter.holder() {
            Ok(Some(holder)) if is_taken => NetworkError::AlreadyAttached { host, interface, holder },
            _ => {
                let remedy = match source.raw_os_error() {
                    Some(libc::EPERM) => "run as root, or with CAP_NET_ADMIN over the host's namespace",
                    _ => {
                        "this needs Linux 5.17 with CONFIG_NF_TABLES_NETDEV, CONFIG_NETFILTER_EGRESS and \
                         CONFIG_NFT_FWD_NETDEV (`modprobe nft_fwd_netdev` loads it where it is a module)"
                    }
                };
                NetworkError::Divert { host, interface, source, remedy }
            }
        }
    }
}
