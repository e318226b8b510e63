//! OpenVPN: a process in each host, of which the first host's is the server that all others are clients of.
//!
//! The processes are children of a thread of their own, which the kernel kills with it; their keys are handed over in files
//! without a name. They make their interfaces; addresses, MTU and routes are set by us, as on every overlay.

use std::{
    env,
    fmt::Write as _,
    fs::File,
    io::{self, Write as _},
    net::Ipv4Addr,
    os::{
        fd::OwnedFd,
        unix::fs::{FileExt, PermissionsExt},
    },
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_base::HostId;
use rcgen::ExtendedKeyUsagePurpose;

use super::certificates::{Authority, Identity};
use crate::{
    emulator::Shared,
    host::Host,
    sys::{inherit_and_die_together, inherited_path, nameless_file},
};

/// IANA's.
const PORT: u16 = 1_194;
/// Where distributions put it, beside what the environment says.
const DIRECTORIES: [&str; 4] = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
/// Of a log, what an error quotes.
const QUOTED: u64 = 1_500;
/// How often it is looked whether all of them live.
const LOOK: Duration = Duration::from_millis(100);

/// The program, if it is installed.
pub fn openvpn_program() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = env::split_paths(&path).chain(DIRECTORIES.iter().map(PathBuf::from));
    let is_program =
        |file: &PathBuf| file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    directories.map(|directory| directory.join("openvpn")).find(is_program)
}

/// A host, as the configurations name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    /// Its address on the emulated network.
    pub(super) below: Ipv4Addr,
    /// Its address inside.
    pub(super) inside: Ipv4Addr,
}

/// What all of them share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings<'a> {
    /// The interface of each.
    pub(super) interface: &'a str,
    /// Leading bits that all addresses inside share.
    pub(super) prefix: u8,
    /// The largest packet inside, in bytes.
    pub(super) mtu: u16,
}

/// The processes. Dropping it ends them.
pub(super) struct Openvpn {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    processes: Vec<u32>,
    logs: Arc<[File]>,
}

impl Openvpn {
    /// Starts them, the first host's as the server. They connect meanwhile. Of one that ends, its host has failed.
    pub(super) fn start(
        hosts: &[Host],
        members: &[Member],
        settings: Settings<'_>,
        shared: &Arc<Shared>,
    ) -> io::Result<Openvpn> {
        let program = openvpn_program()
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no program 'openvpn' on this machine"))?;
        let (mut commands, mut logs) = (Vec::new(), Vec::new());
        for (host, (configuration, addresses)) in hosts.iter().zip(configurations(members, settings)?) {
            let log = nameless_file("openvpn-log")?;
            let addresses = addresses.map(|text| inherited(&text)).transpose()?;
            let pool = match &addresses {
                // 0 seconds: read, never written.
                Some(file) => format!("ifconfig-pool-persist {} 0\n", inherited_path(file)),
                None => String::new(),
            };
            let configuration = inherited(&(pool + &configuration))?;
            let mut command = Command::new(&program);
            command.args(["--config", &inherited_path(&configuration)]);
            command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
            host.prepare(&mut command);
            let files = [Some(configuration), addresses].into_iter().flatten().collect();
            inherit_and_die_together(&mut command, files);
            commands.push(command);
            logs.push(log);
        }
        let (hosts, shared): (Vec<HostId>, _) = (hosts.iter().map(Host::id).collect(), Arc::clone(shared));
        Openvpn::run(commands, logs.into(), move |number, status, said| {
            let last = said.lines().next_back().unwrap_or_default();
            shared.failed(hosts[number], format!("its process of OpenVPN ended: {status}; its log ends: {last}"));
        })
    }

    /// Starts the processes, of which the logs are these; if one cannot be started, those that were have ended. Of one that
    /// ends before it is to, `died` is told the number, the status, and the end of its log.
    fn run(
        commands: Vec<Command>,
        logs: Arc<[File]>,
        died: impl Fn(usize, ExitStatus, String) + Send + 'static,
    ) -> io::Result<Openvpn> {
        let (end, ended) = mpsc::channel();
        let (tell, told) = mpsc::sync_channel(1);
        // Children die with the thread that started them, so this one lasts as long as they are to.
        let said = Arc::clone(&logs);
        let thread = thread::Builder::new().name("openvpn".to_owned()).spawn(move || {
            let (children, started) = spawn(commands);
            let _ = tell.send(started);
            keep(children, &ended, |number, status| died(number, status, log_end(&said, number)));
        })?;
        // The keeper first: whatever fails from here on ends what was started.
        let mut openvpn = Openvpn { end: Some(end), thread: Some(thread), processes: Vec::new(), logs };
        let gone = || io::Error::other("the thread that starts its processes has ended");
        openvpn.processes = told.recv().map_err(|_| gone())??;
        Ok(openvpn)
    }

    /// The processes, in the order of their hosts.
    pub(super) fn processes(&self) -> &[u32] {
        &self.processes
    }

    /// The end of what a host's process has said.
    pub(super) fn log(&self, host: usize) -> String {
        log_end(&self.logs, host)
    }
}

impl Drop for Openvpn {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already been printed by it.
            let _ = thread.join();
        }
    }
}

/// Starts all, or says why one could not be started; those that were come along either way.
fn spawn(commands: Vec<Command>) -> (Vec<Child>, io::Result<Vec<u32>>) {
    let mut children = Vec::new();
    for mut command in commands {
        match command.spawn() {
            Ok(child) => children.push(child),
            Err(error) => return (children, Err(error)),
        }
    }
    let processes = children.iter().map(Child::id).collect();
    (children, Ok(processes))
}

/// The end of one of these logs.
fn log_end(logs: &[File], number: usize) -> String {
    let Some(log) = logs.get(number) else { return String::new() };
    let length = log.metadata().map_or(0, |found| found.len());
    let mut text = vec![0; length.min(QUOTED) as usize];
    let read = log.read_at(&mut text, length.saturating_sub(QUOTED)).unwrap_or(0);
    String::from_utf8_lossy(&text[..read]).trim().to_owned()
}

/// Waits for the end, and ends them; meanwhile tells which of them died, once each.
fn keep(mut children: Vec<Child>, ended: &Receiver<()>, died: impl Fn(usize, ExitStatus)) {
    let mut living = vec![true; children.len()];
    // Nothing is ever sent: what is waited for is that the other side goes.
    while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        for (number, child) in children.iter_mut().enumerate() {
            if living[number]
                && let Ok(Some(status)) = child.try_wait()
            {
                living[number] = false;
                died(number, status);
            }
        }
    }
    for child in &mut children {
        // One that has ended already cannot be killed, and that is as good.
        let _ = child.kill();
    }
    for child in &mut children {
        let _ = child.wait();
    }
}

/// A file without a name that holds this text, for a child to read.
fn inherited(text: &str) -> io::Result<Arc<OwnedFd>> {
    let mut file = nameless_file("openvpn")?;
    file.write_all(text.as_bytes())?;
    Ok(Arc::new(file.into()))
}

/// Of each member its configuration and, of the server, which client has which address.
fn configurations(members: &[Member], settings: Settings<'_>) -> io::Result<Vec<(String, Option<String>)>> {
    let Some((server, clients)) = members.split_first() else { return Ok(Vec::new()) };
    let authority = Authority::new().map_err(io::Error::other)?;
    let identity = |member: &Member, side| authority.identity(&member.name, side).map_err(io::Error::other);
    let certificate = authority.certificate();
    let with_keys = |text: String, own: Identity| {
        let Identity { key, certificate: own } = own;
        format!("{text}<ca>\n{certificate}</ca>\n<cert>\n{own}</cert>\n<key>\n{key}</key>\n")
    };
    let addresses: String = clients.iter().map(|client| format!("{},{}\n", client.name, client.inside)).collect();
    let own = identity(server, ExtendedKeyUsagePurpose::ServerAuth)?;
    let text = with_keys(server_text(server, clients, settings), own);
    let mut all = vec![(text, (!clients.is_empty()).then_some(addresses))];
    for client in clients {
        let own = identity(client, ExtendedKeyUsagePurpose::ClientAuth)?;
        all.push((with_keys(client_text(server.below, settings), own), None));
    }
    Ok(all)
}

/// What both sides say. Routes, addresses and MTU are set from outside (`…-noexec`), and the interface stays while a
/// connection is made anew (`persist-tun`).
///
/// After a long cut a client tries anew 1, 3 and 7 s after it has begun, and begins again after 10 (`tls-timeout`,
/// `hand-window`). What a TCP above sends fits below (`mssfix`, which does not count the 28 bytes of IP and UDP), and what
/// arrives late or out of order is taken, as by a network without a tunnel (`replay-window`).
fn common_text(settings: Settings<'_>) -> String {
    let Settings { interface, mtu, .. } = settings;
    let payload = mtu.saturating_sub(36);
    format!(
        "ignore-unknown-option data-ciphers disable-dco\n\
         disable-dco\n\
         data-ciphers AES-256-GCM\n\
         dev {interface}\n\
         dev-type tun\n\
         topology subnet\n\
         tun-mtu {mtu}\n\
         mssfix {payload}\n\
         replay-window 8192 60\n\
         ifconfig-noexec\n\
         route-noexec\n\
         persist-tun\n\
         persist-key\n\
         tls-timeout 1\n\
         hand-window 10\n\
         script-security 1\n\
         verb 3\n\
         mute 10\n"
    )
}

fn server_text(server: &Member, clients: &[Member], settings: Settings<'_>) -> String {
    let mask = Ipv4Addr::from(u32::MAX.checked_shl(32 - u32::from(settings.prefix)).unwrap_or(0));
    let Member { below, inside, .. } = server;
    let mut text = common_text(settings);
    // Writing into a String cannot fail.
    let _ = write!(
        text,
        "mode server\n\
         tls-server\n\
         proto udp4\n\
         local {below}\n\
         lport {PORT}\n\
         dh none\n\
         remote-cert-tls client\n\
         client-to-client\n\
         keepalive 10 60\n\
         push \"topology subnet\"\n\
         ifconfig {inside} {mask}\n"
    );
    let addresses = || clients.iter().map(|client| client.inside);
    if let (Some(first), Some(last)) = (addresses().min(), addresses().max()) {
        // OpenVPN refuses a pool of one, though it would give no other address than the one that is set for the client.
        let last = last.max(Ipv4Addr::from(u32::from(first).saturating_add(1)));
        let _ = writeln!(text, "ifconfig-pool {first} {last} {mask}");
    }
    text
}

fn client_text(server: Ipv4Addr, settings: Settings<'_>) -> String {
    let mut text = common_text(settings);
    let _ = write!(
        text,
        "client\n\
         proto udp4\n\
         remote {server} {PORT}\n\
         nobind\n\
         remote-cert-tls server\n\
         connect-retry 1 1\n\
         resolv-retry infinite\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, os::unix::net::UnixStream, time::Duration};

    use super::*;

    fn members(names: &[(&str, u8)]) -> Vec<Member> {
        let member = |(name, last): &(&str, u8)| Member {
            name: (*name).to_owned(),
            below: Ipv4Addr::new(10, 77, 0, *last),
            inside: Ipv4Addr::new(10, 78, 0, *last),
        };
        names.iter().map(member).collect()
    }

    const SETTINGS: Settings<'static> = Settings { interface: "ovpn0", prefix: 24, mtu: 1_500 };

    #[test]
    fn the_first_is_the_server_and_knows_the_address_of_each_client() {
        let members = members(&[("n1", 1), ("n2", 2), ("load", 250)]);
        let all = configurations(&members, SETTINGS).unwrap();
        let [(server, Some(addresses)), (n2, None), (load, None)] = &all[..] else { panic!("{}", all.len()) };
        assert_eq!(addresses, "n2,10.78.0.2\nload,10.78.0.250\n");
        for line in [
            "mode server\n",
            "local 10.77.0.1\n",
            "ifconfig 10.78.0.1 255.255.255.0\n",
            "ifconfig-pool 10.78.0.2 10.78.0.250 255.255.255.0\n",
            "client-to-client\n",
            "dev ovpn0\n",
        ] {
            assert!(server.contains(line), "{line}");
        }
        for client in [n2, load] {
            assert!(client.contains("remote 10.77.0.1 1194\n") && !client.contains("mode server"));
        }
    }

    #[test]
    fn the_pool_of_a_single_client_has_room_for_two() {
        let all = configurations(&members(&[("n1", 1), ("n2", 2)]), SETTINGS).unwrap();
        assert!(all[0].0.contains("ifconfig-pool 10.78.0.2 10.78.0.3 255.255.255.0\n"), "{}", all[0].0);
    }

    #[test]
    fn segments_of_tcp_fit_below_at_every_mtu() {
        for (mtu, line) in [(1_500, "mssfix 1464\n"), (1_400, "mssfix 1364\n")] {
            assert!(common_text(Settings { mtu, ..SETTINGS }).contains(line), "{line}");
        }
    }

    #[test]
    fn if_one_process_cannot_be_started_those_before_it_have_ended() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut first = Command::new("sleep");
        first.arg("1000").stdout(OwnedFd::from(theirs));
        let commands = vec![first, Command::new("/nowhere/openvpn")];
        let error = Openvpn::run(commands, Arc::new([]), |_, _, _| {}).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        // The end of what it had open.
        assert_eq!(ours.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn every_member_has_a_key_of_its_own_and_all_the_same_authority() {
        let all = configurations(&members(&[("n1", 1), ("n2", 2), ("n3", 3)]), SETTINGS).unwrap();
        let part = |text: &str, name: &str| {
            let (_, rest) = text.split_once(&format!("<{name}>\n")).unwrap();
            rest.split_once(&format!("</{name}>")).unwrap().0.to_owned()
        };
        let parts = |name| all.iter().map(|(text, _)| part(text, name)).collect::<Vec<_>>();
        assert!(parts("ca").windows(2).all(|pair| pair[0] == pair[1]));
        for name in ["cert", "key"] {
            let mut own = parts(name);
            assert!(own.iter().all(|text| text.starts_with("-----BEGIN ") && text.trim_end().ends_with("-----")));
            own.sort();
            own.dedup();
            assert_eq!(own.len(), 3, "{name}");
        }
        let again = configurations(&members(&[("n1", 1)]), SETTINGS).unwrap();
        assert_ne!(part(&again[0].0, "ca"), part(&all[0].0, "ca"), "each lab has its own");
        assert_eq!(again[0].1, None);
    }

    #[test]
    fn a_process_gets_its_files_and_no_other_does() {
        let file = inherited("read by the child\n").unwrap();
        let path = inherited_path(&file);
        let mut without = Command::new("cat");
        assert!(!without.arg(&path).stderr(Stdio::null()).status().unwrap().success(), "closed on exec");
        let mut with = Command::new("cat");
        with.arg(&path);
        inherit_and_die_together(&mut with, vec![Arc::clone(&file)]);
        assert_eq!(with.output().unwrap().stdout, b"read by the child\n");
    }
}
