//! What interfaces, addresses and routers there are in the calling thread's network namespace, by rtnetlink(7): `/sys`
//! shows those of whoever mounted it.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::fd::{AsRawFd, BorrowedFd},
};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

/// `struct nlmsghdr`.
const HEADER: usize = 16;
/// `linux/net_namespace.h`.
const NETNSA_NSID: u16 = 1;
const NETNSA_FD: u16 = 3;
/// More than the kernel writes at once (32 KiB).
const LONGEST: usize = 64 << 10;
/// How often something may change while it is listed.
const ATTEMPTS: usize = 5;

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) is_loopback: bool,
    /// Six bytes of an Ethernet, or whatever it has.
    pub(crate) hardware: Vec<u8>,
    /// "veth", "macvlan"; empty for a device.
    pub(crate) kind: String,
    /// The number of the interface that it is a part or the other end of, wherever that is.
    pub(crate) peer: Option<u32>,
    /// The number that this namespace has for the one in which that is; none: it is here.
    pub(crate) peer_namespace: Option<i32>,
}

/// All interfaces, in the order of their numbers.
pub(crate) fn links() -> io::Result<Vec<Link>> {
    // struct ifinfomsg: family and type, index, flags, which flags to change.
    let answers = dump(libc::RTM_GETLINK, &[0; 16])?;
    let mut links: Vec<Link> = answers.iter().filter_map(|answer| link(answer)).collect();
    links.sort_by_key(|link| link.index);
    Ok(links)
}

fn link(answer: &[u8]) -> Option<Link> {
    let mut link = Link {
        index: number(answer, 4)?,
        name: String::new(),
        is_loopback: number(answer, 8)? & libc::IFF_LOOPBACK as u32 != 0,
        hardware: Vec::new(),
        kind: String::new(),
        peer: None,
        peer_namespace: None,
    };
    for (kind, value) in attributes(answer.get(16..)?) {
        match kind {
            libc::IFLA_IFNAME => link.name = text(value),
            libc::IFLA_ADDRESS => link.hardware = value.to_vec(),
            libc::IFLA_LINK => link.peer = number(value, 0),
            libc::IFLA_LINK_NETNSID => link.peer_namespace = number(value, 0).map(u32::cast_signed),
            libc::IFLA_LINKINFO => {
                let kind = attributes(value).find(|(kind, _)| *kind == libc::IFLA_INFO_KIND);
                link.kind = kind.map(|(_, value)| text(value)).unwrap_or_default();
            }
            _ => {}
        }
    }
    Some(link)
}

/// The addresses that others can use, with the numbers of their interfaces: none of those that are valid on one link,
/// or one host, only.
pub(crate) fn addresses() -> io::Result<Vec<(u32, IpAddr)>> {
    // struct ifaddrmsg: family, length of the prefix, flags, scope, index.
    let answers = dump(libc::RTM_GETADDR, &[0; 8])?;
    Ok(answers.iter().filter_map(|answer| address_of(answer)).collect())
}

fn address_of(answer: &[u8]) -> Option<(u32, IpAddr)> {
    if *answer.get(3)? != libc::RT_SCOPE_UNIVERSE {
        return None;
    }
    let (mut local, mut any) = (None, None);
    for (kind, value) in attributes(answer.get(8..)?) {
        match kind {
            // Of a link between two, IFA_ADDRESS is the other's.
            libc::IFA_LOCAL => local = address(value),
            libc::IFA_ADDRESS => any = address(value),
            _ => {}
        }
    }
    Some((number(answer, 4)?, local.or(any)?))
}

/// The routers to everywhere else.
pub(crate) fn gateways() -> io::Result<Vec<IpAddr>> {
    // struct rtmsg: family, lengths of destination and source, tos, table, protocol, scope, type, flags.
    let answers = dump(libc::RTM_GETROUTE, &[0; 12])?;
    let mut all: Vec<IpAddr> = Vec::new();
    for gateway in answers.iter().filter_map(|answer| gateway(answer)) {
        if !all.contains(&gateway) {
            all.push(gateway);
        }
    }
    Ok(all)
}

fn gateway(answer: &[u8]) -> Option<IpAddr> {
    let is_default = *answer.get(1)? == 0 && *answer.get(4)? == libc::RT_TABLE_MAIN;
    let gateway = attributes(answer.get(12..)?).find(|(kind, _)| *kind == libc::RTA_GATEWAY);
    gateway.filter(|_| is_default).and_then(|(_, value)| address(value))
}

/// The number that the calling thread's namespace has for another one; none if it has none.
pub(crate) fn namespace_number(namespace: BorrowedFd<'_>) -> io::Result<Option<i32>> {
    // struct rtgenmsg: family, and room up to four bytes.
    let mut body = vec![0; 4];
    body.extend_from_slice(&8u16.to_ne_bytes());
    body.extend_from_slice(&NETNSA_FD.to_ne_bytes());
    body.extend_from_slice(&namespace.as_raw_fd().to_ne_bytes());
    let answers = ask(libc::RTM_GETNSID, 0, &body)?;
    let told = answers.first().and_then(|answer| answer.get(4..)).unwrap_or_default();
    let told = attributes(told).find(|(kind, _)| *kind == NETNSA_NSID);
    // -1: it has none.
    Ok(told.and_then(|(_, value)| number(value, 0)).map(u32::cast_signed).filter(|number| *number >= 0))
}

/// Asks for all of a kind.
fn dump(kind: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    for _ in 1..ATTEMPTS {
        match ask(kind, libc::NLM_F_DUMP as u16, body) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            answered => return answered,
        }
    }
    ask(kind, libc::NLM_F_DUMP as u16, body)
}

/// Sends a request, and returns the answers without their headers. Fails with `EINTR` if they are not of one moment.
fn ask(kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend_from_slice(&((HEADER + body.len()) as u32).to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(&(flags | libc::NLM_F_REQUEST as u16).to_ne_bytes());
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(body);
    // NETLINK_ROUTE is the protocol of number 0.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&socket, &message, SendFlags::empty())?;
    let (mut answers, mut buffer) = (Vec::new(), vec![0u8; LONGEST]);
    loop {
        let (length, _) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        if take(&buffer[..length], &mut answers)? {
            return Ok(answers);
        }
    }
}

/// Takes the messages out of what came at once; whether those were the last ones.
fn take(mut bytes: &[u8], answers: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    let cut = || io::Error::new(io::ErrorKind::InvalidData, "netlink answered with a message that is cut off");
    let mut is_last = bytes.is_empty();
    while !bytes.is_empty() {
        let length = number(bytes, 0).ok_or_else(cut)? as usize;
        let (kind, flags) = (short(bytes, 4).ok_or_else(cut)?, short(bytes, 6).ok_or_else(cut)?);
        let body = bytes.get(HEADER..length).ok_or_else(cut)?;
        if flags & libc::NLM_F_DUMP_INTR as u16 != 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match i32::from(kind) {
            libc::NLMSG_DONE => return Ok(true),
            // struct nlmsgerr: a negative errno, or zero for an acknowledgement.
            libc::NLMSG_ERROR => match number(body, 0).map(u32::cast_signed) {
                Some(0) => return Ok(true),
                Some(code) => return Err(io::Error::from_raw_os_error(-code)),
                None => return Err(cut()),
            },
            _ => answers.push(body.to_vec()),
        }
        is_last = flags & libc::NLM_F_MULTI as u16 == 0;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(is_last)
}

/// Attributes, without the marks in their kinds' upper bits.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (length, kind) = (usize::from(short(bytes, 0)?), short(bytes, 2)?);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & libc::NLA_TYPE_MASK as u16, value))
    })
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Up to the zero at its end.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(octets).into());
    }
    Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = [(4 + value.len() as u16).to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn a_veth_is_read_with_its_other_end() {
        let mut answer = vec![0; 16];
        answer[4..8].copy_from_slice(&7u32.to_ne_bytes());
        answer.extend(attribute(libc::IFLA_IFNAME, b"eth0\0"));
        answer.extend(attribute(libc::IFLA_ADDRESS, &[2, 0x42, 0, 0, 0, 1]));
        answer.extend(attribute(libc::IFLA_LINK, &9u32.to_ne_bytes()));
        answer.extend(attribute(libc::IFLA_LINK_NETNSID, &0i32.to_ne_bytes()));
        // Nested, and marked so.
        let info = attribute(libc::IFLA_INFO_KIND, b"veth");
        answer.extend(attribute(libc::IFLA_LINKINFO | libc::NLA_F_NESTED as u16, &info));
        let expected = Link {
            index: 7,
            name: "eth0".into(),
            is_loopback: false,
            hardware: vec![2, 0x42, 0, 0, 0, 1],
            kind: "veth".into(),
            peer: Some(9),
            peer_namespace: Some(0),
        };
        assert_eq!(link(&answer), Some(expected));
        assert_eq!(link(&answer[..10]), None);
    }

    #[test]
    fn addresses_are_those_that_others_can_use() {
        let answer = |scope: u8| {
            let mut answer = vec![2, 24, 0, scope];
            answer.extend_from_slice(&7u32.to_ne_bytes());
            answer.extend(attribute(libc::IFA_ADDRESS, &[10, 0, 0, 1]));
            answer.extend(attribute(libc::IFA_LOCAL, &[10, 0, 0, 2]));
            answer
        };
        assert_eq!(address_of(&answer(0)), Some((7, [10, 0, 0, 2].into())));
        assert_eq!(address_of(&answer(253)), None, "of one link only");
    }

    #[test]
    fn a_router_is_that_of_a_default_route_of_the_main_table() {
        let answer = |length: u8, table: u8| {
            let mut answer = vec![2, length, 0, 0, table, 0, 0, 0, 0, 0, 0, 0];
            answer.extend(attribute(libc::RTA_GATEWAY, &[10, 0, 0, 1]));
            answer
        };
        assert_eq!(gateway(&answer(0, libc::RT_TABLE_MAIN)), Some([10, 0, 0, 1].into()));
        assert_eq!(gateway(&answer(24, libc::RT_TABLE_MAIN)), None);
        assert_eq!(gateway(&answer(0, 100)), None);
    }

    #[test]
    fn answers_are_taken_until_the_kernel_says_that_they_are_all() {
        let multi = libc::NLM_F_MULTI as u16;
        let mut answers = Vec::new();
        let two = [message(16, multi, &[1; 4]), message(16, multi, &[2; 5]), vec![0; 3]].concat();
        assert!(!take(&two, &mut answers).unwrap());
        assert!(take(&message(libc::NLMSG_DONE as u16, multi, &[0; 4]), &mut answers).unwrap());
        assert_eq!(answers, [vec![1; 4], vec![2; 5]]);
        assert!(take(&message(88, 0, &[0; 4]), &mut answers).unwrap(), "one answer is all of it");
        let refused = message(libc::NLMSG_ERROR as u16, 0, &(-libc::EPERM).to_ne_bytes());
        assert_eq!(take(&refused, &mut answers).unwrap_err().raw_os_error(), Some(libc::EPERM));
        let changed = message(16, multi | libc::NLM_F_DUMP_INTR as u16, &[]);
        assert_eq!(take(&changed, &mut answers).unwrap_err().kind(), io::ErrorKind::Interrupted);
        assert!(take(&two[..18], &mut answers).is_err());
    }

    #[test]
    fn the_loopback_is_there() {
        let links = links().unwrap();
        assert!(links.iter().any(|link| link.is_loopback && link.name == "lo"), "{links:?}");
        addresses().unwrap();
        gateways().unwrap();
    }
}
