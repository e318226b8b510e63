//! `ground:` of an experiment file: what the experiment is run on, if that is no lab of its own.

use std::{collections::BTreeMap, io, path::PathBuf};

use brownout_containers::{By, Selection};
use brownout_units::Count;
use serde::Deserialize;

use super::{
    ClusterSection, Complaint, Experiment, FileError, KubernetesSection, MachineSection, Names, Pods, Source,
    found::{ContainersFound, KEPT_AS, name_of},
    machines::{Machine, machines},
};
use crate::machines::{ByCommands, find_on, find_pods};

/// `ground:` — containers that run already, instead of a lab that is made. Default: a lab.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct GroundSection {
    /// The containers, all on this machine. Required, or `machines`, or `kubernetes`.
    pub containers: Option<ContainersSection>,
    /// Machines with containers, by name, instead.
    pub machines: BTreeMap<String, MachineSection>,
    /// Pods of Kubernetes, instead.
    pub kubernetes: Option<KubernetesSection>,
}

/// `ground.containers:` — exactly one of `project`, `names`, `label`, `pids` and `netns`. All that are found are nodes of the
/// cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ContainersSection {
    /// Those of a Compose project.
    pub project: Option<String>,
    /// Those of these names, or of one.
    pub names: Option<Names>,
    /// Those with a label, `app=db`, or with a label of any value, `app`.
    pub label: Option<String>,
    /// Those whose processes these are, by their numbers on this machine; no runtime is asked.
    pub pids: Option<Vec<Count>>,
    /// Those with these network namespaces, `/run/netns/db1`; no runtime is asked.
    pub netns: Option<Vec<PathBuf>>,
    /// The socket of the runtime. Default: the first of the usual ones that answers.
    pub socket: Option<PathBuf>,
}

impl ContainersSection {
    /// Which containers are meant.
    ///
    /// # Errors
    /// When it names none, or names them in two ways.
    pub fn selection(&self) -> Result<Selection, Complaint> {
        const WAYS: &str = "write one of project: NAME, names: [NAME, …], label: KEY=VALUE, pids: [PID, …] and netns: \
                            [PATH, …]";
        let text = |key: &'static str, text: &Option<String>| match text.as_deref().map(str::trim) {
            Some("") => Err(Complaint::at(key, format!("its value is missing; {WAYS}"))),
            text => Ok(text.map(str::to_owned)),
        };
        let (project, label) = (text("project", &self.project)?, text("label", &self.label)?);
        let mut ways: Vec<(&'static str, By)> = Vec::new();
        ways.extend(project.map(|project| ("project", By::Project(project))));
        ways.extend(self.names.clone().map(|Names(names)| ("names", By::Names(names))));
        ways.extend(label.map(|label| ("label", By::Label(label))));
        if let Some(pids) = &self.pids {
            let pids = pids.iter().map(|pid| {
                let known = u32::try_from(pid.0).ok().filter(|pid| *pid > 0);
                let message = || format!("{} is no number of a process; {WAYS}", pid.0);
                known.ok_or_else(|| Complaint::at("pids", message()))
            });
            ways.push(("pids", By::Pids(pids.collect::<Result<_, _>>()?)));
        }
        ways.extend(self.netns.clone().map(|paths| ("netns", By::Namespaces(paths))));
        let count = ways.len();
        let mut ways = ways.into_iter();
        match (ways.next(), ways.next()) {
            (None, _) => Err(Complaint::at("", format!("which containers are meant is missing; {WAYS}"))),
            (Some(_), Some((key, _))) => {
                let message = format!("containers are chosen in {count} ways here, and one is possible; {WAYS}");
                Err(Complaint::at(key, message))
            }
            (Some((key, by)), None) => {
                let is_empty = match &by {
                    By::Names(names) => names.is_empty(),
                    By::Pids(pids) => pids.is_empty(),
                    By::Namespaces(paths) => paths.is_empty(),
                    By::Project(_) | By::Label(_) => false,
                };
                if is_empty {
                    return Err(Complaint::at(key, format!("the list is empty; {WAYS}")));
                }
                Ok(Selection { by, socket: self.socket.clone() })
            }
        }
    }
}

/// Which containers are meant, by machine.
type Selections = Vec<(String, Selection)>;

/// A ground that is pods, as its key.
const KUBERNETES: &str = "kubernetes";

/// As what is found of a ground is kept.
fn kept_as(ground: &str) -> String {
    format!("{KEPT_AS}{ground}")
}

impl Source {
    /// Puts the experiment on its ground, if it names one: finds the containers, unless they were found before, and takes them
    /// for the nodes of a cluster that runs already. What of the file means nothing there is refused, or, where the ground was
    /// named on the command line over a file that was made for a lab, left out and told.
    pub(super) fn put_on_ground(&self, experiment: &mut Experiment) -> Result<(), FileError> {
        let Some(section) = &experiment.ground else { return Ok(()) };
        let pods = self.pods(section, &experiment.cluster)?;
        let section = section.clone();
        // Before anything is made there.
        self.leave_out(experiment)?;
        let found = if let Some(pods) = pods {
            let found = self.found_once(&kept_as(KUBERNETES), "ground.kubernetes", || find_pods(&pods))?;
            experiment.machines = pods.machines(&found);
            experiment.pods = Some(pods);
            found
        } else if !section.machines.is_empty() {
            let (machines, selections) = self.selections_on(&section)?;
            let find = || find_on(&ByCommands(machines.clone()), &selections);
            let found = self.found_once(&kept_as("machines"), "ground.machines", find)?;
            experiment.machines = machines;
            found
        } else {
            let selection = self.selection_of(&section)?;
            self.found_once(&name_of(&selection), "ground.containers", || ContainersFound::find(&selection))?
        };
        self.take_for_nodes(experiment, &found)?;
        experiment.found = Some(found);
        Ok(())
    }

    /// The pods that are meant; none: the ground is no Kubernetes.
    fn pods(&self, section: &GroundSection, cluster: &ClusterSection) -> Result<Option<Pods>, FileError> {
        let Some(kubernetes) = &section.kubernetes else { return Ok(None) };
        if section.containers.is_some() || !section.machines.is_empty() {
            let message = "a ground is one: containers, machines or kubernetes; leave the others out".to_owned();
            return Err(self.complain("ground.kubernetes", message));
        }
        let complain = |one: Complaint| self.complain(&format!("ground.kubernetes.{}", one.key), one.message);
        kubernetes.pods(cluster).map(Some).map_err(complain)
    }

    /// Containers as they were found when the file was first read; `name` is what they are kept as, `key` what selects them.
    fn found_once(
        &self,
        name: &str,
        key: &str,
        find: impl FnOnce() -> Result<ContainersFound, String>,
    ) -> Result<ContainersFound, FileError> {
        let find = || {
            let found = find().map_err(io::Error::other)?;
            serde_json::to_string(&found).map_err(io::Error::other)
        };
        let text = self.attached.made(name, find).map_err(|error| self.complain(key, error.to_string()))?;
        let unread = |error| self.complain(key, format!("what was found of them cannot be read: {error}"));
        serde_json::from_str(&text).map_err(unread)
    }

    /// The same as they are now; none if the file names no other machines.
    pub(crate) fn elsewhere_now(&self) -> Result<Option<ContainersFound>, FileError> {
        let experiment: Experiment = self.structs(self.document.tree(), "")?;
        let Some(section) = experiment.ground else { return Ok(None) };
        if let Some(pods) = self.pods(&section, &experiment.cluster)? {
            if pods.own.is_some() {
                let message = "the cluster of this run was removed when its command ended; begin a new run".to_owned();
                return Err(self.complain("ground.kubernetes.own", message));
            }
            return find_pods(&pods).map(Some).map_err(|why| self.complain("ground.kubernetes", why));
        }
        if section.machines.is_empty() {
            return Ok(None);
        }
        let (machines, selections) = self.selections_on(&section)?;
        find_on(&ByCommands(machines), &selections).map(Some).map_err(|why| self.complain("ground.machines", why))
    }

    /// All machines, and which containers are meant on each that has any.
    fn selections_on(&self, section: &GroundSection) -> Result<(Vec<Machine>, Selections), FileError> {
        if section.containers.is_some() {
            let message =
                "containers are of this machine alone, and machines are others; write one of the two".to_owned();
            return Err(self.complain("ground.machines", message));
        }
        let machines = machines(&section.machines).map_err(|one| self.complain("ground.machines", one.message))?;
        let mut selections = Vec::new();
        for machine in machines.iter().filter(|machine| machine.has_hosts) {
            let containers = section.machines.get(&machine.name).and_then(|machine| machine.containers.as_ref());
            let selection = containers.map(ContainersSection::selection).transpose().map_err(|complaint| {
                let key = format!("ground.machines.{}.containers.{}", machine.name, complaint.key);
                self.complain(key.trim_end_matches('.'), complaint.message)
            })?;
            selections.extend(selection.map(|selection| (machine.name.clone(), selection)));
        }
        Ok((machines, selections))
    }

    /// Which containers the file's `ground:` selects, wherever they are; none if it has no ground.
    ///
    /// # Errors
    /// The file is no experiment's, or selects none, or in two ways.
    pub fn selection(&self) -> Result<Option<Selection>, FileError> {
        let experiment: Experiment = self.structs(self.document.tree(), "")?;
        experiment.ground.as_ref().map(|section| self.selection_of(section)).transpose()
    }

    fn selection_of(&self, section: &GroundSection) -> Result<Selection, FileError> {
        if !section.machines.is_empty() {
            let message =
                "the containers are on several machines; ask for those of one there: brownout ground NAME…".to_owned();
            return Err(self.complain("ground.machines", message));
        }
        if section.kubernetes.is_some() {
            let message = "they are pods of Kubernetes; `brownout check FILE` shows them".to_owned();
            return Err(self.complain("ground.kubernetes", message));
        }
        let Some(containers) = &section.containers else {
            let message = "which ground is missing; write ground: { containers: { project: NAME } }, or leave it out for \
                           a lab";
            return Err(self.complain("ground", message.to_owned()));
        };
        containers.selection().map_err(|complaint| {
            let dot = if complaint.key.is_empty() { "" } else { "." };
            self.complain(&format!("ground.containers{dot}{}", complaint.key), complaint.message)
        })
    }

    /// With these containers as those that their selection finds, and no others to be found: as they were found elsewhere, or
    /// are made up.
    #[must_use]
    pub fn with_containers(self, found: &ContainersFound) -> Self {
        self.with_found(name_of(&found.selection), found)
    }

    /// With the pods of the ground as they are now, in place of those that were found before.
    #[must_use]
    pub(crate) fn with_pods(self, now: &ContainersFound) -> Self {
        self.with_found(kept_as(KUBERNETES), now)
    }

    fn with_found(self, name: String, found: &ContainersFound) -> Self {
        let mut files = self.attached();
        // A text that cannot be written is not there, and is asked for in vain.
        files.extend(serde_json::to_string(found).ok().map(|text| (name, text)));
        self.with_attached(files)
    }

    /// Has the cluster be one that runs already, on these containers.
    fn take_for_nodes(&self, experiment: &mut Experiment, found: &ContainersFound) -> Result<(), FileError> {
        if let Some((name, why)) = found.unusable() {
            return Err(self.complain("ground.containers", format!("{name} {why}")));
        }
        let names = found.names();
        if let Some(nodes) = experiment.cluster.nodes.take().filter(|nodes| nodes.0 != names.len() as u64) {
            let message = format!(
                "the file says {nodes} nodes, and there {}: {}; leave nodes out, or choose others by ground.containers",
                if names.len() == 1 { "is 1 container".to_owned() } else { format!("are {} containers", names.len()) },
                names.join(", ")
            );
            return Err(self.complain("cluster.nodes", message));
        }
        let port = experiment.cluster.kind().client_port();
        let clients = found.addresses().into_iter().map(|address| format!("{address}:{port}"));
        experiment.cluster.external = Some(super::Addresses(clients.collect()));
        experiment.cluster.names = names;
        Ok(())
    }

    /// Whether the ground was named on the command line, over a file that may have been made for a lab.
    pub(super) fn is_moved(&self) -> bool {
        self.set.iter().any(|set| set == "ground" || set.starts_with("ground."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(json: &str) -> Result<Selection, Complaint> {
        serde_json::from_str::<ContainersSection>(json).unwrap().selection()
    }

    #[test]
    fn containers_are_chosen_in_one_way_each_of_which_is_known() {
        let by = |json: &str| section(json).unwrap().by;
        assert!(matches!(by(r#"{"project":" shop "}"#), By::Project(project) if project == "shop"));
        assert!(matches!(by(r#"{"names":"c1"}"#), By::Names(names) if names == ["c1"]));
        assert!(matches!(by(r#"{"names":["c1","c2"]}"#), By::Names(names) if names == ["c1", "c2"]));
        assert!(matches!(by(r#"{"label":"app=db"}"#), By::Label(label) if label == "app=db"));
        assert!(matches!(by(r#"{"pids":["17","18"]}"#), By::Pids(pids) if pids == [17, 18]));
        let paths = [PathBuf::from("/run/netns/a")];
        assert!(matches!(by(r#"{"netns":["/run/netns/a"]}"#), By::Namespaces(found) if found == paths));
        let chosen = section(r#"{"project":"shop","socket":"/run/podman/podman.sock"}"#).unwrap();
        assert_eq!(chosen.socket, Some(PathBuf::from("/run/podman/podman.sock")));
    }

    #[test]
    fn a_selection_that_is_none_or_two_is_refused_with_its_key() {
        for (json, key, words) in [
            ("{}", "", "which containers are meant is missing"),
            (r#"{"project":"shop","label":"app=db"}"#, "label", "in 2 ways"),
            (r#"{"project":" "}"#, "project", "its value is missing"),
            (r#"{"pids":[]}"#, "pids", "the list is empty"),
            (r#"{"pids":["0"]}"#, "pids", "no number of a process"),
            (r#"{"netns":[]}"#, "netns", "the list is empty"),
        ] {
            let complaint = section(json).err().unwrap_or_else(|| panic!("{json} was taken"));
            assert_eq!(complaint.key, key, "{json}");
            assert!(complaint.message.contains(words) && complaint.message.contains("project: NAME"), "{complaint}");
        }
        assert!(serde_json::from_str::<ContainersSection>(r#"{"image":"cassandra"}"#).is_err());
    }
}
