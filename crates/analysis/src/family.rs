//! Questions that are asked of one run together: each is answered from one difference of each block, and all answers are corrected
//! for being many (`docs/statistics.md`).

use brownout_statistics::{
    self as statistics, ALPHA, Comparison, FLOOR, Outcome, benjamini_hochberg, effect_factor, effect_factor_at,
};

/// A relative change that is smaller is none, unless a file says otherwise.
pub const MARGIN: f64 = 0.01;
/// Something has changed, even if nobody can say by how much, where chance alone would show it this rarely in any of the questions.
pub(crate) const CHANGED: f64 = 0.01;
/// More blocks are not promised to suffice.
const MOST_BLOCKS: usize = 200;

/// What a question comes to. Changes are relative: (with − without) ÷ without.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Answer {
    /// What follows: more or less only where that is significant among all questions.
    pub(crate) outcome: Outcome,
    /// Asked by itself it would be more or less; among so many questions it is not.
    pub(crate) stands_alone: bool,
    /// Something has changed, whatever follows.
    pub(crate) has_changed: bool,
    pub(crate) blocks: u32,
    pub(crate) change: f64,
    pub(crate) interval: (f64, f64),
    pub(crate) confidence: f64,
    pub(crate) no_larger_than: f64,
    /// The smallest change that four of five such runs would detect, of one of as many questions.
    pub(crate) smallest_seen: f64,
    pub(crate) p: f64,
    pub(crate) p_adjusted: f64,
    /// Where it is inconclusive: how many more blocks would detect a change as large as this one, or the margin if that is larger.
    pub(crate) more_blocks: Option<u32>,
    /// A smaller change is none.
    pub(crate) margin: f64,
}

impl Answer {
    /// What would be detected in four of five such runs lies outside of this.
    pub(crate) fn unseen(&self) -> (f64, f64) {
        (1.0 / (1.0 + self.smallest_seen) - 1.0, self.smallest_seen)
    }

    /// The change that `more_blocks` is of.
    pub(crate) fn wanted(&self) -> f64 {
        if self.change.abs() < self.margin { self.margin } else { self.change }
    }
}

/// Compares one cell with trials without a fault, as one of so many questions; a change that is smaller than `margin` is none.
pub(crate) fn compare(cell: &[f64], without: &[Vec<f64>], asked: usize, margin: f64) -> Option<Comparison> {
    statistics::compare(cell, without, margin.ln_1p(), FLOOR, asked)
}

/// Answers questions together, compared with the same margin; none where there was nothing to compare. `asked` is how many there are.
pub(crate) fn answers(compared: &[Option<Comparison>], asked: usize, margin: f64) -> Vec<Option<Answer>> {
    let p: Vec<f64> = compared.iter().flatten().map(|compared| compared.estimate.p).collect();
    let selection = benjamini_hochberg(&p, ALPHA);
    // What the next one has to pass to be significant, too.
    let level = (ALPHA * (selection.selected.len() + 1) as f64 / p.len().max(1) as f64).min(ALPHA);
    let mut index = 0;
    let mut answer = |compared: &Comparison| {
        let selected = selection.selected.contains(&index);
        let p_adjusted = selection.adjusted[index];
        index += 1;
        // The interval agrees with the verdict: of one that is selected among many it is wider.
        let alpha = if selected { selection.interval_alpha } else { ALPHA };
        let estimate = &compared.estimate;
        let shown = statistics::estimate(&compared.differences, alpha, FLOOR, asked).unwrap_or(*estimate);
        let is_different = matches!(compared.outcome, Outcome::More | Outcome::Less);
        let outcome = if is_different && !selected { Outcome::Inconclusive } else { compared.outcome };
        let harder = effect_factor_at(estimate.blocks, level) / effect_factor(estimate.blocks);
        let mut found = Answer {
            outcome,
            stands_alone: is_different && !selected,
            has_changed: compared.changed.is_some_and(|chance| chance < CHANGED / asked.max(1) as f64),
            blocks: estimate.blocks as u32,
            change: estimate.effect.exp_m1(),
            interval: (shown.low.exp_m1(), shown.high.exp_m1()),
            confidence: 1.0 - alpha,
            no_larger_than: compared.no_larger_than.exp_m1(),
            smallest_seen: (harder * estimate.smallest_seen).exp_m1(),
            p: estimate.p,
            p_adjusted,
            more_blocks: None,
            margin,
        };
        if outcome == Outcome::Inconclusive {
            let deviation = statistics::deviation(&compared.differences);
            let wanted = found.wanted().ln_1p();
            let enough = statistics::enough_blocks(wanted, deviation, level, estimate.blocks, MOST_BLOCKS);
            found.more_blocks = enough.map(|enough| (enough - estimate.blocks) as u32);
        }
        found
    };
    compared.iter().map(|compared| compared.as_ref().map(&mut answer)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

    use super::*;

    /// Five blocks in which a cell lies so far from those without a fault, and scatters by 1 %.
    fn question(effect: f64, asked: usize) -> Option<Comparison> {
        let cell = [-0.012, -0.006, 0.0, 0.006, 0.012].map(|noise| effect + noise);
        compare(&cell, &[vec![0.0; 5]], asked, MARGIN)
    }

    fn answered(effects: &[f64]) -> Vec<Answer> {
        let compared: Vec<_> = effects.iter().map(|effect| question(*effect, effects.len())).collect();
        answers(&compared, effects.len(), MARGIN).into_iter().flatten().collect()
    }

    #[test]
    fn one_of_many_that_would_be_significant_alone_is_not_and_says_so() {
        let [alone] = answered(&[0.014])[..] else { panic!("one question has one answer") };
        assert_eq!((alone.outcome, alone.stands_alone, alone.more_blocks), (Outcome::More, false, None), "{alone:?}");
        let mut effects = [0.0; 20];
        effects[3] = 0.014;
        let among = answered(&effects)[3];
        assert_eq!((among.outcome, among.stands_alone), (Outcome::Inconclusive, true), "{among:?}");
        assert!(among.interval.0 > 0.0 && among.p_adjusted > ALPHA, "{among:?}");
        // Among many a change has to be larger to be significant, and as large a one takes more blocks.
        assert!(among.smallest_seen > 1.5 * alone.smallest_seen, "{among:?}");
        assert!(among.more_blocks.unwrap() >= 2, "{among:?}");
    }

    #[test]
    fn what_is_asked_and_cannot_be_compared_has_no_answer_and_moves_no_other() {
        let all = answers(&[question(0.5, 3), None, question(0.0, 3)], 3, MARGIN);
        assert_eq!(all[1], None);
        let [first, last] = [0, 2].map(|at| all[at].unwrap());
        assert_eq!((first.outcome, last.outcome), (Outcome::More, Outcome::NoDifference));
        assert!(first.p_adjusted < 0.001 && last.p_adjusted > 0.9);
    }

    #[test]
    fn the_margin_is_one_of_changes_and_not_of_logarithms() {
        // The farther end of the 90 % interval, where nothing scatters but by the floor.
        let of = |end: f64| {
            let cell = [end - 2.131_847 * FLOOR; 5];
            answers(&[compare(&cell, &[vec![0.0; 5]], 1, MARGIN)], 1, MARGIN)[0].unwrap()
        };
        // ln 1.01 = 0.00995: one below it, and one that as a logarithm is below 0.01 and as a change is not below 1 %.
        let (below, above) = (of(0.009_9), of(0.009_97));
        assert_eq!((below.outcome, above.outcome), (Outcome::NoDifference, Outcome::More));
        assert!(below.no_larger_than < MARGIN && above.no_larger_than > MARGIN, "{below:?} {above:?}");
    }

    #[test]
    fn whoever_takes_a_larger_change_for_none_gets_that_answer() {
        let of = |margin: f64| {
            let cell = [-0.022, -0.016, -0.01, -0.004, 0.002];
            answers(&[compare(&cell, &[vec![0.0; 5]], 1, margin)], 1, margin)[0].unwrap()
        };
        let (one, three) = (of(0.01), of(0.03));
        assert_eq!((one.outcome, three.outcome), (Outcome::Inconclusive, Outcome::NoDifference), "{one:?} {three:?}");
        // What is looked for is as large as what matters.
        assert!((one.wanted().abs() - 0.01).abs() < 1e-3 && three.more_blocks.is_none(), "{one:?}");
        assert_eq!(one.interval, three.interval);
    }

    #[test]
    fn what_is_seen_of_losses_and_of_gains_is_as_large_a_factor() {
        let answer = answered(&[0.0])[0];
        let (loss, gain) = answer.unseen();
        assert!(((1.0 + loss) * (1.0 + gain) - 1.0).abs() < 1e-12);
        // Two wild blocks of one cell among many see no factor that there is a number for.
        let blind = Answer { smallest_seen: f64::INFINITY, ..answer };
        assert_eq!(blind.unseen(), (-1.0, f64::INFINITY));
    }
}
