//! A failed request, with its exit code: the form in which errors travel from a lab to its clients.

use serde::{Deserialize, Serialize};

use crate::{
    LabError,
    experiment::{Complaint, FileError},
};

/// Told to a person, and the exit code of the command line for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What was tried, what happened, what to do.
    pub message: String,
    /// 2: what was asked is wrong; 3: it did not work; 4: this machine cannot.
    pub code: u8,
}

impl Failure {
    /// What was asked cannot be.
    pub fn wrong(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 2 }
    }

    /// What was asked is right, and did not work.
    pub fn failed(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 3 }
    }

    /// This machine cannot do it.
    pub fn cannot(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 4 }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Failure {
        Failure { code: error.exit_code(), message: error.to_string() }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        LabError::Ground { doing: "talk to the lab", source: error }.into()
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        Failure::wrong(error.to_string())
    }
}

impl From<Complaint> for Failure {
    fn from(complaint: Complaint) -> Failure {
        Failure::wrong(complaint.to_string())
    }
}

impl From<brownout_cluster::ClusterError> for Failure {
    fn from(error: brownout_cluster::ClusterError) -> Failure {
        // A node that is paused already, or down: the lab is well, and what was asked did not happen.
        Failure::failed(error.to_string())
    }
}
