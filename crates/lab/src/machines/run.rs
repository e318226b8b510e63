//! The trials of a run over several machines.

use std::{sync::atomic::AtomicBool, thread, time::Instant};

use brownout_record::TrialRow;

use super::{
    Reach,
    find::{provided, survey},
    message::{Order, Role},
    pods::{LOOK, REPLACED_WITHIN, find_again},
    trial::{MachinesTrial, Member},
};
use crate::{
    LabError,
    design::{Design, PlannedTrial},
    experiment::{Machine, Source},
    ground::Interrupts,
    plan::{Layout, Plan},
    progress::Course,
    provided::Provided,
    request::{Asked, RunRequest},
    testbed::TestbedSettings,
};

/// The machines of a run.
pub(crate) struct Machines<'a> {
    request: &'a RunRequest,
    reach: &'a dyn Reach,
    /// With the hosts as they are now.
    asked: Asked,
    layout: Layout,
    provided: Provided,
    /// A load has made something in the cluster, and has not dropped it yet.
    undropped: AtomicBool,
}

/// An attempt at a trial.
pub(crate) struct Attempted<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) row: TrialRow,
    pub(crate) title: String,
    pub(crate) course: Course,
    pub(crate) interrupts: Interrupts,
    pub(crate) planned: PlannedTrial,
    pub(crate) attempt: u32,
    /// Of a search, the levels that have become cells.
    pub(crate) levels: Vec<String>,
}

impl<'a> Machines<'a> {
    pub(crate) fn new(request: &'a RunRequest, reach: &'a dyn Reach, layout: &Layout) -> Machines<'a> {
        let (asked, provided) = (request.asked.clone(), request.provided.clone());
        Machines { request, reach, asked, layout: layout.clone(), provided, undropped: AtomicBool::new(false) }
    }

    /// What the cluster runs, known by where it is now.
    pub(crate) fn provided(&self) -> &Provided {
        &self.provided
    }

    /// Whether all hosts are where they were; else what has moved, in words, and the file with them as they are now.
    ///
    /// # Errors
    /// They do not run, and are not made anew; or they run something else now.
    pub(crate) fn look_again(&mut self, interrupts: Interrupts) -> Result<Option<(Vec<String>, Source)>, LabError> {
        let (Some(pods), Some(before)) = (&self.layout.pods, &self.layout.containers) else { return Ok(None) };
        let failed = |why| if interrupts.any() { LabError::Interrupted } else { LabError::Machine(why) };
        let Some(now) = find_again(pods, before, interrupts).map_err(failed)? else { return Ok(None) };
        let moves = before.moves(&now);
        let source = self.asked.source()?.with_pods(&now);
        self.asked.attached = source.attached();
        let layout = Design::new(&source)?.first().layout.clone();
        let until = Instant::now() + REPLACED_WITHIN;
        let software = loop {
            match survey(self.reach, &layout.machines, self.asked.clone()) {
                Ok(software) => break software,
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) if interrupts.any() => return Err(LabError::Interrupted),
                // Where nobody says when a pod is ready, it may not be yet.
                Err(_) => thread::sleep(LOOK),
            }
        };
        let provided = provided(&self.provided.directory, software);
        let (was, is) = (self.provided.database_of(&self.layout.cluster), provided.database_of(&layout.cluster));
        if was != is {
            return Err(LabError::Machine(format!("the pods ran {was} and run {is}; begin a new run with that")));
        }
        (self.layout, self.provided) = (layout, provided);
        Ok(Some((moves, source)))
    }

    /// That attempt, by all of them.
    pub(crate) fn trial<'b>(&'b self, attempted: Attempted<'b>) -> Result<MachinesTrial<'b>, LabError> {
        let Attempted { plan, row, title, course, interrupts, planned, attempt, levels } = attempted;
        let order = Order {
            asked: self.asked.clone(),
            provided: self.provided.clone(),
            levels,
            planned: planned.into(),
            attempt,
            sabotage: self.request.sabotage,
            machine: String::new(),
            role: Role::Agent,
        };
        let members = members(&plan.layout);
        let directory = &self.provided.directory;
        Ok(MachinesTrial {
            plan,
            row,
            title,
            course,
            interrupts,
            members,
            reach: self.reach,
            order,
            directory,
            undropped: &self.undropped,
        })
    }
}

fn members(layout: &Layout) -> Vec<Member> {
    let of = layout.machines.iter().filter(|machine| !machine.has_hosts).count();
    let containers = || layout.containers.iter().flat_map(|found| &found.containers);
    let mut loads = 0..of;
    let member = |machine: &Machine| {
        let on_it = containers().filter(|one| one.machine.as_ref() == Some(&machine.name));
        let role = match machine.has_hosts {
            true => Role::Agent,
            false => Role::Load { number: loads.next().unwrap_or(0), of },
        };
        Member { name: machine.name.clone(), role, hosts: on_it.map(|one| one.name.clone()).collect() }
    };
    layout.machines.iter().map(member).collect()
}

/// What there is to tell of labs on several machines.
pub(crate) fn settings(layout: &Layout) -> TestbedSettings {
    let names: Vec<&str> = layout.machines.iter().map(|machine| machine.name.as_str()).collect();
    TestbedSettings {
        emulator_scheduling: format!("of each machine its own: {}", names.join(", ")),
        congestion_control: "of each machine its own".to_owned(),
        system_settings: "{}".to_owned(),
    }
}
