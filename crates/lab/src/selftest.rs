//! A lab of two hosts in namespaces of its own, built and measured for `doctor`.

use std::time::Duration;

use brownout_load::histogram;
use brownout_machine::Awake;
use brownout_network::{HostSpec, Impairment, LinkControl, Network, NetworkSpec, overlay::try_vxlan};
use brownout_probe::Probes;
use brownout_record::percentile;
use brownout_units::Delay;
use serde::{Deserialize, Serialize};

use crate::{
    LabError,
    ground::{self, Privilege},
    hosts::Hosts,
    request::{INSIDE, Request},
    testbed::{idle_name, scheduling_name},
};

/// Asked of one direction.
pub const DELAY: Delay = Delay::from_ms(10);
/// Long enough for a p99.
const LASTS: Duration = Duration::from_millis(1_500);
const EVERY: Duration = Duration::from_millis(5);

/// What was measured; ns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfTest {
    /// "SCHED_FIFO 20".
    pub scheduling: String,
    /// One-way delay of the probes, with [`DELAY`] asked.
    pub delay_p50_ns: u64,
    /// As above.
    pub delay_p99_ns: u64,
    /// By which packets left the emulator after their time.
    pub release_p50_ns: u64,
    /// As above.
    pub release_p99_ns: u64,
    /// Whether idle processors stayed awake meanwhile, or why not.
    pub idle: String,
    /// Why the kernel makes no VXLAN interface, if it makes none.
    pub no_vxlan: Option<String>,
}

/// Outside: starts the lab and reads what it measured.
pub(crate) fn run() -> Result<SelfTest, LabError> {
    let request = serde_json::to_vec(&Request::SelfTest).map_err(|error| LabError::Machine(error.to_string()))?;
    let enclosed = ground::enclose(&[INSIDE], &request, ground::catch_interrupts(), ground::Walls::Own)?;
    let (answer, status) =
        enclosed.answer().map_err(|source| LabError::Ground { doing: "wait for the lab", source })?;
    // The lab's own error, if it had one, is its answer.
    let answer: Result<SelfTest, String> = serde_json::from_slice(&answer)
        .map_err(|_| LabError::Machine(format!("the lab ended without an answer: {status}")))?;
    answer.map_err(LabError::Machine)
}

/// Inside: builds and measures.
pub(crate) fn measure() -> Result<SelfTest, LabError> {
    let awake = Awake::hold();
    let hosts = Hosts::new(1);
    ground::furnish(&[&hosts], &[])?;
    let specs = hosts.iter().map(|host| HostSpec::new(host.name.clone(), host.address));
    let network = Network::start(NetworkSpec {
        hosts: specs.collect(),
        mtu: 1500,
        congestion_control: None,
        seed: 1,
        realtime: Privilege::current_inside() == Privilege::Root,
        overlay: None,
    })?;
    let probes = Probes::start(&network, EVERY)?;
    let guard = network.control().impair(&network.links(), &Impairment::delay(DELAY))?;
    std::thread::sleep(LASTS);
    let counters = network.control().take_counters()?;
    guard.heal()?;
    // Samples are told once they are settled; those of the last moments stay behind.
    std::thread::sleep(DELAY.duration() * 2);
    // Both histograms grow as needed, so adding cannot fail.
    let (mut delays, mut release) = (histogram(), histogram());
    for delay_ns in probes.drain().iter().filter_map(|sample| sample.delay_ns) {
        let _ = delays.record(delay_ns);
    }
    if delays.is_empty() {
        return Err(LabError::Machine("no probe arrived".to_owned()));
    }
    for link in counters {
        let _ = release.add(&link.release_error);
    }
    Ok(SelfTest {
        scheduling: scheduling_name(network.realtime()),
        delay_p50_ns: percentile(&delays, 50.0),
        delay_p99_ns: percentile(&delays, 99.0),
        release_p50_ns: percentile(&release, 50.0),
        release_p99_ns: percentile(&release, 99.0),
        idle: idle_name(&awake),
        no_vxlan: try_vxlan().err().map(|error| error.to_string()),
    })
}
