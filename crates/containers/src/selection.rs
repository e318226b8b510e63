//! Which containers are meant.

use std::{collections::BTreeSet, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::ContainersError;

/// Which containers are meant, and who is asked for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// By what.
    #[serde(flatten)]
    pub by: By,
    /// Where the runtime listens; else the first one that has such containers is taken, of those in the usual places.
    #[serde(default)]
    pub socket: Option<PathBuf>,
}

/// By what containers are selected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Those of a Compose project that run.
    Project(String),
    /// By name or identifier, all of which have to be there; of Kubernetes `POD` or `POD/CONTAINER`.
    Names(Vec<String>),
    /// Those that run with a label: `app=db`, or `app`, whatever its value.
    Label(String),
    /// By one process of each, as this process numbers it.
    Pids(Vec<u32>),
    /// By the files of their network namespaces, `/run/netns/db1`.
    #[serde(rename = "netns")]
    Namespaces(Vec<PathBuf>),
}

impl By {
    /// "of the Compose project shop".
    pub fn words(&self) -> String {
        match self {
            By::Project(project) => format!("of the Compose project {project}"),
            By::Names(names) => format!("named {}", names.join(", ")),
            By::Label(label) => format!("with the label {label}"),
            By::Pids(pids) => {
                format!("of the processes {}", pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
            }
            By::Namespaces(paths) => {
                let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
                format!("with the network namespaces {}", paths.join(", "))
            }
        }
    }

    /// That it can select something.
    pub(crate) fn check(&self) -> Result<(), ContainersError> {
        let twice = |texts: Vec<String>| {
            let mut known = BTreeSet::new();
            texts.into_iter().find(|text| !known.insert(text.clone()))
        };
        let (what, texts) = match self {
            By::Project(project) => ("project", vec![project.clone()]),
            By::Label(label) => ("label", vec![label.split('=').next().unwrap_or_default().to_owned()]),
            By::Names(names) => ("names", names.clone()),
            By::Pids(pids) => ("pids", pids.iter().map(u32::to_string).collect()),
            By::Namespaces(paths) => ("netns", paths.iter().map(|path| path.display().to_string()).collect()),
        };
        let wrong = |reason: String| Err(ContainersError::Selection { what, reason });
        if texts.is_empty() {
            return wrong("the list is empty; write at least one".to_owned());
        }
        if texts.iter().any(|text| text.trim().is_empty()) {
            return wrong("it is empty; write project: NAME, names: [NAME], or label: KEY=VALUE".to_owned());
        }
        match twice(texts) {
            Some(text) => wrong(format!("{text} is there twice; write it once")),
            None => Ok(()),
        }
    }

    /// Whether whoever selected them has put them into an order.
    pub(crate) fn is_ordered(&self) -> bool {
        matches!(self, By::Names(_) | By::Pids(_) | By::Namespaces(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_written_and_read() {
        for (by, text) in [
            (By::Project("shop".into()), r#"{"project":"shop","socket":null}"#),
            (By::Names(vec!["c1".into(), "c2".into()]), r#"{"names":["c1","c2"],"socket":null}"#),
            (By::Label("app=db".into()), r#"{"label":"app=db","socket":null}"#),
            (By::Pids(vec![7, 8]), r#"{"pids":[7,8],"socket":null}"#),
            (By::Namespaces(vec!["/run/netns/a".into()]), r#"{"netns":["/run/netns/a"],"socket":null}"#),
        ] {
            let selection = Selection { by, socket: None };
            assert_eq!(serde_json::to_string(&selection).unwrap(), text);
            assert_eq!(serde_json::from_str::<Selection>(text).unwrap(), selection);
        }
        let with = serde_json::from_str::<Selection>(r#"{"label":"a","socket":"/run/podman/podman.sock"}"#).unwrap();
        assert_eq!(with.socket, Some("/run/podman/podman.sock".into()));
        assert!(serde_json::from_str::<Selection>(r#"{"socket":"/x"}"#).is_err());
    }

    #[test]
    fn what_selects_nothing_is_refused() {
        let refused = |by: By| by.check().unwrap_err().to_string();
        assert!(refused(By::Names(Vec::new())).contains("names: the list is empty"));
        assert!(refused(By::Names(vec!["a".into(), "b".into(), "a".into()])).contains("a is there twice"));
        assert!(refused(By::Pids(vec![7, 7])).contains("pids: 7 is there twice"));
        assert!(refused(By::Project(" ".into())).contains("project: it is empty"));
        assert!(refused(By::Label("=db".into())).contains("label: it is empty"));
    }
}
