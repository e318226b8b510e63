//! Stands: a network with a cluster on it, which serve trials of the same layout one after the other.
//!
//! Between two trials all of a stand is as after its start, but for what a running database cannot forget: its compiled code,
//! and little else (docs/limitations.md, "Statistics"). The tables are dropped, the nodes are made to forget by which of them
//! they were answered slowly, and they themselves have to say that they hold nothing of all that and work on nothing that was
//! left. Where they do not, another stand is built. That its faults are gone a trial sees itself; one that does not is invalid,
//! and its stand serves no other.

use std::{
    collections::BTreeMap,
    fs,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use brownout_cluster::DatabaseKind;
use brownout_load::control;

use crate::{
    LabError,
    faults::Needs,
    own_data::OwnData,
    plan::{ETCD_PREFIX, Layout},
    progress::Progress,
    spec::LabSpec,
    testbed::{READY_WITHIN, Testbed},
    timeline::TimeLine,
};

/// A cluster that has not come to rest by then is replaced: a new one takes less time.
const REST_WITHIN: Duration = Duration::from_secs(10);
/// For dropping tables.
const DROP_WITHIN: Duration = Duration::from_secs(20);

/// A network and a cluster.
pub(crate) struct Stand {
    /// What there is.
    pub(crate) testbed: Testbed,
    /// From 1.
    pub(crate) number: u32,
    /// Operations per second that the flood of a warm-up was answered at, by the number of the first cell with that load.
    pub(crate) capacities: BTreeMap<usize, f64>,
    /// The number of its layout.
    layout: usize,
    /// What it has.
    needs: Needs,
    /// Trials that it has served.
    served: u32,
}

/// What a trial needs of a stand.
pub(crate) struct Wanted<'a> {
    /// The number of its layout.
    pub(crate) layout: usize,
    /// What its faults need, and those of all trials with the same layout.
    pub(crate) needs: &'a Needs,
    /// What its links and disks draw from.
    pub(crate) seed: u64,
    /// A stand that has served as many trials does not suit.
    pub(crate) fresh_every: u32,
    /// How the trial is called.
    pub(crate) title: &'a str,
}

/// Builds the stands of one lab; one of them stands at a time.
pub(crate) struct Stands<'a> {
    /// By the number of the layout.
    specs: &'a [LabSpec],
    current: Option<Stand>,
    /// How many were built, by this session and others, by all of its labs.
    built: &'a AtomicU32,
    /// The data of stands that are gone stays.
    keep: bool,
    /// What has become of what was made in a cluster that is not ours, whenever a stand went.
    told: Vec<String>,
}

impl<'a> Stands<'a> {
    /// None stands yet; `built` are known from earlier sessions.
    pub(crate) fn new(specs: &'a [LabSpec], built: &'a AtomicU32, keep: bool) -> Stands<'a> {
        Stands { specs, current: None, built, keep, told: Vec::new() }
    }

    /// What labs of a layout are made of.
    pub(crate) fn spec(&self, layout: usize) -> &'a LabSpec {
        &self.specs[layout]
    }

    /// A stand that is ready for a trial: the one that stands, if it suits and is verified to be clean, else a new one.
    pub(crate) fn take(
        &mut self,
        wanted: &Wanted<'_>,
        time_line: TimeLine,
        progress: &mut dyn Progress,
    ) -> Result<Stand, LabError> {
        let suits = |stand: &Stand| {
            stand.layout == wanted.layout && stand.needs.built_for(wanted.needs) && stand.served < wanted.fresh_every
        };
        if let Some(mut stand) = self.current.take() {
            if suits(&stand) {
                progress.step(&format!("{}: dropping what the trial before wrote", wanted.title));
                match stand.reset(&self.specs[wanted.layout].layout, wanted.seed, time_line) {
                    Ok(()) => return Ok(stand),
                    Err(_) if time_line.interrupted() => return Err(LabError::Interrupted),
                    Err(error) => {
                        progress.note(&format!("a new cluster is started, as this one was not clean: {error}"))
                    }
                }
            }
            self.remove(stand);
        }
        self.build(wanted, time_line, progress)
    }

    fn build(
        &mut self,
        wanted: &Wanted<'_>,
        time_line: TimeLine,
        progress: &mut dyn Progress,
    ) -> Result<Stand, LabError> {
        let number = self.built.fetch_add(1, Ordering::Relaxed) + 1;
        let built = self.started(wanted, number, time_line, progress);
        if built.is_err() {
            self.clear(wanted.layout, number);
        }
        built
    }

    fn started(
        &self,
        wanted: &Wanted<'_>,
        number: u32,
        time_line: TimeLine,
        progress: &mut dyn Progress,
    ) -> Result<Stand, LabError> {
        let spec = &self.specs[wanted.layout];
        let hosts = &spec.layout.hosts;
        let (all, nodes) = (hosts.iter().count(), hosts.nodes().count());
        let s = if nodes == 1 { "" } else { "s" };
        progress.step(&match spec.layout.is_external() {
            true if spec.layout.is_attached() => format!("{}: attaching to {nodes} container{s}", wanted.title),
            true => format!("{}: asking {nodes} node{s}", wanted.title),
            false => format!("{}: {all} hosts, starting {nodes} node{s}", wanted.title),
        });
        let mut testbed = Testbed::build(spec, number, wanted.seed, wanted.needs)?;
        let ready = testbed
            .cluster
            .wait_ready(READY_WITHIN, &|| time_line.interrupted(), &mut |missing| {
                progress.step(&format!("{}: {missing}", wanted.title));
            })
            .map_err(|error| if time_line.interrupted() { LabError::Interrupted } else { error.into() })?;
        progress.note(&format!("cluster ready after {:.1}s", ready.took.as_secs_f64()));
        // As on a stand that has served a trial: how long the first reads of a new JVM took is nothing to choose nodes by.
        if let Err(error) = testbed.cluster.forget() {
            progress.note(&format!("the trial begins with what the nodes have seen during their start: {error}"));
        }
        Ok(Stand {
            testbed,
            number,
            capacities: BTreeMap::new(),
            layout: wanted.layout,
            needs: wanted.needs.clone(),
            served: 0,
        })
    }

    /// A stand that has served a trial; if `clean`, it may serve another.
    pub(crate) fn give_back(&mut self, mut stand: Stand, clean: bool) {
        stand.served += 1;
        if clean {
            self.current = Some(stand);
        } else {
            self.remove(stand);
        }
    }

    /// What a load's flood was answered at is not known any more: a trial that showed or used it was not valid.
    pub(crate) fn forget_capacity(&mut self, load: usize) {
        if let Some(stand) = &mut self.current {
            stand.capacities.remove(&load);
        }
    }

    /// The one that stands serves no other trial: the last one showed what it should not, and may have left it there.
    pub(crate) fn retire(&mut self) {
        if let Some(stand) = self.current.take() {
            self.remove(stand);
        }
    }

    /// The end: nothing stands any more, and what is to be told of that is told.
    pub(crate) fn end(&mut self, progress: &mut dyn Progress) {
        self.retire();
        self.told.drain(..).for_each(|told| progress.note(&told));
    }

    fn remove(&mut self, mut stand: Stand) {
        let (layout, number) = (stand.layout, stand.number);
        let told = stand.testbed.own_data.as_mut().and_then(OwnData::end);
        // Most say the same.
        self.told.extend(told.filter(|told| !self.told.contains(told)));
        drop(stand);
        self.clear(layout, number);
    }

    /// Removes the data of a stand that is gone. Only to save space: the end of the run removes all.
    fn clear(&self, layout: usize, number: u32) {
        if !self.keep {
            let _ = fs::remove_dir_all(self.specs[layout].paths(number).scratch);
        }
    }
}

impl Stand {
    /// Whether it has served no trial yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.served == 0
    }

    /// Makes it as after its start, and has the nodes say that it is.
    fn reset(&mut self, layout: &Layout, seed: u64, time_line: TimeLine) -> Result<(), LabError> {
        let interrupted = || time_line.interrupted();
        if let Some(own) = &self.testbed.own_data {
            // What others have there, and what its nodes have learned, is not ours to take away.
            own.clear()?;
            self.testbed.cluster.wait_rest(REST_WITHIN, &interrupted)?;
            return self.testbed.controls.reseed(seed);
        }
        let coordinators = self.testbed.coordinators(layout.hosts.nodes())?;
        let start = self.testbed.enters_load(None);
        let Testbed { cluster, controls, wire, .. } = &mut self.testbed;
        let limit = control::Limit { time: DROP_WITHIN, interrupted: &interrupted };
        match cluster.kind() {
            DatabaseKind::Cassandra => control::drop_keyspaces(wire, &coordinators, &start, limit)?,
            DatabaseKind::Etcd => control::clear_etcd(wire, &coordinators, &start, ETCD_PREFIX, limit)?,
        }
        cluster.wait_rest(REST_WITHIN, &interrupted)?;
        // Last: to be at rest is found out by reads, whose latencies nodes would remember.
        cluster.forget()?;
        controls.reseed(seed)
    }
}
