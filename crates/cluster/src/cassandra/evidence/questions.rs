//! What a node is asked over JMX. The names are those of Cassandra 4.1 and 5.0, read off running nodes of both. 4.0 has the same;
//! 3.11 has some of them without the ports of nodes.

use std::collections::BTreeMap;

use super::system_log::address;
use crate::jmx::{Client, JmxError, Value};

/// What a node said to a question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    pub(super) name: &'static str,
    /// Of what: another node, a verb, a thread pool; empty where there is only one.
    pub(super) subject: String,
    pub(super) value: f64,
}

/// How an attribute is to be read.
enum As {
    /// A number, of this subject.
    Number(&'static str),
    /// A map from other nodes' addresses to numbers.
    OfPeers,
    /// A map from addresses to `UP` and `DOWN`: 1 and 0.
    StateOfPeers,
    /// A map from names to numbers.
    OfEach,
}

/// An MBean, with the attributes that are asked for, and the names of what they tell.
type Bean = (&'static str, &'static [(&'static str, As, &'static str)]);

/// No such MBean: a node makes those of some counters only when there is something to count.
const MISSING: &str = "javax.management.InstanceNotFoundException";

const BEANS: [Bean; 20] = [
    (
        "org.apache.cassandra.db:type=DynamicEndpointSnitch",
        &[
            ("ScoresWithPort", As::OfPeers, "snitch-score"),
            ("BadnessThreshold", As::Number(""), "snitch-badness-threshold"),
        ],
    ),
    ("org.apache.cassandra.net:type=FailureDetector", &[("SimpleStatesWithPort", As::StateOfPeers, "considered-up")]),
    (
        "org.apache.cassandra.net:type=MessagingService",
        &[
            ("DroppedMessages", As::OfEach, "dropped-messages"),
            ("TimeoutsPerHostWithPort", As::OfPeers, "timeouts"),
            ("SmallMessageCompletedTasksWithPort", As::OfPeers, "messages-sent"),
        ],
    ),
    (
        "org.apache.cassandra.metrics:type=Table,name=SpeculativeRetries",
        &[("Value", As::Number(""), "speculative-retries")],
    ),
    ("org.apache.cassandra.metrics:type=Table,name=ReadLatency", &[("Count", As::Number(""), "replica-reads")]),
    ("org.apache.cassandra.metrics:type=Table,name=WriteLatency", &[("Count", As::Number(""), "replica-writes")]),
    (
        "org.apache.cassandra.metrics:type=Table,name=SSTablesPerReadHistogram",
        &[
            ("Mean", As::Number("mean"), "sstables-per-read"),
            ("99thPercentile", As::Number("p99"), "sstables-per-read"),
        ],
    ),
    ("org.apache.cassandra.metrics:type=Storage,name=TotalHints", &[("Count", As::Number(""), "hints-stored")]),
    (
        "org.apache.cassandra.metrics:type=Storage,name=TotalHintsInProgress",
        &[("Count", As::Number(""), "hints-in-progress")],
    ),
    (
        "org.apache.cassandra.metrics:type=HintsService,name=HintsSucceeded",
        &[("Count", As::Number(""), "hints-replayed")],
    ),
    ("org.apache.cassandra.metrics:type=HintsService,name=HintsFailed", &[("Count", As::Number(""), "hints-failed")]),
    (
        "org.apache.cassandra.metrics:type=HintsService,name=HintsTimedOut",
        &[("Count", As::Number(""), "hints-timed-out")],
    ),
    (
        "org.apache.cassandra.metrics:type=ReadRepair,name=RepairedBlocking",
        &[("Count", As::Number(""), "read-repairs")],
    ),
    (
        "org.apache.cassandra.metrics:type=Compaction,name=TotalCompactionsCompleted",
        &[("Count", As::Number(""), "compactions")],
    ),
    (
        "org.apache.cassandra.metrics:type=Compaction,name=BytesCompacted",
        &[("Count", As::Number(""), "compacted-bytes")],
    ),
    (
        "org.apache.cassandra.metrics:type=Compaction,name=PendingTasks",
        &[("Value", As::Number("compactions"), PENDING)],
    ),
    (
        "org.apache.cassandra.metrics:type=ThreadPools,path=request,scope=ReadStage,name=PendingTasks",
        &[("Value", As::Number("ReadStage"), PENDING)],
    ),
    (
        "org.apache.cassandra.metrics:type=ThreadPools,path=request,scope=MutationStage,name=PendingTasks",
        &[("Value", As::Number("MutationStage"), PENDING)],
    ),
    (
        "org.apache.cassandra.metrics:type=ThreadPools,path=request,scope=RequestResponseStage,name=PendingTasks",
        &[("Value", As::Number("RequestResponseStage"), PENDING)],
    ),
    (
        "org.apache.cassandra.metrics:type=ThreadPools,path=transport,scope=Native-Transport-Requests,name=PendingTasks",
        &[("Value", As::Number("Native-Transport-Requests"), PENDING)],
    ),
];
const PENDING: &str = "pending";

/// How the names of attributes end that tell nodes apart by their ports, too, from 4.0 on. Without it they are those of 3.11.
const WITH_PORT: &str = "WithPort";

/// Asks a node for all. `nodes` are the names of the nodes by their addresses.
pub(super) fn ask(client: &mut Client, nodes: &BTreeMap<String, String>) -> Result<Vec<Reading>, JmxError> {
    let mut readings = Vec::new();
    for (bean, attributes) in &BEANS {
        let names: Vec<&str> = attributes.iter().map(|(attribute, ..)| *attribute).collect();
        let mut answers = match client.attributes(bean, &names) {
            Err(JmxError::Exception(class)) if class == MISSING => continue,
            answers => answers?,
        };
        let is_answered =
            |answers: &[(String, Value)], name: &str| answers.iter().any(|(answered, _)| answered == name);
        let of_old: Vec<&str> = names
            .iter()
            .filter(|name| !is_answered(&answers, name))
            .filter_map(|name| name.strip_suffix(WITH_PORT))
            .collect();
        if !of_old.is_empty() {
            answers.extend(client.attributes(bean, &of_old)?);
        }
        for (attribute, how, name) in *attributes {
            let value = |asked: &str| answers.iter().find(|(answered, _)| answered == asked).map(|(_, value)| value);
            let value = value(attribute).or_else(|| value(attribute.strip_suffix(WITH_PORT)?));
            if let Some(value) = value {
                read(how, name, value, nodes, &mut readings);
            }
        }
    }
    Ok(readings)
}

fn read(how: &As, name: &'static str, value: &Value, nodes: &BTreeMap<String, String>, readings: &mut Vec<Reading>) {
    let mut tell = |subject: &str, value: Option<f64>| {
        // A mean of nothing is not a number.
        if let Some(value) = value.filter(|value| value.is_finite()) {
            readings.push(Reading { name, subject: subject.to_owned(), value });
        }
    };
    if let As::Number(subject) = how {
        return tell(subject, value.number());
    }
    for (key, value) in value.entries() {
        let key = key.address().unwrap_or_default();
        let node = || nodes.get(address(&key));
        match how {
            As::OfEach => tell(&key, value.number()),
            // Who is none of the nodes is nobody that we started.
            As::OfPeers => node().into_iter().for_each(|node| tell(node, value.number())),
            As::StateOfPeers => {
                let up = value.text().map(|state| f64::from(u8::from(state == "UP")));
                node().into_iter().for_each(|node| tell(node, up));
            }
            As::Number(_) => {}
        }
    }
}
