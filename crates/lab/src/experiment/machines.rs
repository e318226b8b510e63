//! `ground.machines:` of an experiment file: several machines with containers that run already, and those from which operations are
//! sent.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Complaint, ContainersSection};

/// `ground.machines.NAME:` — a machine, and how this program is started there. With `containers` it is one of the cluster's; without,
/// operations are sent from there, a share from each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct MachineSection {
    /// A command of the shell that runs a command on the machine, with that one's standard input and output: `ssh root@a`. Default:
    /// none, it is this machine.
    pub via: String,
    /// This program there. Default: `brownout`; of this machine the one that runs.
    pub program: Option<String>,
    /// Its containers that are nodes. Default: none, operations are sent from there.
    pub containers: Option<ContainersSection>,
}

/// A machine of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// How a part of a run is started there.
    pub start: Start,
    /// Whether hosts run there; else operations are sent from there.
    pub has_hosts: bool,
}

/// How a part of a run is started on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// By a command of the shell.
    Command {
        /// What starts a command there; empty: nothing, it is this machine.
        via: String,
        /// This program there; none: the one that runs.
        program: Option<String>,
    },
    /// In the agent of a node of Kubernetes, which has the machine's name.
    Agent,
    /// In the pod of this number of those that send operations.
    Load(u32),
}

/// From where operations are sent if no machine of the file is for that.
pub const HERE: &str = "here";

/// All of them, those with hosts first; with this one, if no other sends operations.
pub(super) fn machines(sections: &BTreeMap<String, MachineSection>) -> Result<Vec<Machine>, Complaint> {
    let machine = |(name, section): (&String, &MachineSection)| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(plain) {
            let message = "a machine has a name that none can have; use letters, digits, '-', '_' and '.'".to_owned();
            return Err(Complaint::at("", message));
        }
        let MachineSection { via, program, containers } = section.clone();
        Ok(Machine { name: name.clone(), start: Start::Command { via, program }, has_hosts: containers.is_some() })
    };
    let mut all = sections.iter().map(machine).collect::<Result<Vec<_>, _>>()?;
    if !all.iter().any(|machine| machine.has_hosts) {
        let message = "no machine has containers; write of one at least which of its containers are nodes: containers: { names: \
                       [NAME, …] }";
        return Err(Complaint::at("", message.to_owned()));
    }
    if all.iter().all(|machine| machine.has_hosts) {
        let name =
            if all.iter().any(|machine| machine.name == HERE) { format!("{HERE}-load") } else { HERE.to_owned() };
        all.push(Machine { name, start: Start::Command { via: String::new(), program: None }, has_hosts: false });
    }
    all.sort_by_key(|machine| !machine.has_hosts);
    Ok(all)
}

impl Start {
    /// The command of the shell that starts a part there; none: no command does. `own` is the program that runs.
    pub fn command(&self, own: &str, part: &str) -> Option<String> {
        let Start::Command { via, program } = self else { return None };
        Some(match via.trim() {
            "" => format!("exec {} {part}", quoted(program.as_deref().unwrap_or(own))),
            via => format!("exec {via} {} {part}", quoted(program.as_deref().unwrap_or("brownout"))),
        })
    }
}

/// A word of the shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Result<Vec<Machine>, String> {
        machines(&serde_json::from_str(json).unwrap()).map_err(|complaint| complaint.message)
    }

    #[test]
    fn machines_with_hosts_come_first_and_somebody_sends_operations() {
        let two = of(r#"{"b":{"via":"ssh b","containers":{"names":"c2"}},"a":{},"c":{"containers":{"project":"p"}}}"#)
            .unwrap();
        let names: Vec<(&str, bool)> = two.iter().map(|one| (one.name.as_str(), one.has_hosts)).collect();
        assert_eq!(names, [("b", true), ("c", true), ("a", false)]);
        let alone = of(r#"{"b":{"containers":{"names":"c2"}}}"#).unwrap();
        let here = Start::Command { via: String::new(), program: None };
        assert_eq!((alone.len(), alone[1].name.as_str(), &alone[1].start), (2, HERE, &here));
        assert!(of(r#"{"a":{}}"#).unwrap_err().contains("no machine has containers"));
        assert!(of(r#"{"a b":{"containers":{"names":"c2"}}}"#).unwrap_err().contains("name that none can have"));
    }

    #[test]
    fn a_part_is_started_by_the_machines_own_command() {
        let command = |via: &str, program: Option<&str>, own: &str| {
            Start::Command { via: via.to_owned(), program: program.map(str::to_owned) }.command(own, "part").unwrap()
        };
        assert_eq!(command("ssh root@a", None, "/x/brownout"), "exec ssh root@a brownout part");
        assert_eq!(command("ssh a", Some("/opt/b o"), "/x/brownout"), "exec ssh a '/opt/b o' part");
        assert_eq!(command(" ", None, "/x/it's"), r"exec '/x/it'\''s' part");
        assert_eq!(Start::Agent.command("/x/brownout", "part"), None);
    }
}
