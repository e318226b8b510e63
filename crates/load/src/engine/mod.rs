//! The load engine: threads that each own their keys, their share of the schedule, and their connections.
//!
//! A thread is one event loop ([`worker::Worker`]); nothing is shared on its hot path. The engine's owner queries a
//! thread by sending it a closure and waking its epoll, which costs the thread nothing in between.

mod answer;
mod answer_etcd;
mod connection;
mod driven;
mod ending;
mod flow;
mod leader;
mod ledger;
mod merge;
mod operations;
mod page;
mod samples;
mod send;
mod send_driven;
mod start;
mod thread;
mod waiting;
mod watching;
mod wheel;
mod worker;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use crate::{
    Balance, Balancing, Bucket, ConnectionEvent, DataPath, EngineConfig, EtcdLoad, KeyValue, Live, LoadError, Pace,
    PaceChange, Progress, Refusal, Workload, control,
    etcd::EtcdWork,
    histogram,
    limit::Limit,
    ring::Replicas,
    workload::{FILLING, FillProgress, KeyValueLoad, MIX},
};
use brownout_base::clock::{monotonic_ns, thread_cpu_ns};
use merge::Merge;
use thread::{Thread, spawn};
use worker::{Final, Worker};

/// Time limit for reading the token ring.
const RING_LIMIT: Duration = Duration::from_secs(15);
/// Time between setting a pace and its start, so that all threads begin its schedule together.
const PACE_LEAD_NS: u64 = 1_000_000;

/// How often to check that a connecting thread is still alive.
const READY_POLL: Duration = Duration::from_millis(200);

/// A running load. Dropping it ends the load at once, without waiting for open operations.
pub struct Engine {
    threads: Vec<Thread>,
    merge: Mutex<Merge>,
    coordinators: Vec<String>,
    flows: usize,
    /// For a key-value workload: its number of keys, and how far they are written.
    filling: Option<(u64, Arc<FillProgress>)>,
}

impl Engine {
    /// [`Engine::launch`] for the short-form workload, which has [`Pace::Populate`], and one pace for reads and writes by weight
    /// ([`Engine::set_pace`]) or one for each ([`KeyValue::apart`]).
    ///
    /// # Errors
    /// Those of [`Engine::launch`], and an impossible workload.
    pub fn start(config: EngineConfig, workload: KeyValue) -> Result<Engine, LoadError> {
        Engine::start_unless(config, workload, &|| false)
    }

    /// [`Engine::start`], given up as soon as `interrupted` returns true; it is polled several times a second.
    ///
    /// # Errors
    /// Those of [`Engine::start`], and [`LoadError::Interrupted`].
    pub fn start_unless(
        config: EngineConfig,
        workload: KeyValue,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Engine, LoadError> {
        config.check()?;
        workload.check()?;
        let keys = shared_by(workload.population, &config)?;
        let progress = Arc::new(FillProgress::default());
        let load = KeyValueLoad { workload, seed: config.seed, progress: Arc::clone(&progress) };
        let mut engine = Engine::launch_unless(config, Arc::new(load), interrupted)?;
        engine.filling = Some((keys, progress));
        Ok(engine)
    }

    /// [`Engine::launch_unless`] for the load of an etcd ([`DataPath::Etcd`]), which has [`Pace::Populate`], and one pace
    /// for all operations by weight ([`Engine::set_pace`]) or one for each ([`EtcdLoad::apart`]). Its watches begin before
    /// it returns.
    ///
    /// # Errors
    /// Those of [`Engine::launch_unless`], and an impossible load.
    pub fn start_etcd_unless(
        config: EngineConfig,
        load: EtcdLoad,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Engine, LoadError> {
        let config = EngineConfig { path: DataPath::Etcd, ..config };
        config.check()?;
        load.check()?;
        let keys = shared_by(load.population, &config)?;
        let threads = config.threads_of_all();
        if load.watchers > 0 && threads > 1 {
            return Err(LoadError::Config {
                what: format!("{threads} load threads, of which each would have to know what the others put"),
                remedy: "use one thread, or no watchers",
            });
        }
        let progress = Arc::new(FillProgress::default());
        let work = EtcdWork { load, seed: config.seed, progress: Arc::clone(&progress) };
        let mut engine = Engine::launch_unless(config, Arc::new(work), interrupted)?;
        engine.filling = Some((keys, progress));
        Ok(engine)
    }

    /// Connects every thread to every coordinator and prepares the statements on every connection. Nothing else is sent
    /// until a pace is set.
    ///
    /// The schema must exist ([`control::run_ddl`]).
    ///
    /// # Errors
    /// An impossible configuration; a coordinator that does not answer a step of the handshake within 5 s and four
    /// timeouts, refuses the credentials or a statement; a hook that fails; with
    /// [`Balancing::TokenAware`], a ring that cannot be read.
    pub fn launch(config: EngineConfig, workload: Arc<dyn Workload>) -> Result<Engine, LoadError> {
        Engine::launch_unless(config, workload, &|| false)
    }

    /// [`Engine::launch`], given up as soon as `interrupted` returns true; it is polled several times a second.
    ///
    /// # Errors
    /// Those of [`Engine::launch`], and [`LoadError::Interrupted`].
    pub fn launch_unless(
        config: EngineConfig,
        workload: Arc<dyn Workload>,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Engine, LoadError> {
        config.check()?;
        let (operations, flows) = (workload.operations(), workload.flows());
        if operations.is_empty()
            || operations.len() > usize::from(u16::MAX)
            || !(1..=usize::from(u16::MAX)).contains(&flows)
        {
            return Err(LoadError::Config {
                what: format!("a workload of {} operations in {flows} flows", operations.len()),
                remedy: "it needs 1 to 65,535 of each",
            });
        }
        let replicas = match (config.path, config.balancing) {
            // The driver reads the ring itself, and etcd has none.
            (DataPath::Driver | DataPath::Etcd, _) | (_, Balancing::RoundRobin | Balancing::Leader) => Vec::new(),
            (DataPath::Own, Balancing::TokenAware) => {
                let limit = Limit { time: RING_LIMIT, interrupted };
                let ring =
                    |table| control::token_ring(&config.wire, &config.coordinators, &config.thread_start, table, limit);
                let rings = workload.tables().iter().map(ring).collect::<Result<Vec<_>, _>>()?;
                let nearest = &config.coordinators[..config.tier_ends()[0]];
                rings.into_iter().map(|ring| Replicas::new(ring, nearest)).collect()
            }
        };
        let coordinators: Vec<String> = config.coordinators.iter().map(|node| node.name.clone()).collect();
        let bucket_ns = config.bucket.as_nanos() as u64;
        let (names, watches) = (coordinators.clone(), workload.watched().is_some());
        let merge = Merge::new(config.epoch_ns, bucket_ns, names, operations, watches, config.threads);
        let merge = Mutex::new(merge);
        let mut engine = Engine { threads: Vec::new(), merge, coordinators, flows, filling: None };
        let shared = Arc::new(worker::Setup { config, workload, replicas });
        let (ready, readiness) = mpsc::channel();
        for index in 0..shared.config.threads {
            engine.threads.push(spawn(index, Arc::clone(&shared), ready.clone())?);
        }
        drop(ready);
        for _ in &engine.threads {
            loop {
                match readiness.recv_timeout(READY_POLL) {
                    Ok(result) => break result?,
                    Err(_) if interrupted() => {
                        return Err(LoadError::Interrupted { what: "connecting the load".to_owned() });
                    }
                    // A thread that panicked reports nothing.
                    Err(_) => engine.alive()?,
                }
            }
        }
        Ok(engine)
    }

    /// Queries every thread; those that have ended are left out ([`Engine::health`] reports them).
    fn ask<T: Send + 'static>(&self, question: impl Fn(&mut Worker) -> T + Clone + Send + 'static) -> Vec<T> {
        let answers: Vec<_> = self.threads.iter().map(|thread| thread.post(question.clone())).collect();
        answers.into_iter().filter_map(|answer| answer.recv().ok()).collect()
    }

    /// Sets a new pace for the first flow and idles the others. Operations scheduled under the old pace are still
    /// finished and accounted.
    ///
    /// # Errors
    /// A rate or a number of users that is out of range, [`Pace::Populate`] for another workload than a [`KeyValue`]
    /// and an [`EtcdLoad`]; a load thread that has died.
    pub fn set_pace(&self, pace: Pace) -> Result<PaceChange, LoadError> {
        self.set_pace_from(0, pace)
    }

    /// The same from a time on; see [`Engine::set_paces_from`].
    ///
    /// # Errors
    /// Those of [`Engine::set_pace`].
    pub fn set_pace_from(&self, from_ns: u64, pace: Pace) -> Result<PaceChange, LoadError> {
        let mut paces = vec![Pace::Idle; self.flows];
        let flow = if matches!(pace, Pace::Populate { .. }) && self.filling.is_some() { FILLING } else { MIX };
        paces[flow] = pace;
        self.set_paces_from(from_ns, paces)
    }

    /// Sets new paces, one for every flow of the workload, all from the same time on.
    ///
    /// # Errors
    /// Those of [`Engine::set_pace`]; another number of paces than the workload has flows.
    pub fn set_paces(&self, paces: Vec<Pace>) -> Result<PaceChange, LoadError> {
        self.set_paces_from(0, paces)
    }

    /// The same from a time on CLOCK_MONOTONIC on, if that is not too soon: a schedule then has exactly the operations
    /// intended before it. Until then the current paces stay in force, and so do those set to begin earlier; those set
    /// to begin later are discarded.
    ///
    /// # Errors
    /// Those of [`Engine::set_paces`].
    pub fn set_paces_from(&self, from_ns: u64, paces: Vec<Pace>) -> Result<PaceChange, LoadError> {
        let refuse = |what: String, remedy| Err(LoadError::Config { what, remedy });
        if paces.len() != self.flows {
            let what = format!("{} paces for a workload of {} flows", paces.len(), self.flows);
            return refuse(what, "give one for every flow");
        }
        paces.iter().try_for_each(Pace::check)?;
        let fills = |pace: &Pace| matches!(pace, Pace::Populate { .. });
        match &self.filling {
            Some((keys, progress)) => progress.set(paces.get(FILLING).is_some_and(fills).then_some(*keys)),
            None if paces.iter().any(fills) => {
                return refuse("this workload has no population".into(), "use a closed loop over a finite flow");
            }
            None => {}
        }
        let at_ns = from_ns.max(monotonic_ns() + PACE_LEAD_NS);
        let starts = self.ask(move |worker| worker.change_paces(at_ns, paces.clone()));
        self.alive()?;
        let (first, last) = (starts.iter().min(), starts.iter().max());
        Ok(PaceChange { at_ns: first.copied().unwrap_or(at_ns), by_ns: last.copied().unwrap_or(at_ns) })
    }

    /// Whether all flows have ended ([`crate::ThreadWorkload::draw`] has said so, or their pace is idle) and no
    /// operation is open. False if a load thread has died.
    pub fn exhausted(&self) -> bool {
        let told = self.ask(|worker| worker.is_exhausted());
        told.len() == self.threads.len() && told.into_iter().all(|exhausted| exhausted)
    }

    /// How far [`Pace::Populate`] has come since that pace was last set.
    pub fn populated(&self) -> Progress {
        let Some((_, progress)) = &self.filling else { return Progress::default() };
        let tally = progress.tally();
        let refused = tally.refused.map(|(coordinator, reason)| Refusal {
            coordinator: self.coordinators.get(usize::from(coordinator)).cloned().unwrap_or_default(),
            reason,
        });
        Progress { done: tally.done, total: tally.total, retried: tally.retried, refused }
    }

    /// Every bucket that changed since the last call, complete: it replaces the earlier one with the same `start_ns`.
    pub fn drain(&self) -> Vec<Bucket> {
        // The lock is held throughout, so that pages of two calls cannot get out of order.
        let mut merge = self.merge();
        // One horizon for all threads: a bucket is settled when no thread can add to it.
        let horizon_ns = self.ask(|worker| worker.horizon_ns()).into_iter().min().unwrap_or(0);
        let part = move |worker: &mut Worker| {
            worker.stop_waiting(monotonic_ns());
            worker.drain(horizon_ns)
        };
        let answers: Vec<_> = self.threads.iter().map(|thread| thread.post(part)).collect();
        merge.take(answers.into_iter().map(|answer| answer.recv().unwrap_or_default()).collect())
    }

    fn merge(&self) -> MutexGuard<'_, Merge> {
        self.merge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happened since the last call.
    pub fn live(&self) -> Live {
        let mut live = Live {
            offered: 0,
            delivered: 0,
            failed: 0,
            timed_out: 0,
            never_sent: 0,
            response: histogram(),
            coordinators: self.coordinators.iter().map(|name| (name.clone(), histogram())).collect(),
            in_flight: 0,
            waiting: 0,
        };
        for (recent, balance) in self.ask(|worker| (worker.recent(), worker.balance())) {
            live.offered += recent.offered;
            live.delivered += recent.delivered;
            live.failed += recent.failed;
            live.timed_out += recent.timed_out;
            live.never_sent += recent.never_sent;
            live.in_flight += balance.in_flight;
            live.waiting += balance.waiting;
            for ((_, whole), part) in live.coordinators.iter_mut().zip(&recent.response) {
                // Both grow as they need to, so adding cannot fail.
                let _ = whole.add(part);
                let _ = live.response.add(part);
            }
        }
        live
    }

    /// The state of all operations since the start.
    pub fn balance(&self) -> Balance {
        let mut sum = Balance::default();
        self.ask(|worker| worker.balance()).iter().for_each(|part| sum.add(part));
        sum.lost_threads.extend(self.threads.iter().filter(|thread| thread.is_dead()).map(Thread::reason));
        sum
    }

    /// Connection events since the last call, in order of time.
    pub fn connection_events(&self) -> Vec<ConnectionEvent> {
        let mut events: Vec<_> = self.ask(|worker| worker.connection_events()).into_iter().flatten().collect();
        events.sort_by_key(|event| event.at_ns);
        events
    }

    /// CPU time used by the engine's threads so far, in ns.
    pub fn cpu_ns(&self) -> u64 {
        self.ask(|_| thread_cpu_ns()).into_iter().sum()
    }

    /// Whether every thread is alive, and a requested population can be completed.
    ///
    /// # Errors
    /// The first thread that has died, and why; a write of the population that a coordinator refused for good, until
    /// another pace is set.
    pub fn health(&self) -> Result<(), LoadError> {
        self.alive()?;
        match self.populated().refused {
            Some(Refusal { coordinator, reason }) => Err(LoadError::Refused { coordinator, reason }),
            None => Ok(()),
        }
    }

    fn alive(&self) -> Result<(), LoadError> {
        match self.threads.iter().position(Thread::is_dead) {
            Some(thread) => Err(LoadError::ThreadDied { thread, reason: self.threads[thread].reason() }),
            None => Ok(()),
        }
    }

    /// Schedules nothing more, waits at most `grace` for what is scheduled, and ends the threads.
    ///
    /// With a grace longer than the timeout every operation ends by itself. What is cut short ends as never sent or
    /// as [`crate::ErrorClass::Abandoned`]; late answers are not waited for. Returns the buckets that changed since
    /// the last [`Engine::drain`], all settled, and the balance sheet, in which nothing waits or is in flight.
    ///
    /// If a thread has died, its part of both is missing; [`Balance::lost_threads`] says why, and the sheet does not
    /// balance.
    pub fn stop(mut self, grace: Duration) -> (Vec<Bucket>, Balance) {
        let deadline_ns = monotonic_ns().saturating_add(grace.as_nanos() as u64);
        drop(self.ask(move |worker| worker.stop(deadline_ns)));
        let mut balance = Balance::default();
        let mut parts = Vec::new();
        for thread in &mut self.threads {
            let ended = thread.handle.take().map(JoinHandle::join);
            let part = ended.and_then(Result::ok).flatten().unwrap_or_else(|| Final {
                balance: Balance { lost_threads: vec![thread.reason()], ..Balance::default() },
                parts: Vec::new(),
            });
            balance.add(&part.balance);
            parts.push(part.parts);
        }
        let buckets = self.merge().take(parts);
        (buckets, balance)
    }
}

/// How many of these keys are this part's. Refuses what leaves a thread without any.
fn shared_by(keys: u64, config: &EngineConfig) -> Result<u64, LoadError> {
    let threads = config.threads_of_all();
    if threads as u64 <= keys {
        return Ok((0..config.threads).map(|thread| config.share_of(thread, keys)).sum());
    }
    Err(LoadError::Config {
        what: format!("{threads} threads cannot share {keys} keys"),
        remedy: "use fewer threads or a larger population",
    })
}

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.ask(|worker| worker.stop(0)));
        for handle in self.threads.iter_mut().filter_map(|thread| thread.handle.take()) {
            // How it ended no longer matters.
            drop(handle.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Answer, Arrivals, Consistency, Drawn, Ending, Meaning, Parameters, Received, Request, Route, Sending,
        ThreadWorkload, Ticket, late_patience_ns,
        stub::{self, Behaviour, Stub},
    };

    /// Two operations, the second only when the first is over.
    struct OneByOne;

    #[derive(Default)]
    struct Turns {
        drawn: u64,
        open: bool,
    }

    impl Workload for OneByOne {
        fn operations(&self) -> Vec<String> {
            vec!["write".to_owned()]
        }

        fn statements(&self) -> Vec<String> {
            vec!["INSERT INTO stub.kv (key, value) VALUES (?, ?)".to_owned()]
        }

        fn thread(&self, _: usize, _: usize) -> Box<dyn ThreadWorkload> {
            Box::new(Turns::default())
        }
    }

    impl ThreadWorkload for Turns {
        fn draw(&mut self, _: usize) -> Option<Drawn> {
            if self.open || self.drawn == 2 {
                return None;
            }
            self.open = true;
            self.drawn += 1;
            Some(Drawn { ticket: Ticket(self.drawn), operation: 0, partitions: 1 })
        }

        fn more_later(&self, _: usize) -> bool {
            self.open
        }

        fn route(&self, _: Ticket, _: bool) -> Route {
            Route::Any
        }

        fn request(&mut self, ticket: Ticket, _: &Sending, request: Request<'_>) {
            let mut values = request.execute(0, &Parameters::new(Consistency::One));
            values.value(&ticket.0.to_be_bytes()).value(b"value");
        }

        fn answer(&mut self, _: Ticket, _: &Answer<'_>, _: &Received) -> Meaning {
            Meaning::done(1, 1)
        }

        fn end(&mut self, _: Ticket, _: &Ending) {}

        fn release(&mut self, _: Ticket) {
            self.open = false;
        }
    }

    fn wait_until(done: impl Fn() -> bool) {
        let start = std::time::Instant::now();
        while !done() {
            assert!(start.elapsed() < Duration::from_secs(20), "waited for 20 s");
            std::thread::sleep(READY_POLL / 100);
        }
    }

    #[test]
    fn an_answer_that_never_comes_does_not_hold_back_for_ever_what_waits_for_its_operation() {
        let stub = Stub::local(1).unwrap();
        stub.set(0, Behaviour::answering(stub::Answer::Silence));
        let timeout = Duration::from_millis(50);
        let config = EngineConfig { timeout, ..EngineConfig::new(stub.coordinators()) };
        let engine = Engine::launch(config, Arc::new(OneByOne)).unwrap();
        engine.set_pace(Pace::Closed { threads: 1 }).unwrap();
        wait_until(|| engine.balance().timed_out == 1);
        stub.set(0, Behaviour::default());
        drop(engine.drain());
        assert!(!engine.exhausted() && engine.balance().scheduled == 1, "a late answer may come yet");
        // The second has all the time it needs: only what has ended by now is given up.
        let later_ns = monotonic_ns() + late_patience_ns(timeout.as_nanos() as u64);
        engine.threads[0].post(move |worker| worker.stop_waiting(later_ns)).recv().unwrap();
        wait_until(|| engine.exhausted());
        let (_, balance) = engine.stop(Duration::from_secs(10));
        assert!(balance.balances() && balance.scheduled == 2 && balance.timed_out >= 1, "{balance:#?}");
    }

    #[test]
    fn an_account_without_that_of_a_dead_thread_does_not_balance_and_says_why() {
        let stub = Stub::local(1).unwrap();
        let workload = KeyValue {
            keyspace: "stub".into(),
            table: "kv".into(),
            replication: 1,
            data_centres: Default::default(),
            consistency: Consistency::One,
            read: 1,
            write: 1,
            population: 100,
            value_size: 16,
            timestamps: Default::default(),
        };
        let config = EngineConfig { threads: 2, ..EngineConfig::new(stub.coordinators()) };
        let engine = Engine::start(config, workload).unwrap();
        let rate = brownout_units::Rate::per_second(1_000.0).unwrap();
        engine.set_pace(Pace::Open { rate, arrivals: Arrivals::Constant }).unwrap();
        assert!(engine.balance().balances());
        let reason = "the kernel has had enough";
        drop(engine.threads[1].post(move |worker| {
            worker.fatal = Some(LoadError::Interrupted { what: reason.to_owned() });
        }));
        while !engine.threads[1].is_dead() {
            std::thread::sleep(READY_POLL / 100);
        }
        assert!(matches!(engine.health(), Err(LoadError::ThreadDied { thread: 1, .. })));
        assert!(!engine.balance().balances());
        let (_, balance) = engine.stop(Duration::from_secs(10));
        assert!(!balance.balances(), "{balance:#?}");
        assert!(balance.lost_threads.len() == 1 && balance.lost_threads[0].contains(reason), "{balance:#?}");
    }
}
