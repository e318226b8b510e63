//! The number of replicas in a keyspace, read from its definition before there is a server to ask.

/// `replication = {…}` of a `CREATE KEYSPACE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replication {
    /// The class of the strategy, without its package: `SimpleStrategy`.
    pub class: String,
    /// `replication_factor`, if it is given.
    pub factor: Option<u32>,
    /// Copies by data centre, in the order written.
    pub data_centres: Vec<(String, u32)>,
}

impl Replication {
    /// Parses it; `None` if the definition has none, or an unreadable one, which the server will judge.
    ///
    /// A factor of `3/1` (transient replication) counts as its whole, 3.
    pub fn of(definition: &str) -> Option<Replication> {
        let map = after_word(definition, "replication")?.trim_start().strip_prefix('=')?.trim_start();
        let map = map.strip_prefix('{')?.split_once('}')?.0;
        let mut replication = Replication { class: String::new(), factor: None, data_centres: Vec::new() };
        for pair in map.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (key, value) = pair.split_once(':')?;
            let bare = |text: &str| text.trim().trim_matches(['\'', '"']).to_owned();
            let (key, value) = (bare(key), bare(value));
            if key == "class" {
                replication.class = value.rsplit('.').next()?.to_owned();
                continue;
            }
            let copies = value.split('/').next()?.parse().ok()?;
            match key.as_str() {
                "replication_factor" => replication.factor = Some(copies),
                _ => replication.data_centres.push((key, copies)),
            }
        }
        (!replication.class.is_empty()).then_some(replication)
    }
}

/// The text after a word that stands alone, outside of quotes.
fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None => {
                let rest = &text[at..];
                let found = rest.get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word));
                if found && !is_part(before) && !rest[word.len()..].starts_with(is_part) {
                    return Some(&rest[word.len()..]);
                }
            }
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_read_as_they_are_written_in_profiles() {
        let of = |text: &str| Replication::of(&format!("CREATE KEYSPACE ks WITH {text} AND durable_writes = true;"));
        let simple = of("replication = {'class': 'SimpleStrategy', 'replication_factor': 3}").unwrap();
        assert_eq!((simple.class.as_str(), simple.factor), ("SimpleStrategy", Some(3)));
        let long =
            "REPLICATION={ 'class' : 'org.apache.cassandra.locator.NetworkTopologyStrategy', 'dc1':'2','dc2' : 1 }";
        let sites = of(long).unwrap();
        assert_eq!(sites.class, "NetworkTopologyStrategy");
        assert_eq!(sites.data_centres, [("dc1".to_owned(), 2), ("dc2".to_owned(), 1)]);
        assert_eq!(of("replication = {'class':'SimpleStrategy','replication_factor':'3/1'}").unwrap().factor, Some(3));
    }

    #[test]
    fn what_is_no_replication_is_left_to_the_server() {
        for text in [
            "CREATE KEYSPACE replication",
            "CREATE KEYSPACE my_replication WITH durable_writes = true",
            "CREATE KEYSPACE \"replication = {'class':'SimpleStrategy'}\"",
            "CREATE KEYSPACE k WITH replication = {'replication_factor': 3}",
            "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': many}",
            "CREATE KEYSPACE k WITH replication = {",
        ] {
            assert_eq!(Replication::of(text), None, "{text}");
        }
    }
}
