//! What is accepted without effect, and what is refused.

use brownout_stress::settings::SettingsError;

use super::{parse, try_parse};

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
        ("write n=1 -insert batchtype=logged", "-insert batchtype= has no effect on write"),
        ("read n=1 -insert select-ratio=fixed(1)/2", "-insert select-ratio= has no effect on read"),
        ("mixed n=1 -insert row-population-ratio=fixed(1)/2", "-insert row-population-ratio= has no effect on mixed"),
        ("write n=1 -insert partitions=fixed(2)", "-insert partitions= has no effect"),
        ("write n=1 -insert batch-size=3", "-insert batch-size= has no effect"),
        ("user profile=a ops(insert=1) n=1 -col n=fixed(2)", "-col has no effect on user"),
        ("read n=1 -tokenrange wrap", "-tokenrange has no effect on read"),
        ("verify-sizes profile=a truncate=once", "no effect on verify-sizes, which puts no load on: truncate="),
        (
            "verify-sizes profile=a no-warmup -rate threads=1 -pop seq=1..2 -log json=j --record r",
            "puts no load on: no-warmup, -rate, -pop, -log json=, --record",
        ),
        ("read n=5 -rate search(slo=p99<1s)", "n= does not end a search"),
        ("read duration=5s -rate search(slo=p99<1s)", "duration= does not end a search"),
        ("read err<0.1 -rate search(slo=p99<1s)", "err< does not end a search"),
        ("read n=1 -node rack=r1 loadbalance=dc", "-node rack=r1 has no effect: loadbalance=dc-aware"),
        ("read n=1 -node loadbalance=rack-aware", "no effect without rack="),
        ("user profile=a ops(types.insert=1) n=50", "drawn from gaussian(1..50)"),
        ("user profile=a ops(types.insert=1) n=50", "write -pop seq=1..50, or ops(insert=1)"),
        ("user profile=a,b ops(a.insert=1,b.Insert=1) duration=5s", "gaussian(1..1000000)"),
        ("user profile=a,b ops(a.insert=1,b.insert=1) n=9", "one table after the other"),
        ("write n=1 -credentials-file secrets.properties", "jmx.username"),
    ] {
        let notes = parse(line).notes;
        assert!(notes.iter().any(|found| found.contains(note)), "{line}: {notes:?}");
    }
    for silent in [
        "write n=1 -node localhost -rate threads=1",
        "write n=1 -insert visits=fixed(2) revisit=uniform(1..10)",
        "user profile=a ops(insert=1) n=1 -insert batchtype=logged cl=ONE -tokenrange wrap",
        "user profile=a ops(a.insert=1,b.insert=1) n=1 -pop seq=1..9",
        "user profile=a ops(a.insert=1/s,b.insert=2/s) n=1",
        "user profile=a ops(a.insert=1,b.q=1) n=1",
        "verify-sizes profile=a generator=v2 --nodetool x",
        "read -rate search(slo=p99<1s)",
        "read n=0 -rate search(slo=p99<1s)",
        "read n=1 -node datacenter=dc1 rack=r1 loadbalance=rack-aware",
    ] {
        assert_eq!(parse(silent).notes, [""; 0], "{silent}");
    }
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
        ("mixed n=1 clustering=fixed(0)", &["clustering=fixed(0)", "1 or more"]),
        ("user profile=a ops(insert=1,q=1) n=1 clustering=uniform(-5..0)", &["clustering=", "1 or more"]),
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
        ("write n=1 -rate search(slo=p99<1s) -pop seq=1..9 no-wrap", &["a search ends with its answer"]),
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
        (
            "mixed n=1 ratio(raed=1)",
            &["Invalid ratio specification: raed=1; it takes read=, write=,", "did you mean 'read='?"],
        ),
        ("mixed n=1 ratio(read=1,,write=1)", &["single commas"]),
        ("user profile=a ops(insert) n=1", &["Invalid ops specification: insert; ", "key=value"]),
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
        ("write n=1 --flsh", &["--flsh", "did you mean '--flush'?", "brownout stress help"]),
        ("write n=1 --record --dry-run", &["--record has no value", "'--dry-run' follows it"]),
        ("write n=1 --nodetool --flush", &["--nodetool has no value", "--nodetool VALUE"]),
        ("write n=1 --tick --flush", &["--tick has no value"]),
        ("write n=1 --record -rate threads=1", &["--record has no value", "'-rate'"]),
        ("write n=1 -insert cl=ALL", &["-insert cl= is of the inserts of user", "write cl="]),
        ("counter_read n=1 -insert serial-cl=SERIAL", &["-insert serial-cl=", "counter_read serial-cl="]),
        ("write n=1 --flush --flush", &["--flush is defined multiple times"]),
        ("write n=1 --record", &["--record has no value"]),
        ("write n=1 --flush=yes", &["takes no value"]),
    ] {
        let error = try_parse(line).expect_err(line);
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{line}\n  wants: {parts:?}\n  says: {text}");
        assert!(!text.contains("see 'help brownout stress'"), "{text}");
        let unfit = matches!(error, SettingsError::Unfit { .. });
        assert_eq!(error.usage().is_some_and(|usage| usage.contains("Usage: -")), unfit, "{line}");
    }
}
