//! `up` and `destroy`: the start and the end of a lab by hand.

use std::path::PathBuf;

use brownout_lab::{
    LabError,
    byhand::{self, Ask, Client, Failure, LabRegistry, Reply, Up},
};

use super::{
    ask::{LabName, who},
    look,
};
use crate::{
    output,
    view::{self, View},
};

#[derive(clap::Args)]
pub struct UpArguments {
    /// A lab file, or an experiment file, of which network, cluster and seed are used. Default: three nodes of Cassandra.
    file: Option<PathBuf>,
    /// The lab's name. Default: the file's, or lab.
    #[arg(short = 'n', long, value_name = "LAB")]
    name: Option<String>,
    /// Replace a value of the file: cluster.heap=256MiB. May be given more than once.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// How many nodes.
    #[arg(long, value_name = "COUNT")]
    nodes: Option<u64>,
    /// Nodes of etcd: of this version, as in --etcd=3.6, or without one of the newest that can be had.
    #[arg(long, value_name = "VERSION", num_args = 0..=1, require_equals = true, default_missing_value = "3")]
    etcd: Option<String>,
    /// Keep the nodes' data below this directory while the lab runs. Default: in the cache.
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    /// Put the nodes' data on the machine's own disk, which cannot be slow.
    #[arg(long)]
    no_disk: bool,
    /// Print the status as one JSON object when the lab is ready; progress goes to stderr.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct DestroyArguments {
    #[command(flatten)]
    lab: LabName,
    /// The lab, as with --name.
    #[arg(value_name = "LAB", conflicts_with = "name")]
    named: Option<String>,
    /// Every lab that is running.
    #[arg(long, conflicts_with_all = ["name", "named"])]
    all: bool,
    /// Instead of a lab, what runs have left elsewhere: kubernetes removes their agents, loads and clusters.
    #[arg(long, value_name = "GROUND", conflicts_with_all = ["name", "named", "all"])]
    ground: Option<LeftOn>,
}

/// Where runs that were killed leave something.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum LeftOn {
    /// Agents, pods that send operations, and clusters that were made.
    Kubernetes,
}

pub fn up(arguments: &UpArguments) -> u8 {
    let interrupts = brownout_lab::catch_interrupts();
    let mut progress = view::new(View::suitable(arguments.json));
    let asked = Up {
        file: arguments.file.clone(),
        name: arguments.name.clone(),
        set: arguments.set.clone(),
        nodes: arguments.nodes,
        etcd: arguments.etcd.clone(),
        dir: arguments.dir.clone(),
        no_disk: arguments.no_disk,
        who: who(),
    };
    let up = byhand::up(&asked, interrupts, progress.as_mut());
    drop(progress);
    match up.and_then(|name| show(&name, arguments.json)) {
        Ok(code) => code,
        Err(failure) => {
            output::fail(&failure);
            failure.code
        }
    }
}

/// Prints the status of a lab that has become ready.
pub(super) fn show(name: &str, json: bool) -> Result<u8, Failure> {
    let lab = LabRegistry::mine()?.find(Some(name))?;
    let client = Client::ask(&lab, Ask::Status { check: false }, &who(), false)?;
    let Reply::Status(status) = client.reply()? else { return Ok(output::INVALID) };
    let printed = if json { output::print_json(&status) } else { output::print(&look::table(&status)) };
    Ok(output::code(printed, 0))
}

pub fn destroy(arguments: &DestroyArguments) -> Result<u8, Failure> {
    if let Some(LeftOn::Kubernetes) = arguments.ground {
        let (removed, failed) = brownout_lab::machines::remove_all().map_err(LabError::Machine)?;
        let lines: String = removed.iter().map(|one| format!("removed {one}\n")).collect();
        let is_empty = lines.is_empty() && failed.is_empty();
        let told = if is_empty { "there is nothing of ours in this cluster\n" } else { &lines };
        let printed = output::print(told);
        return match failed.is_empty() {
            true => Ok(output::code(printed, 0)),
            false => Err(LabError::Machine(failed.join("; ")).into()),
        };
    }
    let registry = LabRegistry::mine()?;
    let labs = match arguments.all {
        true => registry.labs()?,
        false => vec![registry.find(arguments.named.as_deref().or(arguments.lab.name.as_deref()))?],
    };
    for lab in labs {
        let told = byhand::end(&registry, &lab, &who())?;
        told.iter().for_each(|line| eprintln!("brownout: {line}"));
        if let Err(code) = output::print(&format!("{} is gone\n", lab.name)) {
            return Ok(code);
        }
    }
    Ok(0)
}

/// The keeper of a lab.
pub fn keep() -> u8 {
    byhand::keep()
}
