//! From the settings to a run, or to the output of a command without one.

use super::{
    RunError,
    check::check,
    connect,
    console::Console,
    disk::TableName,
    dry_run,
    execution::Run,
    plan::Source,
    predefined::Predefined,
    profiles::Profiles,
    setup::{self, Interrupted},
    user::User,
};
use crate::{
    schema::{Control, Member},
    settings::{CommandKind, Length, Settings},
};

/// Executes the settings; returns the exit code.
///
/// # Errors
/// It cannot begin, or cannot continue.
pub fn run(settings: &Settings, console: &mut Console, interrupted: Interrupted<'_>) -> Result<u8, RunError> {
    match settings.command.kind {
        CommandKind::VerifySizes => super::verify::verify_sizes(settings, console, interrupted),
        CommandKind::User => {
            let profiles = Profiles::load(settings)?;
            let settings = &profiles.settings;
            profiles.check()?;
            setup::introduce(settings, || profiles.block(), console)?;
            if settings.extras.dry_run {
                return profiles.dry_run(console);
            }
            let control = setup::connect(settings, console, interrupted)?;
            let members = members(settings, &control)?;
            let user = User::make(&profiles, &control, &members, console, interrupted)?;
            let tables = user.table_names();
            proceed(settings, &user, control, members, tables, console, interrupted)
        }
        _ => {
            let predefined = Predefined::new(settings)?;
            check(settings, &predefined.names())?;
            predefined.plan(None)?;
            setup::introduce(settings, || settings.block(), console)?;
            if settings.extras.dry_run {
                return dry_run::predefined(&predefined, settings, console);
            }
            let control = setup::connect(settings, console, interrupted)?;
            let members = members(settings, &control)?;
            setup::make_predefined(&predefined, settings, &control, console, interrupted)?;
            let table = |name: &str| TableName { keyspace: predefined.keyspace().to_owned(), table: name.to_owned() };
            let tables = predefined.tables().iter().map(|known| table(&known.name)).collect();
            proceed(settings, &predefined, control, members, tables, console, interrupted)
        }
    }
}

/// The nodes that take the load. A node to which all of it is pinned must be among them, which is checked before
/// anything is created.
fn members(settings: &Settings, control: &Control) -> Result<Vec<Member>, RunError> {
    let members = connect::coordinators(settings, control)?;
    if let Some(host) = &settings.node.pin {
        connect::place("-node pin=", host, settings, &members)?;
    }
    Ok(members)
}

/// Everything after the schema exists.
fn proceed(
    settings: &Settings,
    source: &dyn Source,
    control: Control,
    members: Vec<Member>,
    tables: Vec<TableName>,
    console: &mut Console,
    interrupted: Interrupted<'_>,
) -> Result<u8, RunError> {
    if settings.command.length == Length::Count(0) {
        console.line("N=0: SCHEMA CREATED, NOTHING ELSE DONE.");
        return Ok(0);
    }
    let mut run = Run { settings, source, control, members, tables, console, interrupted };
    run.everything()
}
