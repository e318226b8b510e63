//! What the cells of a run ran on, each once: rows for the terminal and for the HTML report.

use brownout_analysis::{Proof, TrialFindings, UnderTest};

use crate::{scope::Scope, table::Paint, text};

/// What [`rows`] are of.
pub const CAPTION: &str = "What was under test";
/// The headings of [`rows`].
pub const HEADINGS: [&str; 5] = ["database", "network", "overlay", "encryption", "cells"];

/// What stands for the numbers of all cells.
const ALL: &str = "all";

/// One row for all cells that ran on the same, in the order of the first of them.
pub fn rows(scopes: &[Scope<'_>]) -> Vec<(Paint, Vec<String>)> {
    let mut all: Vec<(UnderTest, Vec<u32>)> = Vec::new();
    for scope in scopes {
        let tested = UnderTest::of_cell(scope);
        match all.iter_mut().find(|(known, _)| *known == tested) {
            Some((_, cells)) => cells.push(scope.cell),
            None => all.push((tested, vec![scope.cell])),
        }
    }
    let is_one = all.len() == 1;
    let row = |(tested, cells): (UnderTest, Vec<u32>)| {
        let UnderTest { database, network, overlay, encryption } = tested;
        let cells = if is_one { ALL.to_owned() } else { spans(&cells) };
        (Paint::Plain, vec![database, network.join("; "), overlay, encryption, cells])
    };
    all.into_iter().map(row).collect()
}

/// The same in sentences: a table of it could be wider than a terminal.
pub fn lines(scopes: &[Scope<'_>]) -> Vec<String> {
    let line = |(_, row): (Paint, Vec<String>)| match row.as_slice() {
        [database, network, overlay, encryption, cells] => {
            let which = if cells == ALL { "all cells".to_owned() } else { format!("cells {cells}") };
            format!("{which}: {database}; network: {network}; overlay: {overlay}; encryption: {encryption}")
        }
        other => other.join("; "),
    };
    rows(scopes).into_iter().map(line).collect()
}

/// Whether what was to be encrypted was, in a line; none where nobody looked.
pub fn encrypted(trial: &TrialFindings) -> Option<(Proof, String)> {
    let found = trial.encryption.as_ref()?;
    let links = |encrypted: bool| found.links.iter().filter(move |link| link.encrypted == encrypted);
    let seen = |encrypted: bool| {
        let sightings: u64 = links(encrypted).map(|link| link.sightings).sum();
        format!("{} times on {} links", text::count(sightings), links(encrypted).count())
    };
    let logged = found.connections.iter().filter(|logged| logged.encrypted).count();
    let mut line = format!(
        "{} rows with a marker were written; it passed in clear {} that are to be encrypted, {} that are not; the \
         nodes logged {logged} encrypted connections",
        text::count(found.writes),
        seen(true),
        seen(false)
    );
    if !found.reasons.is_empty() {
        line += &format!(": {}", found.reasons.join("; "));
    }
    Some((found.verdict, line))
}

/// Ascending numbers, those that follow one another as a span: "1–3, 7".
fn spans(numbers: &[u32]) -> String {
    let of = |run: &[u32]| match run {
        [first, .., last] => format!("{first}–{last}"),
        alone => alone.iter().map(u32::to_string).collect(),
    };
    numbers.chunk_by(|one, next| one + 1 == *next).map(of).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_follow_one_another_are_told_as_a_span() {
        assert_eq!(spans(&[1, 2, 3, 7, 9, 10]), "1–3, 7, 9–10");
        assert_eq!(spans(&[4]), "4");
    }
}
