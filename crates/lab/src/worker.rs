//! One lab of a run: it takes trial after trial, and tries each until one attempt is valid.

use std::{fs, time::Duration};

use brownout_analysis::{Judged, Validity};
use brownout_base::clock::monotonic_ns;
use brownout_record::{Environment, Event, Recorder, TrialRow};

use crate::{
    LabError,
    design::{Design, PlannedTrial},
    faults::Needs,
    ground::NO_PRIVILEGE,
    labs::{Ready, Shared},
    machine,
    machines::{self, Attempted, Machines},
    made::judged_now,
    progress::Progress,
    request::RunRequest,
    run::write_attached,
    stand::Stands,
    testbed::{Testbed, TestbedSettings, settings},
    timeline::TimeLine,
    trial::Trial,
};

/// A lab at work, in a thread of its own if there are several.
pub(crate) struct Worker<'a> {
    pub(crate) request: &'a RunRequest,
    pub(crate) shared: &'a Shared,
    /// Its number, from 0.
    pub(crate) lab: usize,
    /// What it runs on, as a list.
    pub(crate) processors: String,
    /// Whole processors that all labs together may use.
    pub(crate) cores: u32,
    /// What idle processors do.
    pub(crate) idle: &'a str,
    pub(crate) ground: Ground<'a>,
    /// By the number of the layout.
    pub(crate) needs: &'a [Needs],
    pub(crate) recorder: &'a mut Recorder,
    pub(crate) progress: &'a mut dyn Progress,
}

/// What trials are made on.
pub(crate) enum Ground<'a> {
    /// A network and a cluster on this machine.
    Stands(Box<Stands<'a>>),
    /// Several machines, each of which makes a part.
    Machines(Box<Machines<'a>>),
}

impl Worker<'_> {
    /// Until no trial is left.
    pub(crate) fn run(mut self) -> Result<(), LabError> {
        let result = self.trials();
        if let Ground::Stands(stands) = &mut self.ground {
            stands.end(self.progress);
        }
        result
    }

    fn trials(&mut self) -> Result<(), LabError> {
        while let Some(Ready { planned, mut attempts, most_attempts }) = self.next()? {
            let mut lesson = None;
            while attempts < most_attempts && lesson.is_none() {
                attempts += 1;
                let judged = self.attempt(planned, attempts, most_attempts)?;
                lesson = judged.filter(|judged| judged.validity == Validity::Valid).map(|judged| judged.lesson);
            }
            self.shared.settle(self.lab, planned, lesson);
        }
        Ok(())
    }

    /// The next trial that is this lab's.
    fn next(&mut self) -> Result<Option<Ready>, LabError> {
        let provided = match &self.ground {
            Ground::Stands(_) => &self.request.provided,
            Ground::Machines(machines) => machines.provided(),
        };
        let row = |design: &Design, cell: usize| design.cell_row(cell, |cluster| provided.database_of(cluster));
        self.shared.take(self.lab, self.recorder, &row)
    }

    /// Hosts that were moved since the last trial are taken where they are now.
    fn follow_hosts(&mut self) -> Result<(), LabError> {
        let Ground::Machines(machines) = &mut self.ground else { return Ok(()) };
        let Some((moves, source)) = machines.look_again(self.shared.interrupts())? else { return Ok(()) };
        self.shared.hosts_moved(&source)?;
        self.recorder.batch(|recorder| write_attached(recorder, &source.attached()))?;
        for text in moves {
            self.progress.note(&text);
            write(self.recorder, None, "moved", text)?;
        }
        Ok(())
    }

    /// Tries a trial once; none if it failed.
    fn attempt(&mut self, planned: PlannedTrial, attempt: u32, most: u32) -> Result<Option<Judged>, LabError> {
        self.follow_hosts()?;
        let begun = self.shared.attempt(planned, attempt)?;
        let row = TrialRow {
            planned: planned.number,
            cell: planned.cell as u32 + 1,
            block: planned.block,
            arm: planned.arm,
            attempt,
            stand: 0,
            lab: self.lab as u32 + 1,
            processors: self.processors.clone(),
            session: self.recorder.session(),
            trial: begun.number,
            ..TrialRow::single(begun.seed, 0, planned.arm)
        };
        let began = monotonic_ns();
        let result = match &mut self.ground {
            Ground::Stands(stands) => {
                let needs = self.needs[begun.layout].clone().and(begun.plan.needs());
                let trial = Trial {
                    plan: &begun.plan,
                    needs: &needs,
                    row,
                    layout: begun.layout,
                    load: begun.load,
                    title: begun.title,
                    course: begun.course,
                    sabotage: self.request.sabotage,
                    has_neighbours: self.shared.labs().are_several(),
                    time_line: TimeLine::begin(self.shared.interrupts()),
                };
                let (shared, request, cores, idle) = (self.shared, self.request, self.cores, self.idle);
                let cluster = &begun.plan.layout.cluster;
                let privilege = match begun.plan.layout.is_external() && !begun.plan.layout.is_attached() {
                    true => NO_PRIVILEGE,
                    false => stands.spec(begun.layout).privilege.name(),
                };
                let mut on_ready = |recorder: &mut Recorder, testbed: &Testbed| -> Result<(), LabError> {
                    if shared.stands() {
                        let java = request.provided.java_of(cluster);
                        let environment = environment(privilege, java, &settings(testbed), cores, idle, shared.seed());
                        recorder.batch(|recorder| recorder.json("environment", &environment))?;
                    }
                    Ok(())
                };
                trial.run(stands, self.recorder, self.progress, &mut on_ready)
            }
            Ground::Machines(machines) => {
                let layout = &begun.plan.layout;
                let made = machines.trial(Attempted {
                    plan: &begun.plan,
                    row,
                    title: begun.title,
                    course: begun.course,
                    interrupts: self.shared.interrupts(),
                    planned,
                    attempt,
                    levels: self.shared.levels(),
                });
                let result = made.and_then(|trial| trial.run(self.recorder, self.progress));
                if !matches!(result, Err(LabError::Machine(_))) && self.shared.stands() {
                    let settings = machines::settings(layout);
                    let environment =
                        environment(NO_PRIVILEGE, String::new(), &settings, self.cores, self.idle, self.shared.seed());
                    self.recorder.batch(|recorder| recorder.json("environment", &environment))?;
                }
                result
            }
        };
        match result {
            Ok(()) => {}
            // The run cannot go on, or nobody wants it to.
            Err(error @ (LabError::Interrupted | LabError::Record(_))) => return Err(error),
            // Nothing has stood yet: it is this machine that cannot build a lab now, or the file that asks for what cannot
            // be. To fail all trials that are missing for that would leave nothing to resume.
            Err(error) if !self.shared.stood() => return Err(error),
            Err(error) => {
                tell(self.recorder, Some(begun.number), "failed", &error)?;
                self.progress.note(&format!("trial {} failed: {error}", planned.number));
                return Ok(None);
            }
        }
        self.shared.took(planned, Duration::from_nanos(monotonic_ns() - began));
        let judged = judged_now(&self.request.provided.directory.join("run.db"), begun.number)?;
        if judged.validity != Validity::Valid {
            if let Ground::Stands(stands) = &mut self.ground {
                if judged.validity == Validity::Invalid {
                    stands.retire();
                }
                // A flood of a busy machine would set the rate of all that come after it here.
                stands.forget_capacity(begun.load);
            }
            let again = if attempt < most { "; it is repeated" } else { "" };
            let reason = judged.reasons.first().and_then(|reason| reason.lines().next()).unwrap_or_default();
            let validity = judged.validity.name();
            self.progress.note(&format!("trial {} is {validity}{again}: {reason}", planned.number));
        }
        Ok(Some(judged))
    }
}

/// Records what ended a trial, or the run.
pub(crate) fn tell(recorder: &mut Recorder, trial: Option<u32>, kind: &str, error: &LabError) -> Result<(), LabError> {
    write(recorder, trial, kind, error.to_string())
}

fn write(recorder: &mut Recorder, trial: Option<u32>, kind: &str, text: String) -> Result<(), LabError> {
    let event = Event {
        trial,
        at_ns: recorder.at(monotonic_ns()),
        error_ns: 0,
        kind: kind.to_owned(),
        subject: if trial.is_some() { "trial" } else { "run" }.to_owned(),
        text,
    };
    Ok(recorder.batch(|recorder| recorder.event(&event))?)
}

fn environment(
    privilege: &str,
    java: String,
    settings: &TestbedSettings,
    cores: u32,
    idle: &str,
    seed: u64,
) -> Environment {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Environment {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: release.trim().to_owned(),
        cpu: machine::cpu_model(),
        cores,
        memory: brownout_machine::total_memory(),
        clock_source: machine::clock_source_name(),
        privilege: privilege.to_owned(),
        emulator_scheduling: settings.emulator_scheduling.clone(),
        idle: idle.to_owned(),
        congestion_control: settings.congestion_control.clone(),
        java,
        system_settings: settings.system_settings.clone(),
        seed,
    }
}
