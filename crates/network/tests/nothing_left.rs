//! When a network is dropped, nothing of it stays. Alone in its program, because it counts what the
//! whole process holds.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    fs, io, ptr,
    time::{Duration, Instant},
};

use brownout_network::{
    Impairment, Network, NetworkSpec,
    overlay::{Overlay, openvpn_program},
};
use brownout_probe::Probes;
use brownout_units::Delay;

fn count(directory: &str) -> usize {
    fs::read_dir(directory).unwrap().count()
}

/// Whether this process has started others that it has not waited for yet.
fn has_children() -> bool {
    // SAFETY: no status is asked for.
    let found = unsafe { libc::waitpid(-1, ptr::null_mut(), libc::WNOHANG) };
    found != -1 || io::Error::last_os_error().raw_os_error() != Some(libc::ECHILD)
}

#[test]
fn a_dropped_network_leaves_no_descriptor_and_no_thread() {
    let before = (count("/proc/self/fd"), count("/proc/self/task"));
    for _ in 0..3 {
        let network = common::network(4);
        let probes = Probes::start(&network, Duration::from_millis(10)).unwrap();
        let links = network.links();
        let guard = common::impair(&network, &links, Impairment::delay(Delay::from_secs(1)));
        std::thread::sleep(Duration::from_millis(100));
        drop((guard, probes, network));
        let refused = NetworkSpec { congestion_control: Some("nosuch".into()), ..common::spec(3) };
        assert!(Network::start(refused).is_err());
    }
    for overlay in Overlay::ALL {
        let spec = NetworkSpec { overlay: Some(overlay), ..common::spec(3) };
        match Network::start(spec) {
            Ok(network) => {
                let probes = Probes::start(network.overlay().unwrap(), Duration::from_millis(10)).unwrap();
                std::thread::sleep(Duration::from_millis(100));
                drop((probes, network));
            }
            Err(error) => assert!(overlay == Overlay::Openvpn && openvpn_program().is_none(), "{overlay}: {error}"),
        }
        assert!(!has_children(), "{overlay}");
    }
    // A thread that has been joined stays listed for a moment.
    let end = Instant::now() + common::PATIENCE;
    while (count("/proc/self/fd"), count("/proc/self/task")) != before {
        assert!(Instant::now() < end, "{} {} {before:?}", count("/proc/self/fd"), count("/proc/self/task"));
        std::thread::sleep(Duration::from_millis(10));
    }
}
