//! What commands say.

use std::time::Duration;

use brownout_load::{Arrivals, Consistency, SerialConsistency};
use brownout_stress::settings::{CommandKind, Generator, Length, Rate, Settings, Share, Truncate};

use super::parse;

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
    let command = |ops: &str| parse(&format!("user profile=a ops({ops}) n=1")).command;
    // (whether all are inserts, whether their partitions follow each other)
    for (ops, expected) in [
        ("insert=3", (true, true)),
        ("insert=3/s", (true, true)),
        ("insert=1,q1=1", (false, false)),
        ("insert=1/s,q1=1/s", (false, false)),
        ("types.insert=1", (true, false)),
        ("a.insert=1,b.insert=1", (true, false)),
        ("a.insert=1/s,b.insert=1/s", (true, true)),
        ("a.reinsert=1", (false, false)),
    ] {
        let command = command(ops);
        assert_eq!((command.inserts_alone(), command.is_sequential()), expected, "{ops}");
    }
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
    let settings = parse("user profile=a ops(insert=1) duration=1m -rate arrivals=poisson");
    assert_eq!(
        settings.rate,
        Rate::PerOperation { ops: Vec::new(), arrivals: Arrivals::Poisson },
        "the profile's rates"
    );
}
