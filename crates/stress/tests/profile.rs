//! Profiles: those found in the wild, by shape, and every way to get one wrong.

#![allow(clippy::expect_used, clippy::panic, reason = "a test ends by them")]

use std::{io, path::Path};

use brownout_generate::{distribution::Spec, sizes::Amount};
use brownout_load::{Arrivals, Consistency, SerialConsistency};
use brownout_stress::{
    profile::{Fields, Profile, What, batches, load_all, rate, resolve},
    settings::{Batch, Generator, Insert, Rate, Settings, Share},
};

const GOLDEN: &str = include_str!("golden/profiles.txt");

fn file(name: &str) -> String {
    format!("{}/tests/profiles/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
}

fn load(name: &str) -> Profile {
    Profile::load(&file(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn no_files(path: &Path) -> io::Result<String> {
    if path.ends_with("histograms.txt") {
        return std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/profiles/histograms.txt"));
    }
    Err(io::Error::from(io::ErrorKind::NotFound))
}

fn read(text: &str) -> Result<Profile, String> {
    Profile::from_text("t.yaml", text.to_owned(), &no_files).map_err(|error| error.to_string())
}

/// A profile with these lines beside what is required.
fn with(lines: &str) -> Result<Profile, String> {
    read(&format!("keyspace: ks\ntable: t\n{lines}"))
}

/// What a command line says of inserts.
fn inserts(groups: &str) -> Insert {
    let line = format!("user profile=x ops(insert=1) n=1 {groups}");
    Settings::parse(&[&line]).expect(&line).insert
}

fn spec(text: &str) -> Option<Spec> {
    Some(text.parse().expect(text))
}

#[test]
fn the_block_of_a_profile_is_that_of_cassandra_stress() {
    let mut compared = 0;
    for section in GOLDEN.split("$ ").filter(|section| !section.is_empty()) {
        let (name, golden) = section.split_once('\n').expect("a name");
        let golden = golden.split_once("Profile(s) ********************\n").expect("a heading").1;
        assert_eq!(load(name).block(), golden, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 2);
}

#[test]
fn a_profile_of_the_common_shape_is_read_whole() {
    let profile = load("sensors");
    assert_eq!(
        (profile.name.as_str(), profile.keyspace.as_str(), profile.table.as_str()),
        ("plant.readings", "plant", "readings")
    );
    assert!(profile.keyspace_definition.as_deref().is_some_and(|cql| cql.starts_with("CREATE KEYSPACE plant")));
    assert_eq!(profile.extra_definitions, ["CREATE INDEX IF NOT EXISTS ON readings (step)"]);
    let names: Vec<&str> = profile.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["site", "day", "Level"], "spelled as written");
    assert_eq!(profile.columns[0].size, spec("uniform(1..10)"));
    assert_eq!(profile.columns[2].cluster, spec("uniform(1..4)"), "keys in any case");
    assert_eq!(profile.insert.partitions, spec("uniform(1..50)"));
    assert_eq!(profile.insert.select.as_ref().map(ToString::to_string).as_deref(), Some("uniform(1..10)/10"));
    assert_eq!(profile.insert.batch, Some(Batch::Logged));
    let [site, since] = &profile.queries[..] else { panic!("two queries") };
    assert_eq!((site.name.as_str(), site.fields, site.request.consistency), ("site1", Fields::SameRow, None));
    assert_eq!((since.fields, since.request.consistency), (Fields::MultiRow, Some(Consistency::Quorum)));
    let [everything, raws] = &profile.token_range_queries[..] else { panic!("two token range queries") };
    assert_eq!((everything.columns.as_str(), everything.page_size), ("*", 500));
    assert_eq!((raws.columns.as_str(), raws.page_size), ("raw", 5000));
    assert_eq!(profile.definition.as_ref().map(|definition| definition.columns.len()), Some(9));
    assert_eq!(profile.generator(None, false), Ok(Generator::Compat), "plain profiles stay comparable");
    assert_eq!(profile.batch(&inserts("")), Batch::Logged);
    assert_eq!(profile.batch(&inserts("-insert batchtype=NONE")), Batch::None, "the command line wins");
    assert!(profile.notes.is_empty(), "{:?}", profile.notes);
}

#[test]
fn little_is_enough_and_a_folded_text_is_one_line() {
    let bare = load("bare");
    assert_eq!((bare.queries.len(), bare.columns.len(), bare.insert.batch), (1, 0, None));
    assert_eq!(bare.batch(&inserts("")), Batch::Logged, "as cassandra-stress without batchtype");
    assert_eq!(bare.queries[0].fields, Fields::MultiRow, "as cassandra-stress without fields");
    let posts = load("posts");
    assert_eq!(posts.name, "posts");
    assert_eq!(posts.queries[1].cql.trim(), "select url, title, published from posts where domain = ? LIMIT 10");
    assert_eq!(load("counters").insert.batch, Some(Batch::Counter));
}

#[test]
fn what_only_this_tool_reads_is_read() {
    let profile = load("modern");
    assert_eq!((profile.generator, profile.compress), (Some(Generator::V2), Some(0.2)));
    let sizes = profile.partition_sizes.as_ref().expect("partition sizes");
    let amounts: Vec<Amount> = sizes.points().iter().map(|point| point.amount).collect();
    assert_eq!(amounts, [Amount::Bytes(2048), Amount::Bytes(20480), Amount::Rows(300)]);
    assert_eq!(profile.columns[0].element_size, spec("uniform(2..6)"));
    assert_eq!(profile.columns[0].element_population, spec("uniform(1..100)"));
    assert_eq!(profile.columns[1].compress, Some(0.3));
    assert_eq!((profile.insert.batch, profile.insert.batch_size), (Some(Batch::None), Some(10)));
    assert_eq!((&profile.insert.visits, &profile.insert.revisit), (&spec("fixed(4)"), &spec("uniform(1..1k)")));
    assert_eq!(
        profile.insert.request.consistency,
        Some(Consistency::LocalQuorum),
        "documented and broken in cassandra-stress"
    );
    assert_eq!(profile.insert.request.serial_consistency, Some(SerialConsistency::LocalSerial));
    assert_eq!(profile.insert.request.rate.map(|rate| rate.get()), Some(500.0));
    let query = &profile.queries[0];
    assert_eq!((query.page_size, query.request.pin.as_deref()), (Some(100), Some("10.0.0.1")));
    assert_eq!(query.request.rate.map(|rate| rate.get()), Some(1500.0));
    assert_eq!(
        query.request.serial_consistency,
        Some(SerialConsistency::Serial),
        "a key's words may be joined by dashes"
    );
    let definition = profile.definition.as_ref().expect("a table whose types are known");
    assert_eq!(
        definition.column("place").map(|column| column.cql_type.to_string()).as_deref(),
        Some("frozen<address>")
    );
    assert!(profile.notes.is_empty(), "{:?}", profile.notes);
}

#[test]
fn sizes_may_be_what_nodetool_printed() {
    for (lines, first) in [
        ("partition_sizes: histograms.txt", Amount::Bytes(216)),
        ("partition_sizes: {tablehistograms: histograms.txt, table: new.things}", Amount::Bytes(216)),
        ("partition_sizes: {tablehistograms: histograms.txt, column: cell-count}", Amount::Cells(5)),
    ] {
        let profile = with(lines).expect(lines);
        let sizes = profile.partition_sizes.expect(lines);
        assert_eq!(sizes.points()[0].amount, first, "{lines}");
    }
}

#[test]
fn new_keys_and_types_bring_the_new_generator_and_no_batches() {
    for (lines, generator, batch) in [
        ("", Generator::Compat, Batch::Logged),
        ("generator: compat", Generator::Compat, Batch::Logged),
        ("generator: v2", Generator::V2, Batch::None),
        ("compress: 0.5", Generator::V2, Batch::None),
        ("partition_sizes: {50%: 1KiB}", Generator::V2, Batch::None),
        ("columnspec: [{name: c, compress: 0.5}]", Generator::V2, Batch::None),
        ("table_definition: CREATE TABLE t (k int PRIMARY KEY, m map<int, int>)", Generator::V2, Batch::Logged),
        ("table_definition: CREATE TABLE t (k int PRIMARY KEY, l list<int>)", Generator::Compat, Batch::Logged),
        ("insert: {batchtype: unlogged}\ngenerator: v2", Generator::V2, Batch::Unlogged),
        ("insert: {rate: 5/s}", Generator::Compat, Batch::None),
        ("insert: {pin: a}", Generator::Compat, Batch::None),
        ("insert: {visits: fixed(2)}", Generator::Compat, Batch::None),
        ("insert: {revisit: fixed(1)}", Generator::Compat, Batch::None),
        ("insert: {consistencyLevel: ONE}", Generator::Compat, Batch::Logged),
        ("insert: {batch-size: 3}", Generator::Compat, Batch::Logged),
        ("insert: {batch-size: 3}\ngenerator: v2", Generator::V2, Batch::Logged),
        ("queries: {q: {cql: S, page_size: 7}}", Generator::Compat, Batch::None),
        ("queries: {q: {cql: S, rate: 5/s}}", Generator::Compat, Batch::None),
        ("queries: {q: {cql: S, pin: a}}", Generator::Compat, Batch::None),
        ("queries: {q: {cql: S, consistencyLevel: ONE}}", Generator::Compat, Batch::Logged),
        ("token_range_queries: {q: {columns: a, page_size: 7}}", Generator::Compat, Batch::Logged),
        ("token_range_queries: {q: {columns: a, rate: 5/s}}", Generator::Compat, Batch::None),
        ("token_range_queries: {q: {columns: a, consistencyLevel: ONE}}", Generator::Compat, Batch::None),
    ] {
        let profile = with(lines).expect(lines);
        assert_eq!(profile.generator(None, false), Ok(generator), "{lines}");
        assert_eq!(profile.batch(&inserts("")), batch, "{lines}");
    }
    let asked = with("generator: v2").expect("v2").batch(&inserts("-insert batch-size=3"));
    assert_eq!(asked, Batch::Logged, "a size of batches asks for batches");
    // Which columns are left out is a matter of values alone.
    let rated = with("table_definition: CREATE TABLE t (k int PRIMARY KEY, m map<int, int>)\ninsert: {rate: 5/s}");
    assert_eq!(rated.expect("rated").generator(None, true), Ok(Generator::Compat));
    let maps = with("table_definition: CREATE TABLE t (k int PRIMARY KEY, m map<int, int>)").expect("maps");
    let error = maps.generator(Some(Generator::Compat), false).expect_err("a map in compat").to_string();
    assert!(error.contains("map<int, int>") && error.contains("column m"), "{error}");
    assert_eq!(maps.generator(Some(Generator::Compat), true), Ok(Generator::Compat), "the column is left out");
    assert_eq!(maps.generator(None, true), Ok(Generator::Compat), "as cassandra-stress would");
}

#[test]
fn the_profile_and_the_command_line_agree_on_visits() {
    let profile = load("modern");
    let default = inserts("");
    assert_eq!(Some(profile.visits(&default)), spec("fixed(4)"));
    assert_eq!(Some(profile.revisit(&default)), spec("uniform(1..1k)"));
    let given = inserts("-insert visits=fixed(2)");
    assert_eq!(Some(profile.visits(&given)), spec("fixed(2)"));
    assert_eq!(Some(load("bare").visits(&default)), spec("fixed(1)"));
}

#[test]
fn types_that_only_servers_know_leave_the_definition_to_them() {
    let profile =
        with("table_definition: CREATE TABLE t (k int PRIMARY KEY, a frozen<address>)\ncolumnspec: [{name: zzz}]");
    let profile = profile.expect("left to the servers");
    assert!(profile.definition.is_none());
    assert!(profile.notes[0].contains("address"), "{:?}", profile.notes);
}

#[test]
fn every_slip_is_told_with_its_line_and_what_would_be_right() {
    const TABLE: &str = "table_definition: CREATE TABLE t (key int, ck int, val text, PRIMARY KEY (key, ck))\n";
    let table = |lines: &str| format!("{TABLE}{lines}");
    for (lines, parts) in [
        ("qeries: {}".to_owned(), &["t.yaml:3:1: qeries", "did you mean 'queries'?", "3 | qeries"][..]),
        (
            "columnspec: [{name: a, sise: fixed(1)}]".to_owned(),
            &["Unrecognised option(s) in column spec: sise", "'size'"],
        ),
        ("columnspec: [{size: fixed(1)}]".to_owned(), &["Missing name argument in column spec"]),
        ("columnspec: [{name: a}, {name: A}]".to_owned(), &["columnspec.1.name", "specified twice"]),
        (
            "columnspec: [{name: a, size: fixd(1)}]".to_owned(),
            &["t.yaml:3:", "Illegal distribution type: fixd", "fixed"],
        ),
        ("columnspec: [{name: a, size: fixed(-1)}]".to_owned(), &["columnspec.0.size", "at least 0"]),
        ("columnspec: [{name: a, compress: 2}]".to_owned(), &["columnspec.0.compress", "such as 0.2"]),
        ("columnspec: fixed(1)".to_owned(), &["columnspec", "keys with values"]),
        (table("columnspec: [{name: vall}]"), &["t.yaml:4:", "no column 'vall'", "did you mean 'val'?"]),
        ("insert: {partition: fixed(1)}".to_owned(), &["Unrecognised insert option(s): partition", "'partitions'"]),
        ("insert: {batchtype: SOMETIMES}".to_owned(), &["insert.batchtype", "LOGGED, UNLOGGED, COUNTER or NONE"]),
        ("insert: {batch-size: 0}".to_owned(), &["insert.batch-size", "above 0"]),
        ("insert: {select: fixed(1)}".to_owned(), &["Invalid ratio definition: fixed(1)"]),
        ("insert: {consistencyLevel: MOST}".to_owned(), &["insert.consistencyLevel", "quorum"]),
        ("insert: {serialConsistencyLevel: ONE}".to_owned(), &["SERIAL or LOCAL_SERIAL"]),
        ("insert: {rate: 5}".to_owned(), &["insert.rate", "400/s"]),
        ("insert: {visits: fixed(0)}".to_owned(), &["insert.visits", "at least 1"]),
        ("queries: {q: {fields: samerow}}".to_owned(), &["queries.q", "SELECT"]),
        ("queries: {q: {cql: S, fields: somerow}}".to_owned(), &["queries.q.fields", "samerow", "multirow"]),
        ("queries: {q: {cql: S, page_size: 0}}".to_owned(), &["queries.q.page_size"]),
        ("queries: {q: {cql: S, limit: 1}}".to_owned(), &["queries.q.limit", "the keys here are cql, fields"]),
        ("queries: {q: SELECT}".to_owned(), &["queries.q", "keys with values"]),
        ("queries: {insert: {cql: S}}".to_owned(), &["Found 'insert' in queries, this name is reserved"]),
        ("queries: {validate: {cql: S}}".to_owned(), &["Found 'validate' in queries"]),
        (
            "queries: {q: {cql: S}}\ntoken_range_queries: {Q: {columns: a}}".to_owned(),
            &["t.yaml:4:", "in both queries and token_range_queries"],
        ),
        ("token_range_queries: {q: {page_size: 5}}".to_owned(), &["token_range_queries.q", "columns: '*'"]),
        ("keyspace_definition: CREATE KEYSPACE k WITH x".to_owned(), &["doesn't match keyspace property: 'k' != 'ks'"]),
        ("keyspace_definition: DROP KEYSPACE ks".to_owned(), &["There was a problem parsing the keyspace cql"]),
        (
            "table_definition: CREATE TABLE u (k int PRIMARY KEY)".to_owned(),
            &["doesn't match table property: 'u' != 't'"],
        ),
        ("table_definition: SELECT 1".to_owned(), &["There was a problem parsing the table cql"]),
        ("table_definition: CREATE TABLE t (k int)".to_owned(), &["PRIMARY KEY"]),
        ("generator: v3".to_owned(), &["generator", "compat or v2"]),
        ("generator: compat\ncompress: 0.5".to_owned(), &["t.yaml:3:12", "compress"]),
        ("compress: 120%".to_owned(), &["compress", "below 1"]),
        ("columnspec: [{name: a, compress: 1}]".to_owned(), &["t.yaml:3:", "columnspec.0.compress", "below 1"]),
        ("compress: 100%".to_owned(), &["t.yaml:3:", "compress", "below 1"]),
        ("partition_sizes: {50%: small}".to_owned(), &["partition_sizes", "small"]),
        ("partition_sizes: gone.txt".to_owned(), &["gone.txt", "nodetool tablehistograms ks t"]),
        ("partition_sizes: {tablehistograms: histograms.txt, table: a.b}".to_owned(), &["new/things", "table:"]),
        ("partition_sizes: {tablehistograms: histograms.txt, column: c}".to_owned(), &["partition-size or cell-count"]),
        ("keyspace: again".to_owned(), &["not valid YAML", "uplicate"]),
        ("Key-Space: again".to_owned(), &["'keyspace' is given twice"]),
        ("queries: {q: *a}".to_owned(), &["not valid YAML", "anchor"]),
        ("queries: {q: &a {cql: S, limit: 1}, p: {<<: *a}}".to_owned(), &["t.yaml:3:26: queries.q.limit"]),
        ("queries: [".to_owned(), &["not valid YAML"]),
    ] {
        let error = with(&lines).expect_err(&lines);
        for part in parts {
            assert!(error.contains(part), "{lines}\n  lacks: {part}\n  {error}");
        }
    }
    for (text, part) in [
        ("table: t", "keyspace name is required"),
        ("keyspace: k", "table name is required"),
        ("- a", "not valid YAML"),
    ] {
        let error = read(text).expect_err(text);
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn anchors_say_once_what_holds_of_many() {
    let profile = with(
        "insert: &level {consistencyLevel: QUORUM}\nqueries:\n  q: &q {cql: SELECT 1, fields: samerow, <<: *level}\n  \
         p: {<<: *q, cql: SELECT 2}\n  o: *q",
    )
    .expect("anchors");
    let shown: Vec<_> =
        profile.queries.iter().map(|q| (q.name.as_str(), q.cql.as_str(), q.fields, q.request.consistency)).collect();
    let quorum = Some(Consistency::Quorum);
    assert_eq!(
        shown,
        [
            ("q", "SELECT 1", Fields::SameRow, quorum),
            ("p", "SELECT 2", Fields::SameRow, quorum),
            ("o", "SELECT 1", Fields::SameRow, quorum)
        ]
    );
}

#[test]
fn files_that_are_none_are_told() {
    let error = Profile::load("no-such.yaml").expect_err("no file").to_string();
    assert!(error.starts_with("no-such.yaml: cannot be read"), "{error}");
    let twice = load_all(&[file("bare"), file("bare")]).expect_err("twice").to_string();
    assert!(twice.contains("Must only specify a singe YAML file per table"), "{twice}");
    let both = load_all(&[file("posts"), format!("file://{}", file("sensors"))]).expect("two profiles");
    assert_eq!(both.iter().map(|profile| profile.name.as_str()).collect::<Vec<_>>(), ["posts", "plant.readings"]);
}

#[test]
fn operations_are_found_by_name_and_by_profile() {
    let profiles = load_all(&[file("posts"), file("sensors")]).expect("two profiles");
    let line = "user profile=a,b ops(insert=1,TimeLine=2,plant.readings.since1=0.5,plant.readings.everything=1,posts.validate=3) n=1";
    let command = Settings::parse(&[line]).expect(line).command;
    let found = resolve(&command.ops, &profiles).expect("all known");
    let what: Vec<(usize, What)> = found.iter().map(|op| (op.profile, op.what)).collect();
    assert_eq!(
        what,
        [(0, What::Insert), (0, What::Query(1)), (1, What::Query(1)), (1, What::TokenRange(0)), (0, What::Validate)]
    );
    assert_eq!((found[2].name.as_str(), found[2].share), ("plant.readings.since1", Share::Weight(0.5)));
    for (op, parts) in [
        ("timline=1", ["No query defined with name timline", "did you mean 'timeline'?"]),
        ("pots.one=1", ["Op name pots.one contains an invalid profile specname: pots", "did you mean 'posts'?"]),
    ] {
        let command = Settings::parse(&[format!("user profile=a ops({op}) n=1")]).expect(op).command;
        let error = resolve(&command.ops, &profiles).expect_err(op).to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

#[test]
fn rates_in_a_profile_count_unless_the_command_line_has_one() {
    let profiles = [load("modern")];
    let of = |line: &str| {
        let settings = Settings::parse(&[line]).expect(line);
        let ops = resolve(&settings.command.ops, &profiles).expect(line);
        let mut notes = Vec::new();
        (rate(&settings, &ops, &profiles, &mut notes).map_err(|error| error.to_string()), notes)
    };
    let (own, notes) = of("user profile=x ops(insert=1,by-tenant=1) duration=1s");
    let Ok(Rate::PerOperation { ops, arrivals: Arrivals::Constant }) = own else { panic!("{own:?}") };
    let rates: Vec<f64> = ops
        .iter()
        .map(|op| match op.share {
            Share::Rate(rate) => rate.get(),
            Share::Weight(_) => 0.0,
        })
        .collect();
    assert_eq!((rates, notes.len()), (vec![500.0, 1500.0], 0));
    let (given, notes) = of("user profile=x ops(insert=1,by-tenant=1) duration=1s -rate threads=3");
    assert_eq!(given, Ok(Rate::Threads { threads: 3, limit: None }));
    assert!(notes[0].contains("no effect"), "{notes:?}");
    let (mixed, _) = of("user profile=x ops(insert=1,validate=1) duration=1s");
    let mixed = mixed.expect_err("one has none");
    assert!(mixed.contains("validate has no rate:") && mixed.contains("ops(insert=500/s,validate=100/s)"), "{mixed}");
    let (other, _) = of("user profile=x ops(insert=1,by-tenant=1) duration=1s -rate ops(insert=5/s)");
    assert!(other.expect_err("one is missing").contains("by-tenant"));

    let named = |rate: &Result<Rate, String>| match rate {
        Ok(Rate::PerOperation { ops, arrivals }) => {
            (ops.iter().map(|op| op.name.clone()).collect::<Vec<_>>().join(" "), *arrivals)
        }
        other => panic!("{other:?}"),
    };
    let (left_out, notes) = of("user profile=x ops(insert=1,validate=0,by-tenant=0) duration=1s");
    assert_eq!((named(&left_out), notes.len()), (("insert".to_owned(), Arrivals::Constant), 0), "weight 0 is left out");
    let (left_out, _) = of("user profile=x ops(insert=1,by-tenant=0) duration=1s -rate ops(insert=5/s)");
    assert_eq!(named(&left_out).0, "insert");
    let (poisson, notes) = of("user profile=x ops(insert=1,by-tenant=1) duration=1s -rate arrivals=poisson");
    assert_eq!((named(&poisson), notes.len()), (("insert by-tenant".to_owned(), Arrivals::Poisson), 0));
    let (none, _) = of("user profile=x ops(validate=1) duration=1s -rate arrivals=poisson");
    assert!(none.expect_err("there is none").contains("names no rate"));
    for (line, noted) in [
        ("ops(insert=3,by-tenant=1) duration=1s", "weights of ops(…) have no effect"),
        ("ops(insert=3,by-tenant=1) duration=1s -rate ops(insert=500/s,by-tenant=1500/s)", "weights of ops(…)"),
        ("ops(insert=1,by-tenant=1) duration=1s clustering=fixed(2)", "clustering= has no effect"),
        ("ops(insert=5/s,by-tenant=5/s) duration=1s", "the command line has rates"),
    ] {
        let (rate, notes) = of(&format!("user profile=x {line}"));
        assert!(rate.is_ok() && notes.len() == 1 && notes[0].contains(noted), "{line}: {rate:?} {notes:?}");
    }
}

#[test]
fn the_line_of_batches_is_that_of_cassandra_stress() {
    assert_eq!(
        batches((1, 50), (2.0, 8000.4), (20.0, 8000.5)),
        "Generating batches with [1..50] partitions and [2..8000] rows (of [20..8001] total rows in the partitions)\n"
    );
}

#[test]
fn keys_of_elements_are_noted_where_there_are_none() {
    let notes = |lines: &str| {
        let table =
            "table_definition: CREATE TABLE t (k int PRIMARY KEY, a text, l list<text>, m frozen<map<int, int>>)";
        with(&format!("{table}\ncolumnspec:\n{lines}")).unwrap_or_else(|error| panic!("{error}")).notes
    };
    let found = notes(" - {name: a, element_size: fixed(3), element_population: fixed(1)}");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("t.yaml: element_size: of column a has no effect") && found[0].ends_with("write size:")
    );
    assert!(found[1].contains("element_population") && found[1].ends_with("write population:"));
    let inside = notes(" - {name: l, element_size: fixed(3)}\n - {name: m, element_population: fixed(1)}");
    assert!(inside.is_empty(), "{inside:?}");
}
