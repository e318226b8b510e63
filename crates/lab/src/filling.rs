//! How the tables of profiles are filled before anything is measured: an engine of its own, which may try again what
//! fails, and ends when every partition is written.

use std::{sync::Arc, time::Duration};

use brownout_load::{Balance, Bucket, Engine, EngineConfig, ErrorClasses, LoadError, Pace, Retries, RetryDelay};
use brownout_stress::{operations::StressWorkload, run::experiment::PreparedLoad};

use crate::warmup;

/// A write has this long, tries and all: a new cluster stands still now and then.
const WRITE_WITHIN: Duration = Duration::from_secs(60);
/// As often as anything may be tried.
const TRIES: u32 = 1_000;
/// Before it is tried again.
const REST: Duration = Duration::from_millis(100);

/// A filling, idle or under way.
pub struct Filling {
    engine: Engine,
    workload: Arc<StressWorkload>,
    partitions: u64,
    tables: usize,
}

impl Filling {
    /// Connects. `config` is that of the load; its time-out is what one try has.
    pub fn start(
        config: EngineConfig,
        prepared: &PreparedLoad,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Filling, LoadError> {
        let retries = Retries {
            tries: TRIES,
            on: ErrorClasses::transient(),
            delay: RetryDelay::Constant(REST),
            delayed: ErrorClasses::transient(),
            attempt_timeout: Some(config.timeout),
        };
        let config = EngineConfig { retries, timeout: config.timeout.max(WRITE_WITHIN), ..config };
        let workload = Arc::clone(&prepared.filling);
        let engine = Engine::launch_unless(config, Arc::clone(&workload) as _, interrupted)?;
        Ok(Filling { engine, workload, partitions: prepared.partitions, tables: prepared.tables() })
    }

    /// Begins to write: every table by its share of the users.
    pub fn begin(&self) -> Result<(), LoadError> {
        let tables = u32::try_from(self.tables).unwrap_or(u32::MAX).max(1);
        let threads = (warmup::POPULATE_IN_FLIGHT / tables).max(1);
        self.engine.set_paces(vec![Pace::Closed { threads }; self.tables]).map(drop)
    }

    /// Its engine, to be looked at.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Whether every partition has been written, or given up.
    pub fn is_done(&self) -> bool {
        self.workload.may_be_exhausted() && self.engine.exhausted()
    }

    /// How many partitions there are, and how many were begun.
    pub fn progress(&self) -> (u64, u64) {
        (self.partitions, self.partitions - self.workload.permits().left().unwrap_or(0).min(self.partitions))
    }

    /// Why a row could not be written, if one could not.
    pub fn refused(&self) -> Option<String> {
        let any = self.workload.complaints().any();
        any.then(|| self.workload.complaints().take().into_iter().next().unwrap_or_else(|| "a write failed".to_owned()))
    }

    /// Ends it.
    pub fn stop(self, grace: Duration) -> (Vec<Bucket>, Balance) {
        self.engine.stop(grace)
    }
}
