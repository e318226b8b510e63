//! Bundles: levels of a factor that set several keys of the file together.
//!
//! `vary: { pace: { open: { load.rate: 400/s }, closed: { load.threads: 64 } } }`. A factor has bundles for levels if the file has no
//! `${name}`, its name is no key of the file, and a level is a mapping. A level sets the keys that it names; all others stay as the
//! file has them, and are absent if it has them not. So an empty level (`{}`) is the file as it is.

use brownout_yaml::{FileError, Node, one_of};

use super::{
    Source,
    factor::{Factor, Kind, SECTIONS, section},
    tree::{place_of, texts},
};

/// Whether levels like these set keys.
pub(super) fn is_meant(levels: &Node) -> bool {
    levels.as_mapping().is_some_and(|named| named.iter().any(|(_, value)| value.as_mapping().is_some()))
}

/// Sets the keys of a level; else why that cannot be.
pub(super) fn put(tree: &mut Node, level: &Node) -> Result<(), String> {
    let keys = level.as_mapping().into_iter().flat_map(|map| map.iter());
    for (key, value) in keys {
        *place_of(tree, key.as_str())? = value.clone();
    }
    Ok(())
}

/// The keys that a factor's values are put into.
fn keys(factor: &Factor) -> Vec<&str> {
    let maps = factor.levels.iter().filter_map(|level| level.value.as_mapping());
    match factor.kind {
        Kind::Variable => Vec::new(),
        Kind::Key => vec![factor.name.as_str()],
        Kind::Bundle => maps.flat_map(|map| map.iter()).map(|(key, _)| key.as_str()).collect(),
    }
}

/// Whether one key is the other, or a part of it.
fn overlap(one: &str, other: &str) -> bool {
    let within = |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'));
    one == other || within(one, other) || within(other, one)
}

fn holds(value: &Node, variable: &str) -> bool {
    let mut holds = false;
    texts(value, &mut |text| holds |= text.as_str().contains(variable));
    holds
}

impl Source {
    /// Refuses bundles that cannot be put into the file, and factors of which one would undo what another sets.
    pub(super) fn check_keys(&self, factors: &[Factor]) -> Result<(), FileError> {
        for (at, factor) in factors.iter().enumerate() {
            if factor.kind == Kind::Bundle {
                self.check_bundle(factor)?;
            }
            for key in keys(factor) {
                let others = factors.iter().enumerate().filter(|(other, _)| *other != at);
                let mut clash = others.flat_map(|(_, other)| keys(other).into_iter().map(move |key| (other, key)));
                if let Some((other, theirs)) = clash.find(|(_, theirs)| overlap(key, theirs)) {
                    let message = format!(
                        "'{key}' is set here, and the factor {} sets '{theirs}'; one of them would undo the other",
                        other.name
                    );
                    return Err(self.complain(&format!("vary.{}", factor.name), message));
                }
                let lost = |text: &str| {
                    let mut variables = factors.iter().enumerate().filter(|(_, other)| other.kind == Kind::Variable);
                    variables.find_map(|(place, other)| {
                        let variable = format!("${{{}}}", other.name);
                        // Levels that hold it themselves are given its value after they were put there.
                        let in_levels = || factor.levels.iter().all(|level| holds(&level.value, &variable));
                        let is_kept = factor.kind == Kind::Key && place > at && in_levels();
                        (text.contains(&variable) && !is_kept).then_some(other)
                    })
                };
                let mut variable = None;
                if let Some(node) = self.node(key) {
                    texts(node, &mut |text| {
                        variable = variable.or_else(|| lost(text.as_str()).map(|other| (text.as_str(), other)));
                    });
                }
                if let Some((text, other)) = variable {
                    let message = format!(
                        "'{key}' is set here, and the file has '{text}' there, which the factor {} gives its value; one of \
                         them would undo the other",
                        other.name
                    );
                    return Err(self.complain(&format!("vary.{}", factor.name), message));
                }
            }
        }
        Ok(())
    }

    fn check_bundle(&self, factor: &Factor) -> Result<(), FileError> {
        let name = &factor.name;
        if keys(factor).is_empty() {
            let message = "no level sets any key; write some, such as { load.rate: 400/s }".to_owned();
            return Err(self.complain(&format!("vary.{name}"), message));
        }
        for (at, level) in factor.levels.iter().enumerate() {
            let place = format!("vary.{name}.{}", level.name);
            let Some(map) = level.value.as_mapping() else {
                let message = format!(
                    "'{}' sets no key: neither ${{{name}}} nor a key '{name}' is in the file, so each level names the \
                     keys that it sets, such as {{ load.rate: 400/s }}; {{}} is the file as it is",
                    level.name
                );
                return Err(self.complain(&place, message));
            };
            let keys: Vec<&str> = map.iter().map(|(key, _)| key.as_str()).collect();
            for (at, key) in keys.iter().enumerate() {
                let place = format!("{place}.{key}");
                if !SECTIONS.contains(&section(key)) {
                    let known = one_of("what may vary is in", SECTIONS.into_iter(), section(key));
                    let message = format!(
                        "'{key}' is not a key of the file that may vary; {known} (neither ${{{name}}} nor a key \
                         '{name}' is in the file, so each level names the keys that it sets)"
                    );
                    return Err(self.complain(&place, message));
                }
                if let Some(other) = keys[..at].iter().find(|other| overlap(key, other)) {
                    let message = format!("'{key}' and '{other}' are one in the other; write all of it in one of them");
                    return Err(self.complain(&place, message));
                }
            }
            if let Some(same) = factor.levels[..at].iter().find(|before| before.value == level.value) {
                let message = format!("'{}' sets the same as '{}'", level.name, same.name);
                return Err(self.complain(&place, message));
            }
        }
        Ok(())
    }
}
