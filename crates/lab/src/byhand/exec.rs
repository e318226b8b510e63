//! Programs in hosts of a lab, on the client's own stdin, stdout and stderr.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    os::{
        fd::OwnedFd,
        unix::{
            net::UnixStream,
            process::{CommandExt, ExitStatusExt},
        },
    },
    path::Path,
    process::{Child, Command, ExitStatus},
    sync::PoisonError,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open, set_parent_process_death_signal, waitpid,
    },
};

use super::{Failure, lab::Lab};

/// What a program whose client has gone gets to end cleanly.
const GRACE: Duration = Duration::from_secs(1);
/// Shells say this of a program that is not there.
const NOT_FOUND: u8 = 127;

/// A program in a host: its network, its name table, its clock; the rights of the lab's first process.
pub(super) fn program(
    lab: &Lab,
    host: &str,
    command: &[String],
    environment: &BTreeMap<String, String>,
    directory: &Path,
) -> Result<Command, Failure> {
    let name = lab.host(host)?;
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::wrong("no program was given; write for example: brownout exec n1 -- ip addr"));
    };
    let mut prepared = Command::new(program);
    prepared.args(arguments).env_clear().envs(environment).env("BROWNOUT_HOST", &name);
    // Nodes have clocks of their own, and what runs on one sees it.
    if let (Some(clock), Some(object), true) = (lab.testbed.controls.clocks.get(&name), &lab.object, lab.is_node(&name))
    {
        prepared.envs(clock.environment(object));
    }
    // A directory that the lab's own mounts cover is not there.
    prepared.current_dir(if directory.is_dir() { directory } else { Path::new("/") });
    let inside = lab.testbed.network.host(&name).ok_or_else(|| Failure::failed(format!("{name} has no network")))?;
    inside.prepare(&mut prepared);
    let dies_with_lab = lab.is_attached();
    // SAFETY: both only make a system call.
    unsafe {
        prepared.pre_exec(move || {
            // A group of its own, which can be ended as one.
            libc::setsid();
            if dies_with_lab {
                // No namespace ends it with the lab. The thread that starts it waits for its end.
                // With a valid signal it cannot fail.
                let _ = set_parent_process_death_signal(Some(Signal::KILL));
            }
            Ok(())
        });
    }
    Ok(prepared)
}

/// Runs a program with these streams to its end; passes on the signals that the client sends, one byte each. A client
/// that goes away takes the program with it.
pub(super) fn run(lab: &Lab, mut command: Command, streams: Vec<OwnedFd>, client: &UnixStream) -> Result<u8, Failure> {
    let program = command.get_program().to_string_lossy().into_owned();
    let Ok([stdin, stdout, stderr]) = <[OwnedFd; 3]>::try_from(streams) else {
        return Err(Failure::wrong("the request came without the client's stdin, stdout and stderr"));
    };
    let child = command.stdin(stdin).stdout(stdout).stderr(stderr).spawn();
    // The copies here would keep a pipe open that the client waits for.
    drop(command);
    let mut child = child.map_err(|error| {
        let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_FOUND - 1 };
        Failure { message: format!("cannot run '{program}' in the lab: {error}"), code }
    })?;
    lab.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(child.id());
    let attended = attend(&mut child, client);
    if attended.is_err() {
        signal(&child, libc::SIGKILL);
    }
    let status = child.wait().map_err(|error| Failure::failed(format!("'{program}': {error}")))?;
    attended?;
    Ok(code(status))
}

/// Waits for those whom programs have left behind: their parent is the lab's first process then, which did not start them.
pub(super) fn bury(lab: &Lab) {
    let sessions = lab.sessions.lock().unwrap_or_else(PoisonError::into_inner);
    // Where the lab's first process is not that of a namespace, orphans are the machine's.
    if sessions.is_empty() || lab.is_attached() {
        return;
    }
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // State, parent, group, session: behind the name, which may hold anything (proc_pid_stat(5)).
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().take(4).collect();
        let [state, parent, _, session] = fields[..] else { continue };
        let left = state == "Z"
            && parent == "1"
            && session.parse().is_ok_and(|session| session != pid && sessions.contains(&session));
        if left {
            // A child of this process that nobody else waits for: those have a session of their own.
            let _ = waitpid(Pid::from_raw(pid.cast_signed()), WaitOptions::NOHANG);
        }
    }
}

/// As shells have it: 128 and the signal for what a signal has ended.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// The group is that of a child which was not waited for yet, so its number is nobody else's. A number that names no signal
/// does nothing.
fn signal(child: &Child, number: i32) {
    let _ = Signal::from_named_raw(number).map(|signal| kill_process_group(Pid::from_child(child), signal));
}

fn attend(child: &mut Child, mut client: &UnixStream) -> io::Result<()> {
    let ended = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let mut gone: Option<Instant> = None;
    loop {
        let mut waiting = vec![PollFd::new(&ended, PollFlags::IN)];
        // A client that has gone has nothing more to say.
        waiting.extend(gone.is_none().then(|| PollFd::new(client, PollFlags::IN)));
        let patience = gone.map(|since| GRACE.saturating_sub(since.elapsed()));
        let patience = patience.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
        match poll(&mut waiting, patience.as_ref()) {
            Err(Errno::INTR) => continue,
            polled => polled?,
        };
        if !waiting[0].revents().is_empty() {
            return Ok(());
        }
        if gone.is_some_and(|since| since.elapsed() >= GRACE) {
            signal(child, libc::SIGKILL);
            return Ok(());
        }
        if waiting.get(1).is_some_and(|client| !client.revents().is_empty()) {
            let mut bytes = [0; 16];
            match client.read(&mut bytes) {
                Ok(read) if read > 0 => bytes[..read].iter().for_each(|number| signal(child, i32::from(*number))),
                _ => {
                    signal(child, libc::SIGHUP);
                    signal(child, libc::SIGCONT);
                    gone = Some(Instant::now());
                }
            }
        }
    }
}
