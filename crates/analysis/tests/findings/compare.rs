//! What two sides say of each other.

use crate::common::{MS, Synthetic};
use brownout_analysis::{Compared, Comparison, Outcome, compare};
use brownout_record::{Run, TrialState};
use tempfile::TempDir;

fn runs(of: &[Synthetic]) -> (Vec<TempDir>, Vec<Run>) {
    let directories: Vec<TempDir> = of.iter().map(|_| tempfile::tempdir().unwrap()).collect();
    let runs = of.iter().zip(&directories).map(|(run, directory)| run.run(directory.path())).collect();
    (directories, runs)
}

fn sides(a: &[Synthetic], b: &[Synthetic]) -> Comparison {
    let ((_a, a), (_b, b)) = (runs(a), runs(b));
    compare(&a, &b).unwrap()
}

/// Nothing is too slow; what fails is given.
fn trials(count: u32, failing: fn(u32, &str, u64) -> f64) -> Synthetic {
    Synthetic {
        trials: count,
        planned_trials: count,
        asked: 10 * MS,
        shown: 10 * MS,
        counted: 10 * MS,
        slower: 10 * MS,
        seconds: [1, 2, 8, 8, 8],
        objective_ns: 2_000 * MS,
        objective_phases: &[],
        failing,
        ..Synthetic::default()
    }
}

/// Runs that offer so much each.
fn offering(rates: &[u64], run: &Synthetic) -> Vec<Synthetic> {
    rates.iter().map(|rate| Synthetic { rate: *rate, ..run.clone() }).collect()
}

/// What a run has in common scatters by 2 %.
const RATES: [u64; 3] = [300, 306, 294];

fn whole() -> Synthetic {
    trials(2, |_, _, _| 0.0)
}

fn losing() -> Synthetic {
    trials(2, |_, phase, _| if phase == "fault" { 0.1 } else { 0.0 })
}

fn figure<'a>(comparison: &'a Comparison, phase: &str, name: &str) -> &'a Compared {
    let mut of = comparison.figures.iter().filter(|figure| figure.phase == phase && figure.operation.is_none());
    of.find(|figure| figure.figure == name).unwrap()
}

#[test]
fn equal_runs_show_no_difference_of_a_percent() {
    let comparison = sides(&vec![whole(); 3], &vec![whole(); 3]);
    let delivered = figure(&comparison, "baseline", "delivered");
    assert_eq!(delivered.outcome, Outcome::NoDifference, "{delivered:?}");
    assert!(delivered.no_larger_than.unwrap() < comparison.margin, "{delivered:?}");
    assert_eq!((delivered.superiority, delivered.change), (0.5, 0.0));
    assert!(comparison.figures.iter().all(|one| !matches!(one.outcome, Outcome::Worse | Outcome::Better)));
    assert!(comparison.differs.is_empty(), "{:?}", comparison.differs);
    assert!(comparison.sentence.contains("no difference of 1% or more"), "{}", comparison.sentence);
}

#[test]
fn a_figure_that_only_some_trials_have_is_named_and_not_compared() {
    let dead = trials(2, |_, phase, _| if phase == "fault" { 1.0 } else { 0.0 });
    let comparison = sides(&vec![whole(); 2], &[whole(), dead]);
    let has = |name: &str| comparison.figures.iter().any(|one| one.phase == "fault" && one.figure == name);
    assert!(has("delivered") && has("errors") && !has("p99"), "{:?}", comparison.figures);
    let named = comparison.warnings.iter().find(|warning| warning.contains("p99 in the fault phase")).unwrap();
    assert!(named.contains("not compared") && !named.contains("baseline"), "{named}");
}

#[test]
fn what_one_side_loses_is_worse_there_and_better_on_the_other() {
    let (whole, losing) = (offering(&RATES, &whole()), offering(&RATES, &losing()));
    let comparison = sides(&whole, &losing);
    let goodput = figure(&comparison, "fault", "goodput");
    assert_eq!(goodput.outcome, Outcome::Worse, "{goodput:?}");
    assert!((goodput.change + 0.1).abs() < 1e-3, "{goodput:?}");
    let (low, high) = goodput.interval.unwrap();
    assert!(low < -0.1 && -0.1 < high && high < 0.0, "{goodput:?}");
    assert_eq!(goodput.superiority, 0.0);
    let kept = figure(&comparison, "fault", "kept");
    assert_eq!(kept.outcome, Outcome::Worse, "{kept:?}");
    assert!((kept.a.mean - 1.0).abs() < 1e-9 && (kept.b.mean - 0.9).abs() < 1e-3, "{kept:?}");
    assert_eq!(figure(&comparison, "fault", "errors").outcome, Outcome::Worse);
    // The rates scatter by 2 %: that no more than 1 % lies between them cannot be told.
    let baseline = figure(&comparison, "baseline", "goodput");
    assert_eq!(baseline.outcome, Outcome::Inconclusive, "{baseline:?}");
    assert!((0.04..0.4).contains(&baseline.smallest_seen.unwrap()), "{baseline:?}");
    assert!(baseline.reason.contains("could have been seen"), "{}", baseline.reason);
    assert!(comparison.sentence.starts_with("B is worse in "), "{}", comparison.sentence);
    let reverse = sides(&losing, &whole);
    assert_eq!(figure(&reverse, "fault", "goodput").outcome, Outcome::Better);
}

#[test]
fn runs_that_scatter_do_not_differ_by_their_many_trials() {
    // Trials of a run are alike to a thousandth; its runs lie 5 % apart.
    let run = trials(6, |_, _, _| 0.0);
    let comparison = sides(&offering(&[300, 318], &run), &offering(&[312, 330], &run));
    let goodput = figure(&comparison, "baseline", "goodput");
    assert_eq!(goodput.outcome, Outcome::Inconclusive, "{goodput:?}");
    assert_eq!(goodput.a.runs.len(), 2, "a value of each run");
    // Four times as far apart as they scatter.
    let comparison = sides(&offering(&RATES, &run), &offering(&[360, 366, 354], &run));
    assert_eq!(figure(&comparison, "baseline", "goodput").outcome, Outcome::Better);
}

#[test]
fn one_run_a_side_is_shown_and_not_judged_however_many_trials_it_has() {
    let comparison = sides(&[trials(6, |_, _, _| 0.0)], &[trials(6, |_, _, _| 0.1)]);
    let goodput = figure(&comparison, "baseline", "goodput");
    assert!((goodput.change + 0.1).abs() < 0.01, "the figures are shown all the same: {goodput:?}");
    assert_eq!((goodput.interval, goodput.p, comparison.confidence), (None, None, None));
    assert!(comparison.figures.iter().all(|figure| figure.outcome == Outcome::Inconclusive), "{comparison:?}");
    for text in [&goodput.reason, &comparison.sentence] {
        assert!(text.contains("noise between runs") && text.contains("run A 2 more and B 2 more"), "{text}");
    }
    assert!(comparison.is_evidence());
    let comparison = sides(&vec![whole(); 3], &[losing()]);
    assert!(comparison.sentence.contains("run B 2 more, and"), "{}", comparison.sentence);
}

#[test]
fn an_outage_is_worse_and_no_missing_figure() {
    let out = trials(1, |_, phase, _| if phase == "fault" { 1.0 } else { 0.0 });
    let comparison = sides(&offering(&RATES, &trials(1, |_, _, _| 0.0)), &offering(&RATES, &out));
    for name in ["goodput", "delivered", "kept", "errors"] {
        assert_eq!(figure(&comparison, "fault", name).outcome, Outcome::Worse, "{name}");
    }
}

#[test]
fn errors_that_neither_side_has_are_no_question() {
    let comparison = sides(&vec![whole(); 2], &vec![losing(); 2]);
    let none = figure(&comparison, "baseline", "errors");
    assert_eq!((none.outcome, none.p), (Outcome::NotJudged, None), "{none:?}");
}

#[test]
fn trials_that_prove_nothing_are_left_out_and_runs_without_others_too() {
    let broken = Synthetic { invented: 5, ..whole() };
    let comparison = sides(&vec![whole(); 2], &[whole(), broken, whole()]);
    assert_eq!((comparison.b.compared, comparison.b.trials, comparison.b.left_out.len()), (2, 4, 2));
    assert_eq!(figure(&comparison, "baseline", "delivered").b.runs.len(), 2);
    let cut = Synthetic { cut_at: Some(9_000 * MS), cut_state: TrialState::Interrupted, ..trials(1, |_, _, _| 0.0) };
    let comparison = sides(&[whole()], &[cut]);
    assert!(!comparison.is_evidence());
    assert!(comparison.sentence.starts_with("Invalid: B has no valid trial"), "{}", comparison.sentence);
}

#[test]
fn a_run_that_is_named_twice_is_no_second_run() {
    let (_a, a) = runs(&vec![whole(); 2]);
    let (b, _) = runs(&[losing()]);
    let twice = [Run::open(b[0].path()).unwrap(), Run::open(b[0].path()).unwrap()];
    let comparison = compare(&a, &twice).unwrap();
    assert_eq!((comparison.b.compared, comparison.b.trials), (1, 2));
    assert!(comparison.warnings.iter().any(|warning| warning.contains("named twice")), "{:?}", comparison.warnings);
    assert!(comparison.sentence.starts_with("Inconclusive: one run"), "{}", comparison.sentence);
}

#[test]
fn a_percentile_among_time_outs_is_never_the_smaller_one() {
    let all = Synthetic { time_outs: 1, ..whole() };
    let comparison = sides(&vec![all.clone(); 2], &vec![all; 2]);
    let bounded = comparison.figures.iter().filter(|figure| figure.a.at_least && figure.b.at_least);
    let bounded: Vec<_> = bounded.collect();
    assert!(!bounded.is_empty(), "no percentile lies among time-outs");
    assert!(bounded.iter().all(|figure| figure.outcome == Outcome::Inconclusive), "{bounded:?}");
}

#[test]
fn both_sides_are_judged_by_the_same_objective_and_what_differs_is_told() {
    let strict = Synthetic { objective_ns: MS / 1_000, ..whole() };
    let comparison = sides(&vec![whole(); 2], &vec![strict.clone(); 2]);
    assert_eq!(figure(&comparison, "baseline", "goodput").outcome, Outcome::NoDifference);
    let differs: Vec<&str> = comparison.differs.iter().map(|setting| setting.name.as_str()).collect();
    assert_eq!(differs, ["good"]);
    assert!(!comparison.warnings.iter().any(|warning| warning.contains("not alike")), "{:?}", comparison.warnings);
    // Runs of one side that were not asked for the same are no repetitions of one another.
    let comparison = sides(&[whole(), strict], &vec![whole(); 2]);
    let warned = comparison.warnings.iter().any(|warning| warning.starts_with("the runs of A are not alike: good: "));
    assert!(warned, "{:?}", comparison.warnings);
}

#[test]
fn settings_of_all_cells_are_compared_and_told_once_where_they_differ_alike() {
    let cells = Synthetic { levels: &[5, 10], ..whole() };
    let comparison = sides(&vec![cells.clone(); 2], &vec![Synthetic { rate: 360, ..cells }; 2]);
    let differs: Vec<&str> = comparison.differs.iter().map(|setting| setting.name.as_str()).collect();
    assert_eq!(differs, ["load"], "{:?}", comparison.differs);
    assert!(comparison.figures.iter().any(|figure| figure.cell == "delay 10ms"), "both cells are compared");
    // So are those of the runs of one side.
    let cells = Synthetic { levels: &[5, 10], ..whole() };
    let longer = Synthetic { seconds: [1, 2, 8, 9, 8], ..cells.clone() };
    let comparison = sides(&[cells.clone(), longer], &vec![cells; 2]);
    let mixed: Vec<&String> = comparison.warnings.iter().filter(|warning| warning.contains("not alike")).collect();
    assert!(mixed.len() == 1 && mixed[0].starts_with("the runs of A are not alike: phases: "), "{mixed:?}");
}

#[test]
fn runs_of_one_lab_and_of_several_at_once_are_told_apart() {
    let beside = Synthetic { labs: 2, ..whole() };
    let comparison = sides(&vec![whole(); 2], &vec![beside; 2]);
    let differs: Vec<_> =
        comparison.differs.iter().map(|one| (one.name.as_str(), one.a.as_str(), one.b.as_str())).collect();
    assert_eq!(differs, [("labs at once", "1", "2")]);
}
