//! The data path through the `scylla` driver as applications use it, with its load balancing, pools and codec.
//!
//! A load thread owns one session on a runtime of its own, and everything runs on that one thread. What this path costs
//! more than our own connections is the cost of the driver, except for about half a microsecond that it takes to turn
//! our requests into the driver's. The driver neither retries nor times out here: the engine does both.

mod policy;
mod reply;
mod request;

use std::{
    io,
    net::SocketAddr,
    num::NonZeroUsize,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use brownout_base::clock::monotonic_ns;
use scylla::{
    client::{PoolSize, execution_profile::ExecutionProfile, session::Session, session_builder::SessionBuilder},
    policies::{
        host_filter::AllowListHostFilter, load_balancing::DefaultPolicy, retry::FallthroughRetryPolicy,
        speculative_execution::SpeculativeExecutionPolicy,
    },
    statement::prepared::PreparedStatement,
};
use tokio::{io::unix::AsyncFd, runtime::Runtime, sync::Notify};

use crate::{
    Balancing, Compression, Credentials, EngineConfig, LoadError, RequestError, Tls,
    sys::{Epoll, Timer},
    tls_reason,
    wire::{Statements, Version},
};
use policy::{ASKED, Asking, Recording};
pub(crate) use reply::{Failed, Reply};
use request::Asked;

/// No coordinator was chosen yet.
pub(crate) const NOBODY: u16 = u16::MAX;

/// A request that the driver has completed.
pub(crate) struct Completion {
    /// As it was submitted.
    pub(crate) slot: u32,
    /// When the driver gave the answer, on CLOCK_MONOTONIC.
    pub(crate) at_ns: u64,
    pub(crate) reply: Result<Reply, Failed>,
}

/// Where the driver's tasks put their results.
#[derive(Default)]
struct Done {
    list: Mutex<Vec<Completion>>,
    news: Notify,
}

/// The coordinator that a request went to: its index in the configuration, or [`NOBODY`].
#[derive(Debug, Clone)]
pub(crate) struct Chosen(Arc<AtomicU16>);

impl Chosen {
    pub(crate) fn new() -> Self {
        Chosen(Arc::new(AtomicU16::new(NOBODY)))
    }

    pub(crate) fn get(&self) -> Option<u16> {
        Some(self.0.load(Ordering::Relaxed)).filter(|place| *place != NOBODY)
    }

    pub(crate) fn set(&self, place: u16) {
        self.0.store(place, Ordering::Relaxed);
    }
}

/// A session with its statements, ready for requests.
struct Ready {
    session: Arc<Session>,
    prepared: Vec<PreparedStatement>,
}

/// One load thread's driver.
pub(crate) struct Driver {
    ready: Option<Ready>,
    statements: Statements,
    done: Arc<Done>,
    /// Submitted, but not yet started.
    begun: Vec<(u32, Chosen, Option<u16>, Asked)>,
    timer: Timer,
    /// The epoll of the load thread.
    watched: AsyncFd<OwnedFd>,
    scratch: Vec<u8>,
    // Dropped after everything that lives in it.
    runtime: Runtime,
}

impl Driver {
    /// Not connected yet. Any event on `epoll` ends a [`Driver::wait`].
    pub(crate) fn new(epoll: &Epoll) -> io::Result<Driver> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let timer = Timer::new()?;
        epoll.add(&timer, TIMER, false)?;
        let guard = runtime.enter();
        let watched = epoll.on_tokio()?;
        drop(guard);
        Ok(Driver {
            ready: None,
            statements: Statements::new(Version::V4),
            done: Arc::default(),
            begun: Vec::new(),
            timer,
            watched,
            scratch: Vec::new(),
            runtime,
        })
    }

    /// Connects and prepares `statements`; asks `goes_on` several times a second whether to continue.
    ///
    /// `false`: it was told to stop, and nothing is connected.
    ///
    /// # Errors
    /// No node answers within `patience`, a coordinator is not known to the cluster by its address, or a statement is
    /// refused.
    pub(crate) fn connect(
        &mut self,
        config: &EngineConfig,
        statements: &[String],
        patience: Duration,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<bool, LoadError> {
        let mut connecting = Box::pin(connect(config, statements));
        let deadline_ns = monotonic_ns() + patience.as_nanos() as u64;
        let ready = loop {
            let turn = async { tokio::time::timeout(LOOK, &mut connecting).await };
            match self.runtime.block_on(turn) {
                Ok(ready) => break ready?,
                Err(_) if !goes_on() => return Ok(false),
                Err(_) if monotonic_ns() < deadline_ns => {}
                Err(_) => return Err(connect_error(config, 0, "connecting", format!("no answer within {patience:?}"))),
            }
        };
        for number in 0..ready.prepared.len() {
            self.statements.keep(number, &request::id(number), &[]);
        }
        self.ready = Some(ready);
        Ok(true)
    }

    /// Submits a request to the driver, which starts it in the next [`Driver::wait`]. `pin`: the only coordinator it
    /// may go to.
    ///
    /// # Errors
    /// It cannot be written, or the driver cannot carry it.
    pub(crate) fn submit(
        &mut self,
        slot: u32,
        chosen: Chosen,
        pin: Option<u16>,
        write: impl FnOnce(crate::Request<'_>),
    ) -> Result<(), RequestError> {
        let Some(ready) = &self.ready else { return Err(RequestError::Nothing) };
        self.scratch.clear();
        crate::wire::compose(&mut self.scratch, 0, &self.statements, write)?;
        let asked = Asked::read(&self.scratch, &ready.prepared).map_err(RequestError::Driver)?;
        chosen.set(pin.unwrap_or(NOBODY));
        self.begun.push((slot, chosen, pin, asked));
        Ok(())
    }

    /// Lets the driver work until `until`, until a request is completed, or until something is ready on `epoll`.
    pub(crate) fn wait(&mut self, epoll: &mut Epoll, until: u64) -> io::Result<()> {
        let waits = until > monotonic_ns() && self.done.list.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if waits {
            self.timer.arm(until)?;
        }
        let Driver { ready, done, begun, watched, runtime, .. } = self;
        runtime.block_on(async {
            if let Some(ready) = ready {
                for (slot, chosen, pin, asked) in begun.drain(..) {
                    let (session, done) = (Arc::clone(&ready.session), Arc::clone(done));
                    tokio::spawn(ASKED.scope(Asking { chosen, pin }, async move {
                        let reply = asked.run(&session).await;
                        let completion = Completion { slot, at_ns: monotonic_ns(), reply };
                        done.list.lock().unwrap_or_else(PoisonError::into_inner).push(completion);
                        done.news.notify_one();
                    }));
                }
            }
            if !waits {
                // Tasks only run while this future yields, so give them a turn even when there is no time to wait.
                tokio::task::yield_now().await;
                return;
            }
            tokio::select! {
                () = done.news.notified() => {}
                ready = watched.readable() => drop(ready.map(|mut guard| guard.clear_ready())),
            }
        });
        epoll.wait(Some(0))
    }

    /// Swaps the completed requests for an empty list.
    pub(crate) fn take(&mut self, list: &mut Vec<Completion>) {
        std::mem::swap(&mut *self.done.list.lock().unwrap_or_else(PoisonError::into_inner), list);
    }
}

/// Epoll token of the timer, whose only purpose is to end a wait.
pub(crate) const TIMER: u64 = u64::MAX - 1;
/// How often a connecting driver is checked.
const LOOK: Duration = Duration::from_millis(100);
/// Time limit for establishing one connection.
const CONNECTION: Duration = Duration::from_secs(5);

fn connect_error(config: &EngineConfig, coordinator: usize, step: &'static str, reason: String) -> LoadError {
    let node = &config.coordinators[coordinator];
    LoadError::Connect { coordinator: node.name.clone(), address: node.address, step, reason }
}

async fn connect(config: &EngineConfig, statements: &[String]) -> Result<Ready, LoadError> {
    let failed = |step, reason| connect_error(config, 0, step, reason);
    let addresses: Vec<SocketAddr> = config.coordinators.iter().map(|node| node.address).collect();
    let balancing = DefaultPolicy::builder().token_aware(config.balancing == Balancing::TokenAware).build();
    // Our own policy puts the farther tiers last; the driver itself considers all nodes near.
    let none: Option<Arc<dyn SpeculativeExecutionPolicy>> = None;
    let profile = ExecutionProfile::builder()
        .load_balancing_policy(Arc::new(Recording::new(balancing, &addresses, &config.tier_ends())))
        .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
        .speculative_execution_policy(none)
        .request_timeout(None)
        .build();
    let only = AllowListHostFilter::new(&addresses).map_err(|error| failed("connecting", error.to_string()))?;
    let connections = NonZeroUsize::new(config.connections).unwrap_or(NonZeroUsize::MIN);
    let mut builder = SessionBuilder::new()
        .known_nodes_addr(&addresses)
        .host_filter(Arc::new(only))
        .pool_size(PoolSize::PerHost(connections))
        .connection_timeout(CONNECTION)
        .default_execution_profile_handle(profile.into_handle())
        .tls_context(config.wire.tls.as_ref().map(Tls::client_config))
        .compression(config.wire.compression.map(|compression| match compression {
            Compression::Lz4 => scylla::frame::Compression::Lz4,
            Compression::Snappy => scylla::frame::Compression::Snappy,
        }));
    if let Some(Credentials { user, password }) = &config.wire.credentials {
        builder = builder.user(user, password);
    }
    let session = builder.build().await.map_err(|error| {
        let reason = tls_reason(&error).unwrap_or_else(|| error.to_string());
        failed("connecting with the scylla driver", reason)
    })?;
    let state = session.get_cluster_state();
    let known = |address: &SocketAddr| state.get_nodes_info().iter().any(|node| policy::address(node) == *address);
    if let Some(stranger) = addresses.iter().position(|address| !known(address)) {
        let reason = "the cluster does not know it by this address".to_owned();
        return Err(connect_error(config, stranger, "finding it with the scylla driver", reason));
    }
    drop(state);
    let mut prepared = Vec::new();
    for text in statements {
        let statement = session.prepare(text.as_str()).await.map_err(|error| {
            failed("preparing a statement with the scylla driver", format!("about \"{text}\": {error}"))
        })?;
        prepared.push(statement);
    }
    Ok(Ready { session: Arc::new(session), prepared })
}
