use std::cmp::Ordering;

use super::*;

/// Printed by Cassandra 5.0.9 itself; `golden/types/README.md` says how.
const VECTORS: &str = include_str!("../../golden/types/vectors.tsv");

fn address() -> UserTypes {
    let mut types = UserTypes::new();
    types.define("CREATE TYPE IF NOT EXISTS ks.address (street text, \"number\" int);").unwrap();
    types
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The vectors: type, bytes, and how they compare with those of the line before of the same type.
fn vectors() -> impl Iterator<Item = (CqlType, Vec<u8>, &'static str)> {
    let types = address();
    VECTORS.lines().map(move |line| {
        let fields: Vec<&str> = line.split('\t').collect();
        (CqlType::parse(fields[0], &types).unwrap(), bytes(fields[2]), fields[3])
    })
}

#[test]
fn what_is_decoded_is_encoded_to_the_servers_bytes_again() {
    let mut seen = 0;
    for (cql_type, golden, _) in vectors() {
        let value = decode(&golden, &cql_type).unwrap();
        let mut out = Vec::new();
        encode(&value, &cql_type, &mut out).unwrap();
        assert_eq!(out, golden, "{cql_type} {value}");
        seen += 1;
    }
    assert!(seen > 80, "{seen}");
}

#[test]
fn values_are_in_the_servers_order() {
    let mut last: Option<(CqlType, Vec<u8>)> = None;
    for (cql_type, golden, order) in vectors() {
        if !order.is_empty() {
            let (last_type, before) = last.unwrap();
            assert_eq!(last_type, cql_type);
            let expected = if order == "=" { Ordering::Equal } else { Ordering::Less };
            assert_eq!(compare(&before, &golden, &cql_type), expected, "{cql_type} {before:02x?} {golden:02x?}");
            assert_eq!(compare(&golden, &before, &cql_type), expected.reverse(), "{cql_type}");
        }
        last = Some((cql_type, golden));
    }
}

/// The bytes of `golden/types/vectors.tsv` again, as text.
#[test]
fn values_are_written_as_cql_would() {
    for (cql_type, hex, text) in [
        ("text", "6974277301", "'it''s\\u{1}'"),
        ("blob", "00ff", "0x00ff"),
        ("date", "7fffffff", "'1969-12-31'"),
        ("date", "80004d46", "'2024-02-29'"),
        ("timestamp", "0000018df4bc567b", "'2024-02-29T12:00:00.123Z'"),
        ("timestamp", "ffffffffffffffff", "'1969-12-31T23:59:59.999Z'"),
        ("time", "00004e94914effff", "'23:59:59.999999999'"),
        ("decimal", "00000003cfc7", "-12.345"),
        ("decimal", "0000000401", "0.0001"),
        ("decimal", "fffffff601", "1E10"),
        ("varint", "efffffffffffffffffffffffff", "-1267650600228229401496703205377"),
        ("varint", "10000000000000000000000000", "1267650600228229401496703205376"),
        ("varint", "ff7f", "-129"),
        ("varint", "80", "-128"),
        ("uuid", "50554d6e29bb11e5b345feff819cdc9f", "50554d6e-29bb-11e5-b345-feff819cdc9f"),
        ("inet", "20010db8000000000000000000000001", "'2001:db8::1'"),
        ("duration", "1c06fc1ac004a5c612", "14mo3d14706007008009ns"),
        ("duration", "000301", "-2d1ns"),
        ("map<text, bigint>", "000000010000000161000000080000000000000002", "{'a': 2}"),
        ("frozen<tuple<int, text>>", "0000000400000001ffffffff", "(1, null)"),
        ("frozen<address>", "0000000448696768ffffffff", "{street: 'High', number: null}"),
        ("vector<smallint, 2>", "02000102ffff", "[1, -1]"),
    ] {
        let cql_type = CqlType::parse(cql_type, &address()).unwrap();
        assert_eq!(decode(&bytes(hex), &cql_type).unwrap().to_string(), text, "{cql_type}");
        assert_eq!(describe(Some(&bytes(hex)), &cql_type, 200), text);
    }
    assert_eq!(describe(None, &CqlType::Int, 9), "null");
    assert_eq!(describe(Some(&[1]), &CqlType::Int, 9), "0x01");
    assert_eq!(describe(Some(&[0xab; 9]), &CqlType::Blob, 6), "0xabab… (9 bytes)");
}

#[test]
fn bytes_that_are_no_value_are_refused() {
    for (cql_type, hex) in [
        ("int", "0102"),
        ("text", "ff"),
        ("inet", "0102030405"),
        ("decimal", "00000001"),
        ("duration", "0001"),
        ("duration", "0000000000"),
        ("list<int>", "00000002000000040000000"),
        ("list<int>", "0000000100000004000000010a"),
        ("vector<text, 2>", "0561"),
        ("map<int, int>", "000000010000000400000001"),
        ("frozen<tuple<int, text>>", "000000080000000100000001"),
    ] {
        let cql_type = CqlType::parse(cql_type, &address()).unwrap();
        let even = &hex[..hex.len() / 2 * 2];
        let error = decode(&bytes(even), &cql_type).unwrap_err();
        assert!(!error.what.is_empty(), "{cql_type}: {error}");
    }
}

#[test]
fn values_of_another_type_are_not_encoded() {
    let tuple = CqlType::Tuple(vec![CqlType::Int, CqlType::Text]);
    for (value, cql_type) in [
        (Value::Int(1), CqlType::BigInt),
        (Value::Text("é".to_owned()), CqlType::Ascii),
        (Value::List(vec![Value::Int(1)]), CqlType::Vector(Box::new(CqlType::Int), 2)),
        (Value::Tuple(vec![Value::Int(1), Value::Int(2)]), tuple),
        (Value::Varint(Vec::new()), CqlType::Varint),
    ] {
        let mut out = vec![9];
        let error = encode(&value, &cql_type, &mut out).unwrap_err();
        assert!(error.to_string().contains("is not a value of the type"), "{error}");
        assert_eq!(out, [9], "nothing is left behind");
    }
}

#[test]
fn unsigned_vints_are_as_long_as_their_bits_ask() {
    for (value, length) in
        [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), ((1 << 56) - 1, 8), (1 << 56, 9), (u64::MAX, 9)]
    {
        let mut out = Vec::new();
        wire::put_unsigned_vint(&mut out, value);
        assert_eq!((out.len(), wire::unsigned_vint_length(value)), (length, length), "{value}");
        assert_eq!(wire::take_unsigned_vint(&mut out.as_slice()), Some(value));
        assert_eq!(wire::take_unsigned_vint(&mut &out[..length - 1]), None);
    }
    for value in [0, -1, 1, i64::MIN, i64::MAX, -300] {
        let mut out = Vec::new();
        wire::put_vint(&mut out, value);
        assert_eq!(wire::take_vint(&mut out.as_slice()), Some(value));
    }
}

#[test]
fn types_print_as_they_parse() {
    for text in [
        "ascii",
        "counter",
        "duration",
        "frozen<map<text, frozen<list<int>>>>",
        "set<frozen<address>>",
        "frozen<tuple<int, frozen<tuple<text, uuid>>>>",
        "vector<float, 1536>",
        "list<frozen<address>>",
        "'org.apache.cassandra.db.marshal.LexicalUUIDType'",
        "map<timeuuid, frozen<set<inet>>>",
    ] {
        assert_eq!(CqlType::parse(text, &address()).unwrap().to_string(), text);
    }
    for (text, printed) in [
        ("VARCHAR", "text"),
        ("Frozen< List <INT> >", "frozen<list<int>>"),
        ("\"address\"", "address"),
        ("ks.address", "address"),
        ("map<text,bigint>", "map<text, bigint>"),
    ] {
        assert_eq!(CqlType::parse(text, &address()).unwrap().to_string(), printed);
    }
    let mut types = UserTypes::new();
    types.define("create type \"My Type\" (\"A b\" int, \"select\" text)").unwrap();
    let odd = CqlType::parse("frozen<\"My Type\">", &types).unwrap();
    assert_eq!(odd.to_string(), "frozen<\"My Type\">");
    assert_eq!(quote("select"), "\"select\"");
}

#[test]
fn types_that_are_none_say_where_or_which() {
    for (text, message) in [
        ("lst<int>", "there is no type 'lst<…>'"),
        ("adress", "did you mean 'address'?"),
        ("txt", "did you mean 'text'?"),
        ("map<int>", "'>' at byte 7, where ',' was expected"),
        ("list<int", "the end at byte 8, where '>' was expected"),
        ("int int", "'int' at byte 4, where the end was expected"),
        ("vector<float, 0>", "1 to 8192 elements, not 0"),
        ("vector<float, x>", "where the number of elements was expected"),
        ("'open", "where the closing quote was expected"),
        ("", "where a type was expected"),
    ] {
        let error = CqlType::parse(text, &address()).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
    let deep = format!("{}int{}", "list<".repeat(100), ">".repeat(100));
    assert!(CqlType::parse(&deep, &address()).unwrap_err().to_string().contains("nested deeper than"));
}

#[test]
fn user_types_of_a_schema_may_come_in_any_order() {
    let row = |name: &str, fields: &[(&str, &str)]| {
        let (names, types) = fields.iter().map(|(n, t)| (n.to_string(), t.to_string())).unzip();
        (name.to_owned(), names, types)
    };
    let person = row("person", &[("name", "text"), ("homes", "frozen<list<frozen<address>>>")]);
    let home = row("address", &[("street", "text")]);
    let types = UserTypes::from_schema(&[person.clone(), home]).unwrap();
    assert_eq!(types.get("person").unwrap().fields[1].1.to_string(), "frozen<list<frozen<address>>>");
    let error = UserTypes::from_schema(&[person]).unwrap_err().to_string();
    assert!(error.contains("'address'"), "{error}");
}

#[test]
fn a_table_is_read_with_its_keys_order_and_options() {
    let cql = "
        -- readings of meters
        CREATE TABLE IF NOT EXISTS ks.\"Readings\" (
            meter uuid, day date, // two of the key
            at timestamp, seq int, zone text STATIC,
            value double, \"Unit\" text MASKED WITH mask_inner(1, null), tags set<text>, home frozen<address>,
            PRIMARY KEY ((meter, day), at, seq)
        ) WITH CLUSTERING ORDER BY (at DESC, seq ASC) AND compaction = {'class': 'LeveledCompactionStrategy'}
          AND compression = {'chunk_length_in_kb': 64, 'class': 'ZstdCompressor', } AND gc_grace_seconds = 60
          AND id = 5a1c395e-b41f-11e5-9f22-ba0be0483c18 AND comment = 'it''s /* one */' /* the end */ ;";
    let table = TableDefinition::parse(cql, &address()).unwrap();
    assert_eq!((table.keyspace.as_deref(), table.name.as_str()), (Some("ks"), "Readings"));
    let columns: Vec<String> =
        table.columns.iter().map(|c| format!("{} {} {:?}", c.name, c.cql_type, c.kind)).collect();
    assert_eq!(
        columns,
        [
            "meter uuid PartitionKey",
            "day date PartitionKey",
            "at timestamp Clustering { descending: true }",
            "seq int Clustering { descending: false }",
            "Unit text Regular",
            "home frozen<address> Regular",
            "tags set<text> Regular",
            "value double Regular",
            "zone text Static",
        ]
    );
    assert_eq!(table.option("compression", "class"), Some("ZstdCompressor"));
    assert_eq!(table.option("compression", "chunk_length_in_kb"), Some("64"));
    assert!(table.options.contains(&("comment".into(), OptionValue::Text("it's /* one */".into()))));
    assert!(table.options.contains(&("id".into(), OptionValue::Text("5a1c395e-b41f-11e5-9f22-ba0be0483c18".into()))));
    assert_eq!(table.column("tags").unwrap().kind, ColumnKind::Regular);
}

#[test]
fn a_table_may_have_its_key_at_a_column() {
    let table = TableDefinition::parse(
        "CREATE TABLE standard1 (key blob PRIMARY KEY, \"C0\" blob) WITH compression = {}",
        &address(),
    )
    .unwrap();
    assert_eq!(table.columns[0].kind, ColumnKind::PartitionKey);
    assert_eq!(table.options, [("compression".to_owned(), OptionValue::Map(Vec::new()))]);
    for (cql, message) in [
        ("CREATE TABLE t (a int)", "no PRIMARY KEY"),
        ("CREATE TABLE t (a int, PRIMARY KEY (b))", "column 'b'"),
        ("CREATE TABLE t (a int PRIMARY KEY) WITH x", "'=' was expected"),
        ("DROP TABLE t", "CREATE TABLE was expected"),
        ("CREATE TABLE t (a int PRIMARY KEY", "')' was expected"),
        ("CREATE TABLE t (a int MASKED WITH f( PRIMARY", "')' was expected"),
    ] {
        let error = TableDefinition::parse(cql, &address()).unwrap_err().to_string();
        assert!(error.contains(message), "{cql}: {error}");
    }
}
