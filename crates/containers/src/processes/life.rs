//! What is known of a container's processes at this moment, under one lock.

use std::{
    io,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use brownout_cluster::{ClusterError, NodeState, Restart};

use super::{governing::Governing, healer::Healer, main_process::Main, runtime::Engine};

/// Between two looks at whether the kernel shows what was asked for.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// All that is done to a container's processes goes through here: by whoever controls it, by its governor, by its watch.
pub(super) struct Shared {
    pub(super) name: String,
    pub(super) engine: Engine,
    life: Mutex<Life>,
    /// The governor has something to do, or has begun to do it.
    pub(super) changed: Condvar,
}

/// A container at this moment. It stands while it is paused, or throttled, or both.
pub(super) struct Life {
    /// That of the last start that is known; `None` once its end was seen.
    pub(super) main: Option<Main>,
    pub(super) healer: Healer,
    /// Somebody paused it here.
    pub(super) paused: bool,
    /// Its governor holds it until its next period.
    throttled: bool,
    pub(super) governing: Governing,
    /// When its last process ended, and the first whose successor was not told of; `CLOCK_MONOTONIC`, ns.
    died_ns: Option<u64>,
    gap_from_ns: Option<u64>,
    restart: Option<Restart>,
    /// Nobody has its hands any more.
    pub(super) ended: bool,
}

impl Shared {
    pub(super) fn new(name: String, engine: Engine, main: Option<Main>, healer: Healer) -> Shared {
        let life = Life {
            main,
            healer,
            paused: false,
            throttled: false,
            governing: Governing::default(),
            died_ns: None,
            gap_from_ns: None,
            restart: None,
            ended: false,
        };
        Shared { name, engine, life: Mutex::new(life), changed: Condvar::new() }
    }

    /// A thread that panicked while it looked at a life has broken nothing in it: each change is one assignment.
    pub(super) fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error that says why something cannot be done to the container now.
    pub(super) fn not_now(&self, doing: &'static str, state: &str, remedy: &str) -> ClusterError {
        ClusterError::NotNow { node: self.name.clone(), doing, state: state.to_owned(), remedy: remedy.to_owned() }
    }

    /// An error that says why something was not done.
    pub(super) fn refused(&self, doing: &'static str, why: impl ToString) -> ClusterError {
        ClusterError::Hands { node: self.name.clone(), doing, why: why.to_string() }
    }

    /// An error that says what the kernel does not show.
    pub(super) fn not_shown(&self, wanted: String, after: Duration) -> ClusterError {
        ClusterError::NotShown { node: self.name.clone(), wanted, after }
    }

    /// The container of this id has this main process now, unless a process of it is known that lives, or this one does not.
    pub(super) fn adopt(&self, pid: u32, id: &str) -> io::Result<()> {
        let main = Main::open(pid, id)?;
        let mut guard = self.life();
        let life = &mut *guard;
        if life.ended || life.lives() || !main.lives() {
            return Ok(());
        }
        let now_ns = brownout_base::clock::monotonic_ns();
        life.bury(now_ns);
        life.healer.aim(main.thaw())?;
        // Whom the kernel stamps with its last tick may seem to have begun before the other ended.
        let died_ns = life.died_ns.unwrap_or(now_ns);
        let at_ns = main.begun_ns().unwrap_or(now_ns).max(died_ns);
        let from_ns = *life.gap_from_ns.get_or_insert(died_ns);
        life.restart = Some(Restart { at_ns, gap_ns: at_ns.saturating_sub(from_ns), pid });
        life.main = Some(main);
        // A limit stays through starts.
        self.changed.notify_all();
        Ok(())
    }

    /// Nobody has its hands any more: it goes on, and stays as it is.
    pub(super) fn end(&self) {
        let mut life = self.life();
        let is_held = life.paused || life.throttled;
        (life.ended, life.paused, life.throttled) = (true, false, false);
        if is_held {
            // What fails here, the healer tries once more when it is dropped.
            let _ = life.let_go();
        }
        self.changed.notify_all();
    }

    /// Looks until `look` sees something or `deadline` has passed.
    pub(super) fn look_until<T>(deadline: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        let begun = Instant::now();
        loop {
            match look() {
                None if begun.elapsed() < deadline => thread::sleep(LOOK_EVERY),
                seen => return seen,
            }
        }
    }
}

impl Life {
    /// Whether its main process is there.
    pub(super) fn lives(&self) -> bool {
        self.main.as_ref().is_some_and(Main::lives)
    }

    /// Its number, while it lives.
    pub(super) fn living_pid(&self) -> Option<u32> {
        self.main.as_ref().filter(|main| main.lives()).map(|main| main.pid)
    }

    /// What the kernel shows. A container that only its governor has stopped counts as up: it is slow, not paused.
    pub(super) fn state(&self) -> NodeState {
        match self.main.as_ref().filter(|main| main.lives()) {
            None => NodeState::Down,
            Some(main) if (self.paused || !self.throttled) && main.is_standing() => NodeState::Paused,
            Some(_) => NodeState::Up,
        }
    }

    /// Begins to hold it.
    pub(super) fn hold(&mut self, fresh: bool) -> io::Result<()> {
        let Life { main, healer, .. } = self;
        main.as_mut().map_or(Ok(()), |main| main.hold(healer, fresh))
    }

    /// Holds those of its processes, too, that have come since it is held; a freezer does so by itself.
    fn hold_newcomers(&mut self) -> io::Result<()> {
        let Life { main, healer, .. } = self;
        main.as_mut().filter(|main| !main.has_freezer()).map_or(Ok(()), |main| main.hold(healer, false))
    }

    /// Lets it go on.
    pub(super) fn let_go(&mut self) -> io::Result<()> {
        let Life { main, healer, .. } = self;
        main.as_mut().map_or(Ok(()), |main| main.let_go(healer))
    }

    /// Whether the kernel shows all of it standing; if not, what it shows instead.
    pub(super) fn stands(&mut self) -> io::Result<Result<(), String>> {
        let Life { main, healer, .. } = self;
        main.as_mut().map_or(Ok(Err("it has ended".to_owned())), |main| main.stands(healer))
    }

    pub(super) fn throttled(&self) -> bool {
        self.throttled
    }

    /// For the governor: holds it, or lets it go on unless somebody paused it.
    pub(super) fn throttle(&mut self, on: bool) {
        if self.throttled == on || (on && !self.lives()) {
            // One that was started meanwhile uses all that the others may not, and so they would never go on.
            if on && self.throttled {
                let _ = self.hold_newcomers();
            }
            return;
        }
        // What cannot be held or let go now is tried again in the next period.
        self.throttled = match (on, self.paused) {
            (true, _) => self.hold(false).is_ok(),
            (false, false) => self.let_go().is_err(),
            (false, true) => false,
        };
        if on && !self.throttled && !self.paused {
            // Part of it may be held.
            let _ = self.let_go();
        }
    }

    /// Its main process has ended: what held it is taken back, lest what is left of it stands for ever.
    pub(super) fn bury(&mut self, at_ns: u64) {
        if self.main.is_none() {
            return;
        }
        // Of a group that went with its processes nothing is left to thaw.
        if (self.paused || self.throttled) && self.let_go().is_err() {
            self.healer.forget();
        }
        (self.paused, self.throttled, self.main) = (false, false, None);
        self.governing.died();
        self.died_ns = Some(at_ns);
        self.gap_from_ns.get_or_insert(at_ns);
        // A start that nobody was told of is over: it is told with the next one.
        self.restart = None;
    }

    /// The last start that was not told of.
    pub(super) fn take_restart(&mut self) -> Option<Restart> {
        let restart = self.restart.take()?;
        self.gap_from_ns = None;
        Some(restart)
    }
}
