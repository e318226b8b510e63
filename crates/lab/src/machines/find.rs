//! What there is on the machines of an experiment, before it is run.

use std::{path::Path, time::Duration};

use brownout_base::clock::monotonic_ns;
use brownout_containers::{By, Selection};
use brownout_network::Way;
use brownout_record::MachineRole;

use super::{
    fleet::{Heard, Part, Reach, Started, by_command},
    message::{FromPart, ToPart},
};
use crate::{
    LabError,
    experiment::{ContainersFound, Machine},
    provided::Provided,
    request::Asked,
    software::Software,
};

/// A machine that is asked has answered by then.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);
/// The hidden command that a part is started with.
pub const PART: &str = "part";

/// Machines that are reached by commands of the shell.
pub(crate) struct ByCommands(pub(crate) Vec<Machine>);

impl Reach for ByCommands {
    fn start(&self, machine: &str) -> Result<Started, String> {
        let known = self.0.iter().find(|known| known.name == machine);
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let command = known.and_then(|known| known.start.command(&own.to_string_lossy(), PART));
        by_command(&command.ok_or_else(|| format!("no command starts anything on {machine}"))?)
            .map_err(|error| error.to_string())
    }
}

/// Asks one part one thing.
fn ask<T>(
    reach: &dyn Reach,
    machine: &str,
    question: &ToPart,
    mut wanted: impl FnMut(FromPart) -> Option<T>,
) -> Result<T, String> {
    let part = Part::start(reach, machine, MachineRole::Agent, Path::new("")).map_err(|error| error.to_string())?;
    part.tell(question);
    let until = monotonic_ns() + ANSWERS_WITHIN.as_nanos() as u64;
    while monotonic_ns() < until {
        part.tell(&ToPart::Lease);
        match part.hear(Duration::from_millis(500)) {
            Some(Heard::Message(FromPart::Failed { text, .. })) => return Err(format!("{machine}: {text}")),
            Some(Heard::Message(message)) => {
                if let Some(answer) = wanted(message) {
                    return Ok(answer);
                }
            }
            Some(Heard::Gone(why)) => {
                return Err(format!("{machine}: {why}; can this program be started there, as the file says?"));
            }
            Some(Heard::Over { .. }) | None => {}
        }
    }
    Err(format!("{machine} has not answered within {} s", ANSWERS_WITHIN.as_secs()))
}

/// The containers of all machines, each with its machine.
///
/// # Errors
/// One cannot be reached, or has no such containers; in words.
pub(crate) fn find_on(reach: &dyn Reach, selections: &[(String, Selection)]) -> Result<ContainersFound, String> {
    let (mut containers, mut addresses, mut way) = (Vec::new(), Vec::new(), None);
    for (machine, selection) in selections {
        let found = |message| if let FromPart::Found { text } = message { Some(text) } else { None };
        let text = ask(reach, machine, &ToPart::Look(selection.clone()), found)?;
        let found: ContainersFound = serde_json::from_str(&text).map_err(|error| format!("{machine}: {error}"))?;
        if found.way != Some(Way::ALL[0]) {
            let best = Way::ALL[0].name();
            return Err(format!(
                "{machine} cannot divert packets in the way `{best}`, the only one by which links between machines are carried; \
                 `brownout doctor` there says what it lacks"
            ));
        }
        way = found.way;
        addresses.extend(found.machine.iter().copied());
        containers.extend(found.containers.into_iter().map(|mut one| {
            one.machine = Some(machine.clone());
            one
        }));
    }
    let names = containers.iter().map(|container| container.name.clone()).collect();
    let selection = Selection { by: By::Names(names), socket: None };
    Ok(ContainersFound { selection, containers, machine: addresses, way, here: None })
}

/// What the nodes run, asked from the first machine.
pub(crate) fn survey(reach: &dyn Reach, machines: &[Machine], asked: Asked) -> Result<Vec<Software>, LabError> {
    let first = machines.first().ok_or_else(|| LabError::Machine("there are no machines".to_owned()))?;
    let surveyed = |message| if let FromPart::Surveyed { software } = message { Some(software) } else { None };
    ask(reach, &first.name, &ToPart::Survey(Box::new(asked)), surveyed).map_err(LabError::Machine)
}

/// That, in a run's directory.
pub(crate) fn provided(directory: &Path, software: Vec<Software>) -> Provided {
    Provided { directory: directory.to_owned(), cache: directory.to_owned(), software }
}
