//! The emulator's thread: it reads what hosts send, takes it to its link, and hands over what is due.

mod agenda;
mod engine;
mod entrance;
mod memory;
mod pace;

use std::{
    fs::File,
    net::{Ipv4Addr, Ipv6Addr},
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{self, Receiver},
    },
    thread::{self, JoinHandle},
};

use brownout_base::{HostId, clock::monotonic_ns};
use brownout_machine::{Scheduling, run_urgently};

use self::{engine::Engine, memory::Limits, pace::Pace};
use crate::{
    control::{Command, Emulator, Shared},
    error::NetworkError,
    sys::{Epoll, Event, Tun, Wakeup},
};

/// Above the databases and the prober, below the kernel's own interrupt threads (50).
const FIFO_PRIORITY: u8 = 20;

/// The events' number for the command channel; hosts have their own.
const COMMANDS: u64 = u64::MAX;

/// What a started thread says of itself.
pub(crate) struct Announcement {
    /// How urgently it runs.
    pub(crate) scheduling: Scheduling,
    /// Its `/proc/thread-self/schedstat`, if the kernel keeps one: it shows that thread to whoever reads it.
    pub(crate) schedstat: Option<File>,
}

/// Starts the thread for hosts with these TUNs and addresses, one of each family. It ends when it is told to, as by the
/// network that is dropped; handles alone do not keep it.
pub(crate) fn start(
    tuns: Vec<Tun>,
    addresses: &[(Ipv4Addr, Ipv6Addr)],
    seed: u64,
    realtime: bool,
    memory: Option<u64>,
) -> Result<(Emulator, JoinHandle<()>, Announcement), NetworkError> {
    let failed = |action| move |source| NetworkError::Emulator { action, source };
    let wakeup = Wakeup::new().map_err(failed("make an event descriptor"))?;
    let epoll = Epoll::new().map_err(failed("make an epoll set"))?;
    epoll.add(&wakeup, COMMANDS).map_err(failed("wait for commands"))?;
    for (host, tun) in (0..).zip(&tuns) {
        epoll.add(tun, host).map_err(failed("wait for packets"))?;
    }
    // Fails here, with a message, rather than in the thread, on a kernel without epoll_pwait2.
    epoll.wait(&mut Vec::with_capacity(1), Some(0)).map_err(failed("wait (Linux 5.11 or newer is needed)"))?;

    let (emulator, commands) = Emulator::new(tuns.len(), wakeup);
    let shared = emulator.shared();
    let engine = Engine::new(tuns, addresses, seed, Limits::within(memory));
    let (announce, announced) = mpsc::sync_channel(1);
    let thread = thread::Builder::new()
        .name("emulator".to_owned())
        .spawn(move || {
            let scheduling = run_urgently(realtime.then_some(FIFO_PRIORITY));
            let schedstat = File::open("/proc/thread-self/schedstat").ok();
            let _ = announce.send(Announcement { scheduling, schedstat });
            Thread { engine, epoll, commands, shared, pace: Pace::new(scheduling) }.run();
        })
        .map_err(failed("start its thread"))?;
    let announcement = announced.recv().map_err(|_| NetworkError::EmulatorGone)?;
    Ok((emulator, thread, announcement))
}

struct Thread {
    engine: Engine,
    epoll: Epoll,
    commands: Receiver<Command>,
    shared: Arc<Shared>,
    pace: Pace,
}

impl Thread {
    fn run(mut self) {
        let mut events: Vec<Event> = Vec::with_capacity(64);
        loop {
            self.engine.release_due(monotonic_ns());
            self.tell_failures();
            // Asked again, because releasing takes time and the wait counts from here.
            let now = monotonic_ns();
            let wait = self.engine.next_release_ns().map(|release| self.pace.wait_ns(now, release));
            // Only a bug could make this fail; ending cuts all links, which nobody can overlook.
            if self.epoll.wait(&mut events, wait).is_err() {
                return;
            }
            if let (true, Some(asked @ 1..)) = (events.is_empty(), wait) {
                self.pace.waited(now, asked, monotonic_ns());
            }
            for event in &events {
                match event.data.u64() {
                    COMMANDS => {
                        self.shared.wakeup.clear();
                        if self.obey().is_none() {
                            return;
                        }
                    }
                    host => {
                        let host = host as usize;
                        if let Err(error) = self.engine.receive(host) {
                            // It would be reported as readable for ever.
                            self.epoll.remove(self.engine.tun(host));
                            self.engine.fail(host, error);
                        }
                    }
                }
            }
        }
    }

    /// Does all that was asked for; `None` when told to end. Whoever asked may have gone: then the
    /// answer goes nowhere.
    fn obey(&mut self) -> Option<()> {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Add { id, links, impairment, done } => {
                    self.engine.add(id, &links, impairment);
                    self.changed();
                    let _ = done.send(monotonic_ns());
                }
                Command::Amend { id, impairment, done } => {
                    self.engine.amend(id, impairment);
                    self.changed();
                    let _ = done.send(monotonic_ns());
                }
                Command::Remove { id, done } => {
                    self.engine.remove(id);
                    self.changed();
                    let _ = done.send(monotonic_ns());
                }
                Command::Effective { link, answer } => {
                    let _ = answer.send(self.engine.effective(link));
                }
                Command::TakeCounters { fresh, answer } => {
                    let _ = answer.send(self.engine.take_counters(fresh));
                }
                Command::Reseed { seed, done } => {
                    self.engine.reseed(seed);
                    let _ = done.send(monotonic_ns());
                }
                Command::Look { look, done } => {
                    self.engine.look_for(look);
                    let _ = done.send(monotonic_ns());
                }
                Command::Sightings { answer } => {
                    let _ = answer.send(self.engine.sightings());
                }
                Command::Unroutable { answer } => {
                    let _ = answer.send(self.engine.unroutable());
                }
                Command::Stop => return None,
            }
        }
        Some(())
    }

    /// Tells whoever asks which hosts are gone.
    fn tell_failures(&mut self) {
        for (host, error) in self.engine.take_failures() {
            self.shared.failed(HostId(host as u16), error.to_string());
        }
    }

    fn changed(&self) {
        for (shared, hold) in self.shared.longest_holds_ns.iter().zip(self.engine.longest_holds_ns()) {
            shared.store(hold, Ordering::Relaxed);
        }
    }
}
