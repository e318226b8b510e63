//! The third way: routes to the other hosts lead to a TUN, and raw sockets send on what they led there.

use std::{fs, io, net::IpAddr, path::Path};

use super::{
    diversion::{Diversion, MARK, Place, refused},
    opened::Opened,
    selection::led,
    spec::{AttachedSpec, Exit},
};
use crate::{
    emulator::{self, Port},
    error::NetworkError,
    host::{INTERFACE_QUEUE, tun_error},
    limits::LARGEST_MTU,
    sys::{self, RawSockets, Routing, TUN_DEVICE, Tun},
};

/// How interfaces of ours begin.
const OURS: &str = "brownout";

const REMEDY: &str = "a route to this address alone, which somebody has made there, would have to go";

struct Route {
    host: String,
    interface: String,
    /// The number of that interface.
    index: u32,
    /// The number of the TUN.
    tun: u32,
    routing: Routing,
    /// Where there are routes of ours to.
    led: Vec<IpAddr>,
}

/// Opens an exit in the namespace of the calling thread, by which nothing is diverted yet.
pub(super) fn open(host: &str, exit: &Exit) -> Result<(Opened, Port), NetworkError> {
    let interface = &exit.interface;
    if is_strict(interface) {
        return Err(NetworkError::Spec(format!(
            "host {host} drops what comes by {interface} from where it would not send by it itself (rp_filter is 1), so that \
             no route can divert what it sends; in its namespace, set net.ipv4.conf.all.rp_filter and \
             net.ipv4.conf.{interface}.rp_filter to 2, or attach by another way (`brownout doctor` says what each lacks)"
        )));
    }
    open_any(host, exit)
}

/// The same, whatever becomes of answers.
pub(super) fn open_any(host: &str, exit: &Exit) -> Result<(Opened, Port), NetworkError> {
    let interface = &exit.interface;
    let configure = |action: &str| {
        let (host, action) = (host.to_owned(), action.to_owned());
        move |source| NetworkError::Configure { host, action, source }
    };
    let index = sys::interface_index(interface).map_err(configure(&format!("find the interface {interface}")))?;
    let mtu = sys::interface_mtu(interface).map_err(configure(&format!("read the MTU of {interface}")))?;
    let tun_mtu = u16::try_from(mtu).unwrap_or(LARGEST_MTU).min(LARGEST_MTU);
    let tun = Tun::create_plain(Path::new(TUN_DEVICE), tun_mtu, INTERFACE_QUEUE);
    let (tun, name) = tun.map_err(|error| tun_error(host.to_owned(), error))?;
    let tun_index = sys::interface_index(&name).map_err(configure(&format!("find the interface {name}")))?;
    let packets = RawSockets::by(interface)
        .map_err(configure(&format!("open a raw socket on {interface} (CAP_NET_RAW is needed)")))?;
    let messages = RawSockets::open(MARK).map_err(configure("open a raw socket (CAP_NET_RAW is needed)"))?;
    let routing = Routing::open().map_err(configure("open a netlink socket to the routes"))?;
    let (host, interface) = (host.to_owned(), interface.clone());
    let route = Route { host, interface, index, tun: tun_index, routing, led: Vec::new() };
    Ok((Opened::at(exit, index, mtu, name, route), Port::Detour(emulator::Detour { tun, packets, messages })))
}

/// Whether the calling thread's namespace takes packets from an address only by the interface that leads there
/// (ip-sysctl.rst: the larger of both numbers counts).
fn is_strict(interface: &str) -> bool {
    let of = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter")).unwrap_or_default();
        text.trim().parse::<u8>().unwrap_or(0)
    };
    of("all").max(of(interface)) == 1
}

impl Route {
    /// Leads what goes to this address to the TUN, if it would leave by the interface.
    fn lead(&mut self, address: IpAddr, place: &Place<'_>) -> Result<(), NetworkError> {
        let departure = match self.routing.to(address) {
            Ok(departure) => departure,
            // Nothing goes there.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENETUNREACH | libc::EHOSTUNREACH)) => return Ok(()),
            Err(error) => return Err(self.refused(address, error)),
        };
        if departure.interface != self.index {
            let name = self.routing.name(departure.interface).unwrap_or_default();
            if name.starts_with(OURS) && !place.devices.contains(&name) {
                let holder = format!("the process that has made the interface {name}");
                let (host, what) = (self.host.clone(), self.what(address));
                return Err(NetworkError::AlreadyAttached { host, what, holder });
            }
            return Ok(());
        }
        let led = self.routing.lead(address, self.tun, departure.source);
        led.map_err(|error| self.refused(address, error))?;
        self.led.push(address);
        Ok(())
    }

    fn what(&self, address: IpAddr) -> String {
        format!("what leaves by {} to {address}", self.interface)
    }

    fn refused(&self, address: IpAddr, source: io::Error) -> NetworkError {
        refused((self.host.as_str(), self.what(address)), source, Ok(None), REMEDY)
    }
}

impl Diversion for Route {
    fn begin(&mut self, place: &Place<'_>) -> Result<(), NetworkError> {
        led(place.hosts, place.number).into_iter().try_for_each(|address| self.lead(address, place))
    }

    fn change(&mut self, before: &[AttachedSpec], place: &Place<'_>) -> Result<(), NetworkError> {
        let now = led(place.hosts, place.number);
        if now == led(before, place.number) {
            return Ok(());
        }
        let (stay, gone): (Vec<IpAddr>, Vec<IpAddr>) =
            std::mem::take(&mut self.led).into_iter().partition(|address| now.contains(address));
        self.led = stay;
        for address in gone {
            // One that is gone already leads nowhere.
            let _ = self.routing.lead_no_more(address, self.tun);
        }
        let new: Vec<IpAddr> = now.into_iter().filter(|address| !self.led.contains(address)).collect();
        new.into_iter().try_for_each(|address| self.lead(address, place))
    }

    fn refresh(&self) -> Option<io::Result<bool>> {
        None
    }

    fn pass(&mut self) {
        for address in std::mem::take(&mut self.led) {
            // Whatever is left goes with the TUN.
            let _ = self.routing.lead_no_more(address, self.tun);
        }
    }
}
