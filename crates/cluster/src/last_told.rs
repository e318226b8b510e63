//! Of counters and gauges only what has changed is told.

use std::collections::HashMap;

/// What was last told of each counter and gauge of a node, by name and by what it is of.
#[derive(Debug, Default)]
pub(crate) struct LastTold {
    last: HashMap<(&'static str, String), f64>,
    always: &'static [&'static str],
}

impl LastTold {
    /// Nothing yet. Nought goes without saying until there is more, but of what is `always` told.
    pub(crate) fn with(always: &'static [&'static str]) -> LastTold {
        LastTold { last: HashMap::new(), always }
    }

    /// Whether this is not what was last told; then it is, from now on.
    pub(crate) fn is_news(&mut self, name: &'static str, subject: &str, value: f64) -> bool {
        let key = (name, subject.to_owned());
        let told = self.last.get(&key).copied();
        if told == Some(value) || (told.is_none() && value == 0.0 && !self.always.contains(&name)) {
            return false;
        }
        self.last.insert(key, value);
        true
    }

    /// What something of this name was told of.
    pub(crate) fn subjects(&self, of: &'static str) -> impl Iterator<Item = &str> {
        self.last.keys().filter(move |(name, _)| *name == of).map(|(_, subject)| subject.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_told_and_nought_only_after_something_else() {
        let mut last = LastTold::with(&["score"]);
        let mut told = |name, value| last.is_news(name, "n2", value);
        assert!(!told("timeouts", 0.0));
        assert!(told("timeouts", 3.0));
        assert!(!told("timeouts", 3.0));
        assert!(told("timeouts", 0.0), "a node that was started again counts from nought");
        assert!(!told("timeouts", 0.0));
        assert!(told("score", 0.0));
        assert!(!told("score", 0.0));
        assert_eq!(last.subjects("score").collect::<Vec<_>>(), ["n2"]);
        assert_eq!(last.subjects("pending").count(), 0);
    }
}
