//! Finds what is wrong before any server is contacted; a dry run does this, too.

use super::{RunError, connect, files, nodetool::Nodetool, plan, tls};
use crate::settings::Settings;

/// Checks everything that the settings require of this machine, and of one another; `operations` are the names of the
/// load's operations.
///
/// # Errors
/// The first requirement that cannot be met.
pub fn check(settings: &Settings, operations: &[String]) -> Result<(), RunError> {
    files::check(settings)?;
    connect::check_path(settings)?;
    connect::retries(settings).check()?;
    tls::check(settings)?;
    if let Some(nodetool) = Nodetool::needed(settings)? {
        nodetool.check()?;
    }
    plan::paces(operations, settings)?;
    Ok(())
}
