//! The lab's answer to each request.

use std::{
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::Arc,
    time::Duration,
};

use brownout_base::Mesh;
use brownout_load::{Coordinator, query::query};

use super::{
    Failure, check, clocks, exec,
    inject::Asked,
    lab::Lab,
    ping::Ping,
    protocol::{Ask, Reply, Request},
    status,
    wire::{self, wait_readable},
};
use crate::faults::together;

/// The database's own time-outs are shorter: its words come first.
const CQL_WITHIN: Duration = Duration::from_secs(15);
/// Between two looks at whether one who follows events has gone.
const LOOK: Duration = Duration::from_millis(500);

/// Does what was asked, and tells; gives the exit code.
pub(super) fn answer(
    lab: &Arc<Lab>,
    request: Request,
    streams: Vec<OwnedFd>,
    client: &UnixStream,
) -> Result<u8, Failure> {
    let who = request.who;
    let lines = match request.ask {
        Ask::Status { check } => {
            let mut status = status::status(lab)?;
            if check {
                status.checks = Some(check::check(lab)?);
            }
            tell(client, &Reply::Status(Box::new(status)))?;
            return Ok(0);
        }
        Ask::Fault { kind, who: hosts, values, for_ns } => {
            lab.inject(Asked { kind, who: hosts, values, for_ns }, &who)?
        }
        Ask::Fast(hosts) => lab.fast(&hosts, &who)?,
        Ask::FastLink { from, to, both } => lab.fast_link(&from, &to, both, &who)?,
        Ask::Join => lab.join(&who)?,
        Ask::Heal { kind, who: hosts } => lab.heal(&kind, &hosts, &who)?,
        Ask::Process { verb, who: hosts, wait } => lab.process(verb, &hosts, wait, &who)?,
        Ask::ChaosStart { entry, seed } => lab.chaos_start(&entry, seed, &who)?,
        Ask::ChaosStop => lab.chaos_stop(&who)?,
        Ask::ChaosStatus => vec![lab.chaos_words().unwrap_or_else(|| "chaos is not on".to_owned())],
        Ask::Exec { host, command, environment, directory } => {
            return exec::run(lab, exec::program(lab, &host, &command, &environment, &directory)?, streams, client);
        }
        Ask::Nodetool { host, arguments } => {
            let node = lab.node(&host)?;
            let rest = format!("{} {}", lab.control.kind().tool(), arguments.join(" "));
            lab.refuse_of_containers(&node, "its tool of administration", "exec", &rest)?;
            return exec::run(lab, lab.control.tool(&node, &arguments)?, streams, client);
        }
        Ask::Logs { host, console } => {
            let node = lab.node(&host)?;
            lab.refuse_of_containers(&node, "its log", "logs", "")?;
            let path = if console { lab.control.console_path(&node)? } else { lab.control.log_path(&node)? };
            let outside = path.strip_prefix(&lab.logs.0).map(|rest| lab.logs.1.join(rest));
            let outside =
                outside.map_err(|_| Failure::failed(format!("{} lies outside of the lab's logs", path.display())))?;
            tell(client, &Reply::Path(outside))?;
            return Ok(0);
        }
        Ask::Cql { host, statement, consistency } => {
            return cql(lab, host.as_deref(), &statement, &consistency, client);
        }
        Ask::Ping { from, to, count, every_ns } => return ping(lab, &from, &to, count, every_ns, client),
        Ask::Clocks => {
            tell(client, &Reply::Clocks(Box::new(clocks::matrix(lab)?)))?;
            return Ok(0);
        }
        Ask::Events { follow } => return events(lab, follow, client),
        Ask::Detach if !lab.is_attached() => {
            return Err(Failure::wrong(format!(
                "the lab '{0}' is attached to nothing: its nodes are its own, and would end with it; end it with: brownout destroy \
                 --name {0}",
                lab.name
            )));
        }
        Ask::Destroy | Ask::Detach => {
            lab.events.note(together([]), "destroy", &lab.name, "the lab ends", &who);
            // The client may have gone: the lab ends all the same, and with this process all that is in it.
            if lab.is_attached() {
                let _ = wire::send(client, &Reply::Line("healing what is in force".to_owned()));
                for line in lab.let_go(&who) {
                    let _ = wire::send(client, &Reply::Line(line));
                }
            }
            let _ = wire::send(client, &Reply::Done(0));
            std::process::exit(0);
        }
    };
    lines.into_iter().try_for_each(|line| tell(client, &Reply::Line(line)))?;
    Ok(0)
}

fn tell(client: &UnixStream, reply: &Reply) -> Result<(), Failure> {
    wire::send(client, reply).map_err(|error: io::Error| Failure::failed(format!("the client has gone: {error}")))
}

/// Whether the client has gone, which says nothing more after its request.
fn gone(client: &UnixStream) -> bool {
    wait_readable(client.as_fd(), Duration::ZERO)
}

fn events(lab: &Lab, follow: bool, client: &UnixStream) -> Result<u8, Failure> {
    let mut told = 0;
    let mut patience = Duration::ZERO;
    loop {
        for event in lab.events.after(told, patience) {
            told = event.number;
            tell(client, &Reply::Event(event))?;
        }
        if !follow || gone(client) {
            return Ok(0);
        }
        patience = LOOK;
    }
}

fn cql(lab: &Lab, host: Option<&str>, statement: &str, consistency: &str, client: &UnixStream) -> Result<u8, Failure> {
    if !lab.has_database {
        let message = "these containers did not answer as nodes of a database when the lab was attached, so they are not asked by \
                       CQL; once they do, attach again: brownout detach, brownout attach …";
        return Err(Failure::failed(message));
    }
    let kind = lab.control.kind();
    if !kind.speaks_cql() {
        let message =
            format!("the nodes run {kind}, which speaks no CQL; brownout exec n1 -- runs a program beside a node");
        return Err(Failure::wrong(message));
    }
    let consistency =
        consistency.parse().map_err(|error: brownout_load::UnknownConsistency| Failure::wrong(error.to_string()))?;
    let node = match host {
        Some(host) => lab.node(host)?,
        None => {
            let up = |node: &String| status::state(lab, node).is_ok_and(|state| state == "UP");
            lab.control
                .names()
                .into_iter()
                .find(up)
                .ok_or_else(|| Failure::failed("no node is up; see: brownout status"))?
        }
    };
    let state = status::state(lab, &node)?;
    if state != "UP" {
        return Err(Failure::failed(format!("{node} is {state} and does not answer; name another with --host")));
    }
    let inside = lab.testbed.network.host(&node).cloned();
    let inside = inside.ok_or_else(|| Failure::failed(format!("{node} has no network")))?;
    let address = lab.control.client(&node)?;
    // From the node itself, as somebody who has logged in there: no partition comes between.
    let answer = query(
        lab.testbed.wire,
        &Coordinator { name: node, address },
        &(Arc::new(move || inside.enter()) as brownout_load::ThreadStart),
        statement,
        consistency,
        CQL_WITHIN,
    );
    let answer = answer.map_err(|error| Failure::failed(error.to_string()))?;
    let reply = Reply::Table { columns: answer.columns, rows: answer.rows, warnings: answer.warnings };
    tell(client, &reply)?;
    Ok(0)
}

fn ping(lab: &Lab, from: &str, to: &str, count: u32, every_ns: u64, client: &UnixStream) -> Result<u8, Failure> {
    let (from, to) = (lab.host(from)?, lab.host(to)?);
    let Some((there, back)) = lab.links_between(&from, &to) else {
        return Err(Failure::wrong(format!("{from} and {to} are not two different hosts")));
    };
    let network = lab.testbed.network;
    let (Some(from), Some(to)) = (network.host(&from), network.host(&to)) else {
        return Err(Failure::failed("the hosts have no network"));
    };
    // The way that it takes, which may be several links.
    let mesh: &dyn Mesh = match network.overlay() {
        Some(overlay) => overlay,
        None => network,
    };
    let holds = mesh.holds();
    let longest = holds.longest_hold_of_ns(there).saturating_add(holds.longest_hold_of_ns(back));
    let longest = Duration::from_nanos(longest);
    let ping = Ping { from, to, count, every: Duration::from_nanos(every_ns), longest };
    let mut tell = |line: String| match line.is_empty() {
        true => !gone(client),
        false => wire::send(client, &Reply::Line(line)).is_ok() && !gone(client),
    };
    Ok(if ping.run(&mut tell)? { 0 } else { 3 })
}
