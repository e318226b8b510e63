//! Before the load: the connection, the schema, the disks.

use brownout_load::{Consistency, control::Limit};

use super::{
    RunError, connect,
    disk::{Disks, TableName},
    nodetool::Nodetool,
    predefined::Predefined,
    stage::Stage,
};
use crate::{
    schema::Control,
    settings::{CommandKind, Settings},
};

/// Whether the user asks for an end.
pub type Interrupted<'a> = &'a (dyn Fn() -> bool + Sync);

/// Connects for control work, and says to whom, as cassandra-stress says it.
///
/// # Errors
/// Nobody answers.
pub fn connect(settings: &Settings, stage: &mut Stage, interrupted: Interrupted<'_>) -> Result<Control, RunError> {
    let contact = connect::contact(settings)?;
    let control = Control::open(&contact, Limit { time: connect::ANSWER, interrupted })?;
    let null = |pending: Option<u32>| pending.map_or_else(|| "null".to_owned(), |pending| pending.to_string());
    stage.line(format!(
        "Connected to cluster: {}, max pending requests per connection {}, max connections per host {}",
        control.cluster_name(),
        null(settings.mode.max_pending),
        settings.mode.connections_per_host
    ));
    for member in control.members() {
        // The word is cassandra-stress's own.
        stage.line(format!(
            "Datatacenter: {}; Host: /{}; Rack: {}",
            member.datacenter,
            member.address.ip(),
            member.rack
        ));
    }
    Ok(control)
}

/// What cassandra-stress says before it sleeps; here nothing is slept: all nodes have told the same schema.
pub fn propagated(stage: &mut Stage, made: &str, settings: &Settings) {
    stage.line(format!("{made}. Sleeping {}s for propagation.", settings.node.hosts.len()));
    stage.aside("(all nodes agree on the schema; it does not sleep)");
}

/// Makes the keyspace and the tables of a predefined command, if it writes.
///
/// # Errors
/// A definition is refused; the nodes do not agree.
pub fn make_predefined(
    predefined: &Predefined<'_>,
    settings: &Settings,
    control: &Control,
    stage: &mut Stage,
    interrupted: Interrupted<'_>,
) -> Result<(), RunError> {
    let makes = matches!(settings.command.kind, CommandKind::Write | CommandKind::CounterWrite | CommandKind::Mixed);
    if makes {
        for cql in predefined.definitions(control.is_scylla()) {
            control.define(&cql, Consistency::LocalQuorum, interrupted)?;
        }
        propagated(stage, "Created keyspaces", settings);
    }
    Ok(())
}

/// Empties tables; those that do not exist are passed over.
///
/// # Errors
/// It is refused; nobody answers.
pub fn truncate(
    tables: &[TableName],
    settings: &Settings,
    control: &Control,
    stage: &mut Stage,
    interrupted: Interrupted<'_>,
) -> Result<(), RunError> {
    let mut emptied = Vec::new();
    for TableName { keyspace, table } in tables {
        if control.truncate(keyspace, table, interrupted)? {
            emptied.push(table.as_str());
        }
    }
    let keyspace = tables.first().map_or("", |table| table.keyspace.as_str());
    let what = match (settings.command.kind, &emptied[..]) {
        (CommandKind::User, [table]) => format!("Truncated {keyspace}.{table}"),
        _ => format!("Truncated {keyspace} ({})", emptied.join(", ")),
    };
    stage.line(format!("{what}. Sleeping {}s for propagation.", settings.node.hosts.len()));
    Ok(())
}

/// Brings what was written to disk, as `--flush`, `--compact` and `--wait-compactions` ask.
///
/// # Errors
/// nodetool cannot be run, or fails.
pub fn disks(
    tables: &[TableName],
    settings: &Settings,
    control: &Control,
    stage: &mut Stage,
    interrupted: Interrupted<'_>,
) -> Result<(), RunError> {
    let nodetool = settings.extras.nodetool.as_deref().map(Nodetool::new).transpose()?;
    let disks = Disks { control, nodetool: nodetool.as_ref(), interrupted };
    for table in tables {
        let name = format!("{}.{}", table.keyspace, table.table);
        if settings.extras.flush {
            stage.aside(format!("flushing {name}"));
            disks.flush(table)?;
        }
        if settings.extras.compact {
            stage.aside(format!("compacting {name}"));
            disks.compact(table)?;
        }
    }
    if settings.extras.wait_compactions {
        stage.aside("waiting for compactions");
        let took = disks.wait_compactions()?;
        stage.aside(format!("no compactions are left after {:.1} s", took.as_secs_f64()));
    }
    Ok(())
}

/// How many reads were served by memtables alone, one line a table; and those of them that are warnings.
pub fn memtable_reads(
    tables: &[TableName],
    settings: &Settings,
    control: &Control,
    interrupted: Interrupted<'_>,
) -> (Vec<String>, Vec<String>) {
    let nodetool = settings.extras.nodetool.as_deref().and_then(|template| Nodetool::new(template).ok());
    let disks = Disks { control, nodetool: nodetool.as_ref(), interrupted };
    let (mut lines, mut warnings) = (Vec::new(), Vec::new());
    for table in tables {
        match disks.memtable_reads(table) {
            (text, true) => warnings.push(text),
            (text, false) => lines.push(text),
        }
    }
    (lines, warnings)
}
