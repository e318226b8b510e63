use brownout_base::random::Random;

use super::*;
use crate::{
    ErrorClass,
    wire::{ColumnType, FailureDetails, NativeType, Replies},
};

fn head(version: Version, flags: u8, opcode: u8, body: &[u8]) -> Header {
    Header { version, flags, stream: 0, opcode, length: body.len() }
}

fn result(version: Version, body: &[u8]) -> Result<Answer<'_>, Garbage> {
    answer(head(version, 0, opcode::RESULT, body), body)
}

fn error(code: u32, details: &[u8]) -> Vec<u8> {
    [&code.to_be_bytes()[..], &[0, 2, b'n', b'o'], details].concat()
}

fn failure(version: Version, body: &[u8]) -> Failure<'_> {
    match answer(head(version, 0, opcode::ERROR, body), body) {
        Ok(Answer::Error(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

fn rows(version: Version, body: &[u8]) -> Rows<'_> {
    match result(version, body) {
        Ok(Answer::Rows(rows)) => rows,
        other => panic!("{other:?}"),
    }
}

#[test]
fn answers_without_much_to_tell_decode() {
    assert_eq!(result(Version::V4, &[0, 0, 0, 1]), Ok(Answer::Void));
    assert_eq!(result(Version::V4, &[0, 0, 0, 3, 0, 1, b'k']), Ok(Answer::SetKeyspace("k")));
    let simple = |opcode, body| answer(head(Version::V5, 0, opcode, body), body);
    assert_eq!(simple(opcode::READY, &[]), Ok(Answer::Ready));
    assert_eq!(simple(opcode::AUTHENTICATE, &[0, 2, b'P', b'A']), Ok(Answer::Authenticate("PA")));
    assert_eq!(simple(opcode::AUTH_CHALLENGE, &[0, 0, 0, 1, 9]), Ok(Answer::AuthChallenge(Some(&[9]))));
    assert_eq!(simple(opcode::AUTH_SUCCESS, &[0xFF; 4]), Ok(Answer::AuthSuccess(None)));
    assert_eq!(simple(opcode::EVENT, &[0, 2, b'U', b'P', 1, 2, 3]), Ok(Answer::Event("UP")));
    assert!(simple(0x55, &[]).is_err());
    assert!(result(Version::V4, &[0, 0, 0, 6]).is_err());
}

#[test]
fn a_change_of_the_schema_names_what_has_changed() {
    let body = b"\0\0\0\x05\0\x07CREATED\0\x05TABLE\0\x01k\0\x01t";
    let change = SchemaChange { change: "CREATED", target: "TABLE", keyspace: "k", name: "t" };
    assert_eq!(result(Version::V4, body), Ok(Answer::SchemaChange(change)));
    let body = b"\0\0\0\x05\0\x07DROPPED\0\x08KEYSPACE\0\x01k";
    let change = SchemaChange { change: "DROPPED", target: "KEYSPACE", keyspace: "k", name: "" };
    assert_eq!(result(Version::V4, body), Ok(Answer::SchemaChange(change)));
}

#[test]
fn what_a_server_supports_is_found_by_name() {
    let body = b"\0\x02\0\x0bCQL_VERSION\0\x01\0\x053.4.7\0\x0bCOMPRESSION\0\x02\0\x06snappy\0\x03lz4";
    let Ok(Answer::Supported(supported)) = answer(head(Version::V4, 0, opcode::SUPPORTED, body), body) else {
        panic!("not SUPPORTED");
    };
    assert_eq!(supported.values("COMPRESSION").collect::<Vec<_>>(), ["snappy", "lz4"]);
    assert!(supported.has("CQL_VERSION", "3.4.7") && supported.has("COMPRESSION", "LZ4"));
    assert!(!supported.has("COMPRESSION", "zstd") && !supported.has("PROTOCOL_VERSIONS", "5/v5"));
}

/// Rows of two columns, `a int` and `b map<text, set<bigint>>`.
fn two_columns() -> Vec<u8> {
    [
        &[0, 0, 0, 2, 0, 0, 0, 3][..],                     // Rows; global table, more pages
        &[0, 0, 0, 2, 0, 0, 0, 1, 0x77],                   // two columns, paging state
        &[0, 1, b'k', 0, 1, b't'],                         // keyspace, table
        &[0, 1, b'a', 0, 9],                               // a int
        &[0, 1, b'b', 0, 0x21, 0, 0x0D, 0, 0x22, 0, 2],    // b map<varchar, set<bigint>>
        &[0, 0, 0, 2],                                     // two rows
        &[0, 0, 0, 4, 0, 0, 0, 5, 0xFF, 0xFF, 0xFF, 0xFF], // 5, null
        &[0, 0, 0, 0, 0, 0, 0, 1, 8],                      // empty, 8
    ]
    .concat()
}

#[test]
fn rows_give_their_cells_columns_and_paging_state() {
    let body = two_columns();
    let rows = rows(Version::V4, &body);
    assert_eq!((rows.len(), rows.column_count(), rows.is_empty()), (2, 2, false));
    assert_eq!(rows.paging_state(), Some(&[0x77][..]));
    let cells = [Some(&[0, 0, 0, 5][..]), None, Some(&[]), Some(&[8])];
    assert_eq!(rows.cells().collect::<Vec<_>>(), cells);
    let by_row: Vec<Vec<_>> = rows.iter().map(|row| row.cells().collect()).collect();
    assert_eq!(by_row, [&cells[..2], &cells[2..]]);
    assert_eq!(rows.first().unwrap().cell(1), Some(None), "null");
    assert_eq!(rows.first().unwrap().cell(2), None, "no such column");
    let columns = rows.columns().unwrap();
    assert_eq!((&*columns[0].keyspace, &*columns[1].table, &*columns[1].name), ("k", "t", "b"));
    assert_eq!(columns[0].kind, ColumnType::Native(NativeType::Int));
    assert_eq!(columns[1].kind.to_string(), "map<text, set<bigint>>");
    let mut again = Vec::new();
    columns[1].kind.append(&mut again);
    assert_eq!(again, [0, 0x21, 0, 0x0D, 0, 0x22, 0, 2]);
}

#[test]
fn types_of_users_tuples_and_custom_types_decode() {
    let kind = [
        &[0, 0x30, 0, 1, b'k', 0, 1, b'u', 0, 2, 0, 1, b'x', 0, 0x14, 0, 1, b'y'][..], // udt {x tinyint, y …
        &[0, 0x31, 0, 2, 0, 0x15, 0, 0x20, 0, 0],                                      // tuple<duration, list<
        &[0, 1, b'V'],                                                                 // custom V
    ]
    .concat();
    let body = [&[0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, b'c'][..], &kind, &[0; 4]].concat();
    let columns = rows(Version::V4, &body).columns().unwrap();
    let ColumnType::User { name, fields, .. } = &columns[0].kind else { panic!("{columns:?}") };
    assert_eq!((name.as_str(), fields[0].1.to_string().as_str()), ("u", "tinyint"));
    assert_eq!(fields[1].1.to_string(), "tuple<duration, list<'V'>>");
    let mut again = Vec::new();
    columns[0].kind.append(&mut again);
    assert_eq!(again, kind);
}

#[test]
fn rows_of_version_5_may_tell_that_their_columns_have_changed() {
    let body = [0, 0, 0, 2, 0, 0, 0, 0x0C, 0, 0, 0, 1, 0, 2, 7, 8, 0, 0, 0, 1, 0, 0, 0, 1, 1];
    let rows = rows(Version::V5, &body);
    assert_eq!(rows.changed_metadata_id(), Some(&[7, 8][..]));
    assert_eq!(rows.columns(), None);
    assert_eq!(rows.cells().collect::<Vec<_>>(), [Some(&[1][..])]);
    assert!(result(Version::V4, &body).is_err(), "version 4 has no such id");
}

#[test]
fn whether_a_conditional_write_was_applied_is_read_from_its_first_column() {
    let named = |name: &[u8], cell: &[u8]| {
        let spec = [&[0, 0, 0, 0, 0, name.len() as u8][..], name, &[0, 4]].concat();
        [&[0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1][..], &spec, &[0, 0, 0, 1], cell].concat()
    };
    let applied = |body: &[u8]| rows(Version::V4, body).applied();
    assert_eq!(applied(&named(b"[applied]", &[0, 0, 0, 1, 1])), Some(true));
    assert_eq!(applied(&named(b"[applied]", &[0, 0, 0, 1, 0])), Some(false));
    assert_eq!(applied(&named(b"[applied]", &[0xFF; 4])), None, "null");
    assert_eq!(applied(&named(b"other", &[0, 0, 0, 1, 0])), None);
    assert_eq!(applied(&[0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0]), Some(false), "not named");
}

#[test]
fn prepared_statements_tell_their_values_key_and_rows() {
    let after_ids = [
        &[0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 1][..], // global table, two values, the key is the second
        &[0, 1, b'k', 0, 1, b't', 0, 1, b'v', 0, 3, 0, 1, b'p', 0, 2],
        &[0, 0, 0, 1, 0, 0, 0, 1, 0, 1, b'k', 0, 1, b't', 0, 1, b'r', 0, 0x0D], // rows of r text
    ]
    .concat();
    for (version, ids, metadata_id) in
        [(Version::V4, &[0, 2, 0xAB, 0xCD][..], &[][..]), (Version::V5, &[0, 2, 0xAB, 0xCD, 0, 1, 0xEF], &[0xEF])]
    {
        let body = [&[0, 0, 0, 4], ids, &after_ids].concat();
        let Ok(Answer::Prepared(prepared)) = result(version, &body) else { panic!("{version:?}") };
        assert_eq!((prepared.id, prepared.result_metadata_id), (&[0xAB, 0xCD][..], metadata_id));
        assert_eq!(prepared.partition_key().collect::<Vec<_>>(), [1]);
        let names = |columns: Vec<Column>| columns.iter().map(|c| format!("{} {}", c.name, c.kind)).collect::<Vec<_>>();
        assert_eq!(names(prepared.bound()), ["v blob", "p bigint"]);
        assert_eq!(names(prepared.result()), ["r text"]);
    }
}

#[test]
fn errors_tell_their_details() {
    let replies = Replies { consistency: 4, received: 1, required: 2 };
    let told = [0, 4, 0, 0, 0, 1, 0, 0, 0, 2];
    let check = |version, code, details: &[u8], class, expected: FailureDetails<'_>| {
        let body = error(code, details);
        let failure = failure(version, &body);
        assert_eq!((failure.code, failure.message, failure.class()), (code, "no", class));
        assert_eq!(failure.details, expected, "{code:#06x}");
    };
    let with = |more: &[u8]| [&told[..], more].concat();
    use ErrorClass::{
        Invalid, Overloaded, ReadFailure, ReadTimeout, Unavailable, Unprepared, WriteFailure, WriteTimeout,
    };
    use FailureDetails as Details;
    use Version::{V4, V5};
    check(V4, 0x1001, &[], Overloaded, Details::None);
    check(V4, 0x1000, &told, Unavailable, Details::Unavailable { consistency: 4, required: 1, alive: 2 });
    let write_type = "CAS";
    check(
        V4,
        0x1100,
        &with(b"\0\x03CAS"),
        WriteTimeout,
        Details::WriteTimeout { replies, write_type, contentions: None },
    );
    let contentions = Some(3);
    check(
        V5,
        0x1100,
        &with(b"\0\x03CAS\0\x03"),
        WriteTimeout,
        Details::WriteTimeout { replies, write_type, contentions },
    );
    check(V4, 0x1200, &with(&[1]), ReadTimeout, Details::ReadTimeout { replies, data_present: true });
    let failures = 1;
    check(
        V4,
        0x1300,
        &with(&[0, 0, 0, 1, 0]),
        ReadFailure,
        Details::ReadFailure { replies, failures, data_present: false },
    );
    let reasons = [0, 0, 0, 1, 4, 127, 0, 0, 1, 0, 2];
    let expected = Details::ReadFailure { replies, failures, data_present: true };
    check(V5, 0x1300, &with(&[&reasons[..], &[1]].concat()), ReadFailure, expected);
    let expected = Details::WriteFailure { replies, failures, write_type };
    check(V5, 0x1500, &with(&[&reasons[..], b"\0\x03CAS"].concat()), WriteFailure, expected);
    check(V5, 0x1700, &told, WriteTimeout, Details::CasWriteUnknown { replies });
    check(V4, 0x2400, b"\0\x01k\0\0", Invalid, Details::AlreadyExists { keyspace: "k", table: "" });
    check(V4, 0x2500, &[0, 2, 7, 8], Unprepared, Details::Unprepared { id: &[7, 8] });
    check(V4, 0x1200, &told, ReadTimeout, Details::None);
}

#[test]
fn what_stands_before_a_message_is_passed_over() {
    let prelude = [
        &[7; 16][..],                       // tracing id
        &[0, 1, 0, 2, b'h', b'i'],          // one warning
        &[0, 1, 0, 1, b'k', 0, 0, 0, 1, 9], // a payload of one pair
        &[0, 0, 0, 1],                      // Void
    ]
    .concat();
    assert_eq!(answer(head(Version::V4, 0x0E, opcode::RESULT, &prelude), &prelude), Ok(Answer::Void));
}

#[test]
fn rows_that_claim_more_than_they_bring_are_refused() {
    let many = [0, 0, 0, 2, 0, 0, 0, 4, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
    assert!(result(Version::V4, &many).is_err());
    let no_columns = [0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1];
    assert!(result(Version::V4, &no_columns).is_err());
    let mut deep = vec![0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    deep.extend_from_slice(&[0, 0x20].repeat(100_000));
    assert_eq!(result(Version::V4, &deep), Err("a column type nested too deeply"));
}

#[test]
fn no_bytes_make_the_decoder_panic() {
    let mut random = Random::new(1);
    for _ in 0..300_000 {
        let body: Vec<u8> = (0..random.below(64))
            // Small numbers reach deeper into the decoder than uniform bytes do.
            .map(|_| if random.below(3) > 0 { random.below(6) as u8 } else { random.word() as u8 })
            .collect();
        let opcode = if random.below(3) == 0 { random.below(0x12) as u8 } else { opcode::RESULT };
        let flags = if random.below(2) == 0 { 0 } else { random.word() as u8 };
        let version = if random.below(2) == 0 { Version::V4 } else { Version::V5 };
        match answer(head(version, flags, opcode, &body), &body) {
            Ok(Answer::Rows(rows)) => {
                let cells: usize = rows.iter().map(|row| row.cells().count()).sum();
                assert_eq!(cells, rows.cells().count());
                assert_eq!(cells, rows.len() * rows.column_count());
                assert!(rows.columns().is_none_or(|columns| columns.len() == rows.column_count()));
                let _ = rows.applied();
            }
            Ok(Answer::Prepared(prepared)) => {
                drop((prepared.bound(), prepared.result(), prepared.partition_key().count()));
            }
            _ => {}
        }
    }
}
