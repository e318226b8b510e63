//! One trial: a stand, the load, and the faults on their time line.

use std::sync::Arc;

use brownout_base::clock::monotonic_ns;
use brownout_load::{Engine, LoadError, control};
use brownout_network::Network;
use brownout_probe::Probes;
use brownout_record::{PhaseRow, Recorder, TrialRow, TrialState};

use crate::{
    LabError,
    clear_text::ClearText,
    evidence::DatabaseEvidence,
    faults::{Needs, sabotage::sabotaged},
    filling::Filling,
    load_engine,
    observer::{Observer, Sources},
    phases::{PhaseRunner, Warm},
    plan::{Plan, Work, to_u16},
    progress::{Course, Progress},
    schedule::Schedule,
    spec::LabSpec,
    stand::{Stand, Stands, Wanted},
    testbed::Testbed,
    timeline::TimeLine,
    witness::Witnesses,
};

/// One attempt at a trial of a run.
pub(crate) struct Trial<'a> {
    /// What is to happen.
    pub(crate) plan: &'a Plan,
    /// What its faults need, and those of all trials with the same layout: all of them are watched alike.
    pub(crate) needs: &'a Needs,
    /// How the record has it, before it has begun.
    pub(crate) row: TrialRow,
    /// Number of its layout.
    pub(crate) layout: usize,
    /// The first cell with the same load.
    pub(crate) load: usize,
    /// "trial 3 of 12 (delay 10ms)".
    pub(crate) title: String,
    /// Its index among all, for progress.
    pub(crate) course: Course,
    /// Faults are acknowledged and not put in force: the negative control.
    pub(crate) sabotage: bool,
    /// Other labs work in this process, on processors of their own.
    pub(crate) has_neighbours: bool,
    /// Its marks.
    pub(crate) time_line: TimeLine,
}

/// Told once, when network and cluster stand.
pub(crate) type OnReady<'a> = dyn FnMut(&mut Recorder, &Testbed) -> Result<(), LabError> + 'a;

impl Trial<'_> {
    /// Runs it and records it. The record says how it ended, also when this returns an error.
    pub(crate) fn run(
        mut self,
        stands: &mut Stands<'_>,
        recorder: &mut Recorder,
        progress: &mut dyn Progress,
        on_ready: &mut OnReady<'_>,
    ) -> Result<(), LabError> {
        self.row.starts_ns = recorder.at(self.time_line.epoch_ns);
        recorder.batch(|recorder| recorder.trial(&self.row))?;
        let result = self.on_a_stand(stands, recorder, progress, on_ready);
        record_end(self.row, result, recorder)
    }

    fn on_a_stand(
        &mut self,
        stands: &mut Stands<'_>,
        recorder: &mut Recorder,
        progress: &mut dyn Progress,
        on_ready: &mut OnReady<'_>,
    ) -> Result<(), LabError> {
        let set_up = PhaseRow {
            trial: self.row.trial,
            name: "set-up".to_owned(),
            starts_ns: recorder.at(self.time_line.epoch_ns),
            ends_ns: None,
            ended_by: None,
        };
        recorder.batch(|recorder| recorder.phase(&set_up))?;
        let wanted = Wanted {
            layout: self.layout,
            needs: self.needs,
            seed: self.row.seed,
            fresh_every: self.plan.fresh_every,
            title: &self.title,
        };
        let mut stand = stands.take(&wanted, self.time_line, progress)?;
        if let Some(own) = &mut stand.testbed.own_data {
            let told = own.claim(&self.plan.load.work)?;
            told.iter().for_each(|told| progress.note(told));
        }
        self.row.stand = stand.number;
        // Who is killed from now on has been served by it.
        recorder.batch(|recorder| recorder.trial(&self.row))?;
        on_ready(recorder, &stand.testbed)?;
        let result = self.drive(&mut stand, stands.spec(self.layout), recorder, progress, set_up);
        // After a failure nobody knows what is left of it.
        stands.give_back(stand, result.is_ok() && !self.plan.restarts());
        result
    }

    fn drive(
        &self,
        stand: &mut Stand,
        spec: &LabSpec,
        recorder: &mut Recorder,
        progress: &mut dyn Progress,
        set_up: PhaseRow,
    ) -> Result<(), LabError> {
        let Trial { plan, needs, sabotage, has_neighbours, time_line, .. } = *self;
        let TrialRow { trial: number, seed, .. } = self.row;
        let hosts = &plan.layout.hosts;
        let is_fresh = stand.is_fresh();
        let capacity = stand.capacities.get(&self.load).copied();
        let testbed = &mut stand.testbed;
        let coordinators = load_engine::coordinators(plan, testbed)?;
        let engine = || load_engine::config(plan, testbed, coordinators.clone(), seed, time_line.epoch_ns);
        let interrupted = || time_line.interrupted();
        let unless_interrupted = |error: LoadError| if interrupted() { LabError::Interrupted } else { error.into() };
        let limit = control::Limit { time: load_engine::CONTROL_WITHIN, interrupted: &interrupted };
        if plan.layout.cluster.encryption.is_some() {
            progress.step(&format!("{}: looking for clear text", self.title));
        }
        ClearText { plan, testbed, trial: number, seed }.look(recorder, limit)?;
        let (engine, filling) = match &plan.load.work {
            Work::KeyValue(_) | Work::Etcd(_) => {
                progress.step(&format!("{}: making the schema", self.title));
                load_engine::make_schema(plan, testbed, &coordinators, &interrupted)?;
                (load_engine::start(plan, engine(), &interrupted)?, None)
            }
            Work::Profiles(load) => {
                progress.step(&format!("{}: making the schema", self.title));
                let made = testbed.in_load(|| load.make(&coordinators, &testbed.wire, seed, &interrupted))?.map_err(
                    |error| match interrupted() {
                        true => LabError::Interrupted,
                        false => LabError::Trial(error.to_string()),
                    },
                )?;
                made.notes.iter().for_each(|note| progress.note(note));
                let filling = Filling::start(engine(), &made, &interrupted).map_err(unless_interrupted)?;
                let started = Engine::launch_unless(engine(), made.load, &interrupted);
                (started.map_err(unless_interrupted)?, Some(filling))
            }
        };
        let Testbed { network, cluster, capabilities, controls, attached, .. } = testbed;
        let network: &Network = network;
        let measured_ns = monotonic_ns();
        let probes = Probes::start_on(network, &controls.watched(hosts), crate::plan::probe_interval(hosts));
        let probes = Arc::new(probes?);
        let above = network.overlay().map(|overlay| Probes::start(overlay, crate::plan::probe_interval(hosts)));
        let overlay_probes = above.transpose()?;
        // Containers have one of their own.
        let mtu = if network.is_attached() { network.mtu() } else { to_u16(plan.layout.network.mtu.0) };
        let witnesses = Witnesses::start(needs, network, network, mtu, controls)?;
        // Where a container is started again, they go on in its new network.
        let mut followers = witnesses.followers();
        followers.push(Arc::<Probes>::clone(&probes));
        let _following = attached.as_ref().map(|attached| attached.followed_by(followers, measured_ns)).transpose()?;
        let evidence = DatabaseEvidence::start(&controls.nodes, needs, time_line.epoch_ns)?;
        let sources = Sources {
            network,
            probes: &probes,
            overlay_probes: overlay_probes.as_ref(),
            witnesses: &witnesses,
            evidence: &evidence,
            attached: attached.as_ref(),
            proc: &spec.proc,
            has_neighbours,
            beside: &[],
        };
        let observer = Observer::new(number, recorder, cluster, sources, time_line.epoch_ns)?;
        let capabilities = if sabotage { sabotaged(capabilities) } else { capabilities.clone() };
        let schedule = Schedule::new(&plan.faults, hosts, &capabilities, seed);
        let warm = (!is_fresh).then_some(Warm { capacity });
        let course = self.course;
        let runner = PhaseRunner {
            plan,
            number,
            course,
            time_line,
            engine,
            filling,
            observer,
            schedule,
            progress,
            set_up,
            warm,
        };
        let flooded = runner.run()?;
        stand.capacities.extend(flooded.map(|capacity| (self.load, capacity)));
        Ok(())
    }
}

/// Records how a trial has ended now.
///
/// # Errors
/// That of the trial; what went wrong first is what a person has to know. Else that of the recording.
pub(crate) fn record_end(
    mut row: TrialRow,
    result: Result<(), LabError>,
    recorder: &mut Recorder,
) -> Result<(), LabError> {
    row.ends_ns = Some(recorder.at(monotonic_ns()));
    row.state = match &result {
        Ok(()) => TrialState::Done,
        Err(LabError::Interrupted) => TrialState::Interrupted,
        Err(_) => TrialState::Failed,
    };
    let recorded = recorder.batch(|recorder| recorder.trial(&row));
    result.and(recorded.map_err(LabError::from))
}
