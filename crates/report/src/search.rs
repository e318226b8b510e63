//! What a search has found: rows for the terminal and for the HTML report, and the loss over the severity as a figure.

use brownout_analysis::{
    CapacityOutcome, LevelFindings, SearchFindings, ThresholdFindings, ThresholdOutcome, search::Amount,
};

use crate::{
    figure::{Axis, Band, Figure, Ink, Rule, Scale, Series, Span, SpanKind, Unit},
    scale::{around_zero, log_range},
    table::Paint,
    text,
};

/// What a search is, in a line.
pub fn caption(search: &SearchFindings) -> String {
    let (of, without) = match search.capacity {
        None => ("the loss of goodput", format!(", {} of them valid ones without a fault", search.without_fault)),
        Some(_) => ("the objective of the search", String::new()),
    };
    format!("Search: {of} by {}; {} trials of at most {}{without}", search.factor, search.trials, search.most_trials)
}

/// The headings of [`answers`].
pub fn answer_headings(search: &SearchFindings) -> Vec<&'static str> {
    match search.capacity {
        None => vec!["loss", "surely less at", "surely more at", "less again at", "it is"],
        Some(_) => vec!["half keep it at", "95%: from", "to", "19 of 20 keep it at", "it is"],
    }
}

/// What it has found: one row for each threshold, or one for the rate.
pub fn answers(search: &SearchFindings) -> Vec<(Paint, Vec<String>)> {
    let rate = |rate: Option<f64>| text::or_none(rate.and_then(|rate| Amount::Rate.write(rate)), |rate| rate);
    let of_rate = search.capacity.iter().map(|found| {
        let (low, high) = found.interval.unzip();
        let what = match found.outcome {
            CapacityOutcome::Threshold => "found",
            CapacityOutcome::Never => "below the lowest rate",
            CapacityOutcome::Always => "above the highest rate",
            CapacityOutcome::Undetermined => "undetermined",
        };
        let paint = if found.outcome == CapacityOutcome::Undetermined { Paint::Warn } else { Paint::Good };
        (paint, vec![rate(found.rate), rate(low), rate(high), rate(found.safe), what.to_owned()])
    });
    search.thresholds.iter().map(answer).chain(of_rate).collect()
}

fn answer(one: &ThresholdFindings) -> (Paint, Vec<String>) {
    let what = match one.outcome {
        ThresholdOutcome::Between => "passed between them",
        ThresholdOutcome::Below => "passed at the mildest already",
        ThresholdOutcome::NotReached => "not reached",
        ThresholdOutcome::Undetermined => "undetermined",
    };
    let paint = match one.outcome {
        ThresholdOutcome::Undetermined => Paint::Warn,
        _ if !one.back.is_empty() => Paint::Warn,
        _ => Paint::Good,
    };
    let level = |level: &Option<String>| text::or_none(level.clone(), |level| level);
    let back = if one.back.is_empty() { text::NONE.to_owned() } else { one.back.join(", ") };
    (paint, vec![text::share(one.loss), level(&one.low), level(&one.high), back, what.to_owned()])
}

/// The headings of [`levels`].
pub fn level_headings(search: &SearchFindings) -> Vec<&'static str> {
    match search.capacity {
        None => vec!["severity", "valid trials", "not valid", "loss", "by trial"],
        Some(_) => vec!["rate", "valid trials", "not valid", "kept", "missed"],
    }
}

/// What was tried: one row for each severity or rate.
pub fn levels(search: &SearchFindings) -> Vec<(Paint, Vec<String>)> {
    let row = |level: &LevelFindings| {
        let mut cells = vec![level.level.clone(), level.trials.to_string(), level.untold.to_string()];
        cells.extend(match search.capacity {
            None => {
                let each: Vec<String> = level.losses.iter().copied().map(text::share).collect();
                [text::or_none(level.loss, text::share), each.join(", ")]
            }
            Some(_) => {
                let kept = level.kept.unwrap_or(0);
                [kept, level.trials.saturating_sub(kept)].map(|count| count.to_string())
            }
        });
        (if level.trials == 0 { Paint::Dim } else { Paint::Plain }, cells)
    };
    search.levels.iter().map(row).collect()
}

/// The loss over the severity, with the thresholds; none in a search for a rate, or before two severities have a valid trial.
pub fn figure(search: &SearchFindings) -> Option<Figure> {
    let amount = Amount::of(&search.levels.first()?.level)?;
    let mut points: Vec<(f64, &LevelFindings, f64)> =
        search.levels.iter().filter_map(|level| Some((amount.read(&level.level)?, level, level.loss?))).collect();
    if points.len() < 2 {
        return None;
    }
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let spread = |(at, level, _): &(f64, &LevelFindings, f64)| {
        let least = level.losses.iter().copied().reduce(f64::min)?;
        Some((*at, least, level.losses.iter().copied().reduce(f64::max)?))
    };
    let all = points.iter().flat_map(|(_, level, _)| level.losses.iter().copied());
    let thresholds = search.thresholds.iter().map(|one| one.loss);
    let (from, to) = around_zero(all.chain(thresholds).collect::<Vec<_>>().into_iter());
    let (unit, of) = match amount {
        Amount::Time => (Unit::Nanoseconds, ""),
        Amount::Share => (Unit::Percentile, ""),
        Amount::BitRate => (Unit::Bits, ", bit/s"),
        Amount::Rate => (Unit::Rate, ", 1/s"),
        Amount::Bytes => (Unit::Rate, ", bytes"),
    };
    let (least, most) = log_range(points.iter().map(|(at, ..)| *at));
    let spans = search.thresholds.iter().filter_map(|one| {
        let ends = [amount.read(one.low.as_deref()?)?, amount.read(one.high.as_deref()?)?];
        let label = format!("passes {} between these", text::share(one.loss));
        Some(Span { from: ends[0].min(ends[1]), to: ends[0].max(ends[1]), label, kind: SpanKind::Fault })
    });
    Some(Figure {
        id: "search".to_owned(),
        title: format!("Loss of goodput by {}", search.factor),
        description: format!(
            "Median loss of goodput at each {} that was tried, with the thresholds and the intervals in which they are passed.",
            search.factor
        ),
        x: Axis { label: format!("{}{of} (log)", search.factor), scale: Scale::Log, unit, from: least, to: most },
        y: Axis { label: "loss of goodput".to_owned(), scale: Scale::Linear, unit: Unit::Share, from, to },
        series: vec![Series {
            name: "median of the trials; band: least to most; shaded: where a threshold is passed".to_owned(),
            ink: Ink::Blue,
            dashed: false,
            reach: 0.0,
            points: points.iter().map(|(at, _, loss)| (*at, Some(*loss))).collect(),
        }],
        bands: vec![Band { ink: Ink::Blue, points: points.iter().filter_map(spread).collect() }],
        spans: spans.collect(),
        lanes: Vec::new(),
        marks: Vec::new(),
        rules: search.thresholds.iter().map(|one| Rule { y: one.loss, label: text::share(one.loss) }).collect(),
        beyond: None,
        lane: false,
        wide: true,
    })
}
