//! Routes to single addresses, in the namespace that the socket was opened in. Where packets go by an interface that vanishes, its
//! routes vanish with it.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::fd::OwnedFd,
};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netdevice::index_to_name, recv, send, socket_with,
};

use super::netlink::{HEADER, Message, acknowledged, family};

/// Bytes of `struct rtmsg`.
const ROUTE: usize = 12;

/// Sockets by which routes are asked for and changed.
pub(crate) struct Routing {
    routes: OwnedFd,
    /// Any: by it interfaces are asked about.
    any: OwnedFd,
}

/// How packets to an address leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Departure {
    /// The number of the interface.
    pub(crate) interface: u32,
    /// The address that they come from, if nobody says another.
    pub(crate) source: Option<IpAddr>,
}

impl Routing {
    /// Of the calling thread's namespace.
    pub(crate) fn open() -> io::Result<Routing> {
        let flags = SocketFlags::CLOEXEC;
        Ok(Routing {
            // NETLINK_ROUTE is the protocol of number 0.
            routes: socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?,
            any: socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?,
        })
    }

    /// How packets to this address leave now.
    ///
    /// # Errors
    /// The kernel's: `ENETUNREACH` where they do not.
    pub(crate) fn to(&self, address: IpAddr) -> io::Result<Departure> {
        let mut question = Message::unanswered(libc::RTM_GETROUTE, 0);
        head(&mut question, address, [0; 4]);
        question.address(libc::RTA_DST, address);
        let answer = self.ask(question)?;
        let attributes = answer.get(HEADER + ROUTE..).unwrap_or(&[]);
        departure(attributes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the route has no interface"))
    }

    /// What the interface with this number is called.
    pub(crate) fn name(&self, interface: u32) -> io::Result<String> {
        Ok(index_to_name(&self.any, interface)?)
    }

    /// Leads packets to this address to the interface with this number.
    ///
    /// # Errors
    /// The kernel's: `EEXIST` where there is a route to it alone.
    pub(crate) fn lead(&self, address: IpAddr, interface: u32, source: Option<IpAddr>) -> io::Result<()> {
        let mut route = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        describe(&mut route, address, interface);
        if let Some(source) = source {
            route.address(libc::RTA_PREFSRC, source);
        }
        self.ask(route).map(drop)
    }

    /// Leads them there no more.
    pub(crate) fn lead_no_more(&self, address: IpAddr, interface: u32) -> io::Result<()> {
        let mut route = Message::new(libc::RTM_DELROUTE, 0);
        describe(&mut route, address, interface);
        self.ask(route).map(drop)
    }

    /// What the kernel answers, or says that it did.
    fn ask(&self, message: Message) -> io::Result<Vec<u8>> {
        send(&self.routes, &message.sealed(), SendFlags::empty())?;
        let mut answer = vec![0u8; 4096];
        // The kernel has queued its answer already.
        let (length, _) = recv(&self.routes, &mut answer[..], RecvFlags::empty())?;
        answer.truncate(length);
        if answer.get(4..6).is_some_and(|kind| kind == (libc::NLMSG_ERROR as u16).to_ne_bytes()) {
            acknowledged(&answer)?;
        }
        Ok(answer)
    }
}

fn describe(message: &mut Message, address: IpAddr, interface: u32) {
    head(message, address, [libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, libc::RT_SCOPE_LINK, libc::RTN_UNICAST]);
    message.address(libc::RTA_DST, address);
    message.attribute(libc::RTA_OIF, &interface.to_ne_bytes());
}

/// struct rtmsg: family, dst_len, src_len, tos; table, protocol, scope, type; flags.
fn head(message: &mut Message, address: IpAddr, kind: [u8; 4]) {
    let prefix = if address.is_ipv4() { 32 } else { 128 };
    message.bytes(&[family(address), prefix, 0, 0]);
    message.bytes(&kind);
    message.bytes(&0u32.to_ne_bytes());
}

/// What a route's attributes say.
fn departure(mut attributes: &[u8]) -> Option<Departure> {
    let (mut interface, mut source) = (None, None);
    while let Some(&[a, b, c, d]) = attributes.get(..4) {
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let Some(value) = attributes.get(4..length) else { break };
        match u16::from_ne_bytes([c, d]) {
            libc::RTA_OIF => interface = value.first_chunk().map(|number| u32::from_ne_bytes(*number)),
            libc::RTA_PREFSRC => source = ip(value),
            _ => {}
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Some(Departure { interface: interface?, source })
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(Ipv4Addr::from(*bytes.first_chunk::<4>()?).into()),
        16 => Some(Ipv6Addr::from(*bytes.first_chunk::<16>()?).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_asked_for_made_and_taken_back() {
        super::super::unshare_network().expect("this test needs root");
        let (lo, routing) = (super::super::interface_index("lo").unwrap(), Routing::open().unwrap());
        super::super::set_up(lo).unwrap();
        let there = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(routing.to(there).unwrap_err().raw_os_error(), Some(libc::ENETUNREACH));
        let here = IpAddr::from([127, 0, 0, 1]);
        routing.lead(there, lo, Some(here)).unwrap();
        assert_eq!(routing.to(there).unwrap(), Departure { interface: lo, source: Some(here) });
        assert_eq!(routing.lead(there, lo, None).unwrap_err().raw_os_error(), Some(libc::EEXIST));
        assert_eq!(routing.name(lo).unwrap(), "lo");
        routing.lead_no_more(there, lo).unwrap();
        assert_eq!(routing.to(there).unwrap_err().raw_os_error(), Some(libc::ENETUNREACH));
    }

    #[test]
    fn attributes_that_go_beyond_the_end_say_nothing() {
        assert_eq!(departure(&[]), None);
        assert_eq!(departure(&[9, 0, 4, 0, 1]), None);
        assert_eq!(departure(&[0, 0, 4, 0]), None);
    }
}
