//! What a query selects, as far as needed to decide whether its rows can be compared with generated ones.

use brownout_generate::types::{ColumnDefinition, ColumnKind, TableDefinition};

use super::cql::{Word, Words};

/// Functions that make one value of each row. Any other function might combine many rows into one.
const OF_ONE_ROW: [&str; 7] = ["token", "ttl", "writetime", "maxwritetime", "cast", "tojson", "to_json"];

/// How the rows of a query are compared with those that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The selected columns by name; `None` in it is anything else, which is not compared. `None`: all columns.
    pub columns: Option<Vec<Option<String>>>,
    /// Clustering columns that it compares with values of the row it was drawn for (`c = ?`).
    pub given: Vec<String>,
    /// Which rows must be returned.
    pub extent: Extent,
}

/// Which of the rows that match a query's values must be returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of them.
    All,
    /// One, if there are any: the query has a `LIMIT`.
    Limited,
    /// Unknown: there are further conditions.
    Unknown,
}

/// What a query selects from its table, if its rows can be compared.
///
/// # Errors
/// Why they cannot, and what to do about it.
pub fn selection(cql: &str, keyspace: &str, table: &TableDefinition) -> Result<Selection, String> {
    let mut words: Vec<Word> = Words::of(cql).collect();
    while words.last() == Some(&Word::Sign(';')) {
        words.pop();
    }
    if !words.first().is_some_and(|word| word.is("select")) {
        return Err("only what a SELECT returns can be compared; leave check: out".to_owned());
    }
    let from = top_level(&words, |at| words[at].is("from"));
    let (items, rest) = (&words[1..from.unwrap_or(words.len())], &words[from.map_or(words.len(), |at| at + 1)..]);
    let rest = of_table(rest, keyspace, &table.name)?;
    let columns = items_of(items)?;
    let tail = top_level(rest, |at| begins_tail(&rest[at..])).unwrap_or(rest.len());
    if rest[tail..].first().is_some_and(|word| word.is("group")) {
        return Err("GROUP BY makes one row of many, which cannot be compared; leave one of the two out".to_owned());
    }
    let terms = if rest.first().is_some_and(|word| word.is("where")) { &rest[1..tail] } else { &[] };
    let terms: Vec<&[Word]> = split(terms, |word| word.is("and"));
    let given: Vec<String> = terms.iter().filter_map(|term| equality(term)).collect();
    let of_kind = |is: fn(ColumnKind) -> bool| table.columns.iter().filter(move |column| is(column.kind));
    let is_given = |column: &&ColumnDefinition| given.contains(&column.name);
    if let Some(column) = of_kind(|kind| kind == ColumnKind::PartitionKey).find(|column| !is_given(column)) {
        return Err(format!(
            "rows are compared with those of the partition that is asked for: give its whole key, as in WHERE {} = ?",
            column.name
        ));
    }
    let is_selected = |column: &&ColumnDefinition| {
        columns.as_ref().is_none_or(|names| names.iter().flatten().any(|name| *name == column.name))
    };
    let clustering = || of_kind(|kind| matches!(kind, ColumnKind::Clustering { .. }));
    if let Some(column) = clustering().find(|column| !is_given(column) && !is_selected(column)) {
        return Err(format!(
            "which row an answer is shows in its clustering columns: select {0} too, by its own name, or give it, as in {0} = ?",
            column.name
        ));
    }
    if !table.columns.iter().any(|column| is_selected(&column)) {
        return Err("it selects no column by its own name, so there is nothing to compare; name some".to_owned());
    }
    let keys = table.columns.iter().filter(|column| column.kind == ColumnKind::PartitionKey).chain(clustering());
    let given_keys: Vec<String> = keys.map(|column| column.name.clone()).filter(|name| given.contains(name)).collect();
    let extent = if given_keys.len() < terms.len() {
        Extent::Unknown
    } else if rest[tail..].iter().any(|word| word.is("limit")) {
        Extent::Limited
    } else {
        Extent::All
    };
    let is_clustering = |name: &String| clustering().any(|column| column.name == *name);
    Ok(Selection { columns, given: given_keys.into_iter().filter(is_clustering).collect(), extent })
}

/// What follows the table's name.
fn of_table<'a>(words: &'a [Word], keyspace: &str, table: &str) -> Result<&'a [Word], String> {
    let (own_keyspace, name, rest) = match words {
        [keyspace, Word::Sign('.'), name, rest @ ..] => (keyspace.name(), name.name(), rest),
        [name, rest @ ..] => (None, name.name(), rest),
        [] => return Err("it names no table".to_owned()),
    };
    if name.as_deref() == Some(table) && own_keyspace.is_none_or(|own| own == keyspace) {
        return Ok(rest);
    }
    Err(format!("it asks another table than {keyspace}.{table}, whose rows are those that are known"))
}

/// The columns among the selected items.
fn items_of(words: &[Word]) -> Result<Option<Vec<Option<String>>>, String> {
    if let [Word::Sign('*')] = words {
        return Ok(None);
    }
    if let [first, second, ..] = words
        && (first.is("distinct") || first.is("json"))
        && *second != Word::Sign(',')
    {
        return Err(
            "SELECT JSON and SELECT DISTINCT return no rows of columns to compare; leave the word out".to_owned()
        );
    }
    let call = words.windows(2).find_map(|pair| match pair {
        [Word::Bare(name), Word::Sign('(')] if OF_ONE_ROW.iter().any(|known| name.eq_ignore_ascii_case(known)) => None,
        [Word::Bare(name) | Word::Quoted(name), Word::Sign('(')] => Some(name),
        _ => None,
    });
    if let Some(name) = call {
        return Err(format!("{name}(…) may make one row of many, which cannot be compared; leave it out"));
    }
    let only = |item: &[Word]| if let [word] = item { word.name() } else { None };
    Ok(Some(split(words, |word| *word == Word::Sign(',')).into_iter().map(only).collect()))
}

/// The column of `column = ?`, or of `column = :column`.
fn equality(term: &[Word]) -> Option<String> {
    match term {
        [column, Word::Sign('='), Word::Sign('?')] => column.name(),
        [column, Word::Sign('='), Word::Sign(':'), variable] => {
            column.name().filter(|name| variable.name().as_ref() == Some(name))
        }
        _ => None,
    }
}

/// Whether the part after the conditions begins here.
fn begins_tail(words: &[Word]) -> bool {
    let pairs = [
        ("group", "by"),
        ("order", "by"),
        ("per", "partition"),
        ("allow", "filtering"),
        ("bypass", "cache"),
        ("using", "timeout"),
    ];
    match words {
        [first, second, ..] if pairs.iter().any(|(one, other)| first.is(one) && second.is(other)) => true,
        [first, ..] => first.is("limit"),
        [] => false,
    }
}

/// The first matching position outside of brackets.
fn top_level(words: &[Word], is: impl Fn(usize) -> bool) -> Option<usize> {
    let mut depth = 0i32;
    (0..words.len()).find(|at| {
        match words[*at] {
            Word::Sign('(' | '[' | '{') => depth += 1,
            Word::Sign(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        depth == 0 && is(*at)
    })
}

/// The parts between these words, outside of brackets; no parts of an empty text.
fn split(mut words: &[Word], is: impl Fn(&Word) -> bool) -> Vec<&[Word]> {
    let mut parts = Vec::new();
    while let Some(at) = top_level(words, |at| is(&words[at])) {
        parts.push(&words[..at]);
        words = &words[at + 1..];
    }
    if !words.is_empty() {
        parts.push(words);
    }
    parts
}

#[cfg(test)]
mod tests {
    use brownout_generate::types::UserTypes;

    use super::*;

    fn of(cql: &str) -> Result<Selection, String> {
        let table = "CREATE TABLE t (k int, \"K2\" int, a int, b text, v text, m map<text, int>, s int static, \
                     PRIMARY KEY ((k, \"K2\"), a, b))";
        selection(cql, "ks", &TableDefinition::parse(table, &UserTypes::new()).unwrap())
    }

    fn found(cql: &str) -> (Vec<String>, Extent) {
        let selection = of(cql).unwrap_or_else(|error| panic!("{cql}: {error}"));
        (selection.given, selection.extent)
    }

    #[test]
    fn columns_are_those_under_their_own_names() {
        let of_columns = |items: &str| {
            let cql = format!("SELECT {items} FROM t WHERE k = ? AND \"K2\" = ? AND a = ? AND b = ?");
            of(&cql).unwrap().columns
        };
        assert_eq!(of_columns("*"), None);
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(of_columns("v, \"K2\", S"), Some(vec![name("v"), name("K2"), name("s")]));
        let others =
            of_columns("v AS a, writetime(v), CAST(a AS text), m['x, FROM y'], b, (int)a -- , v\n, ttl(v) AS v");
        assert_eq!(others, Some(vec![None, None, None, None, name("b"), None, None]));
    }

    #[test]
    fn how_many_rows_have_to_come_shows_in_the_conditions() {
        let all = "SELECT * FROM ks.T WHERE k = ? AND \"K2\" = :\"K2\"";
        assert_eq!(found(all), (vec![], Extent::All));
        assert_eq!(found(&format!("{all} ORDER BY a DESC;")), (vec![], Extent::All));
        assert_eq!(found(&format!("{all} PER PARTITION LIMIT 3")), (vec![], Extent::Limited));
        assert_eq!(found(&format!("{all} and A = ? LIMIT 3")), (vec!["a".to_owned()], Extent::Limited));
        assert_eq!(found(&format!("{all} AND a >= ? AND a < ?")), (vec![], Extent::Unknown));
        assert_eq!(found(&format!("{all} AND (a, b) > (?, ?)")), (vec![], Extent::Unknown));
        assert_eq!(found(&format!("{all} AND a = 3")), (vec![], Extent::Unknown));
        assert_eq!(found(&format!("{all} AND a = :x")), (vec![], Extent::Unknown));
        assert_eq!(found(&format!("{all} AND v = ? ALLOW FILTERING")), (vec![], Extent::Unknown));
        let row = "SELECT v FROM t WHERE b = ? AND a = ? AND k = ? AND \"K2\" = ?";
        assert_eq!(found(row), (vec!["a".to_owned(), "b".to_owned()], Extent::All));
    }

    #[test]
    fn what_cannot_be_compared_says_why() {
        for (cql, why) in [
            ("UPDATE t SET v = ? WHERE k = ?", "only what a SELECT returns"),
            ("SELECT * FROM t", "WHERE k = ?"),
            ("SELECT * FROM t WHERE k = ? AND \"K2\" IN ?", "WHERE K2 = ?"),
            ("SELECT * FROM t WHERE k = ? AND k2 = ?", "WHERE K2 = ?"),
            ("SELECT * FROM t WHERE token(k, \"K2\") > ?", "give its whole key"),
            ("SELECT a, v FROM t WHERE k = ? AND \"K2\" = ?", "select b too"),
            ("SELECT a, b AS c FROM t WHERE k = ? AND \"K2\" = ?", "select b too"),
            ("SELECT v FROM t WHERE k = ? AND \"K2\" = ? AND a = ? AND b > ?", "select b too"),
            ("SELECT ttl(v) FROM t WHERE k = ? AND \"K2\" = ? AND a = ? AND b = ?", "no column by its own name"),
            ("SELECT a, b, count(*) FROM t WHERE k = ? AND \"K2\" = ?", "count(…)"),
            ("SELECT JSON * FROM t WHERE k = ? AND \"K2\" = ?", "SELECT JSON"),
            ("SELECT DISTINCT k, \"K2\" FROM t WHERE k = ? AND \"K2\" = ?", "SELECT DISTINCT"),
            ("SELECT a, b FROM t WHERE k = ? AND \"K2\" = ? GROUP BY a", "GROUP BY"),
            ("SELECT * FROM by_b WHERE k = ? AND \"K2\" = ?", "another table than ks.t"),
            ("SELECT * FROM other.t WHERE k = ? AND \"K2\" = ?", "another table than ks.t"),
            ("SELECT", "names no table"),
        ] {
            let error = of(cql).unwrap_err();
            assert!(error.contains(why), "{cql}: {error}");
        }
    }
}
