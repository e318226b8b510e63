//! Whether a node has nothing left of what clients gave it: for a cluster that is to be used again.

use super::{
    cql::{Connection, CqlError, Value},
    view::{self, CQL_PORT, PATIENCE},
};
use crate::system::{ClusterView, Member};

/// Pools whose tasks are work that is left over.
const LEFT_OVER: [&str; 4] = ["CompactionExecutor", "HintsDispatcher", "MemtableFlushWriter", "MemtablePostFlush"];

/// As [`view::view`], and what is left: keyspaces that are not Cassandra's own, compactions, hints for other nodes, tasks that
/// wait. All of it is read from virtual tables (`system_views`, from Cassandra 4.1 on).
pub(super) fn rest(members: &[Member], tokens: &[i64], index: usize) -> ClusterView {
    let mut view = view::view(members, tokens, index);
    if !view.missing.is_empty() {
        return view;
    }
    let me = &members[index];
    let left =
        Connection::open((me.address, CQL_PORT).into(), PATIENCE).and_then(|mut connection| left(&mut connection));
    match left {
        Ok(left) => view.missing.extend(left.into_iter().map(|left| format!("{} still has {left}", me.name))),
        Err(error) => view.missing.push(format!("{} does not say what it still works on ({error})", me.name)),
    }
    view
}

fn left(connection: &mut Connection) -> Result<Vec<String>, CqlError> {
    let mut left = Vec::new();
    for row in connection.query("SELECT keyspace_name FROM system_schema.keyspaces")? {
        let name = text(row.first());
        if !is_own_keyspace(&name) {
            left.push(format!("the keyspace {name}"));
        }
    }
    let compactions = connection.query("SELECT table_name FROM system_views.sstable_tasks")?.len();
    if compactions > 0 {
        left.push(format!("{compactions} compactions"));
    }
    let hints = connection.query("SELECT files FROM system_views.pending_hints")?.len();
    if hints > 0 {
        left.push(format!("hints for {hints} nodes"));
    }
    for row in connection.query("SELECT name, active_tasks, pending_tasks FROM system_views.thread_pools")? {
        let [name, active, pending] = row.as_slice() else { return Err(CqlError::Protocol("not three columns")) };
        let (name, active, pending) = (text(Some(name)), int(active), int(pending));
        // Others are active because they are asked just now.
        let tasks = if LEFT_OVER.contains(&name.as_str()) { active + pending } else { pending };
        if tasks > 0 {
            left.push(format!("{tasks} tasks of {name}"));
        }
    }
    Ok(left)
}

/// Whether a keyspace is Cassandra's own, as far as its name tells: versions have more and more of them.
pub fn is_own_keyspace(keyspace: &str) -> bool {
    keyspace == "system" || keyspace.starts_with("system_")
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Option::as_deref).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
}

/// A CQL `int`, or a `bigint` as some versions have it; 0 of null.
fn int(value: &Value) -> i64 {
    let bytes = value.as_deref().unwrap_or_default();
    bytes.iter().fold(if bytes.first().is_some_and(|first| *first > 127) { -1 } else { 0 }, |sum, byte| {
        (sum << 8) | i64::from(*byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_both_lengths_are_read() {
        assert_eq!([int(&Some(vec![0, 0, 1, 2])), int(&Some(vec![0, 0, 0, 0, 0, 0, 1, 2])), int(&None)], [258, 258, 0]);
        assert_eq!(int(&Some(vec![255, 255, 255, 254])), -2);
    }

    #[test]
    fn keyspaces_of_users_are_told_from_cassandras_own() {
        let all = ["system", "system_auth", "system_virtual_schema", "systematic", "keyspace1", ""];
        assert_eq!(all.map(is_own_keyspace), [true, true, true, false, false, false]);
    }
}
