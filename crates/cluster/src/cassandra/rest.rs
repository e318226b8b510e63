//! Whether a node has nothing left of what clients gave it: for a cluster that is to be used again.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
};

use super::{
    cql::{Connection, CqlError, Value},
    dialect::Series,
    view::{self, Asked, PATIENCE, is_own_keyspace},
};
use crate::{
    database::ClusterView,
    jmx::{Client, JmxError},
};

/// Pools whose tasks are work that is left over.
const LEFT_OVER: [&str; 4] = ["CompactionExecutor", "HintsDispatcher", "MemtableFlushWriter", "MemtablePostFlush"];

/// Where the same can be asked of a node without virtual tables. Compactions count those that run and those that are to
/// come.
const GAUGES: [(&str, &str); 8] = [
    ("org.apache.cassandra.metrics:type=Compaction,name=PendingTasks", "compactions"),
    (
        "org.apache.cassandra.metrics:type=ThreadPools,path=internal,scope=CompactionExecutor,name=ActiveTasks",
        "tasks of CompactionExecutor",
    ),
    (
        "org.apache.cassandra.metrics:type=ThreadPools,path=internal,scope=HintsDispatcher,name=ActiveTasks",
        "tasks of HintsDispatcher",
    ),
    (
        "org.apache.cassandra.metrics:type=ThreadPools,path=internal,scope=MemtableFlushWriter,name=ActiveTasks",
        "tasks of MemtableFlushWriter",
    ),
    (
        "org.apache.cassandra.metrics:type=ThreadPools,path=internal,scope=MemtablePostFlush,name=ActiveTasks",
        "tasks of MemtablePostFlush",
    ),
    (
        "org.apache.cassandra.metrics:type=ThreadPools,path=request,scope=MutationStage,name=PendingTasks",
        "tasks of MutationStage",
    ),
    (
        "org.apache.cassandra.metrics:type=ThreadPools,path=request,scope=ReadStage,name=PendingTasks",
        "tasks of ReadStage",
    ),
    (
        "org.apache.cassandra.metrics:type=ThreadPools,path=internal,scope=MemtableFlushWriter,name=PendingTasks",
        "waiting tasks of MemtableFlushWriter",
    ),
];
/// A pool that has never had anything to do is not there.
const MISSING: &str = "javax.management.InstanceNotFoundException";

/// As [`view::view`], and what is left: keyspaces that are not Cassandra's own, compactions, hints for other nodes,
/// tasks that wait. It is read from virtual tables (`system_views`); of a version that has none, over JMX; hints that
/// no table tells of are seen in their directory.
pub(super) fn rest(asked: &Asked<'_>) -> ClusterView {
    let mut view = view::view(asked);
    if !view.missing.is_empty() {
        return view;
    }
    let me = asked.member();
    match left(asked) {
        Ok(left) => view.missing.extend(left.into_iter().map(|left| format!("{} still has {left}", me.name))),
        Err(error) => view.missing.push(format!("{} does not say what it still works on ({error})", me.name)),
    }
    view
}

fn left(asked: &Asked<'_>) -> Result<Vec<String>, String> {
    let mut connection = asked.connect().map_err(|error| error.to_string())?;
    let mut all = left_in_tables(&mut connection, asked.series).map_err(|error| error.to_string())?;
    if !asked.series.tells_hints() {
        let files = hint_files(&asked.member().home.join("hints")).map_err(|error| format!("its hints: {error}"))?;
        all.extend((files > 0).then(|| format!("{files} files of hints")));
    }
    if !asked.series.has_virtual_tables() {
        all.extend(left_over_jmx(asked.jmx_port).map_err(|error| error.to_string())?);
    }
    Ok(all)
}

/// Files of hints that have not been delivered; one that all have been read of is deleted.
fn hint_files(directory: &Path) -> io::Result<usize> {
    let mut files = 0;
    for entry in fs::read_dir(directory)? {
        files += usize::from(entry?.path().extension().is_some_and(|extension| extension == "hints"));
    }
    Ok(files)
}

fn left_over_jmx(port: u16) -> Result<Vec<String>, JmxError> {
    let mut client = Client::open(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port), PATIENCE)?;
    let mut left = Vec::new();
    for (bean, what) in GAUGES {
        let attributes = match client.attributes(bean, &["Value"]) {
            Err(JmxError::Exception(class)) if class == MISSING => continue,
            attributes => attributes?,
        };
        let value = attributes.first().and_then(|(_, value)| value.number());
        let value = value.ok_or(JmxError::Protocol("a gauge without a value"))?;
        if value > 0.0 {
            left.push(format!("{value} {what}"));
        }
    }
    Ok(left)
}

fn left_in_tables(connection: &mut Connection, series: Series) -> Result<Vec<String>, CqlError> {
    let mut left = Vec::new();
    for row in connection.query("SELECT keyspace_name FROM system_schema.keyspaces")? {
        let name = text(row.first());
        if !is_own_keyspace(&name) {
            left.push(format!("the keyspace {name}"));
        }
    }
    if !series.has_virtual_tables() {
        return Ok(left);
    }
    let compactions = connection.query("SELECT table_name FROM system_views.sstable_tasks")?.len();
    if compactions > 0 {
        left.push(format!("{compactions} compactions"));
    }
    if series.tells_hints() {
        let hints = connection.query("SELECT files FROM system_views.pending_hints")?.len();
        if hints > 0 {
            left.push(format!("hints for {hints} nodes"));
        }
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
    fn files_of_hints_are_counted_and_others_are_not() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a-1-2.hints", "b-1-2.hints", "a-1-2.crc32"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        assert_eq!(hint_files(directory.path()).unwrap(), 2);
        assert!(hint_files(&directory.path().join("none")).is_err());
    }
}
