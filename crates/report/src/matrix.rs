//! One-way delays on all ordered pairs, as a heat map: asked, and measured before, during and after.

use std::collections::BTreeMap;

use brownout_analysis::{ProofRow, SourceSeen, TrialFindings};
use brownout_record::{Quantity, Subject};
use brownout_units::format_ns;

use crate::{escape::escape, scope::Scope};

/// What a matrix shows of a pair.
type View = fn(&ProofRow) -> Option<f64>;

/// Hosts of a matrix that can still be read.
const HOSTS: usize = 20;

/// What the probes saw of a row.
fn probes(row: &ProofRow) -> Option<&SourceSeen> {
    row.sources.iter().find(|source| source.source == "probes")
}

/// The four matrices of a trial; none if no fault of it is a delay.
pub fn delays(scope: &Scope<'_>, trial: &TrialFindings) -> Option<String> {
    let mut pairs: BTreeMap<(&str, &str), &ProofRow> = BTreeMap::new();
    for row in trial.faults.iter().flat_map(|fault| &fault.rows) {
        let (Subject::Pair { from, to }, Quantity::OneWayDelay) = (&row.subject, row.quantity) else { continue };
        let known = pairs.entry((from, to)).or_insert(row);
        // Of several faults and severities the one that asks most.
        if (row.hit, row.expected) > (known.hit, known.expected) {
            *known = row;
        }
    }
    if pairs.is_empty() || scope.hosts.len() > HOSTS {
        return None;
    }
    let hosts: Vec<&str> = scope.hosts.iter().map(|host| host.name.as_str()).collect();
    let views: [(&str, View); 4] = [
        ("asked: change", |pair| Some(pair.expected)),
        ("before", |row| probes(row)?.before),
        ("during", |row| probes(row)?.during),
        ("after", |row| probes(row)?.after),
    ];
    let matrices = views.into_iter().map(|(title, value)| matrix(title, &hosts, &pairs, value));
    Some(format!(r#"<div class="matrices">{}</div>"#, matrices.collect::<String>()))
}

fn matrix(title: &str, hosts: &[&str], pairs: &BTreeMap<(&str, &str), &ProofRow>, value: View) -> String {
    let mut out = format!(
        r#"<table class="matrix"><caption>{}</caption><thead><tr><td class="corner">from \ to</td>"#,
        escape(title)
    );
    for to in hosts {
        out += &format!("<th scope=\"col\">{}</th>", escape(to));
    }
    out += "</tr></thead><tbody>";
    for from in hosts {
        out += &format!("<tr><th scope=\"row\">{}</th>", escape(from));
        for to in hosts {
            let pair = pairs.get(&(*from, *to));
            let seen = pair.and_then(|pair| value(pair));
            out += &match (pair, seen) {
                (None, _) => "<td class=\"none\"></td>".to_owned(),
                (Some(_), None) => "<td class=\"none\">–</td>".to_owned(),
                (Some(_), Some(delay)) if delay <= 0.0 => "<td class=\"heat h0\">0</td>".to_owned(),
                (Some(pair), Some(delay)) => format!(
                    r#"<td class="heat h{}{}">{}</td>"#,
                    heat(delay),
                    if pair.hit { " hit" } else { "" },
                    format_ns(delay)
                ),
            };
        }
        out += "</tr>";
    }
    out + "</tbody></table>"
}

/// Nine steps of heat from 0.1 ms to 1 s, two for each power of ten.
fn heat(delay_ns: f64) -> u32 {
    ((delay_ns / 1e5).log10() * 2.0).ceil().clamp(0.0, 8.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heat_rises_with_the_logarithm() {
        assert_eq!([0.0, 5e4, 1e5, 3e5, 1e6, 1e7, 1e8, 1e9, 1e12].map(heat), [0, 0, 0, 1, 2, 4, 6, 8, 8]);
    }
}
