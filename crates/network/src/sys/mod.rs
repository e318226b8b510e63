//! What takes several system calls, or one that rustix has no safe word for. All `unsafe` of this crate is here, a line
//! or two at a time.

mod datagrams;
mod interface;
mod netlink;
mod netns;
mod nftables;
mod packet_queue;
mod packet_socket;
mod poll;
mod process;
mod routing;
mod tap;
mod tcp;
mod tun;

use std::io;

pub(crate) use datagrams::DatagramSocket;
pub(crate) use interface::{interface_index, interface_mtu, is_ethernet};
pub(crate) use netlink::{
    Vxlan, add_address, add_neighbour, add_subnet_route, add_vxlan, forbid_link_local, set_mtu, set_queue_length,
    set_up,
};
pub(crate) use netns::{enter, prepare, unshare_network};
pub(crate) use nftables::{Addresses, Diverted, Diverter, Queueing};
pub(crate) use packet_queue::PacketQueue;
pub(crate) use packet_socket::{PacketSocket, RawSockets};
pub(crate) use poll::{Epoll, Event, Wakeup};
pub(crate) use process::{inherit_and_die_together, inherited_path, nameless_file, secret};
pub(crate) use routing::Routing;
pub(crate) use tap::Tap;
pub(crate) use tcp::{default_congestion_control, tcp_congestion_control};
pub(crate) use tun::{OpenError, TUN_DEVICE, Tun, is_gone};

/// Turns the `-1` of the C library into the error it left behind.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
