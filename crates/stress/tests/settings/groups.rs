//! What the option groups say.

use std::{net::SocketAddr, time::Duration};

use brownout_load::{Consistency, RetryDelay, SerialConsistency};
use brownout_stress::settings::{
    Batch, Compression, Contents, DataPath, Level, LoadBalance, Protocol, Seeds, StoreType, TlsVersion,
};

use super::{parse, seconds, try_parse};

#[test]
fn populations_are_sequences_or_drawn() {
    let seeds = |line: &str| parse(line).population.seeds;
    let sequence = |last| Seeds::Sequence { first: 1, last, wrap: true, read_lookback: None };
    for (line, expected) in [
        ("write n=10", sequence(10)),
        ("counter_write duration=1s", sequence(1_000_000)),
        ("write n=0", sequence(1_000_000)),
        ("user profile=a ops(insert=2) n=10", sequence(10)),
        ("read n=10", Seeds::Distribution("gaussian(1..10)".parse().expect("a distribution"))),
        (
            "user profile=a ops(insert=2,q=1) n=10",
            Seeds::Distribution("gaussian(1..10)".parse().expect("a distribution")),
        ),
        (
            "user profile=a ops(t.insert=1) n=10",
            Seeds::Distribution("gaussian(1..10)".parse().expect("a distribution")),
        ),
        ("user profile=a,b ops(a.insert=5/s,b.insert=5/s) n=10", sequence(10)),
        ("write n=10 -pop dist=zipf(1..5)", Seeds::Distribution("zipf(1..5)".parse().expect("a distribution"))),
        ("read -pop seq=5...2K no-wrap", Seeds::Sequence { first: 5, last: 2000, wrap: false, read_lookback: None }),
        (
            "mixed -pop seq=1..9 read-lookback=fixed(3)",
            Seeds::Sequence { first: 1, last: 9, wrap: true, read_lookback: "fixed(3)".parse().ok() },
        ),
    ] {
        assert_eq!(seeds(line), expected, "{line}");
    }
    assert_eq!(parse("read -pop dist=fixed(1) contents=Sorted").population.contents, Contents::Sorted);
    assert_eq!(parse("read -pop seq=1..2 contents=shuffled").population.contents, Contents::Shuffled);
    assert_eq!(parse("read").population.contents, Contents::Arbitrary);
}

#[test]
fn traps_of_cassandra_stress_are_none_here() {
    assert_eq!(parse("write n=1 -insert batchtype=unlogged").insert.batch, Some(Batch::Unlogged), "small letters");
    assert_eq!(parse("write n=1 -insert batchtype=None batch-size=50").insert.batch_size, Some(50));
    let insert = parse("user profile=a ops(insert=1) n=1 -insert cl=QUORUM serial-cl=local_serial").insert;
    assert_eq!(insert.consistency, Some(Consistency::Quorum), "declared there, but not listed");
    assert_eq!(insert.serial_consistency, Some(SerialConsistency::LocalSerial));
    assert_eq!(parse("write n=1 -mode native cql3 port=9999").port.native, 9999, "read there, and not used");
    assert_eq!(parse("write n=1 -port native=9998").port.native, 9998);
    let Seeds::Distribution(weibull) = parse("read -pop dist=weibull(1..10,2)").population.seeds else {
        panic!("drawn")
    };
    assert_eq!(weibull.to_string(), "extreme(1..10,2)", "an alias of nothing there");
    assert_eq!(parse("write n=1").insert.row_population_ratio, None, "its default hides the profile's there");
    assert_eq!(parse("write n=1 -mode native").mode.path, DataPath::Own, "cql3 need not be said");
    assert!(parse("write n=1 -mode cql3 native prepared").mode.prepared, "Apache's tool wants it said");
    let error = try_parse("write n=1 -col n=uniform(1..5)").expect_err("fails only when it runs there").to_string();
    assert!(error.starts_with("Variable column counts are not implemented for CQL"), "{error}");
}

#[test]
fn columns_errors_and_logs_are_read() {
    let columns = parse("write n=1 -col names=b,a size=uniform(1..9) slice timestamp=5").columns;
    assert_eq!((columns.names.join(" "), columns.slice, columns.timestamp), ("a b".to_owned(), true, Some(5)));
    let errors = parse("write n=1").errors;
    assert_eq!((errors.tries, errors.ignore, errors.delay), (10, false, RetryDelay::None));
    let errors =
        parse("write n=1 -errors retries=0 ignore fail-fast skip-read-validation skip-unsupported-columns").errors;
    assert_eq!((errors.tries, errors.ignore, errors.fail_fast), (1, true, true));
    assert!(errors.skip_read_validation && errors.skip_unsupported_columns);
    let (min, max) = (Duration::from_millis(5), Duration::from_millis(50));
    for (words, delay) in [
        ("min-delay-ms=5", RetryDelay::Constant(min)),
        ("delay-policy=LINEAR min-delay-ms=5 max-delay-ms=50", RetryDelay::Linear { min, max }),
        ("delay-policy=exponential min-delay-ms=5 max-delay-ms=50", RetryDelay::Exponential { min, max }),
    ] {
        assert_eq!(parse(&format!("write n=1 -errors {words}")).errors.delay, delay, "{words}");
    }
    let log = parse("write n=1").log;
    assert_eq!((log.level, log.summary, log.settings, log.interval), (Level::Normal, true, true, seconds(1)));
    let log = parse("write n=1 -log level=Verbose no-summary no-settings print-statements-on-error interval=250ms").log;
    assert_eq!((log.level, log.summary, log.settings), (Level::Verbose, false, false));
    assert_eq!((log.statements_on_error, log.interval), (true, Duration::from_millis(250)));
    let log = parse("write n=1 -log file=a hdrfile=b json=c csv=d prometheus=:9500").log;
    let paths = [log.file, log.hdr_file, log.json, log.csv].map(|path| path.expect("a path").display().to_string());
    assert_eq!((paths.join(" "), log.prometheus), ("a b c d".to_owned(), "127.0.0.1:9500".parse::<SocketAddr>().ok()));
    let open = parse("write n=1 -log prometheus=0.0.0.0:9501").log.prometheus;
    assert_eq!(open, "0.0.0.0:9501".parse::<SocketAddr>().ok());
    let apache = parse("write n=1 -reporting output-frequency=5s header-frequency=1m");
    assert_eq!((apache.log.interval, apache.reporting.header), (seconds(5), Some(seconds(60))));
}

#[test]
fn modes_nodes_and_transport_are_read() {
    let mode = parse("write n=1").mode;
    assert_eq!((mode.path, mode.prepared, mode.protocol), (DataPath::Own, true, Protocol::Default));
    assert_eq!((mode.connections_per_host, mode.request_timeout), (8, seconds(12)));
    let mode = parse(
        "write n=1 -mode driver user=u password=p compression=LZ4 protocolVersion=5 unprepared maxPending=9 \
         connectionsPerHost=2 requestTimeout=500",
    )
    .mode;
    assert_eq!((mode.path, mode.prepared, mode.protocol), (DataPath::Driver, false, Protocol::Version(5)));
    assert_eq!((mode.compression, mode.max_pending, mode.connections_per_host), (Compression::Lz4, Some(9), 2));
    assert_eq!(mode.password.as_ref().map(|password| password.reveal()), Some("p"));
    assert!(!format!("{mode:?}").contains("\"p\""), "passwords are not shown");
    assert_eq!(parse("write n=1 -mode protocolVersion=newest_supported").mode.protocol, Protocol::Newest);
    let node = parse("write n=1").node;
    assert_eq!((node.hosts, node.whitelist, node.load_balance), (vec!["localhost".to_owned()], false, None));
    let settings = parse("write n=1 -node a,b whitelist datacenter=dc1 rack=r1 loadbalance=dc remote-dc=2 pin=a");
    assert!(settings.block().contains("  Rack: r1\n"), "the block shows what was written");
    let node = settings.node;
    assert_eq!((node.hosts, node.whitelist), (vec!["a".to_owned(), "b".to_owned()], true));
    assert_eq!((node.datacenter.as_deref(), node.rack.as_deref()), (Some("dc1"), None), "dc-aware prefers no rack");
    assert_eq!(parse("write n=1 -node rack=r1 loadbalance=rack").node.rack.as_deref(), Some("r1"));
    assert_eq!(parse("write n=1 -node rack=r1").node.rack.as_deref(), Some("r1"), "a rack alone is preferred");
    assert_eq!((node.load_balance, node.remote_hosts), (Some(LoadBalance::Datacenter), Some(2)));
    assert_eq!(node.pin.as_deref(), Some("a"));
    assert_eq!(parse("write n=1 -node file=nodes.txt").node.hosts, ["10.0.0.1", "10.0.0.2"]);
    assert_eq!(parse("write n=1 -node ::1").node.hosts, ["::1"], "an address of version 6");
    assert!(!parse("write n=1").transport.is_on());
    let transport = parse(
        "write n=1 -transport truststore=ca.pem keystore=me.p12 keystore-password=k store-type=pem ssl-protocol=TLSv1.3 \
         ssl-ciphers=A,B hostname-verification=true",
    )
    .transport;
    assert!(transport.is_on() && transport.hostname_verification);
    assert_eq!((transport.store_type, transport.protocol), (Some(StoreType::Pem), Some(TlsVersion::V13)));
    assert_eq!(transport.ciphers, Some(vec!["A".to_owned(), "B".to_owned()]));
    let block = parse("write n=1 -transport truststore=ca.pem truststore-password=hush").block();
    assert!(block.contains("truststore-password=*suppressed*; ") && !block.contains("hush"), "{block}");
    let secret = parse("write n=1 -credentials-file secrets.properties");
    assert_eq!(secret.mode.user.as_deref(), Some("alice"));
    assert_eq!(secret.mode.password.as_ref().map(|password| password.reveal()), Some("p=w"));
    assert_eq!(secret.transport.truststore_password.as_ref().map(|password| password.reveal()), Some("t"));
    let both = parse("write n=1 -mode user=bob -credentials-file secrets.properties");
    assert_eq!(both.mode.user.as_deref(), Some("bob"), "the command line wins");
}

#[test]
fn schemas_are_read_in_the_order_written() {
    let schema = parse("write n=1").schema;
    assert_eq!(schema.keyspace.as_deref(), Some("keyspace1"));
    assert_eq!(schema.replication, [("replication_factor".to_owned(), "1".to_owned())]);
    let schema = parse(
        "write n=1 -schema keyspace=k compression=LZ4Compressor replication(strategy=SimpleStrategy,factor=3) \
         compaction(strategy=LeveledCompactionStrategy,b=2,a=1) storage(type=S3,endpoint=e,bucket=b)",
    )
    .schema;
    let pairs =
        |pairs: &[(String, String)]| pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
    assert_eq!(schema.replication_strategy, "org.apache.cassandra.locator.SimpleStrategy");
    assert_eq!(pairs(&schema.replication), ["replication_factor=3"]);
    assert_eq!(schema.compaction_strategy.as_deref(), Some("LeveledCompactionStrategy"));
    assert_eq!(pairs(&schema.compaction), ["b=2", "a=1"]);
    assert_eq!((schema.compression.as_deref(), schema.storage_type.as_deref()), (Some("LZ4Compressor"), Some("S3")));
    assert_eq!(pairs(&schema.storage), ["endpoint=e", "bucket=b"]);
    assert_eq!(parse("user profile=a ops(insert=1) n=1").schema.keyspace, None, "the profile's");
}
