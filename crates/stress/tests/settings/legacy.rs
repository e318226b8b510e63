//! The options of version 2.0.

use super::{parse, try_parse};

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
