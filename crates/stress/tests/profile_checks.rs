//! `check:` of queries, as far as a profile alone tells whether it can be had.

#![allow(clippy::expect_used, clippy::panic, reason = "a test ends by them")]

use std::{io, path::Path};

use brownout_stress::{
    profile::Profile,
    settings::{Batch, Generator, Settings},
};

const TABLE: &str =
    "keyspace: ks\ntable: t\ntable_definition: CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))\n";

fn read(lines: &str) -> Result<Profile, String> {
    let no_files = |_: &Path| Err(io::Error::from(io::ErrorKind::NotFound));
    Profile::from_text("t.yaml", format!("{TABLE}{lines}"), &no_files).map_err(|error| error.to_string())
}

fn good(lines: &str) -> Profile {
    read(lines).unwrap_or_else(|error| panic!("{lines}: {error}"))
}

#[test]
fn a_query_is_compared_if_it_says_so() {
    let text = "generator: v2\nqueries:\n  one: { cql: SELECT v FROM t WHERE k = ? AND c = ?, check: true }\n  \
                other: { cql: SELECT v FROM t WHERE k = ?, check: false }\n  plain: { cql: SELECT v FROM t WHERE k = ? }\n";
    let profile = good(text);
    assert_eq!(profile.queries.iter().map(|query| query.check).collect::<Vec<_>>(), [true, false, false]);
    assert!(profile.notes.is_empty(), "{:?}", profile.notes);
    let inserts = Settings::parse(&["user profile=x ops(insert=1) n=1"]).expect("words").insert;
    assert_eq!(profile.batch(&inserts), Batch::None, "as any key of our own");
}

#[test]
fn what_cannot_be_compared_is_refused_with_its_line() {
    let of = |query: &str| read(&format!("generator: v2\nqueries:\n  bad: {{ {query} }}\n")).expect_err(query);
    let error = of("cql: SELECT v FROM t WHERE k = ?, check: true");
    assert!(error.starts_with("t.yaml:6") && error.contains("check: which row"), "{error}");
    let error = of("cql: DELETE FROM t WHERE k = ?, check: true");
    assert!(error.contains("check: only what a SELECT returns"), "{error}");
    let error = of("cql: SELECT v FROM t WHERE k = ? AND c = ?, check: maybe");
    assert!(error.contains("'maybe' is neither true nor false"), "{error}");
}

#[test]
fn rows_of_compat_are_not_compared() {
    let profile = good("queries: { one: { cql: SELECT v FROM t WHERE k = ? AND c = ?, check: true } }");
    for (command, skip) in [(None, false), (None, true), (Some(Generator::Compat), false)] {
        let error = profile.generator(command, skip).expect_err("compat").to_string();
        assert!(error.contains("check: of one") && error.contains("generator: v2"), "{error}");
    }
    assert_eq!(profile.generator(Some(Generator::V2), false), Ok(Generator::V2));
}

#[test]
fn queries_that_may_change_what_others_compare_are_told() {
    let profile = good(
        "generator: v2\nqueries:\n  one: { cql: SELECT v FROM t WHERE k = ? AND c = ?, check: true }\n  \
         change: { cql: UPDATE t SET v = ? WHERE k = ? AND c = ? }\n",
    );
    assert_eq!(profile.notes.len(), 1, "{:?}", profile.notes);
    assert!(profile.notes[0].contains("change may change rows"), "{:?}", profile.notes);
}
