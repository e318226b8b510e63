//! Writes a marker: a text that is easy to find in whatever carries it, so that it can be seen where clear text passes.

use std::{collections::BTreeMap, time::Duration};

use scylla::{
    client::session::Session,
    policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy},
    statement::{Consistency, unprepared::Statement},
};
use tokio::time::sleep;

use crate::{
    Coordinator, LoadError, ThreadStart, WireOptions,
    limit::Limit,
    session::{agree, control_error, in_session},
};

/// Where it is written.
const KEYSPACE: &str = "brownout_marker";
/// Rows through each coordinator: few, since each takes four times the way to the farthest replica.
pub const MARKED_ROWS: u32 = 3;
/// How often a row holds the marker. What is cut between two packets cannot be seen, and of what nodes compress
/// (between data centres, as shipped) only the first: with so many, not all of them are.
const COPIES: usize = 8;
/// For one row: longer than the server's own time-out, so that its words come first.
const ROW_WITHIN: Duration = Duration::from_secs(5);
/// Before a row that failed is written again.
const PAUSE: Duration = Duration::from_millis(100);

/// A text that is to be seen where it passes in clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// Letters and digits, without an order that a compressor could use.
    pub text: String,
    /// Replicas by data centre; so many as there are nodes, for it to pass between all of them.
    pub replication: BTreeMap<String, u32>,
}

/// Writes rows that hold the marker, and reads them back, with the credentials and the encryption of `wire`: through
/// every coordinator in turn, each row acknowledged by all replicas. So it passes from the client to every coordinator
/// and back, and from every coordinator to every replica. Returns how many rows were acknowledged.
///
/// # Errors
/// No coordinator can be reached, the text is not plain, the server refuses the schema, or the limit is reached.
pub fn write_marker<'a>(
    wire: &WireOptions,
    coordinators: &[Coordinator],
    thread_start: &ThreadStart,
    marker: &Marker,
    limit: impl Into<Limit<'a>>,
) -> Result<u32, LoadError> {
    if !marker.text.chars().all(|c| c.is_ascii_alphanumeric()) {
        let what = format!("the marker '{}' is not plain", marker.text);
        return Err(LoadError::Config { what, remedy: "use letters and digits" });
    }
    let (schema, value) = (schema(marker), [marker.text.as_str(); COPIES].join("."));
    in_session("writing the marker", coordinators, wire, thread_start, limit.into(), async |session, state| {
        for text in &schema {
            *state = format!("running {text}");
            let result = session.query_unpaged(text.as_str(), ()).await;
            result.map_err(|error| control_error(text, coordinators, error))?;
            agree(session, coordinators, state).await;
        }
        let mut written = 0;
        for (place, node) in (0u32..).zip(coordinators) {
            for row in 0..MARKED_ROWS {
                let key = place * MARKED_ROWS + row;
                let insert = format!("INSERT INTO {KEYSPACE}.marker (key, value) VALUES ({key}, '{value}')");
                let select = format!("SELECT value FROM {KEYSPACE}.marker WHERE key = {key}");
                for statement in [insert, select] {
                    // A replica that is slow or a packet that is lost is no reason to give up before the limit.
                    while let Err(reason) = ask(session, node, &statement).await {
                        *state = format!("{} does not take the marker: {reason}", node.name);
                        sleep(PAUSE).await;
                    }
                }
                written += 1;
            }
        }
        Ok(written)
    })
}

fn schema(marker: &Marker) -> [String; 2] {
    let copies: String = marker.replication.iter().map(|(centre, count)| format!(", '{centre}': '{count}'")).collect();
    [
        format!(
            "CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = \
             {{'class': 'NetworkTopologyStrategy'{copies}}} AND durable_writes = true"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {KEYSPACE}.marker (key int PRIMARY KEY, value text) \
             WITH compression = {{'enabled': 'false'}}"
        ),
    ]
}

async fn ask(session: &Session, node: &Coordinator, text: &str) -> Result<(), String> {
    let mut statement = Statement::new(text);
    let target = SingleTargetLoadBalancingPolicy::new(NodeIdentifier::NodeAddress(node.address), None);
    statement.set_load_balancing_policy(Some(target));
    statement.set_consistency(Consistency::All);
    statement.set_request_timeout(Some(ROW_WITHIN));
    session.query_unpaged(statement, ()).await.map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_has_a_replica_on_every_node_of_every_data_centre() {
        let replication = BTreeMap::from([("east".to_owned(), 2), ("west".to_owned(), 1)]);
        let [keyspace, table] = schema(&Marker { text: "x".to_owned(), replication });
        assert!(keyspace.contains("{'class': 'NetworkTopologyStrategy', 'east': '2', 'west': '1'}"), "{keyspace}");
        assert!(table.contains("brownout_marker.marker (key int PRIMARY KEY, value text)"), "{table}");
    }

    #[test]
    fn a_marker_that_would_end_its_own_literal_is_refused() {
        let marker = Marker { text: "it's".to_owned(), replication: BTreeMap::new() };
        let limit = Duration::from_secs(1);
        let error = write_marker(&WireOptions::default(), &[], &crate::stay(), &marker, limit).unwrap_err();
        assert!(error.to_string().contains("letters and digits"), "{error}");
    }
}
