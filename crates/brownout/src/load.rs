//! What the commands on experiment files share.

use std::path::Path;

use brownout_lab::{Design, experiment::Source};

use crate::output::{self, INTERRUPTED, WRONG};

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
        // To find a cluster, or to make one, may take so long that the user wants the end.
        if brownout_lab::catch_interrupts().any() { INTERRUPTED } else { WRONG }
    })
}

/// What is set in the file, by `--ground` (first, so that `--set ground.…` amends it) and by `--set`.
pub fn with_ground(set: &[String], ground: Option<&str>) -> Vec<String> {
    ground.map(ground_as_set).into_iter().chain(set.iter().cloned()).collect()
}

/// `containers: { project: shop }` as `--set` takes it; braces around it may be left out.
fn ground_as_set(ground: &str) -> String {
    let ground = ground.trim();
    if ground.starts_with('{') { format!("ground={ground}") } else { format!("ground={{ {ground} }}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ground_is_set_before_all_else_with_braces_or_without() {
        let set = ["ground.containers.socket=/run/x.sock".to_owned()];
        let all = with_ground(&set, Some("containers: { label: \"app=db\" }"));
        assert_eq!(all, ["ground={ containers: { label: \"app=db\" } }", &set[0]]);
        assert_eq!(with_ground(&[], Some("{ containers: { pids: [1] } }")), ["ground={ containers: { pids: [1] } }"]);
        assert_eq!(with_ground(&set, None), set);
    }
}
