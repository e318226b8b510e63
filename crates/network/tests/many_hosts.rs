//! Two hundred hosts: more open files than a process usually may have.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{net::UdpSocket, os::unix::process::CommandExt, process::Command};

use brownout_network::{Network, NetworkError};
use brownout_probe::Probes;
use common::spec;

const HOSTS: u8 = 200;
/// Where [`in_another_process`] tells what came of it.
const STARTED: &str = "200 hosts started";

/// Not a test: what the others run in a process that has limits of its own.
#[test]
#[ignore = "run by the others, in a process of its own"]
fn starts_in_a_process_of_its_own() {
    match Network::start(spec(HOSTS)) {
        Ok(network) => {
            // As a lab uses it: each host is probed, and the first reaches the last.
            let links = network.links();
            let some: Vec<_> = (0..usize::from(HOSTS) - 1).map(|host| links[host * usize::from(HOSTS)]).collect();
            let probes = Probes::start_on(&network, &some, Probes::shortest_interval(some.len())).unwrap();
            let [first, last] = [&network.hosts()[0], &network.hosts()[usize::from(HOSTS) - 1]];
            let bind =
                |host: &brownout_network::Host| host.run(|| UdpSocket::bind((host.address(), 0))).unwrap().unwrap();
            let [from, to] = [bind(first), bind(last)];
            to.set_read_timeout(Some(common::PATIENCE)).unwrap();
            from.send_to(b"here", to.local_addr().unwrap()).unwrap();
            assert_eq!(to.recv_from(&mut [0; 8]).unwrap().1, from.local_addr().unwrap());
            drop(probes);
            println!("\n{STARTED}");
        }
        Err(error) => {
            assert!(matches!(error, NetworkError::OpenFiles { .. }), "{error}");
            println!("\n{error}");
        }
    }
}

/// What it says when at most `files` may be open, which it may raise, or not.
fn in_another_process(files: u64, may_raise: bool) -> String {
    const CAP_SYS_RESOURCE: libc::c_ulong = 24;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "starts_in_a_process_of_its_own", "--ignored", "--nocapture"]);
    // SAFETY: only system calls, of constants and of a local that outlives them.
    unsafe {
        command.pre_exec(move || {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            let mut done = libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0;
            limit.rlim_cur = files;
            if !may_raise {
                limit.rlim_max = files;
                // Root may not have it; then there is nothing to drop.
                libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_RESOURCE, 0, 0, 0);
            }
            done &= libc::setrlimit(libc::RLIMIT_NOFILE, &limit) == 0;
            if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        });
    }
    let output = command.output().expect("this test needs root");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn two_hundred_hosts_start_where_the_limit_of_open_files_can_be_raised() {
    let text = in_another_process(1_024, true);
    assert!(text.contains(STARTED), "{text}");
}

#[test]
fn where_the_limit_of_open_files_is_too_low_the_message_names_it_and_what_to_type() {
    let text = in_another_process(1_024, false);
    for part in ["200 hosts take up to", "may have 1024", "ulimit -Hn", "LimitNOFILE=", "fs.nr_open"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    // One host needs none of it.
    assert!(Network::start(spec(1)).is_ok());
}
