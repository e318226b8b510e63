//! What two experiment files ask differently, however they are written.

use std::path::Path;

use brownout_yaml::Node;

use super::{Source, found::KEPT_AS, vary::written};

/// A value is told up to this length.
const TOLD: usize = 60;

impl Source {
    /// What `now` asks differently, by its keys, in words: `trials was 2 and is 3`. Empty if both ask the same. Comments, quotes and
    /// the order of sections ask nothing; the order of other keys may (factors make cells in theirs), and counts.
    ///
    /// Files that this experiment names count too, those that it has read so far: what `now` finds by the same names, from where it
    /// is, has to be the same.
    pub fn differences(&self, now: &Source) -> Vec<String> {
        let mut told = Vec::new();
        walk("", self.document.tree(), now.document.tree(), &mut told);
        // Whether the containers are the same, who goes on with a run looks at itself.
        let files = self.attached().into_iter().filter(|(name, _)| !name.starts_with(KEPT_AS));
        told.extend(files.filter_map(|(path, text)| self.attached_difference((&path, &text), now)));
        told
    }

    fn attached_difference(&self, (path, before): (&String, &String), now: &Source) -> Option<String> {
        let from = self.file().parent().unwrap_or(Path::new(""));
        let name = Path::new(path).strip_prefix(from).unwrap_or(Path::new(path));
        let path = now.beside(name);
        let Ok(text) = now.attachment(&path) else {
            return Some(format!("{} cannot be read any more", path.display()));
        };
        let same = match (brownout_yaml::parse(before), brownout_yaml::parse(&text)) {
            (Ok(before), Ok(text)) => before == text,
            _ => *before == text,
        };
        (!same).then(|| format!("{} has changed", path.display()))
    }
}

fn walk(key: &str, before: &Node, now: &Node, told: &mut Vec<String>) {
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    match (before, now) {
        (Node::Mapping(before), Node::Mapping(now)) => {
            let known = told.len();
            for (name, value) in before.iter() {
                match now.get_node(name.as_str()) {
                    Some(now) => walk(&below(name.as_str()), value, now, told),
                    None => told.push(format!("{} was {} and is not there", below(name.as_str()), short(value))),
                }
            }
            let new = now.iter().filter(|(name, _)| before.get_node(name.as_str()).is_none());
            let new =
                new.map(|(name, value)| format!("{} was not there and is {}", below(name.as_str()), short(value)));
            told.extend(new);
            let in_order = before.iter().zip(now.iter()).all(|((before, _), (now, _))| before.as_str() == now.as_str());
            if told.len() == known && !key.is_empty() && !in_order {
                told.push(format!("the keys of {key} are in another order"));
            }
        }
        (Node::Sequence(before), Node::Sequence(now)) if before.len() == now.len() => {
            for (at, (before, now)) in before.iter().zip(now.iter()).enumerate() {
                walk(&below(&at.to_string()), before, now, told);
            }
        }
        (Node::Scalar(before), Node::Scalar(now)) if before.as_str() == now.as_str() => {}
        _ => told.push(format!("{key} was {} and is {}", short(before), short(now))),
    }
}

/// A value on one line, not all of a long one.
fn short(value: &Node) -> String {
    let text = written(value);
    match text.char_indices().nth(TOLD) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None if text.is_empty() => "empty".to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn source(file: &Path, text: &str) -> Source {
        Source::from_text(file, text.to_owned()).unwrap()
    }

    fn differences(before: &str, now: &str) -> Vec<String> {
        source(Path::new("a.yaml"), before).differences(&source(Path::new("b/c.yaml"), now))
    }

    const FILE: &str = "load: { rate: 400/s, ops: { one: 1, two: 2 } }\nfaults:\n  - slow: { host: n2, delay: 10ms }\n";

    #[test]
    fn comments_quotes_blank_lines_and_the_order_of_sections_are_no_difference() {
        let now = "# It runs tonight.\nfaults: [{ slow: { host: \"n2\", delay: '10ms' } }]  # n2 is it\n\n\
                   load:\n  rate: 400/s\n  ops: { one: 1, two: 2 }\n";
        assert_eq!(differences(FILE, now), [""; 0]);
    }

    #[test]
    fn every_key_that_differs_is_named_with_both_values() {
        for (from, to, told) in [
            ("400/s", "500/s", "load.rate was 400/s and is 500/s"),
            ("10ms", "20ms", "faults.0.slow.delay was 10ms and is 20ms"),
            ("rate: 400/s, ", "", "load.rate was 400/s and is not there"),
            ("rate:", "threads: 5, rate:", "load.threads was not there and is 5"),
            ("one: 1, two: 2", "two: 2, one: 1", "the keys of load.ops are in another order"),
            ("{ one: 1, two: 2 }", "[one]", "load.ops was {one: 1, two: 2} and is [one]"),
            (
                "  - slow",
                "  - pause: { host: n3, after: 10s }\n  - slow",
                "faults was [{slow: {host: n2, delay: 10ms}}] and is [{pause: {host: n3, after: 10s}}, {slow: {host: n2, delay: 1…",
            ),
        ] {
            assert_eq!(differences(FILE, &FILE.replacen(from, to, 1)), [told], "{from} → {to}");
        }
        let both = FILE.replace("400/s", "500/s").replace("n2", "n3");
        assert_eq!(differences(FILE, &both).len(), 2);
    }

    #[test]
    fn a_file_that_is_named_counts_by_what_it_says() {
        let directory = tempfile::tempdir().unwrap();
        let profile = directory.path().join("users.yaml");
        let before = source(Path::new("experiments/a.yaml"), FILE);
        let before = before.with_attached(BTreeMap::from([("experiments/users.yaml".to_owned(), "a: 1\n".to_owned())]));
        let now = || source(&directory.path().join("a.yaml"), FILE);
        std::fs::write(&profile, "a: 1 # as ever\n").unwrap();
        assert_eq!(before.differences(&now()), [""; 0]);
        std::fs::write(&profile, "a: 2\n").unwrap();
        assert_eq!(before.differences(&now()), [format!("{} has changed", profile.display())]);
        std::fs::remove_file(&profile).unwrap();
        assert_eq!(before.differences(&now()), [format!("{} cannot be read any more", profile.display())]);
    }
}
