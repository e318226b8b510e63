//! Once a second, all observations go into the record: load, latencies, links, probes, processors, deaths.

use std::{
    collections::{BTreeMap, HashSet},
    fs::File,
    io,
};

use brownout_cluster::Cluster;
use brownout_load::{Bucket, Engine, Live};
use brownout_machine::{Processors, threads, waits_are_counted};
use brownout_network::{Host, Link, LinkControl, LinkCounters, Network};
use brownout_probe::{ProbeSample as Probe, Probes};
use brownout_record::{
    ClockRow, CpuRow, Event, HostCounterRow, LinkRow, LoadRow, ProbeRow, ProbeSample, Recorder, WitnessRow,
};
use brownout_stress::output::write_bucket;

use crate::{
    LabError,
    competition::{Competition, Own, waiting},
    containers::{Attached, Seen},
    controls::are_only_asked,
    cpu::{CpuClock, CpuTimes},
    evidence::DatabaseEvidence,
    host_failures::{self, FailedHost},
    live,
    plan::INTERVAL_NS,
    progress::OperationTick,
    silence::{Notice, SILENT_NS, Silence},
    witness::Witnesses,
};

/// What a host's kernel threw away since the network was started.
#[derive(Clone, Copy, Default)]
struct KernelCounts {
    checksum_errors: u64,
    /// With what WireGuard's thread could not read, send or hand over there.
    interface_dropped: u64,
}

/// Watches one trial.
pub struct Observer<'a> {
    trial: u32,
    recorder: &'a mut Recorder,
    network: &'a Network,
    cluster: &'a mut Cluster,
    probes: &'a Probes,
    /// The links that are measured.
    watched: HashSet<Link>,
    overlay_probes: Option<&'a Probes>,
    witnesses: &'a Witnesses,
    evidence: &'a DatabaseEvidence,
    attached: Option<&'a Attached>,
    /// What each host's kernel had thrown away.
    last_kernels: BTreeMap<String, KernelCounts>,
    /// Intervals begin at this moment plus whole multiples of their length, `CLOCK_MONOTONIC`.
    epoch_ns: u64,
    last_ns: u64,
    /// The last reading of the links' counters, and what readings since the last look have shown.
    links_read_ns: u64,
    links: Vec<LinkRow>,
    processors: Processors,
    clock: CpuClock,
    last: CpuTimes,
    competition: Competition,
    last_nodes: BTreeMap<String, u64>,
    last_load: u64,
    last_overlay: u64,
    last_waited: Option<u64>,
    dead: Vec<String>,
    /// Who answers, of a cluster that is not ours: the ends of its processes are not seen here.
    silence: Option<Silence>,
    /// Packets for which the queue of a link's rate had no room.
    dropped: u64,
    /// Packets that the emulator dropped because it ran out itself.
    dropped_emulator: u64,
    /// How often packets of attached hosts had passed by the emulator.
    lapses: u64,
    /// Up to here, intervals without an operation have been written too.
    filled_ns: u64,
}

/// Where an observer looks, beside the cluster.
pub struct Sources<'a> {
    /// Counters of links and hosts.
    pub network: &'a Network,
    /// Its own packets.
    pub probes: &'a Probes,
    /// The same through the overlay, if there is one.
    pub overlay_probes: Option<&'a Probes>,
    /// Those who look at the places of faults.
    pub witnesses: &'a Witnesses,
    /// What the database tells of itself.
    pub evidence: &'a DatabaseEvidence,
    /// Who looks after containers; none: the hosts are none.
    pub attached: Option<&'a Attached>,
    /// The machine's `/proc`, as it is seen from outside of the lab.
    pub proc: &'a File,
    /// Other labs work in this process, on processors of their own.
    pub has_neighbours: bool,
    /// Processes of this machine that others of the same run look after.
    pub beside: &'a [u32],
}

/// What a second looked like, for progress and for the warm-up's decision.
pub struct Look {
    /// The load; none while there is no engine.
    pub live: Option<Live>,
    /// By the names of operations, of those that began in the last whole interval.
    pub operations: Vec<OperationTick>,
    /// Its length, seconds.
    pub seconds: f64,
    /// Share of the machine's processors in use.
    pub busy: f64,
    /// Nodes that died in it, each with how and its last words.
    pub deaths: Vec<String>,
}

impl<'a> Observer<'a> {
    /// Begins to watch.
    pub fn new(
        trial: u32,
        recorder: &'a mut Recorder,
        cluster: &'a mut Cluster,
        sources: Sources<'a>,
        epoch_ns: u64,
    ) -> Result<Self, LabError> {
        let Sources { network, probes, overlay_probes, witnesses, evidence, attached, proc, has_neighbours, beside } =
            sources;
        network.control().take_counters()?;
        let processors = Processors::of_this_process();
        let competition = Competition::begin(proc, cluster, beside).map_err(unseen)?;
        let mut clock = CpuClock::new(processors.clone(), has_neighbours);
        let silence = are_only_asked(&cluster.control()).then(Silence::default);
        let now_ns = brownout_base::clock::monotonic_ns();
        let mut observer = Observer {
            trial,
            recorder,
            network,
            cluster,
            probes,
            watched: probes.links().iter().copied().collect(),
            overlay_probes,
            witnesses,
            evidence,
            attached,
            last_kernels: BTreeMap::new(),
            epoch_ns,
            last_ns: now_ns,
            links_read_ns: now_ns,
            links: Vec::new(),
            last: clock.read().map_err(unseen)?,
            processors,
            clock,
            competition,
            last_nodes: BTreeMap::new(),
            last_load: 0,
            last_overlay: 0,
            last_waited: emulator_waited(network),
            dead: Vec::new(),
            silence,
            dropped: 0,
            dropped_emulator: 0,
            lapses: network.lapses(),
            filled_ns: epoch_ns + (now_ns - epoch_ns) / INTERVAL_NS * INTERVAL_NS,
        };
        observer.last_nodes = observer.node_cpu();
        observer.last_overlay = observer.overlay_processes_ns();
        observer.last_kernels = observer.kernel_counts();
        Ok(observer)
    }

    /// The recorder, for what else happens.
    pub fn recorder(&mut self) -> &mut Recorder {
        self.recorder
    }

    /// Nodes that have died since the beginning.
    pub fn dead(&self) -> &[String] {
        &self.dead
    }

    /// Records an event that happened at a `CLOCK_MONOTONIC` time, known to within `error_ns`.
    pub fn event(&mut self, kind: &str, subject: &str, text: &str, at_ns: u64, error_ns: u64) -> Result<(), LabError> {
        let event = Event {
            trial: Some(self.trial),
            at_ns: self.recorder.at(at_ns),
            error_ns,
            kind: kind.to_owned(),
            subject: subject.to_owned(),
            text: text.to_owned(),
        };
        Ok(self.recorder.batch(|recorder| recorder.event(&event))?)
    }

    /// Records all since the last look, as one batch.
    ///
    /// # Errors
    /// Also, after all is recorded, when the emulator cannot reach a host any more: such a trial shows nothing.
    pub fn look(&mut self, engine: Option<&Engine>) -> Result<Look, LabError> {
        let now_ns = brownout_base::clock::monotonic_ns();
        let buckets = engine.map(Engine::drain).unwrap_or_default();
        let load_cpu = engine.map_or(self.last_load, Engine::cpu_ns);
        let cpu = self.clock.read().map_err(unseen)?;
        let nodes = self.node_cpu();
        let busy = self.record(now_ns, &buckets, &cpu, &nodes, load_cpu)?;
        for event in engine.map(Engine::connection_events).unwrap_or_default() {
            let text = match &event.lost {
                Some(why) => format!("a connection to {} was lost: {why}", event.coordinator),
                None => format!("connected to {}", event.coordinator),
            };
            self.event("connection", &event.coordinator, &text, event.at_ns, 0)?;
        }
        let seconds = (now_ns - self.last_ns) as f64 / 1e9;
        (self.last_ns, self.last, self.last_nodes, self.last_load) = (now_ns, cpu, nodes, load_cpu);
        self.evidence.record(self.recorder, self.trial)?;
        if self.attached.is_some() {
            for gone in host_failures::gone(self.network) {
                self.event(FailedHost::GONE, &gone.name, &gone.text, gone.at_ns, 0)?;
            }
        }
        host_failures::record(self.recorder, self.trial, &host_failures::take(self.network))?;
        let operations = live::by_operation(&buckets, now_ns);
        Ok(Look { live: engine.map(Engine::live), operations, seconds, busy, deaths: self.deaths()? })
    }

    /// Records what an engine had left when it stopped.
    pub fn buckets(&mut self, buckets: &[Bucket]) -> Result<(), LabError> {
        let trial = self.trial;
        Ok(self.recorder.batch(|recorder| write_buckets(recorder, trial, buckets))?)
    }

    /// How long it takes until every probe that was sent before now has arrived or counts as lost.
    pub fn probes_settle_within(&self) -> std::time::Duration {
        let all = [Some(self.probes), self.overlay_probes].into_iter().flatten();
        all.map(Probes::settles_within).max().unwrap_or_default()
    }

    /// Has the nodes forget what the load so far has taught them.
    pub fn forget(&mut self) -> Result<(), LabError> {
        Ok(self.cluster.forget()?)
    }

    /// Records the probes that were still under way.
    pub fn last_probes(&mut self) -> Result<(), LabError> {
        let (rows, witnessed) = (self.probe_rows(self.probes.drain()), self.witness_rows());
        let above = self.overlay_rows();
        let clocks = self.clock_rows();
        let trial = self.trial;
        Ok(self.recorder.batch(|recorder| {
            rows.iter().try_for_each(|row| recorder.probe(trial, row))?;
            above.iter().try_for_each(|row| recorder.overlay_probe(trial, row))?;
            clocks.iter().try_for_each(|row| recorder.clock(trial, row))?;
            witnessed.iter().try_for_each(|row| recorder.witness(trial, row))
        })?)
    }

    /// Tells what the instrument itself did to packets, or failed to see, since the beginning.
    pub fn own_faults(&mut self) -> Result<(), LabError> {
        let mut told = Vec::new();
        let slow = match self.network.overlay() {
            Some(_) => "the emulator or the overlay was too slow",
            None => "the emulator read too slowly",
        };
        for host in self.network.host_counters()? {
            let name = self.network.name(host.host).unwrap_or_default();
            if let Some(dropped) = host.interface_dropped.filter(|dropped| *dropped > 0) {
                told.push(format!(
                    "the interface of {name} dropped {dropped} packets because {slow}; \
                     retransmissions at those moments are the instrument's fault, not the database's"
                ));
            }
        }
        if self.dropped > 0 {
            told.push(format!("{} packets were dropped because a link's queue was full", self.dropped));
        }
        if self.dropped_emulator > 0 {
            told.push(format!(
                "the emulator dropped {} packets because it had no memory left for them, or because the \
                 receiving host's interface refused them; no emulated link would have dropped them",
                self.dropped_emulator
            ));
        }
        let lapses = self.network.lapses().saturating_sub(self.lapses);
        if lapses > 0 {
            told.push(format!(
                "this process stood still for two seconds or more, or could not reach the kernel's filter, {lapses} times \
                 (each interface counts): packets may have passed by the emulator then, with no fault of the network in force"
            ));
        }
        for (probes, which) in [(Some(self.probes), "probes"), (self.overlay_probes, "probes of the overlay")] {
            let Some(probes) = probes.map(Probes::health) else { continue };
            let unseen = probes.skipped + probes.discarded + probes.send_errors;
            if unseen * 100 > probes.sent {
                told.push(format!("{unseen} of {} {which} could not be sent or kept", probes.sent));
            }
        }
        let probes = self.probes.health();
        if probes.refused > 0 {
            told.push(format!(
                "the kernels of sending hosts refused {} probes (a packet filter there, or no way to the receiver); \
                 they count as lost, as what the database sends there is",
                probes.refused
            ));
        }
        told.extend(self.witnesses.unseen());
        let now_ns = brownout_base::clock::monotonic_ns();
        told.into_iter().try_for_each(|text| self.event("warning", "network", &text, now_ns, 0))
    }

    fn record(
        &mut self,
        now_ns: u64,
        buckets: &[Bucket],
        cpu: &CpuTimes,
        nodes: &BTreeMap<String, u64>,
        load_cpu: u64,
    ) -> Result<f64, LabError> {
        let length_ns = (now_ns - self.last_ns).max(1);
        let cores = (self.processors.capacity() * length_ns as f64) as u64;
        let starts_ns = self.recorder.at(self.last_ns);
        self.read_links()?;
        let links = std::mem::take(&mut self.links);
        self.dropped += links.iter().map(|link| link.dropped_queue).sum::<u64>();
        self.dropped_emulator += links.iter().map(|link| link.dropped_emulator).sum::<u64>();
        let probes = self.probe_rows(self.probes.drain());
        let above = self.overlay_rows();
        // Packets that wait for the emulator to read them are in none of its own counters.
        let waited = emulator_waited(self.network);
        let machine = cpu.machine.since(&self.last.machine);
        // An overlay's thread is a part of this process, its processes are not: they are Brownout's all the same.
        let processes = self.overlay_processes_ns();
        let by_processes = processes.saturating_sub(self.last_overlay);
        self.last_overlay = processes;
        let overlay = cpu.overlay.saturating_sub(self.last.overlay) + by_processes;
        let mut subjects = vec![
            ("machine".to_owned(), machine.busy_ns),
            ("interrupts".to_owned(), machine.interrupts_ns),
            ("stolen".to_owned(), machine.stolen_ns),
            ("cores".to_owned(), cores),
            ("emulator".to_owned(), cpu.emulator.saturating_sub(self.last.emulator)),
            ("overlay".to_owned(), overlay),
            ("load".to_owned(), load_cpu.saturating_sub(self.last_load)),
        ];
        subjects.extend(waiting("emulator-waited", self.last_waited, waited));
        subjects.extend(waiting("load-waited", self.last.load_waited, cpu.load_waited));
        subjects.extend(waiting("overlay-waited", self.last.overlay_waited, cpu.overlay_waited));
        let instrument = cpu.instrument.saturating_sub(self.last.instrument) + by_processes;
        let mut lab = instrument + machine.interrupts_ns;
        subjects.push(("instrument".to_owned(), instrument));
        for (node, used) in nodes {
            let used = used.saturating_sub(self.last_nodes.get(node).copied().unwrap_or(0));
            lab += used;
            subjects.push((format!("node:{node}"), used));
        }
        let (are_a_part, by_others_ns) = (self.processors.are_a_part(), machine.all_ns.saturating_sub(lab));
        let own = Own { length_ns, are_a_part, by_others_ns };
        subjects.extend(self.competition.look(self.cluster, own).map_err(unseen)?);
        let trial = self.trial;
        let empty = self.empty_intervals(now_ns);
        let (witnessed, clocks) = (self.witness_rows(), self.clock_rows());
        let kernels = self.kernel_rows(starts_ns, length_ns);
        self.recorder.batch(|recorder| {
            write_buckets(recorder, trial, buckets)?;
            empty.iter().try_for_each(|row| recorder.load_if_absent(trial, row))?;
            links.iter().try_for_each(|row| recorder.link(trial, row))?;
            probes.iter().try_for_each(|row| recorder.probe(trial, row))?;
            above.iter().try_for_each(|row| recorder.overlay_probe(trial, row))?;
            witnessed.iter().try_for_each(|row| recorder.witness(trial, row))?;
            clocks.iter().try_for_each(|row| recorder.clock(trial, row))?;
            kernels.iter().try_for_each(|row| recorder.host_counters(trial, row))?;
            subjects.into_iter().try_for_each(|(subject, busy_ns)| {
                recorder.cpu(trial, &CpuRow { starts_ns, length_ns, subject, busy_ns })
            })
        })?;
        self.last_waited = waited;
        Ok(machine.busy_ns as f64 / cores as f64)
    }

    /// Every whole interval since the last call: one in which nothing was to start counts as well as any other.
    fn empty_intervals(&mut self, now_ns: u64) -> Vec<LoadRow> {
        let mut rows = Vec::new();
        while self.filled_ns + INTERVAL_NS <= now_ns {
            rows.push(LoadRow::empty(self.recorder.at(self.filled_ns), INTERVAL_NS));
            self.filled_ns += INTERVAL_NS;
        }
        rows
    }

    /// Reads the counters of all links; the next look writes them down. Read right before and after a fault comes or goes, they are
    /// wholly of the one side or of the other.
    pub fn read_links(&mut self) -> Result<(), LabError> {
        let counters = self.network.control().take_counters()?;
        let now_ns = brownout_base::clock::monotonic_ns();
        let (starts_ns, length_ns) = (self.recorder.at(self.links_read_ns), (now_ns - self.links_read_ns).max(1));
        self.links_read_ns = now_ns;
        let name = |host| self.network.name(host).unwrap_or_default().to_owned();
        // Of many links some are measured; but of none the emulator may drop anything of itself.
        let is_told =
            |counters: &LinkCounters| self.watched.contains(&counters.link) || counters.dropped_by_emulator() > 0;
        let carried = counters.into_iter().filter(|counters| self.network.carries(counters.link)).filter(is_told);
        self.links.extend(carried.map(|counters| LinkRow {
            starts_ns,
            length_ns,
            from: name(counters.link.from),
            to: name(counters.link.to),
            offered: counters.offered_packets,
            offered_bytes: counters.offered_bytes,
            delivered: counters.delivered_packets,
            delivered_bytes: counters.delivered_bytes,
            lost: counters.lost,
            dropped_queue: counters.dropped_queue,
            dropped_emulator: counters.dropped_by_emulator(),
            duplicated: counters.duplicated,
            corrupted: counters.corrupted,
            reordered: counters.reordered,
            cut: counters.cut,
            too_big: counters.too_big,
            release_error: counters.release_error,
            held: counters.held,
        }));
        Ok(())
    }

    /// What the witnesses saw.
    fn witness_rows(&mut self) -> Vec<WitnessRow> {
        let seen = self.witnesses.drain();
        if let Some(silence) = &mut self.silence {
            silence.note(&seen);
        }
        seen.into_iter().map(|row| WitnessRow { at_ns: self.recorder.at(row.at_ns), ..row }).collect()
    }

    /// What hosts have learned of each other's clocks.
    fn clock_rows(&self) -> Vec<ClockRow> {
        let seen = self.witnesses.drain_clocks();
        seen.into_iter().map(|row| ClockRow { at_ns: self.recorder.at(row.at_ns), ..row }).collect()
    }

    fn kernel_counts(&self) -> BTreeMap<String, KernelCounts> {
        let dropped = self.network.host_counters().unwrap_or_default();
        let counts = |host: &Host| {
            let checksum_errors = self.network.checksum_errors(host.id()).ok()?.total();
            let dropped = dropped.iter().find(|counters| counters.host == host.id());
            let interface_dropped = dropped.and_then(|counters| counters.interface_dropped).unwrap_or(0);
            Some(KernelCounts { checksum_errors, interface_dropped })
        };
        let hosts = self.network.hosts().iter().filter(|host| !host.is_elsewhere());
        hosts.filter_map(|host| Some((host.name().to_owned(), counts(host)?))).collect()
    }

    /// What the hosts' kernels threw away since the last look.
    fn kernel_rows(&mut self, starts_ns: u64, length_ns: u64) -> Vec<HostCounterRow> {
        let now = self.kernel_counts();
        let before = std::mem::replace(&mut self.last_kernels, now.clone());
        let row = |(host, now): (String, KernelCounts)| {
            let before = before.get(&host).copied().unwrap_or_default();
            let checksum_errors = now.checksum_errors.saturating_sub(before.checksum_errors);
            let interface_dropped = now.interface_dropped.saturating_sub(before.interface_dropped);
            HostCounterRow { starts_ns, length_ns, host, checksum_errors, interface_dropped }
        };
        now.into_iter().map(row).collect()
    }

    /// Those that went through the overlay.
    fn overlay_rows(&self) -> Vec<ProbeRow> {
        self.probe_rows(self.overlay_probes.map(Probes::drain).unwrap_or_default())
    }

    /// Probes in rows of their interval and pair.
    fn probe_rows(&self, samples: Vec<Probe>) -> Vec<ProbeRow> {
        let mut rows: BTreeMap<(u64, String, String), Vec<ProbeSample>> = BTreeMap::new();
        for sample in samples {
            // Probes sent before the trial's first interval began show nothing that is asked for.
            let Some(since) = sample.sent_ns.checked_sub(self.epoch_ns) else { continue };
            let starts_ns = self.recorder.at(self.epoch_ns + since / INTERVAL_NS * INTERVAL_NS);
            let name = |host| self.network.name(host).unwrap_or_default().to_owned();
            rows.entry((starts_ns, name(sample.link.from), name(sample.link.to))).or_default().push(ProbeSample {
                seq: sample.seq,
                sent_ns: self.recorder.at(sample.sent_ns),
                delay_ns: sample.delay_ns,
                copies: sample.copies,
                reordered: sample.reordered,
            });
        }
        rows.into_iter().map(|((starts_ns, from, to), samples)| ProbeRow { starts_ns, from, to, samples }).collect()
    }

    /// CPU time that the processes of an overlay have used.
    fn overlay_processes_ns(&self) -> u64 {
        let processes = self.network.overlay().map(|overlay| overlay.processes()).unwrap_or_default();
        let ran = |pid: &u32| threads(&pid.to_string()).map(|thread| thread.ran_ns).sum::<u64>();
        processes.iter().map(ran).sum()
    }

    fn node_cpu(&self) -> BTreeMap<String, u64> {
        let nodes = self.cluster.nodes().iter();
        nodes.filter_map(|node| Some((node.name.clone(), node.cpu_ns()?))).collect()
    }

    /// Once, whoever tells it.
    fn is_dead(&mut self, node: String) {
        if !self.dead.contains(&node) {
            self.dead.push(node);
        }
    }

    fn deaths(&mut self) -> Result<Vec<String>, LabError> {
        let mut told = Vec::new();
        for death in self.cluster.deaths() {
            let text = format!("{} died: {}; the end of its log:\n{}", death.node, death.status, death.log_tail);
            let kind = if death.asked { "node-ended" } else { "node-died" };
            self.event(kind, &death.node, &text, death.at_ns, 0)?;
            if !death.asked {
                self.dead.push(death.node);
                told.push(text);
            }
        }
        for seen in self.attached.map(Attached::take).unwrap_or_default() {
            let (host, text) = (seen.host().to_owned(), seen.to_string());
            self.event(seen.kind(), &host, &text, seen.at_ns(), seen.error_ns())?;
            match seen {
                Seen::Ended { .. } => self.is_dead(host),
                Seen::Reattached { .. } => self.dead.retain(|dead| *dead != host),
                Seen::Lost { .. } | Seen::Unmeasured { .. } => {}
            }
            told.push(text);
        }
        for change in self.silence.as_mut().map(Silence::take).unwrap_or_default() {
            match change {
                Notice::Silent { node, since_ns } => {
                    let client = self.cluster.control().client(&node);
                    let at = client.map(|client| format!(" at {client}")).unwrap_or_default();
                    let seconds = SILENT_NS / 1_000_000_000;
                    let text = format!(
                        "{node}{at} has answered nothing for {seconds} s: it has ended, stands still, or cannot be reached \
                         from this machine; look at it where it runs"
                    );
                    self.event("node-died", &node, &text, since_ns, 0)?;
                    self.is_dead(node);
                    told.push(text);
                }
                Notice::Back { node, since_ns } => {
                    self.event("node-answers", &node, &format!("{node} answers again"), since_ns, 0)?;
                    self.dead.retain(|dead| *dead != node);
                }
            }
        }
        Ok(told)
    }
}

/// How long the emulator's thread waited for a processor since it was started, ns; none where the kernel does not tell.
fn emulator_waited(network: &Network) -> Option<u64> {
    network.waited_ns().filter(|_| waits_are_counted())
}

fn unseen(source: io::Error) -> LabError {
    LabError::Ground { doing: "read who uses the processors", source }
}

fn write_buckets(recorder: &Recorder, trial: u32, buckets: &[Bucket]) -> Result<(), brownout_record::RecordError> {
    buckets.iter().try_for_each(|bucket| write_bucket(recorder, trial, bucket))
}
