//! A made-up run becomes a file, through the real recorder.

use super::*;

impl Synthetic {
    pub fn trial_ns(&self) -> u64 {
        self.seconds.iter().sum::<u64>() * SECOND
    }

    /// Start of a phase within a trial, ns.
    pub fn starts(&self, phase: &str) -> u64 {
        let at = PHASES.iter().position(|name| *name == phase).unwrap();
        self.seconds[..at].iter().sum::<u64>() * SECOND
    }

    /// When the fault is healed within a trial, ns.
    pub fn heals(&self) -> u64 {
        self.length.map_or(self.starts("recovery"), |length| self.starts("fault") + length * SECOND)
    }

    fn phase_at(&self, into: u64) -> &'static str {
        PHASES.iter().rev().find(|name| into >= self.starts(name)).unwrap()
    }

    /// Writes the run and opens it.
    pub fn run(&self, directory: &Path) -> Run {
        let mut recorder = Recorder::create(&directory.join("run.db"), 0, 1_780_000_000_000).unwrap();
        recorder.batch(|recorder| self.write(recorder)).unwrap();
        Run::open(directory).unwrap()
    }

    fn write(&self, recorder: &Recorder) -> Result<(), brownout_record::RecordError> {
        self.design(recorder)?;
        recorder.json("environment", &environment())?;
        recorder.document("experiment", "trials: 9 # of the file\n")?;
        recorder.set(&["trials=2".to_owned(), "question=is 1 < 2?".to_owned()])?;
        for (trial, kind, text) in self.events {
            recorder.event(&Event { trial: *trial, ..event(1, SECOND, kind, "run", text) })?;
        }
        let all = self.all_trials();
        for (at, (row, made)) in all.iter().enumerate() {
            let zero = u64::from(row.trial - 1) * self.trial_ns();
            let cut = if at + 1 == all.len() { self.cut_at } else { None };
            let until = cut.unwrap_or(self.trial_ns());
            recorder.trial(&TrialRow {
                starts_ns: zero,
                ends_ns: cut.is_none().then_some(zero + until),
                state: if cut.is_some() { self.cut_state } else { TrialState::Done },
                ..row.clone()
            })?;
            made.phases(recorder, row.trial, zero, until)?;
            for told in (self.database)() {
                recorder.evidence(row.trial, &EvidenceRow { at_ns: zero + told.at_ns, ..told })?;
            }
            if !made.no_fault && !self.unrecorded {
                made.faults(recorder, row.trial, zero, until)?;
            }
            for second in 0..until / SECOND {
                self.clocks(recorder, row.trial, zero, second * SECOND)?;
                let open = cut.is_some_and(|_| (second + 1) * SECOND >= until);
                made.interval(recorder, row.trial, zero, second * SECOND, open)?;
            }
        }
        Ok(())
    }

    /// n1 asks n2, and n2 asks n1, 2 ms away from each other.
    fn clocks(
        &self,
        recorder: &Recorder,
        trial: u32,
        zero: u64,
        into: u64,
    ) -> Result<(), brownout_record::RecordError> {
        let Some(ahead) = self.clocks else { return Ok(()) };
        let offset = if self.phase_at(into) == "fault" { ahead } else { 0 };
        [("n1", "n2", offset), ("n2", "n1", -offset)].into_iter().try_for_each(|(host, server, offset_ns)| {
            recorder.clock(
                trial,
                &ClockRow {
                    at_ns: zero + into + SECOND / 2,
                    host: host.to_owned(),
                    server: server.to_owned(),
                    round_trip_ns: 2 * MS,
                    offset_ns,
                    bound_ns: MS + 2,
                },
            )
        })
    }

    fn design(&self, recorder: &Recorder) -> Result<(), brownout_record::RecordError> {
        let cells = self.cells();
        for (at, made) in cells.iter().enumerate() {
            recorder.cell(&CellRow {
                cell: at as u32 + 1,
                levels: self.levels.get(at).map(|level| format!("{level}ms")).into_iter().collect(),
                compared_with: if self.apart { at as u32 + 1 } else { 1 },
                description: made.description(),
            })?;
        }
        let factor = |levels: &[u64]| FactorDescription {
            name: "delay".to_owned(),
            levels: levels.iter().map(|level| format!("{level}ms")).collect(),
        };
        recorder.json(
            "design",
            &DesignDescription {
                factors: (!self.levels.is_empty()).then(|| factor(self.levels)).into_iter().collect(),
                blocks: self.planned_trials,
                without_fault: self.without,
                attempts: 3,
                trials: self.planned_trials * (cells.len() as u32 + self.without),
                only: None,
                labs: self.labs,
                margin: self.margin,
                search: self.search.clone(),
            },
        )
    }

    /// Each cell as a run of its own.
    fn cells(&self) -> Vec<Synthetic> {
        let of = |level: &u64| {
            let delay = level * MS;
            Synthetic { asked: delay, shown: delay, counted: delay, slower: delay, ..self.clone() }
        };
        if self.levels.is_empty() { vec![self.clone()] } else { self.levels.iter().map(of).collect() }
    }

    /// Every attempt at a trial, each as a run of its own.
    fn all_trials(&self) -> Vec<(TrialRow, Synthetic)> {
        let mut all: Vec<(TrialRow, Synthetic)> = Vec::new();
        let mut planned = 0;
        for block in 1..=self.trials {
            let with = self.cells().into_iter().enumerate();
            let with = with.map(|(at, made)| (at as u32 + 1, Arm::Fault, Synthetic { number: block, ..made }));
            let without = (0..self.without).map(|number| {
                let failing = self.failing_without;
                let made = Synthetic { no_fault: true, slower: 0, failing, loss: None, ..self.clone() };
                (1, Arm::None, Synthetic { number: (block - 1) * self.without + number + 1, ..made })
            });
            for (cell, arm, made) in with.chain(without) {
                planned += 1;
                let attempts = if self.spoilt.contains(&planned) { 2 } else { 1 };
                for attempt in 1..=attempts {
                    let lab = all.len() as u32 % self.labs + 1;
                    let row = TrialRow {
                        lab,
                        processors: format!("{}-{}", 2 * lab - 2, 2 * lab - 1),
                        planned,
                        cell,
                        block,
                        attempt,
                        trial: all.len() as u32 + 1,
                        stand: block,
                        ..TrialRow::single(u64::from(planned) * 7, 0, arm)
                    };
                    let invented = if attempt < attempts { 1 } else { made.invented };
                    all.push((row, Synthetic { invented, ..made.clone() }));
                }
            }
        }
        all
    }

    fn description(&self) -> Description {
        let text = match self.threads {
            Some(threads) => format!("closed, {threads} threads"),
            None => format!("open, {}/s, constant arrivals", self.rate),
        };
        Description {
            name: "slow-replica".to_owned(),
            question: Some("What does one slow replica cost a workload that reads and writes at QUORUM?".to_owned()),
            hosts: HOSTS
                .iter()
                .enumerate()
                .map(|(at, name)| HostDescription {
                    name: (*name).to_owned(),
                    address: format!("10.77.0.{}", at + 1),
                    role: if *name == "load" { "load" } else { "node" }.to_owned(),
                })
                .collect(),
            database: "Cassandra 5.0.6".to_owned(),
            external: false,
            ground: String::new(),
            load: LoadDescription {
                text,
                rate: self.threads.is_none().then_some(self.rate as f64),
                threads: self.threads,
                parts: self.parts.clone(),
                consistency: "quorum".to_owned(),
                replication: 3,
                timeout_ns: 2 * SECOND,
            },
            phases: PHASES[1..]
                .iter()
                .zip(&self.seconds[1..])
                .map(|(name, seconds)| PhaseDescription { name: (*name).to_owned(), length_ns: seconds * SECOND })
                .collect(),
            network: Vec::new(),
            overlay: self.overlay.to_owned(),
            encryption: Vec::new(),
            bottlenecks: Some(Vec::new()),
            placement: self.placement.clone(),
            faults: if self.no_fault { Vec::new() } else { vec![self.fault_text()] },
            trials: self.planned_trials,
            objective: Objective {
                response_ns: self.objective_ns,
                share: self.objective_share,
                phases: self.objective_phases.iter().map(|name| (*name).to_owned()).collect(),
                operation: None,
            },
            interval_ns: SECOND,
            warnings: vec!["the clock source is hpet: timers are coarse".to_owned()],
        }
    }

    fn fault_text(&self) -> String {
        format!("everything n2 sends is {}ms late; every RTT to and from n2 grows by as much", self.asked / MS)
    }

    fn phases(
        &self,
        recorder: &Recorder,
        trial: u32,
        zero: u64,
        until: u64,
    ) -> Result<(), brownout_record::RecordError> {
        for (at, name) in PHASES.iter().enumerate() {
            let shift = if at == 0 { 0 } else { self.offset };
            let starts = self.starts(name) + shift;
            if starts >= until {
                break;
            }
            let next = starts - shift + self.seconds[at] * SECOND + if at == 4 { 0 } else { self.offset };
            let done = next <= until;
            let ended_by = if *name == "warm-up" { "stationary" } else { "time" };
            recorder.phase(&PhaseRow {
                trial,
                name: (*name).to_owned(),
                starts_ns: zero + starts,
                ends_ns: done.then_some(zero + next),
                ended_by: done.then(|| ended_by.to_owned()),
            })?;
            recorder.event(&event(trial, zero + starts, "phase", name, &format!("{name} begins")))?;
        }
        Ok(())
    }

    fn faults(
        &self,
        recorder: &Recorder,
        trial: u32,
        zero: u64,
        until: u64,
    ) -> Result<(), brownout_record::RecordError> {
        let stamp = |at: u64| {
            let at = at + self.offset;
            (at < until).then_some(Stamp { at_ns: zero + at, error_ns: 40_000 })
        };
        let (injected, healed) = (stamp(self.starts("fault")), stamp(self.heals()));
        let mut sources = vec![("n2", self.asked)];
        sources.extend(self.second_fault.map(|delay| ("n3", delay)));
        for (index, (source, delay)) in sources.into_iter().enumerate() {
            let expectations = pairs().map(|(from, to)| Expectation {
                subject: Subject::pair(from, to),
                quantity: if self.loss.is_some() { Quantity::Loss } else { Quantity::OneWayDelay },
                hit: from == source,
                asked: if from == source { self.loss.unwrap_or(delay as f64) } else { 0.0 },
                tolerance: if self.loss.is_some() { 0.01 } else { 2.0 * MS as f64 },
                burst: None,
            });
            let mut expectations: Vec<Expectation> = expectations.collect();
            expectations.extend(self.routes().above(&expectations));
            recorder.fault(
                trial,
                &FaultRecord {
                    index: index as u32,
                    kind: "slow".to_owned(),
                    text: format!("everything {source} sends is {}ms late", delay / MS),
                    effect: format!("every RTT to and from {source} grows by {}ms", delay / MS),
                    unsettled_ns: 500 * MS + if self.loss.is_some() { 0 } else { delay },
                    severities: vec![Severity { text: String::new(), expectations }],
                    periods: vec![Period { severity: 0, injected, healed }],
                },
            )?;
            for (kind, stamp) in [("inject", injected), ("heal", healed)] {
                if let Some(stamp) = stamp {
                    let text = format!("everything {source} sends is {}ms late", delay / MS);
                    recorder.event(&event(trial, stamp.at_ns, kind, source, &text))?;
                }
            }
        }
        if self.death {
            let when = zero + self.starts("fault") + 3 * SECOND;
            let tail =
                "exit status 137\nINFO  [main] StorageService.java - Node is up\nERROR [main] - out of memory <heap>";
            recorder.event(&event(trial, when, "node-died", "n3", tail))?;
        }
        Ok(())
    }

    fn slow_now(&self, into: u64) -> bool {
        !self.no_fault && into >= self.starts("fault") && (into < self.heals() || self.stays_slow)
    }

    fn interval(
        &self,
        recorder: &Recorder,
        trial: u32,
        zero: u64,
        into: u64,
        open: bool,
    ) -> Result<(), brownout_record::RecordError> {
        let starts_ns = zero + into;
        let phase = self.phase_at(into);
        let mut noise = Noise(starts_ns ^ u64::from(trial));
        let silent = phase == "recovery" && into < self.starts(phase) + self.silent * SECOND;
        if phase != "set-up" && !silent {
            self.load(recorder, trial, starts_ns, into, open, &mut noise)?;
        }
        self.network(recorder, trial, starts_ns, into, &mut noise)?;
        if phase == "fault" && into < self.starts(phase) + self.unread * SECOND {
            return Ok(());
        }
        let (of_nodes, of_own) = (self.dearer)(trial);
        let usual = if phase == "set-up" { 0.95 } else { self.busy };
        let busy = usual * (1.0 + of_nodes);
        let own = |share: f64| (share * (1.0 + of_own) * 2.0 * SECOND as f64) as u64;
        let crowded = self.crowded.contains(&phase) && (into - self.starts(phase)) / SECOND < self.crowded_for;
        let others = if crowded { (self.foreign, self.stolen) } else { (0.0, 0.01) };
        let cores = 2.0 * SECOND as f64;
        let share = |share: f64| (share * cores) as u64;
        let rows = [
            ("machine", share(busy + self.carrying + others.0)),
            ("stolen", share(others.1)),
            ("cores", share(1.0)),
            ("node:n1", share(busy * 0.27)),
            ("node:n2", share(busy * 0.26)),
            ("node:n3", share(busy * 0.25)),
            ("waited:n1", share(busy * 0.27 * self.queued)),
            ("waited:n2", share(busy * 0.26 * self.queued)),
            ("waited:n3", share(busy * 0.25 * self.queued)),
            ("interrupts", share(busy * 0.1)),
            ("kernel", share(0.01)),
            ("programs", if self.hidden { 0 } else { share(others.0) }),
            ("program:4711:spin", if self.hidden { 0 } else { share(others.0) }),
            ("pressure", SECOND / 4),
            ("emulator", own(0.03)),
            ("load", own(0.02)),
            ("overlay", own(self.carrying)),
            ("instrument", own(0.06 + self.carrying)),
            ("emulator-waited", 0),
            ("load-waited", if self.phase_at(into) == "fault" { self.waited } else { 0 }),
            ("overlay-waited", if self.phase_at(into) == "fault" { self.overlay_waited } else { 0 }),
        ];
        for (subject, busy_ns) in rows {
            if self.unknown_waits && subject.starts_with("waited:") {
                continue;
            }
            let subject = subject.to_owned();
            recorder.cpu(trial, &CpuRow { starts_ns, length_ns: SECOND, subject, busy_ns })?;
        }
        Ok(())
    }

    fn load(
        &self,
        recorder: &Recorder,
        trial: u32,
        starts_ns: u64,
        into: u64,
        open: bool,
        noise: &mut Noise,
    ) -> Result<(), brownout_record::RecordError> {
        let phase = self.phase_at(into);
        let fault = phase == "fault";
        let second = (into - self.starts(phase)) / SECOND;
        let slowed = !self.no_fault && into >= self.starts("fault") && into < self.heals() + self.lag * SECOND;
        let rate = self.flood.filter(|_| phase == "warm-up").unwrap_or(self.rate);
        let mut sent = 0;
        for statement in ["read", "write"] {
            for coordinator in NODES {
                let mut count = rate / 6;
                if open {
                    count = count.saturating_sub(2);
                }
                sent += rate / 6;
                let failed = ((self.failing)(self.number, phase, second) * count as f64).round() as u64;
                let out = if fault && coordinator == "n2" { self.time_outs.min(count) } else { 0 };
                let base = match (phase, statement) {
                    ("warm-up", _) => 6 * MS / (second + 1) + MS,
                    (_, "read") => 1_200_000,
                    _ => 900_000,
                };
                let left = 1.0 - second as f64 / self.seconds[2] as f64;
                let unsettled = if phase == "baseline" { self.unsettled * left } else { 0.0 };
                let base = (base as f64 * (1.0 + (self.drift)(trial) + unsettled)) as u64;
                let slow = if coordinator == "n2" && slowed { self.slower } else { 0 };
                let broken = self.broken_in == Some(phase);
                let mut one = || if broken { 2 } else { slow + noise.latency(base) };
                let mut service = |count: u64| (0..count).map(|_| one()).collect::<Vec<u64>>();
                let wait = if broken { 0 } else { 20_000 };
                let row = |outcome: &str, values: Vec<u64>| {
                    recorder.latency(
                        trial,
                        &LatencyRow {
                            starts_ns,
                            statement: statement.to_owned(),
                            coordinator: coordinator.to_owned(),
                            outcome: outcome.to_owned(),
                            count: values.len() as u64,
                            wait: times(values.iter().map(|_| wait)),
                            service: times(values.iter().copied()),
                            response: times(values.iter().map(|value| value + wait)),
                        },
                    )
                };
                row("ok", service(count - failed - out))?;
                if failed > 0 {
                    row("failed:Unavailable", service(failed))?;
                }
                if out > 0 {
                    row("timed-out", vec![2 * SECOND; out as usize])?;
                    row("late", vec![3 * SECOND; out as usize / 2])?;
                }
            }
        }
        let late = fault && second < self.late_for;
        let lateness = if late { self.lateness } else { 50_000 };
        let invented = if phase == "baseline" && second == 1 { self.invented } else { 0 };
        recorder.load(
            trial,
            &LoadRow {
                settled: !open,
                scheduled: sent,
                sent: sent + invented,
                lateness: times((0..sent).map(|at| lateness / 2 + lateness * at / sent.max(1))),
                stood_still_ns: if late { self.stood_still } else { 0 },
                withheld: if phase == "baseline" { self.withheld } else { 0 },
                looked_for: 10,
                ..LoadRow::empty(starts_ns, SECOND)
            },
        )
    }

    fn routes(&self) -> Routes {
        Routes::new(self.overlay, &HOSTS.map(str::to_owned))
    }

    /// How late a probe is that is sent through the overlay: by what the links of its route do.
    fn late_above(&self, from: &str, to: &str, into: u64, since: u64) -> u64 {
        let slow = self.routes().of(from, to).iter().filter(|(from, _)| from == "n2").count() as u64;
        match self.slow_now(into) {
            true if self.stays_slow || self.stays_above => slow * self.shown,
            true => (slow * self.shown).min(self.heals() - into - since),
            false if self.stays_above && into >= self.heals() => slow * self.shown,
            false => 0,
        }
    }

    fn network(
        &self,
        recorder: &Recorder,
        trial: u32,
        starts_ns: u64,
        into: u64,
        noise: &mut Noise,
    ) -> Result<(), brownout_record::RecordError> {
        if self.phase_at(into) == "fault" {
            let (host, interface_dropped) = ("n1".to_owned(), self.unread_packets);
            let row = HostCounterRow { starts_ns, length_ns: SECOND, host, checksum_errors: 0, interface_dropped };
            recorder.host_counters(trial, &row)?;
        }
        for (from, to) in pairs() {
            let extra = |of_n2: u64| match from {
                _ if !self.slow_now(into) => 0,
                "n2" => of_n2,
                "n3" if self.second_fault.is_some() => self.second_fault.unwrap(),
                _ if self.also_slow == Some((from, to)) => self.asked,
                _ => 0,
            };
            let lost = if from == "n2" && self.slow_now(into) { self.lost } else { 0.0 };
            let samples = (0..self.probes).map(|at| {
                let arrived = noise.below(1_000_000) as f64 >= lost * 1e6;
                let since = at * SECOND / self.probes;
                let mut held = extra(self.shown);
                if held > 0 && !self.stays_slow {
                    // What is on its way when the fault is healed comes at once.
                    held = held.min(self.heals() - into - since);
                }
                let stalled = if self.phase_at(into) == "fault" && at % 20 == 0 { self.stall } else { 0 };
                let delay = BASE_DELAY + held + stalled + noise.below(30_000);
                ProbeSample {
                    seq: starts_ns / SECOND * self.probes + at,
                    sent_ns: starts_ns + since,
                    delay_ns: arrived.then_some(delay),
                    copies: u8::from(arrived),
                    reordered: false,
                }
            });
            let samples: Vec<ProbeSample> = samples.collect();
            let packets = 200;
            let lost = (packets as f64 * lost) as u64;
            let held = extra(self.counted);
            let overrun = if self.phase_at(into) == "fault" { self.overrun } else { 0 };
            recorder.link(
                trial,
                &LinkRow {
                    starts_ns,
                    length_ns: SECOND,
                    from: from.to_owned(),
                    to: to.to_owned(),
                    offered: packets,
                    offered_bytes: packets * 400,
                    delivered: packets - lost - overrun,
                    delivered_bytes: (packets - lost - overrun) * 400,
                    lost,
                    dropped_queue: 0,
                    dropped_emulator: overrun,
                    duplicated: 0,
                    corrupted: 0,
                    reordered: 0,
                    cut: 0,
                    too_big: 0,
                    release_error: histogram((0..packets).map(|at| 8_000 + at * 200)),
                    held: histogram((0..packets).map(|at| held + 5_000 + at * 100)),
                },
            )?;
            if !self.overlay.is_empty() {
                let lost = if self.phase_at(into) == "fault" { self.lost_above } else { 0.0 };
                let above = samples.iter().map(|sample| {
                    let since = sample.sent_ns - starts_ns;
                    let on_time = BASE_DELAY + noise.below(30_000);
                    let late = if self.only_below { 0 } else { self.late_above(from, to, into, since) };
                    // Of ten in a row as many as it is, not one after the other.
                    let arrived = sample.delay_ns.filter(|_| (sample.seq * 7 % 10) as f64 >= lost * 10.0);
                    let delay_ns = arrived.map(|_| on_time + late);
                    ProbeSample { delay_ns, copies: u8::from(delay_ns.is_some()), ..sample.clone() }
                });
                let samples = above.collect();
                let (from, to) = (from.to_owned(), to.to_owned());
                recorder.overlay_probe(trial, &ProbeRow { starts_ns, from, to, samples })?;
            }
            let (from, to) = (from.to_owned(), to.to_owned());
            recorder.probe(trial, &ProbeRow { starts_ns, from, to, samples })?;
        }
        Ok(())
    }
}
