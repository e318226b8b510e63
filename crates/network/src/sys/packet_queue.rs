//! A queue of the kernel's, in which packets wait until a verdict says what becomes of them (NFQUEUE,
//! `linux/netfilter/nfnetlink_queue.h`). With the socket that reads it, it goes, and what waits in it is dropped.

use std::{
    io,
    ops::Range,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
        sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force},
    },
};

use super::{
    netlink::{HEADER, Message, acknowledged},
    packet_socket::set_option,
};

/// What may wait to be read, in bytes of kernel memory.
const BUFFER: usize = 64 << 20;
/// How many packets may wait for their verdict; beyond, they pass.
const MOST_PACKETS: u32 = 200_000;
/// As much of a packet as the kernel copies at most.
const WHOLE: u32 = 0xFFFF;

const SUBSYSTEM: u16 = libc::NFNL_SUBSYS_QUEUE as u16;
/// `linux/netlink.h`: what does not fit is the kernel's matter, which lets it pass.
const NETLINK_NO_ENOBUFS: libc::c_int = 5;
/// The bits of an attribute's kind that are not its kind (`NLA_F_NESTED`, `NLA_F_NET_BYTEORDER`).
const KIND: u16 = 0x3FFF;

/// The reader of a queue.
pub(crate) struct PacketQueue {
    socket: OwnedFd,
    number: u16,
}

/// A packet that waits.
pub(crate) struct Waiting {
    /// By which a verdict names it.
    pub(crate) number: u32,
    /// Its bytes; `None` if there was no room for all of them.
    pub(crate) length: Option<usize>,
}

impl PacketQueue {
    /// That of this number in the calling thread's namespace. Nothing waits there until a rule says so. GSO packets are cut
    /// before they wait: a packet that waits is one on the wire.
    ///
    /// # Errors
    /// The kernel's: `EPERM` without `CAP_NET_ADMIN`, and where somebody else reads it; `EINVAL` where it has none.
    pub(crate) fn open(number: u16) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::NETFILTER))?;
        set_option(&socket, libc::SOL_NETLINK, NETLINK_NO_ENOBUFS, 1)?;
        // Beyond net.core.rmem_max takes real root; below that, as much as it allows.
        set_socket_recv_buffer_size_force(&socket, BUFFER).or_else(|_| set_socket_recv_buffer_size(&socket, BUFFER))?;
        let queue = PacketQueue { socket, number };
        // struct nfqnl_msg_config_cmd: command, nothing, family of addresses.
        queue.configure(&[(libc::NFQA_CFG_CMD, &[libc::NFQNL_CFG_CMD_BIND as u8, 0, 0, libc::AF_INET as u8])])?;
        // struct nfqnl_msg_config_params: how much of a packet, what of it.
        let [a, b, c, d] = WHOLE.to_be_bytes();
        let fail_open = (libc::NFQA_CFG_F_FAIL_OPEN as u32).to_be_bytes();
        queue.configure(&[
            (libc::NFQA_CFG_PARAMS, &[a, b, c, d, libc::NFQNL_COPY_PACKET as u8]),
            (libc::NFQA_CFG_QUEUE_MAXLEN, &MOST_PACKETS.to_be_bytes()),
            (libc::NFQA_CFG_MASK, &fail_open),
            (libc::NFQA_CFG_FLAGS, &fail_open),
        ])?;
        Ok(queue)
    }

    fn configure(&self, attributes: &[(libc::c_int, &[u8])]) -> io::Result<()> {
        let mut message = self.message(libc::NFQNL_MSG_CONFIG);
        attributes.iter().for_each(|(kind, value)| message.attribute(*kind as u16, value));
        send(&self.socket, &message.acknowledged().sealed(), SendFlags::empty())?;
        let mut answer = [0u8; 256];
        // The kernel has queued its answer already.
        let (length, _) = recv(&self.socket, &mut answer, RecvFlags::DONTWAIT)?;
        acknowledged(&answer[..length])
    }

    /// The next packet, which is in `buffer` from byte `at` on; `None` when there is none at the moment.
    pub(crate) fn read(&self, buffer: &mut [u8], at: usize) -> io::Result<Option<Waiting>> {
        loop {
            let length = match recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((length, _)) => length,
                Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            };
            // Else it is an answer to a verdict, about a packet that is gone.
            if let Some((number, packet)) = waiting(&buffer[..length]) {
                let packet = packet.filter(|packet| at + packet.len() <= buffer.len());
                let length = packet.as_ref().map(|packet| packet.len());
                if let Some(packet) = packet {
                    buffer.copy_within(packet, at);
                }
                return Ok(Some(Waiting { number, length }));
            }
        }
    }

    /// Lets a packet pass; if it was changed, as it is now.
    pub(crate) fn let_pass(&self, number: u32, changed: Option<&[u8]>) -> io::Result<()> {
        self.give_verdict(number, libc::NF_ACCEPT, changed)
    }

    /// Drops a packet.
    pub(crate) fn throw_away(&self, number: u32) -> io::Result<()> {
        self.give_verdict(number, libc::NF_DROP, None)
    }

    fn give_verdict(&self, number: u32, verdict: libc::c_int, changed: Option<&[u8]>) -> io::Result<()> {
        let mut message = self.message(libc::NFQNL_MSG_VERDICT);
        // struct nfqnl_msg_verdict_hdr: what becomes of it, and of which.
        let head = [(verdict as u32).to_be_bytes(), number.to_be_bytes()];
        message.attribute(libc::NFQA_VERDICT_HDR as u16, head.as_flattened());
        if let Some(packet) = changed {
            message.attribute(libc::NFQA_PAYLOAD as u16, packet);
        }
        send(&self.socket, &message.sealed(), SendFlags::empty())?;
        Ok(())
    }

    fn message(&self, kind: libc::c_int) -> Message {
        let mut message = Message::unanswered((SUBSYSTEM << 8) | kind as u16, 0);
        // struct nfgenmsg: family, version, which queue.
        message.bytes(&[libc::AF_UNSPEC as u8, 0]);
        message.bytes(&self.number.to_be_bytes());
        message
    }
}

impl AsFd for PacketQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The number of the packet that a message brings, and where in the message all of the packet is; `None` if it brings none.
fn waiting(message: &[u8]) -> Option<(u32, Option<Range<usize>>)> {
    if message.get(4..6)? != ((SUBSYSTEM << 8) | libc::NFQNL_MSG_PACKET as u16).to_ne_bytes() {
        return None;
    }
    let (mut number, mut packet, mut is_whole) = (None, None, true);
    let mut at = HEADER + 4;
    while let Some(&[a, b, c, d]) = message.get(at..at + 4) {
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let inside = at + 4..at + length;
        let Some(value) = message.get(inside.clone()) else { break };
        match libc::c_int::from(u16::from_ne_bytes([c, d]) & KIND) {
            // struct nfqnl_msg_packet_hdr: the packet's number comes first.
            libc::NFQA_PACKET_HDR => number = value.first_chunk().map(|number| u32::from_be_bytes(*number)),
            libc::NFQA_PAYLOAD => packet = Some(inside),
            // How long it is, where that is more than was copied.
            libc::NFQA_CAP_LEN => is_whole = false,
            _ => {}
        }
        at += length.next_multiple_of(4);
    }
    Some((number?, packet.filter(|_| is_whole)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(attributes: &[(libc::c_int, &[u8])]) -> Vec<u8> {
        let mut message = Message::unanswered((SUBSYSTEM << 8) | libc::NFQNL_MSG_PACKET as u16, 0);
        message.bytes(&[2, 0, 0, 7]);
        attributes.iter().for_each(|(kind, value)| message.attribute(*kind as u16, value));
        message.sealed()
    }

    #[test]
    fn a_packet_is_found_in_its_message_with_its_number() {
        let head: (libc::c_int, &[u8]) = (libc::NFQA_PACKET_HDR, &[0, 0, 1, 2, 8, 0, 1]);
        let all = message(&[head, (libc::NFQA_MARK, &[0; 4]), (libc::NFQA_PAYLOAD, b"packet")]);
        let (number, packet) = waiting(&all).unwrap();
        assert_eq!((number, &all[packet.unwrap()]), (258, &b"packet"[..]));
        let short = message(&[head, (libc::NFQA_CAP_LEN, &[0, 0, 9, 9]), (libc::NFQA_PAYLOAD, b"pac")]);
        assert_eq!(waiting(&short), Some((258, None)));
        assert_eq!(waiting(&all[..all.len() - 4]), Some((258, None)), "a message that was cut");
        assert_eq!(waiting(&message(&[])), None);
        let mut other = all.clone();
        other[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        assert_eq!((waiting(&other), waiting(&[])), (None, None));
    }
}
