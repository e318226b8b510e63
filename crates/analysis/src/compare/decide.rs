//! The verdicts on all figures of a comparison together, by the rules of `docs/statistics.md`.

use brownout_statistics::{ALPHA, Difference, Selection, benjamini_hochberg};

use super::object::Compared;
use crate::{
    Outcome,
    words::{bound, confidence, relative, relative_range},
};

/// A smallest change that could have been seen is told up to this factor.
const WORTH_TELLING: f64 = 1_000.0;

/// A figure and what its runs say of it.
pub(super) struct Figure {
    pub(super) compared: Compared,
    /// None if a side has too few runs, or if there is nothing to judge.
    pub(super) difference: Option<Difference>,
    /// A share of which no run of either side has any.
    pub(super) never: bool,
}

/// All figures with their verdicts, and how often such intervals hold the truth: selected together, so that at most 5 %
/// of those that are called worse or better are so by chance, with intervals that agree. `few`: why nothing is judged,
/// if so. A change that is smaller than `margin` is none.
pub(super) fn judged(figures: Vec<Figure>, few: Option<&str>, margin: f64) -> (Vec<Compared>, Option<f64>) {
    let p: Vec<f64> = figures.iter().filter_map(|figure| figure.difference).map(|difference| difference.p).collect();
    let Selection { selected, interval_alpha, .. } = benjamini_hochberg(&p, ALPHA);
    let mut index = 0;
    let judged = figures.into_iter().map(|mut figure| {
        match figure.difference {
            Some(difference) => {
                judge(
                    &mut figure.compared,
                    &difference,
                    interval_alpha,
                    selected.binary_search(&index).is_ok(),
                    margin,
                );
                index += 1;
            }
            None if figure.never => {
                figure.compared.outcome = Outcome::NotJudged;
                "there is none on either side".clone_into(&mut figure.compared.reason);
            }
            None => few.unwrap_or("there is nothing to compare with").clone_into(&mut figure.compared.reason),
        }
        figure.compared
    });
    (judged.collect(), (!p.is_empty()).then_some(1.0 - interval_alpha))
}

fn judge(figure: &mut Compared, difference: &Difference, alpha: f64, selected: bool, margin: f64) {
    let (low, high) = difference.interval(alpha);
    let interval = (low.exp_m1(), high.exp_m1());
    let no_larger_than = difference.no_larger_than().exp_m1();
    let smallest_seen = difference.smallest_seen(alpha).exp_m1();
    figure.interval = Some(interval).filter(|(_, high)| high.is_finite());
    figure.p = Some(difference.p);
    figure.no_larger_than = Some(no_larger_than).filter(|size| size.is_finite());
    figure.smallest_seen = Some(smallest_seen).filter(|size| *size < WORTH_TELLING);
    let is_better = (difference.effect > 0.0) == figure.more_is_better;
    let from_to = format!("the {} interval of the change is {}", confidence(1.0 - alpha), relative_range(interval));
    let seen = match figure.smallest_seen {
        Some(size) => format!("a change of {} could have been seen", relative(size)),
        None => "only a change by a factor of a thousand could have been seen".to_owned(),
    };
    let (outcome, reason) = if no_larger_than < margin {
        (Outcome::NoDifference, format!("no difference larger than {}", bound(no_larger_than)))
    } else if selected {
        (if is_better { Outcome::Better } else { Outcome::Worse }, from_to)
    } else {
        (Outcome::Inconclusive, format!("{from_to}; {seen}"))
    };
    // What may be larger than it was seen to be still is the larger one; that it is the smaller or the same is not known.
    let unknown = match outcome {
        Outcome::Worse => figure.a.at_least,
        Outcome::Better => figure.b.at_least,
        Outcome::NoDifference => figure.a.at_least || figure.b.at_least,
        Outcome::Changed | Outcome::Inconclusive | Outcome::NotJudged => false,
    };
    (figure.outcome, figure.reason) = match unknown {
        true => (Outcome::Inconclusive, "the percentile lies among operations that timed out".to_owned()),
        false => (outcome, reason),
    };
}

#[cfg(test)]
mod tests {
    use brownout_statistics::{FLOOR, difference};

    use super::*;
    use crate::{MARGIN, compare::object::Sample};

    /// A figure of three runs a side, `apart` of their standard deviations from each other.
    fn figure(apart: f64) -> Figure {
        let (a, b) = ([-0.05, 0.0, 0.05], [-0.05, 0.0, 0.05].map(|value| value + 0.05 * apart));
        let sample = || Sample { runs: Vec::new(), mean: 1.0, at_least: false };
        let compared = Compared {
            cell: String::new(),
            phase: "baseline".to_owned(),
            operation: None,
            figure: "p50".to_owned(),
            unit: "ns".to_owned(),
            more_is_better: false,
            a: sample(),
            b: sample(),
            change: 0.0,
            interval: None,
            p: None,
            no_larger_than: None,
            smallest_seen: None,
            superiority: 0.5,
            outcome: Outcome::Inconclusive,
            reason: String::new(),
        };
        Figure { compared, difference: difference(&a, &b, FLOOR), never: false }
    }

    fn outcomes(apart: &[f64]) -> Vec<(Outcome, bool)> {
        let (figures, _) = judged(apart.iter().map(|apart| figure(*apart)).collect(), None, MARGIN);
        let excludes = |figure: &Compared| figure.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0);
        figures.iter().map(|figure| (figure.outcome, excludes(figure))).collect()
    }

    #[test]
    fn one_figure_of_twenty_that_looks_different_by_chance_is_not_called_so() {
        // p = 0.03: seen alone it would be.
        assert_eq!(outcomes(&[2.7]), [(Outcome::Worse, true)]);
        let mut apart = [0.0; 20];
        apart[7] = 2.7;
        assert!(outcomes(&apart).iter().all(|found| *found == (Outcome::Inconclusive, false)));
        // Twenty that all look so do not by chance.
        assert_eq!(outcomes(&[2.7; 20]), [(Outcome::Worse, true); 20]);
    }

    #[test]
    fn intervals_agree_with_the_verdicts() {
        let apart: Vec<f64> = (0..20).map(|index| f64::from(index) * 0.7 - 4.0).collect();
        let found = outcomes(&apart);
        assert!(found.iter().any(|(outcome, _)| *outcome == Outcome::Worse), "{found:?}");
        for (outcome, excludes) in found {
            assert_eq!(matches!(outcome, Outcome::Worse | Outcome::Better), excludes, "{outcome:?}");
        }
    }
}
