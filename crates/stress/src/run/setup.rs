//! Before the load: notes and settings, the connection, the schema.

use brownout_load::{Consistency, control::Limit};

use super::{RunError, connect, console::Console, plan::Source, predefined::Predefined};
use crate::{
    schema::Control,
    settings::{CommandKind, Settings},
};

/// Whether the user has interrupted.
pub type Interrupted<'a> = &'a (dyn Fn() -> bool + Sync);

/// Prints notes and the block of settings; from here on output is copied to a file if that was requested.
///
/// # Errors
/// The file of the copy cannot be made.
pub fn introduce(settings: &Settings, block: impl FnOnce() -> String, console: &mut Console) -> Result<(), RunError> {
    if let Some(path) = settings.log.file.as_deref().filter(|_| !settings.extras.dry_run) {
        console.copy_to(path)?;
    }
    for note in &settings.notes {
        console.aside(note);
    }
    if settings.errors.fail_fast && settings.errors.ignore {
        console.aside("-errors ignore fail-fast: what is ignored is no failure, so nothing ends the run early");
    }
    if settings.node.remote_hosts.is_some() && connect::stays_local(settings) {
        let level = settings.command.consistency;
        console.aside(format!("-node remote-dc= has no effect at {level}: drivers ask no other data centre for it"));
    }
    if settings.log.settings {
        console.text(&block());
    }
    Ok(())
}

/// Connects for control work, and prints to which nodes, as cassandra-stress does.
///
/// # Errors
/// No node answers.
pub fn connect(settings: &Settings, console: &mut Console, interrupted: Interrupted<'_>) -> Result<Control, RunError> {
    let contact = connect::contact(settings)?;
    let control = Control::open(&contact, Limit { time: connect::ANSWER, interrupted })?;
    let null = |pending: Option<u32>| pending.map_or_else(|| "null".to_owned(), |pending| pending.to_string());
    console.line(format!(
        "Connected to cluster: {}, max pending requests per connection {}, max connections per host {}",
        control.cluster_name(),
        null(settings.mode.max_pending),
        settings.mode.connections_per_host
    ));
    for member in control.members() {
        // The word is cassandra-stress's own.
        console.line(format!(
            "Datatacenter: {}; Host: /{}; Rack: {}",
            member.datacenter,
            member.address.ip(),
            member.rack
        ));
    }
    Ok(control)
}

/// What cassandra-stress prints before it sleeps; here there is no sleep, because all nodes have reported the same
/// schema.
pub fn propagated(console: &mut Console, made: &str, settings: &Settings) {
    console.line(format!("{made}. Sleeping {}s for propagation.", settings.node.hosts.len()));
    console.aside("(all nodes agree on the schema; it does not sleep)");
}

/// Creates the keyspace and the tables of a predefined command if it writes; what it only reads must exist.
///
/// # Errors
/// A definition is refused; the nodes do not agree; a table does not exist.
pub fn make_predefined(
    predefined: &Predefined<'_>,
    settings: &Settings,
    control: &Control,
    console: &mut Console,
    interrupted: Interrupted<'_>,
) -> Result<(), RunError> {
    let makes = matches!(settings.command.kind, CommandKind::Write | CommandKind::CounterWrite | CommandKind::Mixed);
    if makes {
        for cql in predefined.definitions(control.is_scylla()) {
            control.define(&cql, Consistency::LocalQuorum, interrupted)?;
        }
        propagated(console, "Created keyspaces", settings);
        return Ok(());
    }
    for table in predefined.tables() {
        control.table(&table.keyspace, &table.name, interrupted)?;
    }
    Ok(())
}
