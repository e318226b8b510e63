//! `attach` and `detach`: a lab by hand on containers that run already.

use brownout_containers::ContainersError;
use brownout_lab::byhand::{self, Attach, Failure, Ground, LabRegistry};

use super::{
    ask::{LabName, who, wrong},
    up::show,
};
use crate::{
    commands::selection::SelectionArguments,
    output,
    view::{self, View},
};

#[derive(clap::Args)]
pub struct AttachArguments {
    #[command(flatten)]
    selection: SelectionArguments,
    /// The lab's name. Default: the file's or the Compose project's, or attached.
    #[arg(short = 'n', long, value_name = "LAB")]
    name: Option<String>,
    /// Print the status as one JSON object when the lab is attached; progress goes to stderr.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct DetachArguments {
    #[command(flatten)]
    lab: LabName,
    /// The lab, as with --name.
    #[arg(value_name = "LAB", conflicts_with = "name")]
    named: Option<String>,
}

pub fn attach(arguments: &AttachArguments) -> u8 {
    attached(arguments).unwrap_or_else(|failure| {
        output::fail(&failure);
        failure.code
    })
}

fn attached(arguments: &AttachArguments) -> Result<u8, Failure> {
    let ground = match (arguments.selection.file()?, arguments.selection.selection()?) {
        (Some(file), _) => Ground::File(file),
        (None, Some(selection)) => Ground::Named(selection),
        (None, None) => {
            return wrong(
                "which containers? Name them (brownout attach NAME…) or a file whose ground: selects them, or write --project \
                 PROJECT, --label KEY=VALUE, --pids PID,… or --netns PATH,…; `brownout ground` takes the same words, and only \
                 shows them",
            );
        }
    };
    let interrupts = brownout_lab::catch_interrupts();
    let mut progress = view::new(View::suitable(arguments.json));
    let asked = Attach { ground, name: arguments.name.clone(), who: who() };
    let attached = byhand::attach(&asked, interrupts, progress.as_mut());
    drop(progress);
    show(&attached?, arguments.json)
}

pub fn detach(arguments: &DetachArguments) -> Result<u8, Failure> {
    let registry = LabRegistry::mine()?;
    let lab = registry.find(arguments.named.as_deref().or(arguments.lab.name.as_deref()))?;
    let told = byhand::detach(&registry, &lab, &who())?;
    told.iter().for_each(|line| eprintln!("brownout: {line}"));
    let printed = output::print(&format!("{} is detached; its containers run on as they were\n", lab.name));
    Ok(output::code(printed, if told.is_empty() { 0 } else { output::INVALID }))
}

/// Containers that are not there, or cannot be asked for.
pub fn not_found(error: ContainersError) -> Failure {
    match &error {
        ContainersError::NotFound { .. } | ContainersError::Selection { .. } => Failure::wrong(error.to_string()),
        _ => Failure::cannot(error.to_string()),
    }
}
