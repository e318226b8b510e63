//! `verify-sizes`: compares the requested partition sizes with those that the nodes report.

use brownout_generate::{
    compress::row_size,
    sizes::{Amount, PartitionSizes, compare},
};

use super::{
    RunError,
    check::check,
    connect,
    console::Console,
    disk::{Disks, TableName},
    nodetool::Nodetool,
    setup::{self, Interrupted},
    table::Table,
};
use crate::{
    profile::{self, Profile},
    schema::table::stored_name,
    settings::Settings,
};

/// Flushes the tables of the profiles, reads their histograms from every node, and prints for every percentile what was
/// requested and what was found. Returns 0 if all are within one bucket of the histogram, else 1.
///
/// # Errors
/// nodetool cannot be run; a profile has no sizes; no node answers.
pub fn verify_sizes(settings: &Settings, console: &mut Console, interrupted: Interrupted<'_>) -> Result<u8, RunError> {
    let profiles = profile::load_all(&settings.command.profiles)?;
    check(settings, &[])?;
    setup::introduce(settings, || settings.block(), console)?;
    if let Some(profile) = profiles.iter().find(|profile| profile.partition_sizes.is_none()) {
        return Err(RunError::Unfit {
            what: format!("{} has no partition_sizes: to verify", profile.file),
            remedy: "write the sizes that its partitions should have",
        });
    }
    if settings.extras.dry_run {
        for Profile { keyspace, table, .. } in &profiles {
            console.line(format!("  compare partition sizes of {keyspace}.{table} with nodetool tablehistograms"));
        }
        return Ok(0);
    }
    let control = setup::connect(settings, console, interrupted)?;
    let members = connect::coordinators(settings, &control)?;
    let nodetool = Nodetool::needed(settings)?;
    let disks = Disks { control: &control, nodetool: nodetool.as_ref(), interrupted };
    let mut all_met = true;
    for profile in &profiles {
        let (keyspace, name) = (stored_name(&profile.keyspace), stored_name(&profile.table));
        let definition = control.table(&keyspace, &name, interrupted)?;
        let table = Table::new(profile, definition, settings)?;
        let Some(target) = &profile.partition_sizes else { continue };
        let row = row_size(&table.layout)?;
        let sizes = PartitionSizes::new(target, row)?;
        let named = TableName { keyspace: keyspace.clone(), table: name.clone() };
        disks.flush(&named)?;
        for member in &members {
            let histogram = disks.histograms(member.address, &named)?;
            console.line(format!("{keyspace}.{name} on {}: partition sizes", member.address.ip()));
            console.line(format!("{:>10} {:>14} {:>22} {:>14}", "share", "asked", "its bucket", "got"));
            for one in compare(target, &sizes, &row, &histogram) {
                all_met &= one.met();
                let line = format!(
                    "{:>10} {:>14} {:>22} {:>14}  {}",
                    one.share,
                    amount(&one.asked),
                    format!("{}..{}", one.asked_bucket.above, one.asked_bucket.to),
                    one.got.map_or_else(|| "none".to_owned(), |got| got.to_string()),
                    one.remark(),
                );
                console.line(line.trim_end());
            }
        }
    }
    console.line(if all_met { crate::output::END } else { crate::output::FAILURE });
    Ok(u8::from(!all_met))
}

fn amount(amount: &Amount) -> String {
    amount.to_string()
}
