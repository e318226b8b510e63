use std::{cmp::Ordering, collections::HashSet};

use super::*;
use crate::types::{UserTypes, Value, compare, decode, encode};

/// Printed by cassandra-stress's own classes; `golden/README.md` says how.
const VALUES: &str = include_str!("../../golden/values/values.tsv");
const PREDEFINED: &str = include_str!("../../golden/values/predefined.tsv");

fn parse(text: &str) -> CqlType {
    let mut types = UserTypes::new();
    types.define("CREATE TYPE address (street text, number int, tags frozen<set<text>>)").unwrap();
    CqlType::parse(text, &types).unwrap()
}

fn spec(text: &str) -> Option<Spec> {
    (text != "-").then(|| text.parse().unwrap())
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() { "empty".to_owned() } else { bytes.iter().map(|byte| format!("{byte:02x}")).collect() }
}

/// cassandra-stress's vectors hold dates as the four bytes of the draw; what its driver sends has 2³¹ added.
fn undate(value: Value) -> Value {
    let flip = |days: i32| (days as u32 ^ 1 << 31) as i32;
    match value {
        Value::Date(days) => Value::Date(flip(days)),
        Value::List(values) => Value::List(values.into_iter().map(undate).collect()),
        Value::Set(values) => {
            let mut values: Vec<_> = values.into_iter().map(undate).collect();
            values.sort_by_key(|value| if let Value::Date(days) = value { *days } else { 0 });
            Value::Set(values)
        }
        other => other,
    }
}

fn compat(settings: ColumnSettings) -> ColumnSettings {
    ColumnSettings { flavour: Flavour::Compat, ..settings }
}

#[test]
fn every_value_of_every_type_is_cassandra_stresss() {
    let mut seen = 0;
    for line in VALUES.lines().chain(PREDEFINED.lines()).filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [kind, seed_text, name, size, population, seed, golden] = fields[..] else { panic!("{line}") };
        let origin = match (kind, seed_text) {
            ("hexbytes", _) => Origin::PredefinedKey,
            (_, "randomstr") => Origin::Predefined,
            _ => Origin::Profile,
        };
        let cql_type = match kind {
            "hexbytes" | "bytes" => CqlType::Blob,
            other => parse(other),
        };
        let settings = compat(ColumnSettings {
            size: spec(size),
            population: spec(population),
            origin,
            ..ColumnSettings::default()
        });
        let mut generator = ColumnGenerator::new(name, &cql_type, &settings).unwrap();
        let seed: i64 = seed.parse().unwrap();
        generator.start_siblings(seed);
        let dates = kind.contains("date");
        for (place, golden) in golden.split(',').enumerate() {
            let mut out = Vec::new();
            generator.append_next(&mut out);
            if place == 0 {
                let mut again = vec![7];
                generator.clone().append(seed, &mut again);
                assert_eq!(again[1..], out, "{line}");
            }
            if dates {
                let value = undate(decode(&out, &cql_type).unwrap());
                let sorted = matches!(value, Value::Set(_));
                out.clear();
                encode(&value, &cql_type, &mut out).unwrap();
                if sorted && hex(&out) != golden {
                    // The server's order is that of the days, the vectors' that of the draws' bytes.
                    let golden: Vec<u8> = (0..golden.len())
                        .step_by(2)
                        .map(|at| u8::from_str_radix(&golden[at..at + 2], 16).unwrap())
                        .collect();
                    let Value::Set(mut theirs) = decode(&golden, &cql_type).unwrap() else { panic!() };
                    theirs.sort_by_key(
                        |value| if let Value::Date(days) = value { (*days as u32 ^ 1 << 31) as i32 } else { 0 },
                    );
                    let Value::Set(mut ours) = value else { panic!() };
                    ours.sort_by_key(
                        |value| if let Value::Date(days) = value { (*days as u32 ^ 1 << 31) as i32 } else { 0 },
                    );
                    assert_eq!(ours, theirs, "{line}");
                    continue;
                }
            }
            assert_eq!(hex(&out), golden, "value {place} of {line}");
        }
        seen += 1;
    }
    assert!(seen > 1500, "{seen}");
}

#[test]
fn what_cassandra_stress_cannot_generate_is_refused_with_the_remedy() {
    for cql_type in [
        "map<text, int>",
        "duration",
        "frozen<tuple<int, int>>",
        "frozen<address>",
        "vector<float, 3>",
        "list<frozen<list<int>>>",
        "'org.example.Type'",
    ] {
        let error = ColumnGenerator::new("c", &parse(cql_type), &compat(ColumnSettings::default())).unwrap_err();
        assert!(matches!(error, ValueError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("generator: v2"), "{error}");
    }
    let settings = compat(ColumnSettings { compress: Some(0.5), ..ColumnSettings::default() });
    let error = ColumnGenerator::new("c", &CqlType::Text, &settings).unwrap_err();
    assert!(matches!(error, ValueError::NeedsV2 { setting: "compress", .. }), "{error}");
    for (compress, cql_type) in [(0.5, "int"), (1.5, "text"), (0.0, "blob")] {
        let settings = ColumnSettings { compress: Some(compress), ..ColumnSettings::default() };
        ColumnGenerator::new("c", &parse(cql_type), &settings).unwrap_err();
    }
    let settings = ColumnSettings { size: spec("uniform(-1..5)"), ..ColumnSettings::default() };
    let error = ColumnGenerator::new("c", &CqlType::Text, &settings).unwrap_err();
    assert!(error.to_string().contains("uniform(-1..5)") || error.to_string().contains("-1"), "{error}");
}

const TYPES: [&str; 36] = [
    "ascii",
    "bigint",
    "blob",
    "boolean",
    "counter",
    "date",
    "decimal",
    "double",
    "duration",
    "float",
    "inet",
    "int",
    "smallint",
    "text",
    "time",
    "timestamp",
    "timeuuid",
    "tinyint",
    "uuid",
    "varint",
    "list<int>",
    "list<text>",
    "set<text>",
    "set<int>",
    "set<uuid>",
    "map<text, bigint>",
    "map<int, frozen<list<text>>>",
    "frozen<tuple<int, text, uuid>>",
    "frozen<address>",
    "vector<float, 8>",
    "vector<text, 3>",
    "vector<smallint, 2>",
    "vector<frozen<list<int>>, 2>",
    "frozen<map<frozen<tuple<int, int>>, frozen<set<inet>>>>",
    "list<frozen<address>>",
    "set<boolean>",
];

fn v2(name: &str, cql_type: &str, settings: ColumnSettings) -> ColumnGenerator {
    ColumnGenerator::new(name, &parse(cql_type), &settings).unwrap()
}

fn value(generator: &mut ColumnGenerator, seed: i64) -> Vec<u8> {
    let mut out = Vec::new();
    generator.append(seed, &mut out);
    out
}

#[test]
fn every_type_gets_values_that_the_server_would_return_unchanged() {
    for text in TYPES {
        let cql_type = parse(text);
        for population in [None, spec("uniform(1..1000)"), spec("seq(1..50)")] {
            let mut generator = v2("c", text, ColumnSettings { population, ..ColumnSettings::default() });
            for seed in 0..200 {
                let bytes = value(&mut generator, seed);
                let decoded = decode(&bytes, &cql_type).unwrap();
                assert_ne!(decoded, Value::Empty, "{text}");
                let mut again = Vec::new();
                encode(&decoded, &cql_type, &mut again).unwrap();
                assert_eq!(again, bytes, "{text} {decoded}");
                sorted_and_distinct(&bytes, &cql_type);
            }
        }
    }
}

/// The server keeps the elements of a set and the keys of a map in order, each once; ours come so.
fn sorted_and_distinct(bytes: &[u8], cql_type: &CqlType) {
    let (element, step) = match cql_type.unfrozen() {
        CqlType::Set(element) => (element, 1),
        CqlType::Map(key, _) => (key, 2),
        _ => return,
    };
    let mut rest = &bytes[4..];
    let mut parts = Vec::new();
    while let Some(Some(part)) = crate::types::wire::take_bytes(&mut rest) {
        parts.push(part);
    }
    let keys: Vec<_> = parts.iter().step_by(step).collect();
    assert!(keys.windows(2).all(|pair| compare(pair[0], pair[1], element) == Ordering::Less), "{cql_type}");
}

/// Held for ever: what one version wrote, the next must find valid.
#[test]
fn values_stay_what_they_are() {
    for (text, golden) in [
        ("text", V2_GOLDEN[0]),
        ("blob", V2_GOLDEN[1]),
        ("bigint", V2_GOLDEN[2]),
        ("uuid", V2_GOLDEN[3]),
        ("timeuuid", V2_GOLDEN[4]),
        ("decimal", V2_GOLDEN[5]),
        ("set<int>", V2_GOLDEN[6]),
        ("map<text, frozen<tuple<int, boolean>>>", V2_GOLDEN[7]),
        ("vector<text, 2>", V2_GOLDEN[8]),
        ("duration", V2_GOLDEN[9]),
    ] {
        assert_eq!(hex(&value(&mut v2("col", text, ColumnSettings::default()), 42)), golden, "{text}");
    }
}

const V2_GOLDEN: [&str; 10] = [
    "765773364c4d58",
    "7b881fd625ce5e",
    "3c62441e34588f99",
    "155ece25d61f4887ab6312fc3f2baedf",
    "9c304b90547911bfab6313fc3f2baedf",
    "000000023c62441e34",
    "00000007000000048e18b7f300000004bc85150000000004c2fee4840000000436fefdf10000000449a7e618000000045569fffa000000046ea3ec8c",
    "0000000700000007424b6f305071710000000d00000004c3cdc71c000000010000000004494f39560000000d00000004252f1b260000000100000000084e565237634e444c0000000d000000041fcfec890000000101000000055075304c410000000d000000046cf3f48e000000010100000004625652390000000d00000004ed8cc525000000010100000008655665714d6a79480000000d00000004dd45d1f00000000101000000046f6f33430000000d00000004ecb766440000000101",
    "04494f395607424b6f30507171",
    "0416fc0f9399ed30d0",
];

#[test]
fn a_value_depends_on_its_seed_and_column_and_on_nothing_before_it() {
    for text in TYPES {
        let mut generator = v2("c", text, ColumnSettings::default());
        let first = value(&mut generator, 5);
        (0..20).for_each(|seed| _ = value(&mut generator, seed));
        assert_eq!(value(&mut generator, 5), first, "{text}");
        assert_eq!(value(&mut generator.clone(), 5), first, "{text}");
        if !["boolean", "counter", "set<boolean>", "tinyint"].contains(&text) {
            assert_ne!(value(&mut generator, 6), first, "{text}");
            assert_ne!(value(&mut v2("d", text, ColumnSettings::default()), 5), first, "{text}");
        }
    }
}

#[test]
fn uuids_are_valid_and_booleans_are_both() {
    for (text, version) in [("uuid", 4), ("timeuuid", 1)] {
        let mut generator = v2("c", text, ColumnSettings::default());
        for seed in 0..1000 {
            let bytes = value(&mut generator, seed);
            assert_eq!((bytes[6] >> 4, bytes[8] >> 6), (version, 2), "{}", hex(&bytes));
        }
    }
    for population in [None, spec("uniform(1..2)"), spec("seq(1..9)")] {
        let mut generator = v2("c", "boolean", ColumnSettings { population, ..ColumnSettings::default() });
        let trues = (0..1000).filter(|seed| value(&mut generator, *seed) == [1]).count();
        assert!((400..600).contains(&trues), "{trues}");
    }
}

#[test]
fn sizes_and_populations_are_those_asked_for() {
    for text in ["text", "ascii", "blob", "varint"] {
        let mut generator = v2("c", text, ColumnSettings { size: spec("uniform(3..40)"), ..ColumnSettings::default() });
        let sizes: HashSet<usize> = (0..4000).map(|seed| value(&mut generator, seed).len()).collect();
        let range = if text == "varint" { 1..=40 } else { 3..=40 };
        assert!(sizes.iter().all(|size| range.contains(size)) && sizes.len() >= 38, "{text} {sizes:?}");
    }
    for text in ["list<int>", "map<uuid, int>", "set<bigint>"] {
        let mut generator = v2("c", text, ColumnSettings { size: spec("fixed(7)"), ..ColumnSettings::default() });
        assert!((0..100).all(|seed| value(&mut generator, seed)[..4] == [0, 0, 0, 7]), "{text}");
    }
    for text in ["text", "blob", "int", "uuid", "inet", "list<text>", "frozen<address>", "timestamp", "double"] {
        let population = spec("fixed(3)").into_iter().chain(spec("seq(1..20)"));
        for (population, count) in population.zip([1, 20]) {
            let mut generator =
                v2("c", text, ColumnSettings { population: Some(population), ..ColumnSettings::default() });
            let values: HashSet<Vec<u8>> = (0..2000).map(|seed| value(&mut generator, seed)).collect();
            assert_eq!(values.len(), count, "{text}");
        }
    }
    let mut inside = v2(
        "c",
        "list<text>",
        ColumnSettings {
            element_size: spec("fixed(3)"),
            element_population: spec("uniform(1..2)"),
            ..ColumnSettings::default()
        },
    );
    let mut texts = HashSet::new();
    for seed in 0..200 {
        let Value::List(values) = decode(&value(&mut inside, seed), &parse("list<text>")).unwrap() else { panic!() };
        assert!((4..=8).contains(&values.len()));
        texts.extend(values.into_iter().map(|value| value.to_string()));
    }
    assert_eq!(texts.len(), 2);
    assert!(texts.iter().all(|text| text.len() == 5), "{texts:?}");
}

#[test]
fn numbers_of_a_population_are_its_draws() {
    for (text, population) in [
        ("int", "uniform(-5..5)"),
        ("bigint", "gaussian(1..100)"),
        ("varint", "exp(1..1000)"),
        ("smallint", "zipf(1..9)"),
    ] {
        let spec: Spec = population.parse().unwrap();
        let mut generator =
            v2("c", text, ColumnSettings { population: Some(spec.clone()), ..ColumnSettings::default() });
        let mut sum = 0.0;
        for seed in 0..4000 {
            let decoded = decode(&value(&mut generator, seed), &parse(text)).unwrap();
            let number: i64 = decoded.to_string().parse().unwrap();
            assert!((spec.min()..=spec.max()).contains(&number), "{text} {number}");
            sum += number as f64;
        }
        let mut draws = spec.build(9);
        let mean = (0..4000).map(|_| draws.next() as f64).sum::<f64>() / 4000.0;
        assert!((sum / 4000.0 - mean).abs() < 0.1 * (spec.max() - spec.min()) as f64, "{text} {} {mean}", sum / 4000.0);
    }
}

#[test]
fn positions_give_distinct_values_in_the_servers_order() {
    for text in TYPES {
        for population in [None, spec("uniform(1..40)")] {
            let cql_type = parse(text);
            let mut generator = v2("c", text, ColumnSettings { population, ..ColumnSettings::default() });
            let domain = generator.domain();
            let positions = domain.min(300);
            let step = domain / positions;
            let mut last: Option<Vec<u8>> = None;
            let mut seen = HashSet::new();
            for position in 0..positions {
                let mut out = Vec::new();
                generator.append_position(position * step, &mut out);
                decode(&out, &cql_type).unwrap();
                let counted = generator.counts_through();
                if counted {
                    if let Some(last) = &last {
                        assert_eq!(compare(last, &out, &cql_type), Ordering::Less, "{text} {position} of {domain}");
                    }
                    assert!(seen.insert(out.clone()));
                }
                last = Some(out);
            }
        }
    }
}

#[test]
fn keys_of_different_partitions_differ() {
    for (text, seeds) in
        [("int", 50_000), ("text", 50_000), ("blob", 50_000), ("uuid", 5_000), ("bigint", 5_000), ("tinyint", 128)]
    {
        let mut generator = v2("key", text, ColumnSettings::default());
        let mut keys = HashSet::new();
        for seed in 1..=seeds {
            let mut out = Vec::new();
            generator.append_key(seed, &mut out);
            assert!(keys.insert(out), "{text} {seed}");
        }
    }
    let mut few = v2("key", "text", ColumnSettings { population: spec("uniform(1..10)"), ..ColumnSettings::default() });
    let keys: HashSet<Vec<u8>> = (0..1000)
        .map(|seed| {
            let mut out = Vec::new();
            few.append_key(seed, &mut out);
            out
        })
        .collect();
    assert_eq!(keys.len(), 10);
}

#[test]
fn text_is_printable() {
    for repeat in [None, Some(0.3)] {
        let mut generator =
            v2("c", "text", ColumnSettings { size: spec("fixed(3000)"), repeat, ..ColumnSettings::default() });
        assert!((0..20).all(|seed| value(&mut generator, seed).iter().all(u8::is_ascii_graphic)));
    }
}
