//! Hosts that the emulator cannot reach any more, because their network interface failed: an event, and the end of a trial.

use brownout_network::{HostFailure, Network};
use brownout_record::{Event, Recorder};

use crate::LabError;

/// A host whose network interface failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedHost {
    /// Its name.
    pub name: String,
    /// When the emulator noticed, `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// What happened, what it means, and where to look.
    pub text: String,
}

impl FailedHost {
    /// The kind of its event.
    pub const EVENT: &str = "host-failed";
    /// The same of an interface of a container that is gone.
    pub const GONE: &str = "exit-gone";

    /// `reason`: what the kernel said.
    pub fn new(name: &str, at_ns: u64, reason: &str) -> FailedHost {
        let text = format!(
            "the network interface of {name} failed ({reason}): everything {name} sends or is sent is lost, and no fault \
             asked for it; did something inside the host delete an interface, take it down, or end a process?"
        );
        FailedHost { name: name.to_owned(), at_ns, text }
    }
}

/// Interfaces of containers, or this machine's ends of them, that are gone since the last call. That happens whenever a container
/// ends: it is no failure, and once it was started again it has others.
pub fn gone(network: &Network) -> Vec<FailedHost> {
    let failures = network.control().take_failures().into_iter();
    let told = |failure: HostFailure| {
        let name = network.name(failure.host).unwrap_or_default().to_owned();
        let text = format!(
            "an interface by which packets of {name} are diverted is gone ({}): did a container end, or did somebody delete it?",
            failure.reason
        );
        FailedHost { name, at_ns: failure.at_ns, text }
    };
    failures.map(told).collect()
}

/// The hosts that failed since the last call; of containers see [`gone`].
pub fn take(network: &Network) -> Vec<FailedHost> {
    if network.is_attached() {
        return Vec::new();
    }
    let failures = network.control().take_failures().into_iter();
    failures
        .map(|failure| FailedHost::new(network.name(failure.host).unwrap_or_default(), failure.at_ns, &failure.reason))
        .collect()
}

/// Records an event for each of them.
///
/// # Errors
/// When there is one, after all are recorded: a trial in which a host has no network shows nothing.
pub fn record(recorder: &mut Recorder, trial: u32, failed: &[FailedHost]) -> Result<(), LabError> {
    for host in failed {
        let event = Event {
            trial: Some(trial),
            at_ns: recorder.at(host.at_ns),
            error_ns: 0,
            kind: FailedHost::EVENT.to_owned(),
            subject: host.name.clone(),
            text: host.text.clone(),
        };
        recorder.batch(|recorder| recorder.event(&event))?;
    }
    failed.first().map_or(Ok(()), |host| Err(LabError::Trial(host.text.clone())))
}

#[cfg(test)]
mod tests {
    use std::{
        process::Command,
        thread,
        time::{Duration, Instant},
    };

    use brownout_network::{HostSpec, NetworkSpec};
    use brownout_record::Run;

    use brownout_network::INTERFACE;

    use super::*;
    use crate::hosts::Hosts;

    /// Needs root, /dev/net/tun and iproute2.
    #[test]
    fn a_host_that_loses_its_interface_is_recorded_and_fails_the_trial() {
        let hosts = Hosts::new(2);
        let network = Network::start(NetworkSpec {
            hosts: hosts.iter().map(|host| HostSpec::new(host.name.clone(), host.address)).collect(),
            mtu: 1500,
            congestion_control: None,
            seed: 1,
            realtime: false,
            overlay: None,
        })
        .expect("this test needs root and /dev/net/tun");
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("run.db");
        let mut recorder = Recorder::create(&file, brownout_base::clock::monotonic_ns(), 0).unwrap();
        record(&mut recorder, 1, &take(&network)).expect("nothing has failed yet");

        let delete = || Command::new("ip").args(["link", "delete", INTERFACE]).status();
        assert!(network.host("n2").unwrap().run(delete).unwrap().expect("this test needs iproute2").success());
        let limit = Instant::now() + Duration::from_secs(30);
        let failed = loop {
            let failed = take(&network);
            if !failed.is_empty() {
                break failed;
            }
            assert!(Instant::now() < limit, "nobody is told that n2 failed");
            thread::sleep(Duration::from_millis(5));
        };
        let error = record(&mut recorder, 1, &failed).unwrap_err();
        assert!(matches!(&error, LabError::Trial(text) if text.contains("interface of n2 failed")), "{error}");
        assert_eq!(error.exit_code(), 3);
        recorder.finish().unwrap();
        let events = Run::open(&file).unwrap().events().unwrap();
        let told: Vec<_> = events.iter().map(|event| (event.kind.as_str(), event.subject.as_str())).collect();
        assert_eq!(told, [("host-failed", "n2")]);
    }
}
