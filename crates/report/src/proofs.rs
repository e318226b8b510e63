//! The proof of a fault in few lines: for each quantity the worst subject that is hit, and the worst that is spared.

use brownout_analysis::{FaultFindings, Proof, ProofRow, SourceSeen, words};
use brownout_record::Quantity;

use crate::text;

/// One line of the table asked, measured, tolerance, verdict.
pub struct ProofLine<'a> {
    /// "one-way delay".
    pub what: &'static str,
    /// The severity in words; empty for a fault that has but one.
    pub severity: &'a str,
    /// "n2", or "3 hit, worst n2 → n1".
    pub subject: String,
    /// The row that stands for all of them.
    pub row: &'a ProofRow,
}

/// The lines of a fault: those that are hit by quantity and severity, then the spared by quantity.
pub fn lines(fault: &FaultFindings) -> Vec<ProofLine<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for row in &fault.rows {
        // A spared subject shows nothing, whatever the severity.
        let severity = if row.hit { row.severity } else { 0 };
        let known = groups.iter_mut().find(|group| (group.0, group.1, group.2) == (row.hit, row.quantity, severity));
        match known {
            Some(group) => group.3.push(row),
            None => groups.push((row.hit, row.quantity, severity, vec![row])),
        }
    }
    groups.sort_by_key(|group| (!group.0, group.2, group.1));
    groups.into_iter().filter_map(|group| line(fault, group)).collect()
}

/// Rows that stand in one line: hit or not, of what, how hard.
type Group<'a> = (bool, Quantity, u32, Vec<&'a ProofRow>);

fn line<'a>(fault: &'a FaultFindings, (hit, quantity, severity, rows): Group<'a>) -> Option<ProofLine<'a>> {
    let row = rows.iter().copied().max_by(|one, other| strain(one).total_cmp(&strain(other)))?;
    let mut subjects: Vec<_> = rows.iter().map(|row| &row.subject).collect();
    subjects.sort_unstable();
    subjects.dedup();
    let subject = match (hit, subjects.len()) {
        (true, 1) => row.subject.to_string(),
        (true, count) => format!("{count} hit, worst {}", row.subject),
        (false, count) => format!("{count} spared, worst {}", row.subject),
    };
    let severity = fault.severities.get(severity as usize).filter(|_| hit && fault.severities.len() > 1);
    Some(ProofLine { what: words::name(quantity), severity: severity.map_or("", String::as_str), subject, row })
}

/// How much of what it is allowed a row takes: the worst of several is the one that takes most.
fn strain(row: &ProofRow) -> f64 {
    let verdict = match row.verdict {
        Proof::Refuted => 2e12,
        Proof::Unproven => 1e12,
        Proof::Proven => 0.0,
    };
    let off = row.measured.map_or(0.0, |measured| (measured - row.expected).abs());
    verdict + (off / row.allowed.max(f64::MIN_POSITIVE)).min(1e9)
}

/// The source that a row's measured value is of.
fn teller(row: &ProofRow) -> Option<&SourceSeen> {
    let shown = |source: &&SourceSeen| row.measured == if row.change { source.change } else { source.during };
    row.sources.iter().find(shown).or(row.sources.first())
}

/// What had to be seen.
pub fn asked(row: &ProofRow) -> String {
    let limit = matches!(row.quantity, Quantity::Rate | Quantity::LargestPacket | Quantity::ProcessorShare);
    match row.quantity {
        _ if limit && !row.hit && row.measured.is_none() => "no limit".to_owned(),
        // Of a governor any throttling is right; what was asked is the share that it keeps to.
        Quantity::ProcessorShare if row.hit => format!("≤{}", words::number(row.quantity, row.asked)),
        Quantity::Rate if !row.hit => format!("≥{}", words::number(row.quantity, row.expected)),
        _ if row.change && row.expected == 0.0 => "none".to_owned(),
        _ if row.change => text::change(row.quantity, row.expected),
        _ => words::number(row.quantity, row.expected),
    }
}

/// What was seen.
pub fn measured(row: &ProofRow) -> String {
    let show = if row.change { text::change } else { words::number };
    text::or_none(row.measured, |measured| show(row.quantity, measured))
}

/// What was seen after the healing, in the same terms.
pub fn after(row: &ProofRow) -> String {
    let Some(source) = teller(row) else { return text::NONE.to_owned() };
    if row.change {
        text::or_none(source.after_change, |change| text::change(row.quantity, change))
    } else {
        text::or_none(source.after, |after| words::number(row.quantity, after))
    }
}

/// How far off it may be.
pub fn allowed(row: &ProofRow) -> String {
    words::number(row.quantity, row.allowed)
}
