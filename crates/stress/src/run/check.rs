//! What is known to be wrong before a server is asked: a dry run finds it, too.

use super::{RunError, connect, files, nodetool::Nodetool, plan, tls};
use crate::settings::Settings;

/// Looks at all that the settings ask of this machine, and at what they ask together; `operations` are the names of
/// those that the load has.
///
/// # Errors
/// The first that cannot be had.
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
