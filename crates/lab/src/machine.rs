//! What this machine can do: the checks of `brownout doctor`, and those a run makes before it starts.

mod check;
mod containers;
mod faults;
mod overlays;
mod waiting;

use std::{
    collections::BTreeMap,
    fs, io,
    num::NonZeroU64,
    ops::RangeInclusive,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use brownout_cluster::{
    DEFAULT_HEAP, DatabaseKind, cache,
    cassandra::{self, maven},
    java, memory_needed,
};
use brownout_load::histogram;
use brownout_machine::{Processors, available_memory, waits_are_counted};
use brownout_network::overlay::Overlay;
use brownout_record::percentile;
use brownout_units::{Delay, format_ns};
use rustix::thread::set_current_timer_slack;

pub use self::check::{Check, CheckState};
use self::faults::refuse_faults;
use crate::{Design, LabError, Plan, ground::Privilege, plan::Layout, selftest, software::Wanted};

/// Major versions of Java that Cassandra 5.0 runs on.
const JAVA: RangeInclusive<u32> = 11..=17;
/// The device every host's interface is made from.
const TUN: &str = "/dev/net/tun";
/// What a run needs on the disk of its directory: logs, data, the run's file.
pub(crate) const DISK_NEEDED: u64 = 1 << 30;

/// Every check, in the order a person would want to read them. Builds a small lab to see what it measures.
pub fn examine(runs: &Path) -> Vec<Check> {
    let mut checks = vec![kernel(), processors(), clock_source(), privilege(), tun()];
    checks.push(timer());
    checks.push(waiting::check(waits_are_counted()));
    checks.extend(lab());
    checks.push(overlays::openvpn(CheckState::Limited));
    checks.extend(faults::checks());
    checks.push(java_found());
    checks.extend(cassandra_found());
    checks.push(etcd_found());
    checks.push(memory());
    checks.push(disk(runs));
    checks
}

/// Refuses a planned run that this machine cannot carry, or whose faults it cannot inject.
pub fn refuse(plan: &Plan, runs: &Path) -> Result<(), LabError> {
    refuse_if_lacking(&plan.layout, runs)?;
    refuse_faults(&plan.needs())
}

/// Refuses a design whose databases this machine cannot run: Cassandra without a Java for it, etcd that can neither be built nor
/// is installed.
pub fn refuse_without_software(design: &Design) -> Result<(), LabError> {
    let cache = cache::directory().map_err(|error| LabError::Machine(error.to_string()))?;
    let clusters = design.clusters();
    let wanted = clusters.iter().flat_map(|cluster| Wanted::all(cluster));
    let wanted: BTreeMap<String, Wanted<'_>> = wanted.map(|one| (one.name(), one)).collect();
    wanted.values().try_for_each(|one| one.refuse(&cache))
}

/// Refuses a lab that this machine cannot carry, before anything is started.
pub fn refuse_if_lacking(layout: &Layout, runs: &Path) -> Result<(), LabError> {
    let checks = match layout.is_external() {
        true if layout.is_attached() => containers::checks().into_iter().chain([tun(), disk(runs)]).collect(),
        // Neither a network nor nodes are made.
        true => vec![disk(runs)],
        false => vec![tun(), disk(runs), memory_for(layout)],
    };
    let openvpn = layout.hosts.overlay() == Some(Overlay::Openvpn);
    let checks = checks.into_iter().chain(openvpn.then(|| overlays::openvpn(CheckState::Lacking)));
    for check in checks {
        if check.state == CheckState::Lacking {
            let remedy = check.remedy.unwrap_or_default();
            return Err(LabError::Machine(format!("{}: {}; {remedy}", check.name, check.found)));
        }
    }
    Ok(())
}

fn kernel() -> Check {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Check::good("kernel", format!("Linux {}", release.trim()))
}

fn processors() -> Check {
    let processors = Processors::of_this_process();
    let found = format!("{processors} × {}", cpu_model());
    match processors.whole() {
        1 => Check::not(
            CheckState::Limited,
            "processors",
            found,
            "with one processor the database and the measurement compete for it; use two or more",
        ),
        _ => Check::good("processors", found),
    }
}

/// The first processor's model.
pub fn cpu_model() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, model)| model.trim().to_owned())
}

/// `tsc`, `kvm-clock`, …
pub fn clock_source_name() -> String {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned())
}

fn clock_source() -> Check {
    let name = clock_source_name();
    let read = cost_of_reading_the_clock();
    let found = format!("{name}, {} per reading", format_ns(read));
    // Above this a reading is a system call: each operation reads the clock a few times.
    if read > 300.0 {
        return Check::not(
            CheckState::Limited,
            "clock source",
            found,
            "reading the clock is slow; a kernel with the tsc clock source measures with less overhead",
        );
    }
    Check::good("clock source", found)
}

fn cost_of_reading_the_clock() -> f64 {
    const READINGS: u32 = 20_000;
    let start = Instant::now();
    for _ in 0..READINGS {
        std::hint::black_box(Instant::now());
    }
    start.elapsed().as_nanos() as f64 / f64::from(READINGS)
}

fn privilege() -> Check {
    match Privilege::current() {
        Privilege::Root => Check::good("privilege", "root: namespaces and real-time scheduling are allowed"),
        Privilege::UserNamespace => match refused_user_namespaces() {
            None => Check::not(
                CheckState::Limited,
                "privilege",
                "not root: the lab runs in a user namespace; everything works, without real-time scheduling",
                "run as root where packets must leave within 0.1 ms of their time on a busy machine",
            ),
            Some((what, refusal)) => Check::not(CheckState::Lacking, "privilege", what, crate::error::remedy(&refusal)),
        },
    }
}

/// Which setting of the machine forbids user namespaces, or cripples them; none if none is known to.
fn refused_user_namespaces() -> Option<(String, io::Error)> {
    let settings = [
        ("user.max_user_namespaces", "/proc/sys/user/max_user_namespaces", "0"),
        ("kernel.unprivileged_userns_clone", "/proc/sys/kernel/unprivileged_userns_clone", "0"),
        ("kernel.apparmor_restrict_unprivileged_userns", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
    ];
    let (name, _, value) = settings
        .into_iter()
        .find(|(_, path, refusing)| fs::read_to_string(path).is_ok_and(|value| value.trim() == *refusing))?;
    let refusal = io::Error::from_raw_os_error(libc::EPERM);
    Some((format!("not root, and user namespaces are refused or restricted: {name} is {value}"), refusal))
}

fn tun() -> Check {
    match fs::OpenOptions::new().read(true).write(true).open(TUN) {
        Ok(_) => Check::good("TUN device", format!("{TUN} opens")),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Check::not(
            CheckState::Lacking,
            "TUN device",
            format!("{TUN} may not be opened by this user"),
            format!("as root: chmod 0666 {TUN} (most distributions have it so), or run as root"),
        ),
        Err(error) => Check::not(
            CheckState::Lacking,
            "TUN device",
            format!("{TUN}: {error}"),
            format!(
                "as root: modprobe tun; in a container give it the device (--device {TUN}), or: \
                 mkdir -p /dev/net && mknod {TUN} c 10 200"
            ),
        ),
    }
}

/// How late a thread wakes from a sleep, on this machine as busy as it is now.
fn timer() -> Check {
    const SLEEPS: usize = 300;
    // Where it is refused, the sleeps show the default slack.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let mut late = histogram();
    for _ in 0..SLEEPS {
        let due = Instant::now() + Duration::from_millis(1);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        // It grows as it needs to, so recording cannot fail.
        let _ = late.record(u64::try_from(due.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    let _ = set_current_timer_slack(None);
    let at = |percent| percentile(&late, percent) as f64;
    let found = format!(
        "sleeps of 1ms overrun by {} (p50), {} (p99), in default scheduling",
        format_ns(at(50.0)),
        format_ns(at(99.0))
    );
    if at(99.0) > 10e6 {
        return Check::not(
            CheckState::Limited,
            "timer",
            found,
            "the machine is busy; stop other work before measuring",
        );
    }
    Check::good("timer", found)
}

/// A lab of two hosts, built and measured, and what can be in it.
fn lab() -> Vec<Check> {
    let asked = selftest::DELAY;
    match selftest::run() {
        Ok(result) => {
            let found = format!(
                "two hosts, {asked} asked, {} measured (p50), {} (p99); packets left {} late (p50), {} (p99), \
                 emulator under {}; idle processors: {}",
                format_ns(result.delay_p50_ns as f64),
                format_ns(result.delay_p99_ns as f64),
                format_ns(result.release_p50_ns as f64),
                format_ns(result.release_p99_ns as f64),
                result.scheduling,
                result.idle
            );
            let vxlan = overlays::vxlan(result.no_vxlan.as_deref());
            let off = result.delay_p50_ns.abs_diff(asked.ns());
            if off > Delay::from_ms(1).ns() || result.release_p99_ns > 5_000_000 {
                let remedy = "the machine is too busy to emulate a network in time; stop other work, or run as root";
                return vec![Check::not(CheckState::Limited, "lab", found, remedy), vxlan];
            }
            vec![Check::good("lab", found), vxlan]
        }
        Err(error) => vec![Check::not(
            CheckState::Lacking,
            "lab",
            error.to_string(),
            "fix the other missing items first, if there are any",
        )],
    }
}

fn java_found() -> Check {
    match java::find(JAVA) {
        Ok(java) => Check::good("Java", format!("{} at {}", java.version, java.home.display())),
        Err(error) => Check::not(
            CheckState::Lacking,
            "Java",
            error.to_string(),
            "on Debian or Ubuntu, as root: apt-get install openjdk-17-jre-headless",
        ),
    }
}

/// Whether Cassandra is in the cache, and if not, whether it can be resolved.
fn cassandra_found() -> Vec<Check> {
    let directory = match cache::directory() {
        Ok(directory) => directory,
        Err(error) => {
            return vec![Check::not(
                CheckState::Lacking,
                "cache",
                error.to_string(),
                "set BROWNOUT_CACHE to a directory",
            )];
        }
    };
    let cached =
        cassandra::release(cassandra::DEFAULT).is_ok_and(|release| maven::directory(release, &directory).is_dir());
    let cassandra = if cached {
        Check::good("Cassandra", format!("{} is in {}", cassandra::DEFAULT, directory.display()))
    } else {
        Check::good("Cassandra", format!("{} will be resolved into {}", cassandra::DEFAULT, directory.display()))
    };
    let maven = match (maven_version(), cached) {
        (Ok(version), _) => Check::good("Maven", version),
        (Err(why), true) => Check::not(
            CheckState::Limited,
            "Maven",
            format!("{why}; only another Cassandra would need it"),
            MAVEN_REMEDY,
        ),
        (Err(why), false) => Check::not(CheckState::Lacking, "Maven", why, MAVEN_REMEDY),
    };
    vec![maven, cassandra]
}

/// Whether an etcd can be built, or is installed; only experiments on etcd need one.
fn etcd_found() -> Check {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let find = |name: &str| {
        std::env::split_paths(&directories).map(|directory| directory.join(name)).find(|program| program.is_file())
    };
    match (find("go"), find("etcd")) {
        (Some(go), _) => Check::good("etcd", format!("is built from its module by {}", go.display())),
        (None, Some(etcd)) => Check::good("etcd", format!("{} is installed", etcd.display())),
        (None, None) => Check::not(
            CheckState::Limited,
            "etcd",
            "neither Go, which builds it, nor etcd is on PATH; experiments on Cassandra need neither",
            "on Debian or Ubuntu, as root: apt-get install etcd-server (or golang-go, for newer ones)",
        ),
    }
}

/// "Apache Maven 3.8.7", as `mvn --version` says.
fn maven_version() -> Result<String, String> {
    let output =
        Command::new("mvn").args(["--batch-mode", "--version"]).output().map_err(|error| format!("mvn: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    // It may reset the terminal's colours in front of its name, whether there is a terminal or not.
    match text.lines().find_map(|line| line.find("Apache Maven").map(|at| &line[at..])) {
        Some(line) if output.status.success() => Ok(line.to_owned()),
        _ => Err(format!("mvn --version ended with {}", output.status)),
    }
}

const MAVEN_REMEDY: &str =
    "on Debian or Ubuntu, as root: apt-get install maven; or name an unpacked Cassandra: cassandra: { home: DIR }";

fn memory() -> Check {
    let node = memory_needed(1, DEFAULT_HEAP);
    match available_memory() {
        Some(free) => {
            let fit = free / node;
            let found = format!("{} MB available: {fit} nodes of {} MB", free >> 20, node >> 20);
            if fit < 3 {
                let state = if fit == 0 { CheckState::Lacking } else { CheckState::Limited };
                return Check::not(state, "memory", found, "replication 3 needs three nodes: free some memory");
            }
            Check::good("memory", found)
        }
        None => Check::not(CheckState::Limited, "memory", "/proc/meminfo cannot be read", "mount /proc"),
    }
}

fn memory_for(layout: &Layout) -> Check {
    let (nodes, needed) = (layout.hosts.nodes().count(), layout.memory_needed());
    let (heap, smaller) = match layout.kind() {
        DatabaseKind::Cassandra => {
            (format!(" with a heap of {}", layout.cluster.heap()), " a smaller heap (cluster.heap, at least 128MiB),")
        }
        DatabaseKind::Etcd => (String::new(), ""),
    };
    match available_memory() {
        Some(free) if free < needed => Check::not(
            CheckState::Lacking,
            "memory",
            format!("{nodes} nodes{heap} need {} MB, and {} MB are available", needed >> 20, free >> 20),
            format!("write fewer nodes (cluster.nodes),{smaller} or free some memory"),
        ),
        _ => Check::good("memory", format!("{} MB for {nodes} nodes", needed >> 20)),
    }
}

/// The directory itself, or the nearest one above it that is there.
fn existing(runs: &Path) -> &Path {
    let existing = runs.ancestors().find(|directory| directory.exists()).unwrap_or(Path::new("."));
    // A relative path ends in "", which stands for the current directory.
    if existing.as_os_str().is_empty() { Path::new(".") } else { existing }
}

/// Bytes that are free for runs below a directory, which need not be there yet.
pub(crate) fn free_space_of(runs: &Path) -> Option<u64> {
    free_space(existing(runs)).ok()
}

fn disk(runs: &Path) -> Check {
    let existing = existing(runs);
    match free_space(existing) {
        Ok(free) if free < DISK_NEEDED => Check::not(
            CheckState::Lacking,
            "disk",
            format!("{} MB free for {}", free >> 20, runs.display()),
            format!(
                "a run needs up to {} MB; free some space or choose another directory with --out",
                DISK_NEEDED >> 20
            ),
        ),
        Ok(free) => Check::good("disk", format!("{} MB free for {}", free >> 20, runs.display())),
        Err(error) => Check::not(
            CheckState::Lacking,
            "disk",
            format!("{}: {error}", existing.display()),
            "choose another directory with --out",
        ),
    }
}

fn free_space(directory: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(directory)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}
