//! The emulator's thread: it reads what hosts send, takes it to its link, and hands over what is due.

mod agenda;
mod changes;
mod course;
mod delivery;
mod engine;
mod entrance;
mod memory;
mod pace;
mod ports;

use std::{
    fs::File,
    io,
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
use super::{commands::Command, handle::Emulator, port::Port, routes::Routes, shared::Shared};
use crate::{
    error::NetworkError,
    sys::{Epoll, Event, Wakeup},
};

/// Above the databases and the prober, below the kernel's own interrupt threads (50).
const FIFO_PRIORITY: u8 = 20;

/// The events' number for the command channel; ports have their own.
const COMMANDS: u64 = u64::MAX;

/// How long what was diverted last is still read, at most. Nothing more comes by then, unless somebody still diverts it.
const LONGEST_FINISH_NS: u64 = 200_000_000;

/// What a started thread says of itself.
pub(crate) struct Announcement {
    /// How urgently it runs.
    pub(crate) scheduling: Scheduling,
    /// Its `/proc/thread-self/schedstat`, if the kernel keeps one: it shows that thread to whoever reads it.
    pub(crate) schedstat: Option<File>,
}

/// Starts the thread for so many hosts, with these ports, each of the host of that number. It ends when it is told to, as by
/// the network that is dropped; handles alone do not keep it.
pub(crate) fn start(
    hosts: usize,
    ports: Vec<(HostId, Port)>,
    routes: Routes,
    seed: u64,
    realtime: bool,
    memory: Option<u64>,
) -> Result<(Emulator, JoinHandle<()>, Announcement), NetworkError> {
    let failed = |action| move |source| NetworkError::Emulator { action, source };
    let wakeup = Wakeup::new().map_err(failed("make an event descriptor"))?;
    let epoll = Epoll::new().map_err(failed("make an epoll set"))?;
    epoll.add(&wakeup, COMMANDS).map_err(failed("wait for commands"))?;
    for (number, (_, port)) in (0..).zip(&ports) {
        epoll.add(port, number).map_err(failed("wait for packets"))?;
    }
    // Fails here, with a message, rather than in the thread, on a kernel without epoll_pwait2.
    epoll.wait(&mut Vec::with_capacity(1), Some(0)).map_err(failed("wait (Linux 5.11 or newer is needed)"))?;

    let (emulator, commands) = Emulator::new(hosts, wakeup);
    let shared = emulator.shared();
    let engine = Engine::new(hosts, ports, routes, seed, Limits::within(memory));
    let (announce, announced) = mpsc::sync_channel(1);
    let thread = thread::Builder::new()
        .name("emulator".to_owned())
        .spawn(move || {
            let scheduling = run_urgently(realtime.then_some(FIFO_PRIORITY));
            let schedstat = File::open("/proc/thread-self/schedstat").ok();
            let _ = announce.send(Announcement { scheduling, schedstat });
            Thread { engine, epoll, commands, shared, pace: Pace::new(scheduling), broken: Vec::new() }.run();
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
    /// Ports that can be read no more, because somebody has deleted their interface.
    broken: Vec<usize>,
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
                            self.finish();
                            return;
                        }
                    }
                    port => {
                        let port = port as usize;
                        if let Err(error) = self.engine.receive(port) {
                            self.unreadable(port, error);
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
                Command::Answer { broken } => {
                    let _ = broken.send(self.broken.clone());
                }
                Command::Open { owner, port, answer } => {
                    let number = self.engine.open(owner, port);
                    let added = self.engine.port(number).map_or(Ok(()), |port| self.epoll.add(port, number as u64));
                    let _ = answer.send(added.map(|()| number));
                }
                Command::Close { port, answer } => {
                    if let Some(open) = self.engine.port(port) {
                        self.epoll.remove(open);
                    }
                    self.broken.retain(|broken| *broken != port);
                    let _ = answer.send(self.engine.close(port));
                }
                Command::Route { routes, done } => {
                    self.engine.route(routes);
                    let _ = done.send(monotonic_ns());
                }
                Command::LetGo { done } => {
                    self.let_pass();
                    let _ = done.send(monotonic_ns());
                }
                Command::Stop => return None,
            }
        }
        Some(())
    }

    /// Tells whoever asks which hosts are gone.
    fn tell_failures(&mut self) {
        for (port, error) in self.engine.take_failures() {
            self.shared.failed(self.engine.owner(port), error.to_string());
        }
    }

    /// Reads no more from a port.
    fn unreadable(&mut self, port: usize, error: io::Error) {
        if let Some(open) = self.engine.port(port) {
            // It would be reported as readable for ever.
            self.epoll.remove(open);
        }
        self.broken.push(port);
        self.engine.fail(port, error);
    }

    /// A lab's hosts end with its links; what others have made goes on without us: all that was diverted still passes.
    fn finish(&mut self) {
        if self.engine.ports().any(|(_, port)| port.is_of_others()) {
            self.let_pass();
        }
    }

    /// Lets all go that is held, and all that is still to be read of hosts that others have made.
    fn let_pass(&mut self) {
        let ports = self.engine.ports().filter(|(_, port)| port.is_of_others());
        let ports: Vec<usize> = ports.map(|(number, _)| number).collect();
        self.engine.let_go();
        let end_ns = monotonic_ns() + LONGEST_FINISH_NS;
        for port in ports {
            while monotonic_ns() < end_ns && self.engine.receive(port).is_ok_and(|more| more) {}
        }
    }

    fn changed(&self) {
        for (shared, hold) in self.shared.longest_holds_ns.iter().zip(self.engine.longest_holds_ns()) {
            shared.store(hold, Ordering::Relaxed);
        }
    }
}
