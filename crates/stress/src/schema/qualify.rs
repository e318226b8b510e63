//! Adds the keyspace to statements that leave it out.
//!
//! Profiles write `SELECT * FROM t`, and mean the profile's keyspace. Profiles of several keyspaces share connections,
//! so a connection cannot have one keyspace in use: the statements name theirs instead.

use super::definition::identifier;

/// The statement with `keyspace` before every unqualified table name.
///
/// Tables are named after `FROM`, `INTO`, `UPDATE` and `TRUNCATE`, in batches too. Text in quotes or comments is left
/// alone.
pub fn qualified(cql: &str, keyspace: &str) -> String {
    let words = words(cql);
    let mut out = String::with_capacity(cql.len() + 32);
    let mut copied = 0;
    for (place, word) in words.iter().enumerate() {
        let keyword = &cql[word.start..word.end];
        let names_a_table =
            ["from", "into", "update", "truncate"].iter().any(|known| keyword.eq_ignore_ascii_case(known));
        let after_dot = place > 0 && &cql[words[place - 1].start..words[place - 1].end] == ".";
        if word.kind != Kind::Name || !names_a_table || after_dot {
            continue;
        }
        let mut next = place + 1;
        // TRUNCATE TABLE t; SELECT … FROM t.
        if keyword.eq_ignore_ascii_case("truncate")
            && words.get(next).is_some_and(|word| cql[word.start..word.end].eq_ignore_ascii_case("table"))
        {
            next += 1;
        }
        let Some(table) = words.get(next).filter(|word| matches!(word.kind, Kind::Name | Kind::Quoted)) else {
            continue;
        };
        let has_keyspace = words.get(next + 1).is_some_and(|word| &cql[word.start..word.end] == ".");
        if has_keyspace {
            continue;
        }
        out.push_str(&cql[copied..table.start]);
        out.push_str(&identifier(keyspace));
        out.push('.');
        copied = table.start;
    }
    out.push_str(&cql[copied..]);
    out
}

/// Whether the statement has a condition (`IF …`), so that its answer says whether it was applied.
pub fn is_conditional(cql: &str) -> bool {
    let is_if = |word: &Word| word.kind == Kind::Name && cql[word.start..word.end].eq_ignore_ascii_case("if");
    words(cql).iter().any(is_if)
}

/// Whether the statement is a write that may be given a timestamp: an insert, an update, a deletion, without a
/// condition.
pub fn writes(cql: &str) -> bool {
    let writes = ["insert", "update", "delete"].iter().any(|known| keyword(cql).eq_ignore_ascii_case(known));
    writes && !is_conditional(cql)
}

/// Whether the statement only reads.
pub fn selects(cql: &str) -> bool {
    keyword(cql).eq_ignore_ascii_case("select")
}

/// The first word of the statement.
fn keyword(cql: &str) -> &str {
    words(cql).into_iter().next().map_or("", |word| &cql[word.start..word.end])
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Name,
    Quoted,
    Other,
}

struct Word {
    start: usize,
    end: usize,
    kind: Kind,
}

/// Names, quoted names, and single symbols; texts, numbers and comments are words of another kind.
fn words(cql: &str) -> Vec<Word> {
    let bytes = cql.as_bytes();
    let mut words = Vec::new();
    let mut at = 0;
    let until = |from: usize, mark: &str| cql[from..].find(mark).map_or(cql.len(), |found| from + found + mark.len());
    while at < bytes.len() {
        let rest = &cql[at..];
        let start = at;
        let kind = match bytes[at] {
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            _ if rest.starts_with("--") || rest.starts_with("//") => {
                at = until(at, "\n");
                continue;
            }
            _ if rest.starts_with("/*") => {
                at = until(at + 2, "*/");
                continue;
            }
            _ if rest.starts_with("$$") => {
                at = until(at + 2, "$$");
                Kind::Other
            }
            b'\'' => {
                at = until(at + 1, "'");
                Kind::Other
            }
            b'"' => {
                at = until(at + 1, "\"");
                Kind::Quoted
            }
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                at += rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
                Kind::Name
            }
            _ => {
                at += rest.chars().next().map_or(1, char::len_utf8);
                Kind::Other
            }
        };
        words.push(Word { start, end: at, kind });
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{is_conditional, qualified, selects, writes};

    #[test]
    fn conditions_and_writes_are_seen_where_they_are() {
        assert!(is_conditional("INSERT INTO t (a) VALUES (?) IF NOT EXISTS"));
        assert!(is_conditional("update t set a = ? where k = ? if a = 'x'"));
        assert!(!is_conditional("SELECT \"if\" FROM t WHERE a = 'if' -- if"));
        assert!(writes("delete from t where k = ?") && writes(" UPDATE t SET a = ? WHERE k = ?"));
        assert!(selects("\n select * FROM t") && !selects("UPDATE t SET a = ? WHERE k = ?") && !selects(""));
        assert!(!writes("SELECT * FROM t") && !writes("INSERT INTO t (a) VALUES (?) IF NOT EXISTS"));
    }

    #[test]
    fn a_table_without_a_keyspace_gets_one_and_nothing_else_changes() {
        for (cql, expected) in [
            ("select * from t where k = ?", "select * from ks.t where k = ?"),
            (
                "SELECT a, \"from\" FROM \"T\" WHERE a = 'x from y'",
                "SELECT a, \"from\" FROM ks.\"T\" WHERE a = 'x from y'",
            ),
            ("INSERT INTO t (a) VALUES (?)", "INSERT INTO ks.t (a) VALUES (?)"),
            ("UPDATE t SET a = ? WHERE k = ?", "UPDATE ks.t SET a = ? WHERE k = ?"),
            ("DELETE a FROM other.t WHERE k = ?", "DELETE a FROM other.t WHERE k = ?"),
            ("SELECT * FROM other . t", "SELECT * FROM other . t"),
            ("TRUNCATE TABLE t", "TRUNCATE TABLE ks.t"),
            (
                "BEGIN BATCH UPDATE t SET a=? WHERE k=?; INSERT INTO u (a) VALUES (?); APPLY BATCH",
                "BEGIN BATCH UPDATE ks.t SET a=? WHERE k=?; INSERT INTO ks.u (a) VALUES (?); APPLY BATCH",
            ),
            (
                "select a from -- from where\n t /* from u */ limit 1",
                "select a from -- from where\n ks.t /* from u */ limit 1",
            ),
            ("select 'it''s from here' from t", "select 'it''s from here' from ks.t"),
        ] {
            assert_eq!(qualified(cql, "ks"), expected);
        }
    }

    #[test]
    fn a_keyspace_with_capitals_is_quoted() {
        assert_eq!(qualified("SELECT * FROM t", "Ks"), "SELECT * FROM \"Ks\".t");
    }

    #[test]
    fn statements_that_break_off_are_left_to_the_server() {
        for cql in ["", "select * from", "select 'a", "update", "\"", "/*", "$$"] {
            assert_eq!(qualified(cql, "ks"), cql);
        }
    }
}
