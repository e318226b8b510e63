//! `help`, `help TOPIC` and `version`.

use brownout_yaml::nearest;

use super::{
    CommandKind, SettingsError, col, command, errors, extras,
    grammar::{Alternative, DISTRIBUTIONS, usage},
    graph, insert, log, misc, mode, node, pop, port, rate, schema, tokenrange, transport,
};

/// Option groups, and what they are for.
pub(super) const GROUPS: [(&str, &str); 18] = [
    ("-pop", "which partitions, and the order of their rows"),
    ("-insert", "how rows are written: visits, batches, shares"),
    ("-col", "columns of the predefined tables"),
    ("-rate", "open loop, threads, limits, search for the highest rate (default: more and more threads)"),
    ("-mode", "protocol, compression, login, connections, timeouts"),
    ("-errors", "what becomes of operations that fail"),
    ("-schema", "replication, compression, compaction, storage"),
    ("-node", "which nodes; data centre, rack, load balancing"),
    ("-log", "what is printed and exported, and how often"),
    ("-transport", "TLS"),
    ("-port", "ports of the nodes"),
    ("-sendto", "accepted; there is no daemon any more"),
    ("-send-to", "the same"),
    ("-graph", "a page with figures"),
    ("-tokenrange", "how token ranges are walked"),
    ("-reporting", "rows and headings, as Apache's tool has it"),
    ("-credentials-file", "a file with users and passwords"),
    ("-jmx", "accepted; servers are not asked over JMX"),
];

const COMMANDS: [(&str, &str); 11] = [
    ("read", "reads of standard1, which a write has filled"),
    ("write", "writes to standard1"),
    ("mixed", "a mix of the other four"),
    ("counter_write", "increments of counter1"),
    ("counter_read", "reads of counter1"),
    ("user", "operations of YAML profiles"),
    ("verify-sizes", "sizes of partitions on the servers, beside those that a profile asks for"),
    ("help", "this, or a command or option group: help -rate"),
    ("print", "what a distribution yields: print dist=gaussian(1..100)"),
    ("legacy", "options of version 2.0, translated"),
    ("version", "the version"),
];

/// The line of `version`.
pub(super) fn version() -> String {
    format!("Version: {}\n", env!("CARGO_PKG_VERSION"))
}

/// The text on a topic, or on all.
pub(super) fn topic(topic: Option<&str>) -> Result<String, SettingsError> {
    let Some(topic) = topic else { return Ok(overview()) };
    let name = topic.to_lowercase();
    if let Some(kind) = CommandKind::from_name(&name) {
        return Ok(usage(kind.name(), &command::alternatives(kind)));
    }
    if let Some(alternatives) = group(&name) {
        return Ok(usage(&name, &alternatives));
    }
    match name.as_str() {
        "distributions" | "dist" => Ok(DISTRIBUTIONS.to_owned()),
        "print" => Ok(format!("Usage: print dist=DIST\n\n{DISTRIBUTIONS}")),
        "help" | "-?" => Ok("Usage: help [COMMAND | -GROUP | distributions]\n".to_owned()),
        "version" => Ok("Usage: version\n".to_owned()),
        "legacy" => Ok(super::legacy::help()),
        "-sendto" | "-send-to" => {
            Ok("Usage: -sendto HOST\n\nAccepted without effect: there is no daemon any more.\n".into())
        }
        "-credentials-file" => {
            Ok("Usage: -credentials-file FILE\n\nLines of the form key=value; the keys are cql.username, \
                                   cql.password, transport.truststore.password, transport.keystore.password, \
                                   jmx.username and jmx.password.\n"
                .to_owned())
        }
        _ => {
            let known = CommandKind::names().chain(GROUPS.iter().map(|(name, _)| *name)).chain(["distributions"]);
            let remedy = match nearest(&name, known) {
                Some(nearest) => format!("did you mean 'help {nearest}'?"),
                None => "'help' alone lists all".to_owned(),
            };
            Err(SettingsError::senseless(
                "Invalid command or option provided to command help",
                format!("'{topic}'; {remedy}"),
            ))
        }
    }
}

fn group(name: &str) -> Option<Vec<Alternative>> {
    Some(match name {
        "-pop" => pop::alternatives("N"),
        "-insert" => insert::alternatives(),
        "-col" => col::alternatives(),
        "-rate" => rate::alternatives(),
        "-mode" => mode::alternatives(),
        "-errors" => errors::alternatives(),
        "-schema" => schema::alternatives(),
        "-node" => node::alternatives(),
        "-log" => log::alternatives(),
        "-transport" => transport::alternatives(),
        "-port" => port::alternatives(),
        "-graph" => graph::alternatives(),
        "-tokenrange" => tokenrange::alternatives(),
        "-reporting" => misc::reporting_alternatives(),
        "-jmx" => misc::jmx_alternatives(),
        _ => return None,
    })
}

fn overview() -> String {
    let mut text =
        String::from("Usage:      brownout stress COMMAND [OPTIONS]\nHelp usage: brownout stress help TOPIC\n");
    let mut part = |head: &str, lines: &mut dyn Iterator<Item = (&str, &str)>| {
        text.push_str(&format!("\n---{head}---\n"));
        lines.for_each(|(name, what)| text.push_str(&format!("{name:<20} : {what}\n")));
    };
    part("Commands", &mut COMMANDS.into_iter());
    part("Options", &mut GROUPS.into_iter());
    part("Also", &mut extras::WORDS.into_iter().map(|(name, _, what)| (name, what)));
    text
}
