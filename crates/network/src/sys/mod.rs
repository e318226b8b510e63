//! What takes several system calls, or one that rustix has no safe word for. All `unsafe` of this crate is here, a line
//! or two at a time.

mod datagrams;
mod interface;
mod netlink;
mod netns;
mod poll;
mod process;
mod tcp;
mod tun;

use std::io;

pub(crate) use datagrams::DatagramSocket;
pub(crate) use interface::interface_index;
pub(crate) use netlink::{
    Vxlan, add_address, add_neighbour, add_subnet_route, add_vxlan, forbid_link_local, set_mtu, set_queue_length,
    set_up,
};
pub(crate) use netns::{enter, prepare, unshare_network};
pub(crate) use poll::{Epoll, Event, Wakeup};
pub(crate) use process::{inherit_and_die_together, inherited_path, nameless_file, secret};
pub(crate) use tcp::tcp_congestion_control;
pub(crate) use tun::{OpenError, TUN_DEVICE, Tun, is_gone};

/// Turns the `-1` of the C library into the error it left behind.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
