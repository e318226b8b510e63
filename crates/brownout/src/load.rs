//! What the commands on experiment files share.

use std::path::Path;

use brownout_lab::{Design, experiment::Source};

use crate::output::{self, WRONG};

/// Where runs are kept unless told otherwise.
pub const RUNS: &str = "runs";

/// Reads and checks an experiment file. The error is already printed.
pub fn load(file: &Path, set: &[String]) -> Result<(Source, Design), u8> {
    let loaded = Source::read(file).and_then(|mut source| {
        set.iter().try_for_each(|assignment| source.set(assignment))?;
        let design = Design::new(&source)?;
        Ok((source, design))
    });
    loaded.map_err(|error| {
        output::fail(error);
        WRONG
    })
}
