//! The command language: what words mean, and what is refused.

#![allow(clippy::expect_used, clippy::panic, reason = "a test ends by them")]

use std::{io, net::SocketAddr, path::Path, time::Duration};

use brownout_load::{Arrivals, Consistency, RetryDelay, SerialConsistency};
use brownout_stress::settings::{
    Batch, CommandKind, Compression, Contents, DataPath, Generator, Invocation, Length, Level, LimitKind, LoadBalance,
    Objective, Open, Protocol, Rate, Seeds, Settings, SettingsError, Shape, Share, StoreType, TlsVersion, Truncate,
};

fn files(path: &Path) -> io::Result<String> {
    match path.to_str() {
        Some("nodes.txt") => Ok("10.0.0.1\n\n10.0.0.2\n".to_owned()),
        Some("empty.txt") => Ok("\n".to_owned()),
        Some("secrets.properties") => {
            Ok("# ours\ncql.username = alice\ncql.password=p=w\njmx.username=j\ntransport.truststore.password:t\n"
                .to_owned())
        }
        Some("odd.properties") => Ok("cql.user=alice\n".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    }
}

/// One argument, as a shell would give it in quotes.
fn try_parse(line: &str) -> Result<Settings, SettingsError> {
    Settings::parse_with(&line.split(' ').collect::<Vec<_>>(), &files)
}

fn parse(line: &str) -> Settings {
    try_parse(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn words_are_the_same_quoted_or_not() {
    let plain = parse("mixed n=10 ratio(read=1,write=2) -rate threads=5");
    for arguments in [
        &["mixed n=10 ratio(read=1,write=2) -rate threads=5"][..],
        &["mixed", "n=10", "ratio(", "read", "=", "1", ",", "write", "=2", ")", "-rate", "threads =5"],
        &["  mixed ", "n= 10", "ratio (read=1, write=2)", "-RATE", "Threads=5"],
        &["MIXED", "N=10", "RATIO(READ=1,Write=2)\t", "-rate", "threads=5"],
    ] {
        let settings = Settings::parse(arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
        assert_eq!((&settings.command, &settings.rate), (&plain.command, &plain.rate), "{arguments:?}");
    }
}

#[test]
fn every_name_of_a_command_is_known() {
    for (names, kind) in [
        (&["read"][..], CommandKind::Read),
        (&["write", "insert"], CommandKind::Write),
        (&["mixed"], CommandKind::Mixed),
        (&["counter_write", "counterwrite", "counter_add", "counteradd"], CommandKind::CounterWrite),
        (&["counter_read", "counterread", "counter_get", "counterget"], CommandKind::CounterRead),
    ] {
        for name in names {
            assert_eq!(parse(&format!("{name} n=1")).command.kind, kind, "{name}");
        }
    }
    assert_eq!(parse("user profile=a.yaml ops(insert=1) n=1").command.kind, CommandKind::User);
    assert_eq!(parse("verify-sizes profile=a.yaml").command.kind, CommandKind::VerifySizes);
}

#[test]
fn commands_say_what_how_long_and_how() {
    let command = parse("write n=5k").command;
    assert_eq!((command.length, command.warmup, command.truncate), (Length::Count(5000), true, Truncate::Never));
    assert_eq!(
        (command.consistency, command.serial_consistency, command.key_size, command.generator, command.seed),
        (Consistency::LocalOne, SerialConsistency::Serial, 10, None, None)
    );
    let command = parse(
        "write duration=1.5s no-warmup truncate=ALWAYS cl=each_quorum serial-cl=LOCAL_SERIAL keysize=20 generator=v2 seed=-7",
    );
    let command = command.command;
    assert_eq!((command.length, command.warmup), (Length::Time(Duration::from_millis(1500)), false));
    assert_eq!((command.truncate, command.consistency), (Truncate::Always, Consistency::EachQuorum));
    assert_eq!((command.serial_consistency, command.key_size), (SerialConsistency::LocalSerial, 20));
    assert_eq!((command.generator, command.seed), (Some(Generator::V2), Some(-7)));
    let Length::Uncertainty(default) = parse("read").command.length else { panic!("err< unless told") };
    assert_eq!((default.target, default.least, default.most), (0.02, 30, 200));
    assert_eq!(parse("write n=0").command.length, Length::Count(0), "makes the schema and nothing else");
    assert_eq!(parse("write n=2B").command.length, Length::Count(2_000_000_000), "b is a billion");
}

#[test]
fn operations_have_weights_or_rates() {
    let command = parse("user profile=a.yaml,b.yaml ops(insert=1,b.q1=0.5) n=1 clustering=fixed(2)").command;
    assert_eq!(command.profiles, ["a.yaml", "b.yaml"]);
    let shares: Vec<(&str, Share)> = command.ops.iter().map(|op| (op.name.as_str(), op.share)).collect();
    assert_eq!(shares, [("insert", Share::Weight(1.0)), ("b.q1", Share::Weight(0.5))]);
    assert!(!command.only_inserts() && parse("user profile=a ops(insert=3) n=1").command.only_inserts());
    for line in [
        "user profile=a ops(insert=500/s,q1=2k/s) duration=1m",
        "user profile=a ops(insert=1,q1=2) duration=1m -rate ops(insert=500/s,q1=2k/s)",
    ] {
        let Rate::PerOperation { ops, arrivals } = parse(line).rate else { panic!("{line}") };
        let rates: Vec<f64> = ops
            .iter()
            .map(|op| match op.share {
                Share::Rate(rate) => rate.get(),
                Share::Weight(_) => 0.0,
            })
            .collect();
        assert_eq!((rates, arrivals), (vec![500.0, 2000.0], Arrivals::Constant), "{line}");
    }
    let settings = parse("user profile=a ops(insert=500/s) duration=1m -rate arrivals=poisson");
    assert!(matches!(settings.rate, Rate::PerOperation { arrivals: Arrivals::Poisson, .. }));
}

#[test]
fn rates_are_threads_with_or_without_limits() {
    let threads = |threads| Rate::Threads { threads, limit: None };
    assert_eq!(parse("write n=10").rate, threads(200), "cassandra-stress's default of a counted write");
    let auto = Rate::Steps { least: 4, most: 1000, until_saturated: true };
    for line in ["write", "write n=0", "write duration=1s", "read n=10", "mixed n=10", "read -rate auto"] {
        assert_eq!(parse(line).rate, auto, "{line}");
    }
    assert_eq!(
        parse("read -rate threads>=2 threads<=8").rate,
        Rate::Steps { least: 2, most: 8, until_saturated: false },
        "without auto every step is run"
    );
    for (line, kind, rate) in [
        ("read -rate threads=3 throttle=500/s", LimitKind::Throttle, 500.0),
        ("read -rate threads=3 fixed=1.5k/s", LimitKind::Fixed, 1500.0),
        ("read -rate threads=3 fixed=90/min throttle=0/s", LimitKind::Fixed, 1.5),
    ] {
        let Rate::Threads { threads: 3, limit: Some(limit) } = parse(line).rate else { panic!("{line}") };
        assert_eq!((limit.kind, limit.rate.get()), (kind, rate), "{line}");
    }
}

#[test]
fn open_loops_have_every_shape() {
    let open = |line: &str| match parse(line).rate {
        Rate::Open(Open { shape, arrivals }) => (shape.to_string(), arrivals),
        other => panic!("{line}: {other:?}"),
    };
    for (words, shown, arrivals) in [
        ("open=2000/s", "2000/s", Arrivals::Constant),
        ("open=2k/s arrivals=Poisson", "2000/s", Arrivals::Poisson),
        ("fixed=2000/s unbounded", "2000/s", Arrivals::Constant),
        ("open=2000/s ramp=100/s,30s", "from 100/s to 2000/s in 30s", Arrivals::Constant),
        ("open=2000/s ramp=1m", "from 2/s to 2000/s in 60s", Arrivals::Constant),
        ("steps(1k/s=30s,2k/s=500ms)", "1000/s for 30s, then 2000/s for 500ms", Arrivals::Constant),
        ("open=2000/s sine(amplitude=500/s,period=1m)", "2000/s ± 500/s every 60s", Arrivals::Constant),
        ("trace=day.csv arrivals=poisson", "as day.csv says", Arrivals::Poisson),
    ] {
        assert_eq!(open(&format!("read duration=1m -rate {words}")), (shown.to_owned(), arrivals), "{words}");
    }
    let settings = parse("read -rate threads=5 open=100/s");
    assert!(settings.rate.is_open() && settings.notes[0].contains("threads="), "{:?}", settings.notes);
    let Rate::Open(open) = parse("read -rate steps(10/s=1s,20/s=1s)").rate else { panic!("open") };
    let profile = open.profile().expect("a profile");
    assert_eq!((profile.count(seconds(1)), profile.count(seconds(2))), (10.0, 30.0));
    let Rate::Open(open) = parse("read -rate trace=no-such.csv").rate else { panic!("open") };
    assert!(open.profile().expect_err("no file").to_string().starts_with("-rate trace=no-such.csv: cannot be read"));
}

#[test]
fn a_search_has_objectives_and_bounds() {
    let search = |line: &str| match parse(line).rate {
        Rate::Search(search) => search,
        other => panic!("{line}: {other:?}"),
    };
    let plain = search("read -rate search(slo=p99<20ms)");
    assert_eq!(plain.objectives, [Objective::Latency { quantile: 0.99, below: Duration::from_millis(20) }]);
    assert_eq!((plain.from.get(), plain.to, plain.step, plain.precision), (1000.0, None, seconds(10), 0.05));
    let full = search(
        "read -rate search(slo=p99.9<20ms,errors<0.5%,max<1s,mean<5ms,from=100/s,to=5k/s,step=30s,precision=2%) arrivals=poisson",
    );
    let shown: Vec<String> = full.objectives.iter().map(Objective::to_string).collect();
    assert_eq!(shown, ["p99.9<20ms", "errors<0.5%", "max<1s", "mean<5ms"]);
    assert_eq!((full.from.get(), full.to.map(|to| to.get()), full.step), (100.0, Some(5000.0), seconds(30)));
    assert_eq!((full.precision, full.arrivals), (0.02, Arrivals::Poisson));
}

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
    let insert = parse("write n=1 -insert cl=QUORUM serial-cl=local_serial").insert;
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
    let node = parse("write n=1 -node a,b whitelist datacenter=dc1 rack=r1 loadbalance=dc remote-dc=2 pin=a").node;
    assert_eq!((node.hosts, node.whitelist), (vec!["a".to_owned(), "b".to_owned()], true));
    assert_eq!((node.datacenter.as_deref(), node.rack.as_deref()), (Some("dc1"), Some("r1")));
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

#[test]
fn words_of_ours_are_taken_out_wherever_they_stand() {
    let line = [
        "write",
        "--flush",
        "n=1",
        "--record",
        "run 1.db",
        "-rate",
        "--dry-run",
        "threads=2",
        "--nodetool=nodetool -h {host}",
    ];
    let settings = Settings::parse(&line).expect("taken out");
    assert_eq!(settings.rate, Rate::Threads { threads: 2, limit: None });
    let extras = settings.extras;
    assert!(extras.flush && extras.dry_run && !extras.compact && !extras.wait_compactions && !extras.apache);
    assert_eq!(extras.record.as_deref(), Some(Path::new("run 1.db")), "blanks and all");
    assert_eq!(extras.nodetool.as_deref(), Some("nodetool -h {host}"));
    let more = parse("write n=1 --compact --wait-compactions --apache").extras;
    assert!(more.compact && more.wait_compactions && more.apache);
    assert_eq!(settings.words.join(" "), "write n=1 -rate threads=2");
}

#[test]
fn what_has_no_effect_is_accepted_with_a_note() {
    for (line, note) in [
        ("write n=1 -mode thrift smart", "Thrift is gone"),
        ("write n=1 -mode simplenative prepared cql3", "the native protocol"),
        ("write n=1 -sendto host", "no daemon"),
        ("write n=1 -send-to host", "no daemon"),
        ("write n=1 -port thrift=1 jmx=2", "-port thrift="),
        ("write n=1 -jmx user=u password=p", "JMX"),
        ("write n=1 -col super=2", "Thrift"),
        ("write n=1 -col comparator=UTF8Type", "Thrift"),
        ("write n=1 -transport factory=x", "class of Java"),
        ("write n=1 -transport ssl-alg=x", "class of Java"),
        ("write n=1 -mode password=p", "without user="),
        ("write n=1 -credentials-file secrets.properties", "jmx.username"),
    ] {
        let notes = parse(line).notes;
        assert!(notes.iter().any(|found| found.contains(note)), "{line}: {notes:?}");
    }
    assert!(parse("write n=1 -node localhost -rate threads=1").notes.is_empty());
}

#[test]
fn what_makes_no_sense_is_refused_with_a_remedy() {
    for (line, parts) in [
        ("wriet n=1", &["No command specified: 'wriet' is none", "did you mean 'write'?"][..]),
        ("help", &["No command specified"]),
        ("write n=1 -rat threads=1", &["The following were ignored:\n-rat threads=1", "did you mean '-rate'?"]),
        ("write n=1 truncat=once", &["Invalid parameter truncat=once", "did you mean 'truncate='?", "help WRITE"]),
        ("write n=99999999999999999999", &["out of range"]),
        ("write n=1 keysize=99999999999", &["keysize=", "out of range"]),
        ("write duration=0s", &["duration=", "above 0"]),
        ("write n=1 -rate threads=0", &["at least 1"]),
        ("write n=1 -rate threads>=9 threads<=3", &["threads>=9"]),
        ("write n=1 -rate fixed=5/s", &["Invalid -rate options provided"]),
        ("write n=1 -rate open=0/s", &["above 0"]),
        ("write n=1 -rate open=5", &["Invalid value 5", "2000/s"]),
        ("write n=1 -rate open=5/s steps(1/s=1s)", &["Invalid -rate options provided"]),
        ("write n=1 -rate ramp=5s", &["Invalid -rate options provided"]),
        ("write n=1 -rate arrivals=poisson", &["names no rate"]),
        ("write n=1 -rate open=5/s arrivals=often", &["constant, poisson"]),
        ("write n=1 -rate open=5/s sine(amplitude=6/s,period=1s)", &["falls below 0"]),
        ("write n=1 -rate open=5/s sine(amplitude=1/s)", &["lacks a part"]),
        ("write n=1 -rate steps()", &["has none"]),
        ("write n=1 -rate steps(5/s)", &["Invalid steps specification: 5/s"]),
        ("write n=1 -rate search()", &["no objective"]),
        ("write n=1 -rate search(slo=p99)", &["Invalid search specification: p99"]),
        ("write n=1 -rate search(slo=p101<1s)", &["p101<1s"]),
        ("write n=1 -rate search(slo=p99<1s,from=9/s,to=5/s)", &["to= is below from="]),
        ("write n=1 -rate search(slo=p99<1s,precision=200%)", &["precision=200%"]),
        ("user profile=a ops(insert=1,q=5/s) n=1", &["mixes weights and rates"]),
        ("user profile=a ops(insert=0) n=1", &["Must specify at least one command with a non-zero ratio"]),
        ("user profile=a ops(insert=some) n=1", &["insert=some", "500/s"]),
        ("user profile=a ops(insert=5/s) n=1 -rate threads=2", &["leave -rate out"]),
        ("user profile=a,,b ops(insert=1) n=1", &["empty name"]),
        ("user profile=a ops(insert=1) n=1 -rate ops(insert=1)", &["a weight"]),
        (
            "user profile=a ops(insert=1) n=1 -schema keyspace=k",
            &["-schema can only be provided with predefined operations"],
        ),
        ("mixed n=1 ratio(read=0,write=0)", &["non-zero ratio"]),
        ("write n=1 -pop seq=9..1", &["the smaller seed first"]),
        ("write n=1 -insert select-ratio=half", &["Invalid ratio definition: half", "-insert select-ratio="]),
        ("write n=1 -insert batch-size=0", &["above 0"]),
        ("write n=1 -col names=a,a", &["'a' twice"]),
        ("write n=1 -col n=fixed(0)", &["out of range"]),
        ("write n=1 -col size=fixed(-1)", &["0 to 2147483647"]),
        ("write n=1 -mode foo", &["Invalid parameter foo"]),
        ("write n=1 -mode auth-provider=my.Own", &["Unknown auth provider class: my.Own"]),
        ("write n=1 -mode protocolVersion=3", &["no longer spoken", "4"]),
        ("write n=1 -mode protocolVersion=5 compression=snappy", &["does not know Snappy"]),
        ("write n=1 -mode prepared unprepared", &["choose one"]),
        ("write n=1 -mode requestTimeout=0", &["at least 1"]),
        ("write n=1 -mode connectionsPerHost=0", &["1 to 1000"]),
        ("write n=1 -mode maxPending=0", &["at least 1"]),
        ("write n=1 -node datacentre=dc1", &["Invalid parameter datacentre=dc1", "did you mean 'datacenter='?"]),
        ("write n=1 -node file=none.txt", &["-node file=none.txt: cannot be read"]),
        ("write n=1 -node file=empty.txt", &["names no node"]),
        ("write n=1 -port native=70000", &["1 to 65535"]),
        ("write n=1 -transport store-type=JKS truststore=a", &["keytool -importkeystore"]),
        ("write n=1 -credentials-file odd.properties", &["unknown key 'cql.user'", "cql.username"]),
        ("write n=1 -log prometheus=nowhere", &[":9500"]),
        ("write n=1 -log jsn=x", &["did you mean 'json='?"]),
        ("write n=1 -sendto a b", &["Invalid -sendto specifier: [a, b]"]),
        ("write n=1 --flsh", &["--flsh", "did you mean '--flush'?"]),
        ("write n=1 --flush --flush", &["--flush is defined multiple times"]),
        ("write n=1 --record", &["--record has no value"]),
        ("write n=1 --flush=yes", &["takes no value"]),
    ] {
        let error = try_parse(line).expect_err(line);
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{line}\n  wants: {parts:?}\n  says: {text}");
        let unfit = matches!(error, SettingsError::Unfit { .. });
        assert_eq!(error.usage().is_some_and(|usage| usage.contains("Usage: -")), unfit, "{line}");
    }
}

#[test]
fn help_print_and_version_are_answered_at_once() {
    let answer = |line: &str| match Invocation::parse(&line.split(' ').collect::<Vec<_>>()) {
        Ok(Invocation::Answer(text)) => text,
        other => panic!("{line}: {other:?}"),
    };
    for (line, part) in [
        ("help", "counter_write"),
        ("-?", "-tokenrange"),
        ("--help", "--wait-compactions"),
        ("help write", "Usage: write"),
        ("help COUNTERADD", "Usage: counter_write"),
        ("help user", "ops(?)"),
        ("help -rate", "search(?)"),
        ("-rate -?", "Usage: -rate"),
        ("help -mode", "requestTimeout=? (default=12000)"),
        ("help -transport", "PKCS#12"),
        ("help -sendto", "daemon"),
        ("help -credentials-file", "cql.password"),
        ("help legacy", "--num-keys"),
        ("help distributions", "hotspot"),
        ("print dist=fixed(5)", "% of samples    Range       % of total"),
        ("version", "Version: "),
        ("--version", "Version: "),
    ] {
        let text = answer(line);
        assert!(text.contains(part), "{line}: {text}");
    }
    for group in [
        "-pop",
        "-insert",
        "-col",
        "-errors",
        "-schema",
        "-node",
        "-log",
        "-port",
        "-graph",
        "-tokenrange",
        "-reporting",
        "-jmx",
    ] {
        assert!(answer(&format!("help {group}")).starts_with(&format!("Usage: {group} ")), "{group}");
    }
    let error = Invocation::parse(&["help", "-rat"]).expect_err("no topic").to_string();
    assert!(
        error.starts_with("Invalid command or option provided to command help") && error.contains("-rate"),
        "{error}"
    );
}

#[test]
fn options_of_old_are_translated() {
    for (line, words) in [
        (
            "legacy",
            "write n=1000000 cl=ONE -pop seq=1..1000000 -col n=fixed(5) size=fixed(34) -rate threads=50 -log interval=10",
        ),
        (
            "legacy -o READ -n 10 -t5 --columns=2 -S 8 -e quorum -d a,b -s 0.25",
            "read n=10 cl=quorum -pop dist=gauss(1..10,2.00) -col n=fixed(2) size=fixed(8) -rate threads=5 -log interval=10 -node a,b",
        ),
        (
            "legacy -o COUNTER_ADD -n 10 -F 5 -K 3 -k -V -i 2 -l 3 -R SimpleStrategy -th 50 -ns",
            "counter_write n=10 cl=ONE -pop seq=1..5 -col n=fixed(5) size=uniform(1..68) -rate threads=50 throttle=50/s -log \
             interval=2 no-summary -errors retries=2 ignore -schema replication(strategy=SimpleStrategy,factor=3)",
        ),
        (
            "legacy -o COUNTER_GET -n 5 -r -Q a,b -D nodes.txt -O dc1:2,dc2:1 -Z X -I Y -f out -p 9160 -T h -ts t -tspw p",
            "counter_read n=5 cl=ONE -pop dist=uniform(1..5) -col names=a,b size=fixed(34) -rate threads=50 -log interval=10 \
             file=out -schema replication(dc1=2,dc2=1) compression=Y compaction(strategy=X) -node file=nodes.txt -transport \
             truststore=t truststore-password=p -port thrift=9160 -sendto h",
        ),
    ] {
        let settings = parse(line);
        assert_eq!(settings.words.join(" "), words, "{line}");
        assert!(
            settings.notes[0].starts_with("Running in legacy support mode. Translating command to: \nstress "),
            "{line}"
        );
    }
    for (line, part) in [
        ("legacy -g 5", "profile"),
        ("legacy -x KEYS", "extra_definitions"),
        ("legacy -o RANGE_SLICE", "INSERT, READ"),
        ("legacy -y Super", "Standard"),
        ("legacy -n", "no value"),
        ("legacy bogus", "Application does not allow arbitrary arguments"),
        ("legacy -h", "--num-keys"),
        ("legacy -o READ -s 0", "above 0"),
    ] {
        let error = try_parse(line).expect_err(line).to_string();
        assert!(error.contains(part), "{line}: {error}");
    }
}

#[test]
fn the_section_of_ours_says_what_cassandra_stress_cannot() {
    let block = parse(
        "write n=1 seed=5 generator=v2 -rate open=100/s arrivals=poisson -insert batch-size=7 -node pin=a -log json=j csv=c \
         hdrfile=h prometheus=:1 --flush --wait-compactions --record r",
    )
    .block();
    let (_, ours) = block.split_once("Brownout:\n").expect("a section of ours");
    assert_eq!(
        ours,
        "  Loop: open, 100/s\n  Arrivals: poisson\n  Generator: v2\n  Seed: 5\n  Rows In A Batch: 7\n  Coordinator: a\n  HDR \
         File: h\n  JSON File: j\n  CSV File: c\n  Prometheus: http://127.0.0.1:1/metrics\n  Record: r\n  First: flush, wait \
         for compactions\n\n"
    );
    assert!(matches!(parse("read -rate open=5/s").rate, Rate::Open(Open { shape: Shape::Constant(_), .. })));
}
