//! The lab by hand: `up`, `destroy`, and every command in between, from any shell.

mod ask;
mod attach;
mod chaos;
mod link;
mod look;
mod network;
mod nodes;
mod programs;
mod tokens;
mod up;

use std::ffi::OsString;

use brownout_lab::byhand::Failure;

use crate::output;

pub use attach::not_found;
pub use look::columns;
pub use up::keep;

/// What is typed at a lab by hand.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Start a lab by hand: a cluster on its network, which runs until `destroy`.
    Up(up::UpArguments),
    /// End a lab by hand; nothing is left of it.
    Destroy(up::DestroyArguments),
    /// Work by hand on containers that run already: attach --project shop, or attach FILE for those of its ground. All commands below then work on them.
    Attach(attach::AttachArguments),
    /// Heal what is in force on containers, and let them go.
    Detach(attach::DetachArguments),
    /// Show hosts, links, disks and clocks of a lab, read back from the kernel and the emulator.
    Status(look::StatusArguments),
    /// List the labs that are running.
    Ls(look::LsArguments),
    /// Delay what hosts send: slow n2 100ms 10ms.
    Slow(network::SlowArguments),
    /// Drop a share of the packets that hosts send: flaky n2 10%.
    Flaky(network::FlakyArguments),
    /// Duplicate a share of the packets that hosts send: duplicate n2 5%.
    Duplicate(network::ShareOfArguments),
    /// Flip bits in a share of the packets that hosts send: corrupt n2 1%.
    Corrupt(network::ShareOfArguments),
    /// Let a share of the packets that hosts send overtake the rest, which is delayed: reorder n2 25% 50ms.
    Reorder(network::ReorderArguments),
    /// Limit the rate of hosts' links: rate n2 10mbit.
    Rate(network::RateArguments),
    /// Limit the size of hosts' packets: mtu n2 1000.
    Mtu(network::MtuArguments),
    /// Impair the links from one host or site to another in any way: link n1 n2 --delay 50ms --loss 1%.
    Link(Box<link::LinkOfArguments>),
    /// Heal the links of hosts (partitions apart: `join`).
    Fast(network::FastArguments),
    /// Cut hosts into groups that cannot reach one another: partition n1,n2 n3.
    Partition(network::PartitionArguments),
    /// Cut the nodes into two random groups.
    RandomPartition(network::RandomPartitionArguments),
    /// Heal partitions.
    Join(network::JoinArguments),
    /// Start nodes that are down.
    Start(nodes::StartArguments),
    /// Ask nodes to end (SIGTERM).
    Stop(nodes::StopArguments),
    /// Kill nodes (SIGKILL, or --signal).
    Kill(nodes::KillArguments),
    /// Stop nodes, and start them again.
    Restart(nodes::StartArguments),
    /// Pause nodes (SIGSTOP).
    Pause(nodes::StopArguments),
    /// Resume paused nodes (SIGCONT).
    Unpause(nodes::UnpauseArguments),
    /// Make disks of nodes slow or failing: disk n2 20ms; disk n2 fast heals.
    Disk(nodes::DiskArguments),
    /// Limit the processors of nodes: cpu n2 20%; cpu n2 full heals.
    Cpu(nodes::CpuArguments),
    /// Without a host: one-way delays, round trips and clock offsets between all. With one: make its clock wrong, as in
    /// clock n2 +5s; clock n2 right heals.
    Clock(nodes::ClockArguments),
    /// Inject random faults in the background.
    #[command(subcommand)]
    Chaos(chaos::Chaos),
    /// Print the log of a node.
    Logs(programs::LogsArguments),
    /// Run a program in a host: exec n1 -- ip addr.
    Exec(programs::ExecArguments),
    /// Run nodetool on a node, or etcdctl on one of etcd: nodetool n1 status, etcdctl n1 endpoint status.
    #[command(alias = "etcdctl")]
    Nodetool(programs::NodetoolArguments),
    /// Run one CQL statement: cql "SELECT * FROM system.local".
    Cql(programs::CqlArguments),
    /// Measure round trips between two hosts.
    Ping(programs::PingArguments),
    /// Show what changed in a lab, when, and by which command.
    Events(look::EventsArguments),
    /// The keeper of a lab; internal.
    #[command(name = brownout_lab::byhand::KEEP, hide = true)]
    Keep,
}

/// Does what was typed. Returns the exit code.
pub fn run(command: Command) -> u8 {
    let done = match command {
        Command::Up(arguments) => return up::up(&arguments),
        Command::Keep => return keep(),
        Command::Destroy(arguments) => up::destroy(&arguments),
        Command::Attach(arguments) => return attach::attach(&arguments),
        Command::Detach(arguments) => attach::detach(&arguments),
        Command::Status(arguments) => look::status(&arguments),
        Command::Ls(arguments) => look::ls(&arguments),
        Command::Events(arguments) => look::events(&arguments),
        Command::Slow(arguments) => arguments.run(),
        Command::Flaky(arguments) => arguments.run(),
        Command::Duplicate(arguments) => arguments.run("duplicate"),
        Command::Corrupt(arguments) => arguments.run("corrupt"),
        Command::Reorder(arguments) => arguments.run(),
        Command::Rate(arguments) => arguments.run(),
        Command::Mtu(arguments) => arguments.run(),
        Command::Link(arguments) => arguments.run(),
        Command::Fast(arguments) => arguments.run(),
        Command::Partition(arguments) => arguments.run(),
        Command::RandomPartition(arguments) => arguments.run(),
        Command::Join(arguments) => arguments.run(),
        Command::Start(arguments) => arguments.run(brownout_lab::byhand::Verb::Start),
        Command::Restart(arguments) => arguments.run(brownout_lab::byhand::Verb::Restart),
        Command::Stop(arguments) => arguments.run("stop"),
        Command::Pause(arguments) => arguments.run("pause"),
        Command::Kill(arguments) => arguments.run(),
        Command::Unpause(arguments) => arguments.run(),
        Command::Disk(arguments) => arguments.run(),
        Command::Cpu(arguments) => arguments.run(),
        Command::Clock(arguments) => arguments.run(),
        Command::Chaos(arguments) => arguments.run(),
        Command::Logs(arguments) => programs::logs(&arguments),
        Command::Exec(arguments) => programs::exec(arguments),
        Command::Nodetool(arguments) => programs::nodetool(arguments),
        Command::Cql(arguments) => programs::cql(&arguments),
        Command::Ping(arguments) => programs::ping(&arguments),
    };
    done.unwrap_or_else(|failure: Failure| {
        output::fail(&failure);
        failure.code
    })
}

/// A minus that stands before a number is part of it (`clock n2 -5s`), not the beginning of an option. It is hidden from
/// the reader of options by another sign, which [`tokens::plain`] takes back.
pub fn with_signs(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    if words.get(1).is_some_and(|word| word == "clock") {
        for word in words.iter_mut().skip(2) {
            let signed = word.to_str().and_then(|text| text.strip_prefix('-'));
            if let Some(number) = signed.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.')) {
                *word = format!("{}{number}", tokens::MINUS).into();
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_offset_is_no_option_and_an_option_stays_one() {
        let words = |text: &str| with_signs(text.split(' ').map(OsString::from));
        let seen = words("brownout clock n2 -5s -n lab --drift -100ppm");
        assert_eq!(seen[3], "−5s");
        assert_eq!((seen[4].clone(), seen[7].clone()), ("-n".into(), "−100ppm".into()));
        assert_eq!(words("brownout exec n1 -- head -5")[5], "-5");
    }
}
