//! The plots over time "with baseline": throughput and mean response time of each severity, and of a trial without a fault.

use std::collections::BTreeMap;

use brownout_report::{
    drawing,
    figure::{Axis, Figure, Ink, Mark, Scale, Series as Line, Span, SpanKind, Unit},
    from_zero, log_range,
};

use crate::stored::{Cell, Series, Stored};

/// More lines are hard to distinguish.
const LINES: usize = Ink::CYCLE.len();
/// Of one plot: its file, and what it shows.
struct Plot<'a> {
    file: String,
    title: String,
    cells: Vec<&'a Cell>,
    run: &'a Stored,
}

/// All plots, by the names of their files.
pub fn plots(findings: &BTreeMap<String, Stored>) -> BTreeMap<String, String> {
    let figures = grouped(findings).into_iter().flat_map(|plot| {
        [
            (format!("{}-throughput.svg", plot.file), drawing(&throughput(&plot))),
            (format!("{}-latency.svg", plot.file), drawing(&latency(&plot))),
        ]
    });
    figures.collect()
}

/// The plots as images of a README.
pub fn list(findings: &BTreeMap<String, Stored>) -> String {
    let plots = grouped(findings);
    if plots.is_empty() {
        return format!("{}\n", crate::tables::NOT_MEASURED);
    }
    let images = plots.iter().map(|plot| {
        let (file, title) = (&plot.file, &plot.title);
        format!("![Throughput over time, {title}](plots/{file}-throughput.svg)\n\n![Mean response time over time, {title}](plots/{file}-latency.svg)\n")
    });
    images.collect::<Vec<_>>().join("\n")
}

/// One plot for the cells that differ in the last factor alone; of many, several.
fn grouped(findings: &BTreeMap<String, Stored>) -> Vec<Plot<'_>> {
    let mut plots = Vec::new();
    for (name, run) in findings {
        let mut groups: Vec<(String, Vec<&Cell>)> = Vec::new();
        for cell in run.cells.iter().filter(|cell| cell.series.is_some()) {
            let (_, others) = cell.levels.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
            let key = others.join(", ");
            match groups.iter_mut().rev().find(|(known, cells)| *known == key && cells.len() < LINES) {
                Some((_, cells)) => cells.push(cell),
                None => groups.push((key, vec![cell])),
            }
        }
        for (number, (key, cells)) in groups.into_iter().enumerate() {
            let title = if key.is_empty() { name.clone() } else { format!("{name}: {key}") };
            plots.push(Plot { file: format!("{name}-{}", number + 1), title, cells, run });
        }
    }
    plots
}

impl Plot<'_> {
    /// A line for each cell, and one of a trial without a fault.
    fn lines(&self, value: impl Fn(&Series) -> &[Option<f64>], times: f64) -> Vec<Line> {
        let line = |name: String, ink: Ink, dashed: bool, series: &Series| {
            let reach = series.seconds.windows(2).next().map_or(0.5, |two| (two[1] - two[0]) / 2.0);
            let points = series.seconds.iter().zip(value(series));
            let points = points.map(|(x, y)| (x + reach, y.map(|y| y * times))).collect();
            Line { name, ink, dashed, reach, points }
        };
        let without = self.run.without.as_ref().and_then(|without| without.series.as_ref());
        let without = without.map(|series| line("no fault".to_owned(), Ink::Gray, true, series));
        let cells = self.cells.iter().zip(Ink::CYCLE).filter_map(|(cell, ink)| {
            Some(line(cell.levels.last().cloned().unwrap_or_default(), ink, false, cell.series.as_ref()?))
        });
        without.into_iter().chain(cells).collect()
    }

    /// When a database with a leader elected one.
    fn elections(&self) -> Vec<Mark> {
        let of = |cell: &&Cell| {
            let level = cell.levels.last().cloned().unwrap_or_default();
            let times = cell.series.iter().flat_map(|series| &series.elections).copied();
            let mark = |x: f64| Mark {
                x,
                label: "election".to_owned(),
                text: format!("{level}: a leader is elected"),
                bad: true,
            };
            times.map(mark).collect::<Vec<Mark>>()
        };
        self.cells.iter().flat_map(of).collect()
    }

    fn figure(&self, what: &str, title: &str, y: Axis, series: Vec<Line>) -> Figure {
        let ends = series.iter().flat_map(|line| line.points.iter().map(|(x, _)| x + line.reach));
        let to = ends.fold(1.0, f64::max);
        let fault = self.cells.first().and_then(|cell| cell.series.as_ref()).map(|series| series.fault);
        let span = |from: f64, to: f64, label: &str, kind| Span { from, to, label: label.to_owned(), kind };
        let spans = fault.map_or_else(Vec::new, |(from, until)| {
            vec![
                span(0.0, from, "baseline", SpanKind::Phase),
                span(from, until, "fault", SpanKind::Phase),
                span(until, to, "recovery", SpanKind::Phase),
                span(from, until, "the fault is in force", SpanKind::Fault),
            ]
        });
        Figure {
            id: format!("{}-{what}", self.file),
            title: format!("{title}, {}", self.title),
            description: format!("{title} of one trial of each severity and of one without a fault, {}.", self.title),
            x: Axis {
                label: "seconds since the baseline began".to_owned(),
                scale: Scale::Linear,
                unit: Unit::Seconds,
                from: 0.0,
                to,
            },
            y,
            series,
            bands: Vec::new(),
            spans,
            lanes: Vec::new(),
            marks: self.elections(),
            rules: Vec::new(),
            beyond: None,
            lane: false,
            wide: true,
        }
    }
}

fn values(lines: &[Line]) -> impl Iterator<Item = f64> {
    lines.iter().flat_map(|line| line.points.iter().filter_map(|(_, y)| *y))
}

fn throughput(plot: &Plot<'_>) -> Figure {
    let lines = plot.lines(|series| &series.delivered, 1.0);
    let (from, to) = from_zero(values(&lines));
    let y = Axis { label: "answered per second".to_owned(), scale: Scale::Linear, unit: Unit::Rate, from, to };
    plot.figure("throughput", "Throughput over time", y, lines)
}

fn latency(plot: &Plot<'_>) -> Figure {
    let lines = plot.lines(|series| &series.mean_ms, 1e6);
    let (from, to) = log_range(values(&lines));
    let y = Axis { label: "mean response (log)".to_owned(), scale: Scale::Log, unit: Unit::Nanoseconds, from, to };
    plot.figure("latency", "Mean response time over time", y, lines)
}
