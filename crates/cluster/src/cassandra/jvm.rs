//! The command line of a node's JVM.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use brownout_units::Bytes;

use super::{Jit, evidence::log_of_pauses, sites};
use crate::database::{Member, Start};

/// Packages of the JDK that Cassandra reaches into, as its own `jvm17-server.options` has them.
const EXPORTS: [&str; 9] = [
    "java.base/java.lang.ref",
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.attach/sun.tools.attach",
    "jdk.compiler/com.sun.tools.javac.file",
    "jdk.unsupported/sun.misc",
];
/// The same for reflection; the last two are for its memory meter, which else measures by a slower way.
const OPENS: [&str; 16] = [
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.util",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.compiler/com.sun.tools.javac",
    "jdk.management/com.sun.management.internal",
    "java.base/java.nio",
    "java.base/java.util.concurrent",
];

/// The memory meter of Cassandra before 5.0 reads the fields of whatever it meets, and those of lambdas only as an
/// agent, as which Cassandra's own script starts it. These packages are what it meets (found by running 4.1 on Java
/// 17).
const OPENS_FOR_OLD_METER: [&str; 13] = [
    "java.base/java.lang.invoke",
    "java.base/java.lang.ref",
    "java.base/java.math",
    "java.base/java.net",
    "java.base/java.security",
    "java.base/java.text",
    "java.base/java.time",
    "java.base/java.util.concurrent.atomic",
    "java.base/java.util.concurrent.locks",
    "java.base/java.util.function",
    "java.base/java.util.regex",
    "java.base/java.util.stream",
    "java.base/jdk.internal.misc",
];
/// How the name of its jar begins.
const OLD_METER: &str = "jamm-0.3.";

/// Options that are the same for every node of every cluster.
const COMMON: [&str; 14] = [
    "-Djdk.attach.allowAttachSelf=true",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Djava.net.preferIPv4Stack=true",
    "-Dcassandra-foreground=yes",
    "-Djava.rmi.server.hostname=127.0.0.1",
    "-Dcassandra.superuser_setup_delay_ms=0",
    "-Dcassandra.consistent.rangemovement=false",
    // The value that two seconds of measuring at every start arrive at, on a 64-bit JVM with small references.
    "-Dcassandra.memtable.row_overhead_size=180",
    // As shipped with Cassandra.
    "-Xss256k",
    // A file under /tmp for every JVM, which tools could read.
    "-XX:-UsePerfData",
    // A node that is out of memory is dead, and shall be seen to be.
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-HeapDumpOnOutOfMemoryError",
    "-Dfile.encoding=UTF-8",
    "-Djava.awt.headless=true",
];

/// A start from nothing, with all nodes at once: there is no ring to learn and nobody to wait for. But
/// cassandra.ring_delay_ms stays: with 0, a node that hears of another before that one has its tokens throws it out of
/// gossip and, with two nodes, never speaks to it again ("FatClient has been silent for 0ms").
///
/// A node that starts again does as Cassandra is shipped: it remembers the ring, and takes clients only when gossip has
/// settled. One that took them before it knows its peers would refuse what it need not: an outage of our own making.
const FIRST: [&str; 2] = ["-Dcassandra.skip_wait_for_gossip_to_settle=0", "-Dcassandra.load_ring_state=false"];

/// Above this heap the serial collector's pauses would be the experiment's result.
const SERIAL_UP_TO: Bytes = Bytes(1 << 30);

/// The garbage collector for a heap: its name, for the record, is its option.
pub(super) fn collector(heap: Bytes) -> &'static str {
    if heap <= SERIAL_UP_TO { "-XX:+UseSerialGC" } else { "-XX:+UseG1GC" }
}

/// Java has modules from here on, whose packages have to be opened; and one way to write all of its logs (JEP 158,
/// 261).
const MODULES_SINCE: u32 = 9;

/// What differs between clusters, and between nodes of several versions.
pub(super) struct Jvm<'a> {
    /// The major version of Java.
    pub(super) java: u32,
    pub(super) heap: Bytes,
    pub(super) jit: Jit,
    pub(super) jmx_port: u16,
    pub(super) class_path: &'a [PathBuf],
    pub(super) archive: Option<&'a Archive>,
}

/// A class-data archive to use or to make (JEP 350).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Archive {
    Use(PathBuf),
    Make(PathBuf),
}

impl Jvm<'_> {
    /// All arguments of `java` for a node whose configuration lies in `conf` of its home.
    pub(super) fn arguments(&self, member: &Member, start: Start) -> Vec<OsString> {
        let home = &member.home;
        let kib = self.heap.0 / 1024;
        let mut all: Vec<OsString> = vec![format!("-Xms{kib}k").into(), format!("-Xmx{kib}k").into()];
        all.push(collector(self.heap).into());
        if self.jit == Jit::C1 {
            all.push("-XX:TieredStopAtLevel=1".into());
        }
        all.extend(COMMON.map(OsString::from));
        all.push(format!("-Dcassandra.jmx.local.port={}", self.jmx_port).into());
        if start == Start::First {
            all.extend(FIRST.map(OsString::from));
        }
        all.extend(modules(self.java));
        if let Some(jar) = self.class_path.iter().find(|jar| is_old_meter(jar)) {
            let mut agent = OsString::from("-javaagent:");
            agent.push(jar);
            all.push(agent);
            if has_modules(self.java) {
                all.extend(opened(&OPENS_FOR_OLD_METER));
            }
        }
        match &self.archive {
            // `auto`: an archive that does not fit is left aside; the node then starts as it would without.
            Some(Archive::Use(path)) => all.extend([set("-XX:SharedArchiveFile", path), "-Xshare:auto".into()]),
            Some(Archive::Make(path)) => all.push(set("-XX:ArchiveClassesAtExit", path)),
            None => {}
        }
        // Nothing may be written outside the node's own directories, and no name may be asked of a network.
        let tmp = home.join("tmp");
        for property in ["-Djava.io.tmpdir", "-Djna.tmpdir", "-Dio.netty.native.workdir"] {
            all.push(set(property, &tmp));
        }
        all.push(set("-Duser.home", home));
        all.push(set("-Dcassandra.storagedir", home));
        all.push(set("-Dcassandra.logdir", &member.logs));
        all.push(set("-XX:ErrorFile", &member.logs.join("hs_err.log")));
        if has_modules(self.java) {
            all.push(log_of_pauses(&member.logs));
        }
        // Java 8 knows no such file: there the resolver of the system is asked, which reads the lab's `/etc/hosts`.
        all.push(set("-Djdk.net.hosts.file", &home.join("conf/hosts")));
        all.push(set("-Dlogback.configurationFile", &home.join("conf/logback.xml")));
        all.push(format!("-Dcassandra.config={}", file_uri(&home.join("conf/cassandra.yaml"))).into());
        // Read only by the snitch of nodes in data centres.
        all.push(format!("-D{}={}", sites::FILE, file_uri(&home.join("conf").join(sites::FILE))).into());
        all.push("-cp".into());
        all.push(joined(self.class_path));
        all.push("org.apache.cassandra.service.CassandraDaemon".into());
        all
    }
}

fn has_modules(java: u32) -> bool {
    java >= MODULES_SINCE
}

/// What lets Cassandra's classes, those of its tools too, into the JDK's own; nothing where Java keeps nobody out.
pub(super) fn modules(java: u32) -> impl Iterator<Item = OsString> {
    let exports = EXPORTS.iter().map(|package| format!("--add-exports={package}=ALL-UNNAMED").into());
    exports.chain(opened(&OPENS)).filter(move |_: &OsString| has_modules(java))
}

fn opened(packages: &'static [&'static str]) -> impl Iterator<Item = OsString> {
    packages.iter().map(|package| format!("--add-opens={package}=ALL-UNNAMED").into())
}

fn is_old_meter(jar: &Path) -> bool {
    jar.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(OLD_METER.as_bytes()))
}

pub(super) fn set(option: &str, path: &Path) -> OsString {
    let mut text = OsString::from(option);
    text.push("=");
    text.push(path);
    text
}

pub(super) fn joined(class_path: &[PathBuf]) -> OsString {
    let mut text = OsString::new();
    for jar in class_path {
        if !text.is_empty() {
            text.push(":");
        }
        text.push(jar);
    }
    text
}

/// `file:///…`, with all but unreserved characters escaped (RFC 3986, 2.1).
pub(super) fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(byte.into()),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_uri_that_java_reads_back() {
        assert_eq!(file_uri(Path::new("/run 1/n1/ä.yaml")), "file:///run%201/n1/%C3%A4.yaml");
    }

    #[test]
    fn the_jit_the_collector_and_the_archive_follow_the_request() {
        let member = Member {
            name: "n1".into(),
            address: std::net::Ipv4Addr::LOCALHOST,
            client: ([127, 0, 0, 1], 9042).into(),
            home: "/scratch/n1".into(),
            logs: "/logs/n1".into(),
        };
        let jars = [PathBuf::from("/a.jar"), PathBuf::from("/b.jar")];
        let arguments = |heap, jit, archive: Option<&Archive>| {
            let jvm = Jvm { java: 17, heap, jit, jmx_port: 7199, class_path: &jars, archive };
            jvm.arguments(&member, Start::First)
                .into_iter()
                .map(|a| a.into_string().unwrap())
                .collect::<Vec<_>>()
                .join(" ")
        };
        let small = arguments(Bytes(192 << 20), Jit::C1, None);
        assert!(!small.contains("ring_delay"), "{small}");
        assert!(small.starts_with("-Xms196608k -Xmx196608k -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "), "{small}");
        assert!(small.ends_with(" -cp /a.jar:/b.jar org.apache.cassandra.service.CassandraDaemon"), "{small}");
        assert!(!small.contains("Archive"), "{small}");
        let archive = Archive::Use("/c/x.jsa".into());
        assert!(small.contains(" -Xlog:safepoint:file=\"/logs/n1/safepoints.log\":timenanos "), "{small}");
        let large = arguments(Bytes(4 << 30), Jit::Default, Some(&archive));
        assert!(large.contains("-XX:+UseG1GC") && !large.contains("Tiered"), "{large}");
        assert!(large.contains("-XX:SharedArchiveFile=/c/x.jsa -Xshare:auto"), "{large}");
    }

    #[test]
    fn the_memory_meter_of_old_is_an_agent_and_the_new_one_is_not() {
        let member = Member {
            name: "n1".into(),
            address: std::net::Ipv4Addr::LOCALHOST,
            client: ([127, 0, 0, 1], 9042).into(),
            home: "/scratch/n1".into(),
            logs: "/logs/n1".into(),
        };
        let arguments = |jar: &str| {
            let jars = [PathBuf::from("/lib/a.jar"), PathBuf::from("/lib").join(jar)];
            let (heap, jit) = (Bytes(192 << 20), Jit::C1);
            let jvm = Jvm { java: 17, heap, jit, jmx_port: 7200, class_path: &jars, archive: None };
            jvm.arguments(&member, Start::First)
        };
        let has = |arguments: &[OsString], option: &str| arguments.iter().any(|argument| argument == option);
        let (old, new) = (arguments("jamm-0.3.2.jar"), arguments("jamm-0.4.0.jar"));
        assert!(has(&old, "-javaagent:/lib/jamm-0.3.2.jar"), "{old:?}");
        assert!(!new.iter().any(|argument| argument.to_string_lossy().starts_with("-javaagent")), "{new:?}");
        assert_eq!(old.len(), new.len() + 1 + OPENS_FOR_OLD_METER.len());
        assert!(has(&new, "-Dcassandra.jmx.local.port=7200"), "{new:?}");
    }

    #[test]
    fn java_8_gets_no_option_that_it_does_not_know() {
        let member = Member {
            name: "n1".into(),
            address: std::net::Ipv4Addr::LOCALHOST,
            client: ([127, 0, 0, 1], 9042).into(),
            home: "/scratch/n1".into(),
            logs: "/logs/n1".into(),
        };
        let jars = [PathBuf::from("/lib/jamm-0.3.0.jar")];
        let arguments = |java| {
            let (heap, jit) = (Bytes(192 << 20), Jit::Default);
            let jvm = Jvm { java, heap, jit, jmx_port: 7199, class_path: &jars, archive: None };
            let all = jvm.arguments(&member, Start::First);
            all.into_iter().map(|argument| argument.into_string().unwrap()).collect::<Vec<_>>()
        };
        let (old, new) = (arguments(8), arguments(11));
        for unknown in ["--add-", "-Xlog", "@"] {
            assert!(!old.iter().any(|argument| argument.starts_with(unknown)), "{old:?}");
        }
        assert!(old.iter().any(|argument| argument == "-javaagent:/lib/jamm-0.3.0.jar"), "{old:?}");
        assert!(new.iter().any(|argument| argument.starts_with("-Xlog:safepoint")), "{new:?}");
        assert!(old.iter().all(|argument| new.contains(argument)), "all else is the same");
    }

    #[test]
    fn only_the_first_start_waits_for_nobody_and_forgets_the_ring() {
        let member = Member {
            name: "n1".into(),
            address: std::net::Ipv4Addr::LOCALHOST,
            client: ([127, 0, 0, 1], 9042).into(),
            home: "/scratch/n1".into(),
            logs: "/logs/n1".into(),
        };
        let (heap, jit) = (Bytes(192 << 20), Jit::C1);
        let jvm = Jvm { java: 17, heap, jit, jmx_port: 7199, class_path: &[], archive: None };
        let (mut first, again) = (jvm.arguments(&member, Start::First), jvm.arguments(&member, Start::Again));
        assert!(first.iter().any(|option| option == "-Dcassandra.load_ring_state=false"), "{first:?}");
        first.retain(|option| !FIRST.iter().any(|only| *only == *option));
        assert_eq!(first, again);
    }
}
