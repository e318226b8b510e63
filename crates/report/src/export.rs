//! Single figures as files of their own.

use brownout_analysis::Findings;
use brownout_record::Run;

use crate::{ReportError, charts, figure::Figure, html, scope::Scope, search, svg::draw};

const STYLE: &str = include_str!("../assets/figure.css");

/// One figure of the report as an SVG file: `percentiles` (of several cells `cell-N-percentiles`), `search`, or `trial-N-throughput`, `trial-N-latency`,
/// `trial-N-coordinators`, or of what witnesses saw, as `trial-N-clocks`; the ids of the figures in the report. None if there is no such figure.
pub fn svg(run: &Run, findings: &Findings, which: &str) -> Result<Option<String>, ReportError> {
    let mut figures: Vec<Figure> = findings.search.iter().filter_map(search::figure).collect();
    for scope in Scope::all(findings) {
        let evidence = html::read(run, &scope)?;
        for trial in &scope.trials {
            let own = evidence.iter().find(|evidence| evidence.row.trial == trial.trial);
            figures.extend(own.map(|evidence| charts::over_time(&scope, evidence, trial)).unwrap_or_default());
        }
        figures.push(html::percentiles(&scope, &evidence));
    }
    Ok(figures.iter().find(|figure| figure.id == which).map(drawing))
}

/// A figure as an SVG file.
pub fn drawing(figure: &Figure) -> String {
    // A file of its own needs its namespace and its styles; both stand in the report's page otherwise.
    let head = "<svg xmlns=\"http://www.w3.org/2000/svg\" ";
    let drawing = draw(figure).replacen("<svg ", head, 1);
    drawing.replacen("<title", &format!("<style>{STYLE}</style><title"), 1)
}
