//! The trials of a run over several machines.

use std::sync::atomic::AtomicBool;

use brownout_record::TrialRow;

use super::{
    Reach,
    message::{Asked, Order, Role},
    trial::{MachinesTrial, Member},
};
use crate::{
    LabError,
    design::PlannedTrial,
    experiment::Machine,
    ground::Interrupts,
    plan::{Layout, Plan},
    progress::Course,
    request::RunRequest,
    testbed::TestbedSettings,
};

/// The machines of a run.
pub(crate) struct Machines<'a> {
    request: &'a RunRequest,
    reach: &'a dyn Reach,
    all: &'a [Machine],
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
    pub(crate) fn new(request: &'a RunRequest, reach: &'a dyn Reach, all: &'a [Machine]) -> Machines<'a> {
        Machines { request, reach, all, undropped: AtomicBool::new(false) }
    }

    /// That attempt, by all of them.
    pub(crate) fn trial<'b>(&'b self, attempted: Attempted<'b>) -> Result<MachinesTrial<'b>, LabError> {
        let Attempted { plan, row, title, course, interrupts, planned, attempt, levels } = attempted;
        let RunRequest { file, text, set, attached, provided, sabotage, .. } = self.request;
        let asked = Asked { file: file.clone(), text: text.clone(), set: set.clone(), attached: attached.clone() };
        let order = Order {
            asked,
            provided: provided.clone(),
            levels,
            planned: planned.into(),
            attempt,
            sabotage: *sabotage,
            machine: String::new(),
            role: Role::Agent,
        };
        let members = self.members(&plan.layout);
        let directory = &provided.directory;
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

    fn members(&self, layout: &Layout) -> Vec<Member> {
        let of = self.all.iter().filter(|machine| !machine.has_hosts).count();
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
        self.all.iter().map(member).collect()
    }
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
