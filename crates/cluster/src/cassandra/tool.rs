//! `nodetool`: Cassandra's own tool of administration, from the same jars. It speaks JMX with its node, on the loopback
//! address of the node's own host: no link of the network carries that, so there is nothing to encrypt in it.

use std::{ffi::OsString, path::PathBuf};

use super::{
    conf,
    jvm::{file_uri, joined, modules, set},
};
use crate::database::Member;

/// For a JVM that lives for a second: little memory, the quick compiler, no files outside the node's directory.
/// Its name server is the hosts file; the node's JMX port is open on its own loopback address only.
const OPTIONS: [&str; 8] = [
    "-Xmx64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
    "-Dfile.encoding=UTF-8",
    "-Djava.awt.headless=true",
    // As Cassandra's own script: newer versions of Java refuse the addresses that JMX over RMI has.
    "-Dcom.sun.jndi.rmiURLParsing=legacy",
];

/// All arguments of a Java of this major version for `nodetool` with these arguments of its own.
pub(super) fn arguments(
    member: &Member,
    java: u32,
    jmx_port: u16,
    class_path: &[PathBuf],
    own: &[String],
) -> Vec<OsString> {
    let home = &member.home;
    let directory = home.join("conf");
    let mut all: Vec<OsString> = OPTIONS.map(OsString::from).into();
    all.extend(modules(java));
    all.push(set("-Djava.io.tmpdir", &home.join("tmp")));
    // It keeps a history there.
    all.push(set("-Duser.home", home));
    all.push(set("-Dcassandra.storagedir", home));
    all.push(set("-Djdk.net.hosts.file", &directory.join("hosts")));
    all.push(set("-Dlogback.configurationFile", &directory.join(conf::TOOLS_LOGBACK)));
    all.push(format!("-Dcassandra.config={}", file_uri(&directory.join("cassandra.yaml"))).into());
    all.push("-cp".into());
    all.push(joined(class_path));
    all.extend(["org.apache.cassandra.tools.NodeTool", "-h", "127.0.0.1", "-p"].map(OsString::from));
    all.push(jmx_port.to_string().into());
    all.extend(own.iter().map(OsString::from));
    all
}
