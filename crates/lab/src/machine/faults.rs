//! What faults need of this machine beside namespaces.

use brownout_disk::Disk;

use super::check::{Check, CheckState};
use crate::{LabError, faults::Needs};

/// Refuses faults that this machine cannot inject, before anything is started.
pub(super) fn refuse_faults(needs: &Needs) -> Result<(), LabError> {
    if !needs.disks.is_empty() {
        Disk::available().map_err(|reason| LabError::Machine(format!("a disk fault needs FUSE: {reason}")))?;
    }
    if !needs.clocks.is_empty() {
        loader().map_err(|reason| LabError::Machine(format!("a clock fault needs a preloaded library: {reason}")))?;
    }
    Ok(())
}

/// For `doctor`.
pub(super) fn checks() -> Vec<Check> {
    let of = |name: &str, good: &str, lacking: Result<(), String>, use_for: &str| match lacking {
        Ok(()) => Check::good(name, good),
        Err(reason) => {
            Check::not(CheckState::Limited, name, reason, format!("without it, {use_for} are not available"))
        }
    };
    vec![
        of("slow disks", "FUSE can be mounted", Disk::available(), "disk faults"),
        of("wrong clocks", "a library can be preloaded", loader(), "clock faults"),
    ]
}

/// The object is made for the C library that this program itself runs on.
fn loader() -> Result<(), String> {
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        Ok(())
    } else {
        Err("this program was not built for glibc, which preloads it; build it for a *-linux-gnu target".to_owned())
    }
}
