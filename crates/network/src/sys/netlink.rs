//! Interfaces, their addresses and routes, by rtnetlink(7): ioctls know neither a route's TCP congestion control nor IPv6
//! addresses that are usable at once, and the one for the length of a queue is refused inside of a user namespace.
//!
//! The congestion control is set as a metric of the route (`RTAX_CC_ALGO`) rather than as the
//! namespace's `tcp_congestion_control`: the latter refuses, outside of the first namespace, every
//! algorithm that the machine's administrator has not allowed, which here can be even cubic.

use std::{
    io,
    net::{IpAddr, Ipv4Addr},
};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

const RTAX_CC_ALGO: u16 = 16;
/// `linux/if_link.h`.
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;
const IFLA_VXLAN_ID: u16 = 1;
const IFLA_VXLAN_LINK: u16 = 3;
const IFLA_VXLAN_LOCAL: u16 = 4;
const IFLA_VXLAN_LEARNING: u16 = 7;
const IFLA_VXLAN_PORT: u16 = 15;
const IFLA_VXLAN_UDP_CSUM: u16 = 18;

/// Routes `subnet/prefix` to the interface with number `interface`, in the calling thread's namespace.
pub(crate) fn add_subnet_route(
    subnet: IpAddr,
    prefix: u8,
    interface: u32,
    source: IpAddr,
    congestion_control: Option<&str>,
) -> io::Result<()> {
    let mut message = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    // struct rtmsg: family, dst_len, src_len, tos, table, protocol, scope, type, flags.
    message.bytes(&[
        family(subnet),
        prefix,
        0,
        0,
        libc::RT_TABLE_MAIN,
        libc::RTPROT_STATIC,
        libc::RT_SCOPE_LINK,
        libc::RTN_UNICAST,
    ]);
    message.bytes(&0u32.to_ne_bytes());
    message.address(libc::RTA_DST, subnet);
    message.address(libc::RTA_PREFSRC, source);
    message.attribute(libc::RTA_OIF, &interface.to_ne_bytes());
    if let Some(name) = congestion_control {
        let mut metric = Message::empty();
        let terminated: Vec<u8> = name.bytes().chain([0]).collect();
        metric.attribute(RTAX_CC_ALGO, &terminated);
        message.attribute(libc::RTA_METRICS, &metric.0);
    }
    message.send()
}

/// Brings the interface with number `interface` up, in the calling thread's namespace, and leaves its other flags: without
/// a TUN's `IFF_NOARP`, IPv6 would look for neighbours on it.
pub(crate) fn set_up(interface: u32) -> io::Result<()> {
    let mut message = Message::new(libc::RTM_NEWLINK, 0);
    message.link(interface, libc::IFF_UP as u32);
    message.send()
}

/// Sets the largest packet, in bytes, of the interface with number `interface`, in the calling thread's namespace.
pub(crate) fn set_mtu(interface: u32, mtu: u16) -> io::Result<()> {
    let mut message = Message::new(libc::RTM_NEWLINK, 0);
    message.link(interface, 0);
    message.attribute(libc::IFLA_MTU, &u32::from(mtu).to_ne_bytes());
    message.send()
}

/// Lets `packets` packets wait on the interface with number `interface`, in the calling thread's namespace.
pub(crate) fn set_queue_length(interface: u32, packets: u32) -> io::Result<()> {
    let mut message = Message::new(libc::RTM_NEWLINK, 0);
    message.link(interface, 0);
    message.attribute(libc::IFLA_TXQLEN, &packets.to_ne_bytes());
    message.send()
}

/// Keeps the interface with number `interface` from giving itself a link-local IPv6 address, and so from soliciting
/// routers with it, in the calling thread's namespace.
pub(crate) fn forbid_link_local(interface: u32) -> io::Result<()> {
    let mut inet6 = Message::empty();
    inet6.attribute(IFLA_INET6_ADDR_GEN_MODE, &[IN6_ADDR_GEN_MODE_NONE]);
    let mut families = Message::empty();
    families.attribute(libc::AF_INET6 as u16, &inet6.0);
    let mut message = Message::new(libc::RTM_SETLINK, 0);
    message.link(interface, 0);
    message.attribute(libc::IFLA_AF_SPEC, &families.0);
    message.send()
}

/// Gives the interface with number `interface` this one address (`/32` or `/128`: routes are added apart), which is used
/// at once, without asking whether somebody else has it, in the calling thread's namespace.
pub(crate) fn add_address(interface: u32, address: IpAddr) -> io::Result<()> {
    let mut message = Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    // struct ifaddrmsg: family, prefixlen, flags (the attribute has room for more), scope, index.
    let prefix = if address.is_ipv4() { 32 } else { 128 };
    message.bytes(&[family(address), prefix, 0, libc::RT_SCOPE_UNIVERSE]);
    message.bytes(&interface.to_ne_bytes());
    message.attribute(libc::IFA_FLAGS, &(libc::IFA_F_NODAD | libc::IFA_F_NOPREFIXROUTE).to_ne_bytes());
    message.address(libc::IFA_LOCAL, address);
    message.address(libc::IFA_ADDRESS, address);
    message.send()
}

/// One end of a VXLAN (RFC 7348), which every other end is told to by hand: see [`add_neighbour`].
pub(crate) struct Vxlan<'a> {
    /// The new interface.
    pub(crate) name: &'a str,
    /// Which VXLAN.
    pub(crate) id: u32,
    /// The number of the interface that its packets travel on.
    pub(crate) link: u32,
    /// The address there.
    pub(crate) local: Ipv4Addr,
    /// The UDP port of all ends.
    pub(crate) port: u16,
    /// Its own hardware address.
    pub(crate) hardware: [u8; 6],
    /// The largest packet inside, in bytes.
    pub(crate) mtu: u16,
}

/// Makes a VXLAN's interface in the calling thread's namespace. It sends nothing but to neighbours that it is told, and its
/// packets have a checksum, so that damaged ones are thrown away.
pub(crate) fn add_vxlan(vxlan: &Vxlan<'_>) -> io::Result<()> {
    let mut data = Message::empty();
    data.attribute(IFLA_VXLAN_ID, &vxlan.id.to_ne_bytes());
    data.attribute(IFLA_VXLAN_LINK, &vxlan.link.to_ne_bytes());
    data.attribute(IFLA_VXLAN_LOCAL, &vxlan.local.octets());
    data.attribute(IFLA_VXLAN_LEARNING, &[0]);
    data.attribute(IFLA_VXLAN_PORT, &vxlan.port.to_be_bytes());
    data.attribute(IFLA_VXLAN_UDP_CSUM, &[1]);
    let mut info = Message::empty();
    info.attribute(libc::IFLA_INFO_KIND, b"vxlan");
    info.attribute(libc::IFLA_INFO_DATA, &data.0);
    let mut message = Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    message.link(0, 0);
    let name: Vec<u8> = vxlan.name.bytes().chain([0]).collect();
    message.attribute(libc::IFLA_IFNAME, &name);
    message.attribute(libc::IFLA_MTU, &u32::from(vxlan.mtu).to_ne_bytes());
    message.attribute(libc::IFLA_ADDRESS, &vxlan.hardware);
    message.attribute(libc::IFLA_LINKINFO, &info.0);
    message.send()
}

/// Tells the VXLAN interface with number `interface` in the calling thread's namespace of another end: which hardware address
/// the host at `address` has, and where its packets go.
pub(crate) fn add_neighbour(interface: u32, address: Ipv4Addr, hardware: [u8; 6], end: Ipv4Addr) -> io::Result<()> {
    // struct ndmsg: family, padding, interface, state, flags, type.
    let head = |message: &mut Message, family: libc::c_int, state: u16, flags: u8| {
        message.bytes(&[family as u8, 0, 0, 0]);
        message.bytes(&interface.to_ne_bytes());
        message.bytes(&state.to_ne_bytes());
        message.bytes(&[flags, 0]);
    };
    let new = || Message::new(libc::RTM_NEWNEIGH, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
    let mut forwarding = new();
    head(&mut forwarding, libc::AF_BRIDGE, libc::NUD_PERMANENT | libc::NUD_NOARP, libc::NTF_SELF);
    forwarding.attribute(libc::NDA_LLADDR, &hardware);
    forwarding.attribute(libc::NDA_DST, &end.octets());
    forwarding.send()?;
    let mut neighbour = new();
    head(&mut neighbour, libc::AF_INET, libc::NUD_PERMANENT, 0);
    neighbour.attribute(libc::NDA_DST, &address.octets());
    neighbour.attribute(libc::NDA_LLADDR, &hardware);
    neighbour.send()
}

pub(super) fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

/// A netlink request under construction, or a part of one.
#[derive(Clone)]
pub(super) struct Message(Vec<u8>);

/// Bytes of `struct nlmsghdr`.
pub(super) const HEADER: usize = 16;

/// Says that an attribute consists of attributes (`NLA_F_NESTED`, `linux/netlink.h`).
const NESTED: u16 = 0x8000;

impl Message {
    pub(super) fn empty() -> Self {
        Message(Vec::new())
    }

    /// One that is answered, at least by an acknowledgement.
    pub(super) fn new(kind: u16, flags: libc::c_int) -> Self {
        Message::unanswered(kind, flags | libc::NLM_F_ACK)
    }

    /// One that is answered only if it fails.
    pub(super) fn unanswered(kind: u16, flags: libc::c_int) -> Self {
        // struct nlmsghdr: its length is known, and filled in, when it is sent.
        let flags = (flags | libc::NLM_F_REQUEST) as u16;
        let mut message = Message(vec![0; 4]);
        message.bytes(&kind.to_ne_bytes());
        message.bytes(&flags.to_ne_bytes());
        message.bytes(&[0; 8]);
        message
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.bytes(&(4 + value.len() as u16).to_ne_bytes());
        self.bytes(&kind.to_ne_bytes());
        self.bytes(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// An attribute that consists of others.
    pub(super) fn nest(&mut self, kind: u16, inside: &Message) {
        self.attribute(kind | NESTED, &inside.0);
    }

    /// The same, answered by an acknowledgement.
    pub(super) fn acknowledged(mut self) -> Self {
        let flags = u16::from_ne_bytes([self.0[6], self.0[7]]) | libc::NLM_F_ACK as u16;
        self.0[6..8].copy_from_slice(&flags.to_ne_bytes());
        self
    }

    /// All of it, with its length filled in.
    pub(super) fn sealed(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }

    /// struct ifinfomsg: family and type, index, flags, and which flags to change. These are set, no others.
    fn link(&mut self, interface: u32, flags: u32) {
        self.bytes(&[0; 4]);
        for number in [interface, flags, flags] {
            self.bytes(&number.to_ne_bytes());
        }
    }

    pub(super) fn address(&mut self, kind: u16, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.attribute(kind, &address.octets()),
            IpAddr::V6(address) => self.attribute(kind, &address.octets()),
        }
    }

    fn send(self) -> io::Result<()> {
        // NETLINK_ROUTE is the protocol of number 0.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        send(&socket, &self.sealed(), SendFlags::empty())?;
        let mut answer = [0u8; 4096];
        // The kernel has queued its answer already.
        let (length, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
        acknowledged(&answer[..length])
    }
}

/// What the kernel says to a request.
pub(super) fn acknowledged(answer: &[u8]) -> io::Result<()> {
    // struct nlmsgerr follows the header: a negative errno, or zero for an acknowledgement.
    let code = answer.get(HEADER..HEADER + 4).and_then(|bytes| bytes.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::Error::new(io::ErrorKind::InvalidData, "netlink answered with less than a header")),
    }
}
