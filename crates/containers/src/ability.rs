//! What can be done to a container, and why not.

use std::io;

use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use crate::{
    interface::Interface,
    machine::Machine,
    runtime::{Mode, Runtime, Told},
};

/// Why no container's files can be made slow, whatever it was started with.
const NO_DISK: &str = "a disk that can be slow is served by a process of ours, and with that the container's files would go, \
                       too, if it were killed, so that `brownout wrap` prints none; use a lab for faults of disks";

/// Something that a fault may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// What it sends and receives is carried by the emulator.
    Links,
    /// All its processes stand still for a while.
    Pause,
    /// A signal that ends it.
    Kill,
    /// It is stopped, and started again.
    Restart,
    /// It gets a share of the processors that it would have.
    Cpu,
    /// Its files are slow, or fail.
    Disk,
    /// Its clock is wrong.
    Clock,
}

impl What {
    /// All, in the order in which they are listed.
    pub const ALL: [What; 7] =
        [What::Links, What::Pause, What::Kill, What::Restart, What::Cpu, What::Disk, What::Clock];
}

/// Whether something can be done to a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ability {
    /// What.
    pub what: What,
    /// Why not, and what to do, as the end of a sentence; none if it can be done.
    pub refused: Option<String>,
}

/// What is known of a container when its abilities are judged.
pub(crate) struct Known<'a> {
    pub(crate) told: &'a Told,
    /// Its main process, if that is to be seen from here.
    pub(crate) pid: Option<u32>,
    /// What looking into its network has given; the error is a whole reason.
    pub(crate) interfaces: Result<&'a [Interface], &'a str>,
    /// It is in the network that this process is in.
    pub(crate) is_ours: bool,
    /// Why its clock cannot be changed, as the end of a sentence; none: it can.
    pub(crate) no_clock: Option<&'a str>,
}

/// Judges all of them.
pub(crate) fn abilities(known: &Known<'_>, machine: &Machine) -> Vec<Ability> {
    What::ALL.map(|what| Ability { what, refused: refused(what, known, machine) }).to_vec()
}

fn refused(what: What, known: &Known<'_>, machine: &Machine) -> Option<String> {
    let told = known.told;
    if !told.is_there() {
        return Some(format!("it does not run ({}): start it", told.state));
    }
    match what {
        What::Links => links(known, machine),
        What::Pause | What::Cpu => process(known).or_else(|| {
            let name = &told.name;
            told.is_paused
                .then(|| format!("it is paused already, by its runtime: let it go on first (docker unpause {name})"))
        }),
        What::Kill => process(known).or_else(|| comes_back(told)),
        What::Restart => process(known).or_else(|| comes_back(told)).or_else(|| is_started_by_others(told)),
        What::Disk => Some(NO_DISK.to_owned()),
        What::Clock => process(known).or_else(|| known.no_clock.map(str::to_owned)),
    }
}

/// Why nobody here could start it again.
fn is_started_by_others(told: &Told) -> Option<String> {
    match (told.runtime, &told.socket) {
        (Runtime::Containerd, _) => Some(
            "containerd starts no container twice: whoever made it would have to (of a pod the kubelet makes another one by \
             itself, within seconds or minutes), and nobody here can say when"
                .to_owned(),
        ),
        (Runtime::Docker | Runtime::Podman, None) => Some(format!(
            "its runtime does not answer, so that nobody could start it again: start the runtime, or name its socket ({} was \
             found by the files of its task)",
            told.name
        )),
        _ => None,
    }
}

fn links(known: &Known<'_>, machine: &Machine) -> Option<String> {
    let told = known.told;
    if known.is_ours || told.mode == Mode::Host {
        let reason = "it is in this machine's own network (network_mode: host), where its packets cannot be told from \
                      others; give it a network of its own";
        return Some(reason.to_owned());
    }
    if let Mode::Of(other) = &told.mode {
        return Some(format!(
            "it is in the network of another container (network_mode: container:{}), which would be hit, too; name \
             that one",
            short(other)
        ));
    }
    match known.interfaces {
        Err(reason) => Some(reason.to_owned()),
        Ok([]) => {
            let reason = "it has no network interface with an address but lo (network_mode: none); give it a network";
            Some(reason.to_owned())
        }
        Ok(_) => machine.lacks().map(|lacking| {
            format!(
                "diverting packets takes {lacking}, which this process lacks; run as root, outside of any container"
            )
        }),
    }
}

/// Whether there are processes, and signals may be sent to them.
fn process(known: &Known<'_>) -> Option<String> {
    let Some(pid) = known.pid else {
        return Some(match known.told.pid {
            Some(pid) => unseen(pid),
            None => "its processes are not known: it was named by its network namespace; name it by one of its \
                     processes (pids: [PID])"
                .to_owned(),
        });
    };
    let sent = i32::try_from(pid).ok().and_then(Pid::from_raw).map(test_kill_process);
    match sent {
        Some(Ok(())) => None,
        Some(Err(errno)) => {
            let error = io::Error::from(errno);
            Some(format!("its process {pid} may not be sent signals ({error}); run as root, or as its user"))
        }
        None => Some(unseen(pid)),
    }
}

/// Why a container that was ended would not be there again.
fn comes_back(told: &Told) -> Option<String> {
    if told.runtime == Runtime::None {
        return Some(
            "nobody is known who would start it again: it was named by its process; name the container of a runtime"
                .to_owned(),
        );
    }
    told.is_removed
        .then(|| "its runtime removes it, and all its data, when it ends (--rm); make it without that".to_owned())
}

/// Of a process that a runtime names and that is not there, or is another one.
pub(crate) fn unseen(pid: u32) -> String {
    format!(
        "its process, {pid} by what its runtime says, is not to be seen here: the runtime has another PID namespace (a \
         virtual machine, or a container); run where the runtime runs"
    )
}

/// As much of an identifier as people are shown.
pub(crate) fn short(id: &str) -> &str {
    match id.get(..12) {
        Some(start) if id.len() == 64 => start,
        _ => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> Told {
        // Ourselves: a process that is there, and takes our signals.
        let socket = Some("/run/docker.sock".into());
        Told { pid: Some(std::process::id()), runtime: Runtime::Docker, socket, ..Told::named("c1") }
    }

    fn interface() -> Interface {
        Interface { name: "eth0".into(), addresses: vec![[10, 0, 0, 2].into()], ..Interface::default() }
    }

    /// What is refused of a container, and why.
    fn judged(told: &Told, interfaces: Result<&[Interface], &str>, machine: &Machine) -> Vec<(What, String)> {
        let no_clock = Some("it was started without one; see `brownout wrap`");
        let known = Known { told, pid: told.pid, interfaces, is_ours: false, no_clock };
        let all = abilities(&known, machine);
        all.into_iter().filter_map(|ability| Some((ability.what, ability.refused?))).collect()
    }

    fn reason(all: &[(What, String)], what: What) -> &str {
        all.iter().find(|(refused, _)| *refused == what).map_or("", |(_, reason)| reason)
    }

    const RIGHTS: u64 = u64::MAX;

    #[test]
    fn an_ordinary_container_refuses_only_what_it_was_not_started_for() {
        let refused = judged(&told(), Ok(&[interface()]), &Machine::with(RIGHTS));
        assert_eq!(refused.iter().map(|(what, _)| *what).collect::<Vec<_>>(), [What::Disk, What::Clock]);
        assert!(refused.iter().all(|(_, reason)| reason.contains("brownout wrap")), "{refused:?}");
        let told = told();
        let known = Known { told: &told, pid: told.pid, interfaces: Ok(&[]), is_ours: false, no_clock: None };
        let clock = abilities(&known, &Machine::with(RIGHTS)).into_iter().find(|one| one.what == What::Clock);
        assert_eq!(clock.unwrap().refused, None, "it was started with one");
    }

    #[test]
    fn links_are_refused_with_the_reason() {
        let machine = Machine::with(RIGHTS);
        let links = |told: &Told, interfaces: Result<&[Interface], &str>, machine: &Machine| {
            reason(&judged(told, interfaces, machine), What::Links).to_owned()
        };
        let mode = |mode| Told { mode, ..told() };
        assert!(links(&mode(Mode::Host), Ok(&[interface()]), &machine).contains("network_mode: host"));
        let other = Mode::Of("0123456789ab".repeat(6)[..64].to_owned());
        assert!(links(&mode(other), Ok(&[interface()]), &machine).contains("container:0123456789ab)"));
        assert!(links(&told(), Ok(&[]), &machine).contains("network_mode: none"));
        assert_eq!(links(&told(), Err("no"), &machine), "no");
        let lacking = links(&told(), Ok(&[interface()]), &Machine::with(!(1 << 12)));
        assert!(lacking.contains("takes CAP_NET_ADMIN, which"), "{lacking}");
        let known = Known { told: &told(), pid: None, interfaces: Ok(&[]), is_ours: true, no_clock: None };
        assert!(abilities(&known, &machine)[0].refused.as_ref().unwrap().contains("network_mode: host"));
    }

    #[test]
    fn what_would_not_come_back_is_not_ended() {
        let machine = Machine::with(RIGHTS);
        let removed = judged(&Told { is_removed: true, ..told() }, Ok(&[interface()]), &machine);
        assert!(reason(&removed, What::Kill).contains("--rm") && reason(&removed, What::Restart).contains("--rm"));
        assert_eq!(reason(&removed, What::Pause), "");
        let bare = judged(&Told { runtime: Runtime::None, ..told() }, Ok(&[interface()]), &machine);
        assert!(reason(&bare, What::Kill).contains("named by its process"));
        let pod = judged(&Told { runtime: Runtime::Containerd, ..told() }, Ok(&[interface()]), &machine);
        assert!(reason(&pod, What::Kill).is_empty() && reason(&pod, What::Restart).contains("kubelet"));
        let silent = judged(&Told { socket: None, ..told() }, Ok(&[interface()]), &machine);
        assert!(reason(&silent, What::Restart).contains("its runtime does not answer"), "{silent:?}");
    }

    #[test]
    fn what_does_not_run_or_is_not_seen_can_do_nothing() {
        let machine = Machine::with(RIGHTS);
        let stopped = Told { pid: None, state: "exited".into(), ..told() };
        let refused = judged(&stopped, Ok(&[]), &machine);
        assert_eq!(refused.len(), What::ALL.len());
        assert!(refused.iter().all(|(_, reason)| reason.contains("(exited)")), "{refused:?}");

        let told = Told { pid: Some(4711), ..told() };
        let known = Known { told: &told, pid: None, interfaces: Err("no"), is_ours: false, no_clock: None };
        let all = abilities(&known, &machine);
        assert!(all[1].refused.as_ref().unwrap().contains("4711 by what its runtime says"), "{all:?}");
        let paused = judged(&Told { is_paused: true, ..super::tests::told() }, Ok(&[interface()]), &machine);
        assert!(reason(&paused, What::Pause).contains("docker unpause") && reason(&paused, What::Kill).is_empty());
    }
}
