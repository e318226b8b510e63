//! What one host does to itself or to a link is no other pair's concern.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    os::fd::AsRawFd,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use brownout_base::clock::monotonic_ns;
use brownout_network::Network;
use common::{PATIENCE, counters, link, network, quantile, udp_pair};

/// Deletes a host's only interface, as root in there could (`RTM_DELLINK`, rtnetlink(7)).
fn delete_interface(network: &Network, host: &str) {
    let delete = || {
        let name = std::ffi::CString::new(brownout_network::INTERFACE).unwrap();
        // SAFETY: the name ends with a zero; the message is as long as it says; the descriptor is closed with its owner.
        unsafe {
            let index = libc::if_nametoindex(name.as_ptr());
            assert!(index > 0);
            let socket = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE);
            assert!(socket >= 0);
            let socket = <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(socket);
            // struct nlmsghdr and struct ifinfomsg.
            let mut message = Vec::new();
            message.extend(32u32.to_ne_bytes());
            message.extend(libc::RTM_DELLINK.to_ne_bytes());
            message.extend((libc::NLM_F_REQUEST as u16 | libc::NLM_F_ACK as u16).to_ne_bytes());
            message.extend([0; 8]);
            message.extend([0; 4]);
            message.extend(index.to_ne_bytes());
            message.extend([0; 8]);
            assert_eq!(libc::send(socket.as_raw_fd(), message.as_ptr().cast(), message.len(), 0), 32);
            let mut answer = [0u8; 128];
            assert!(libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) >= 20);
            assert_eq!(i32::from_ne_bytes(answer[16..20].try_into().unwrap()), 0, "the kernel refused");
        }
    };
    network.host(host).unwrap().run(delete).unwrap();
}

#[test]
fn a_host_that_deletes_its_interface_is_gone_and_the_others_go_on() {
    let network = network(3);
    let (to_gone, _gone) = udp_pair(&network, "h0", "h2");
    let (sender, receiver) = udp_pair(&network, "h0", "h1");
    delete_interface(&network, "h2");
    for n in 0..100u8 {
        to_gone.send(&[n]);
        sender.send(&[n]);
        assert_eq!(receiver.receive(PATIENCE), Some(vec![n]));
    }
    let lost = counters(&network, link(&network, "h0", "h2"));
    assert_eq!((lost.dropped_write, lost.delivered_packets), (100, 0));
}

#[test]
fn a_flood_between_two_hosts_leaves_the_packets_of_others_on_time() {
    let network = network(4);
    let (flooder, drain) = udp_pair(&network, "h0", "h1");
    let (sender, receiver) = udp_pair(&network, "h2", "h3");
    let on = AtomicBool::new(true);
    let delays = thread::scope(|scope| {
        scope.spawn(|| {
            while on.load(Ordering::Relaxed) {
                flooder.send(&[0; 64]);
            }
        });
        scope.spawn(|| {
            while on.load(Ordering::Relaxed) {
                drain.receive(Duration::from_millis(10));
            }
        });
        let mut delays: Vec<f64> = (0..300)
            .map(|_| {
                thread::sleep(Duration::from_millis(3));
                sender.send(&monotonic_ns().to_be_bytes());
                let sent = receiver.receive(PATIENCE).expect("no packet of others is lost");
                (monotonic_ns() - u64::from_be_bytes(sent.try_into().unwrap())) as f64 / 1e6
            })
            .collect();
        on.store(false, Ordering::Relaxed);
        delays.sort_by(f64::total_cmp);
        delays
    });
    let flood = counters(&network, link(&network, "h0", "h1")).offered_packets;
    let (median, most) = (quantile(&delays, 0.5), quantile(&delays, 0.9));
    println!("beside {flood} packets of a flood: half within {median:.3} ms, nine of ten within {most:.3} ms");
    assert!(flood > 10_000);
    // A batch of the flood takes well below a millisecond; queueing behind all of it would take seconds.
    assert!(median < 50.0, "{median} ms");
}
