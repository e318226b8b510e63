//! Single figures as files of their own.

use brownout_analysis::{Findings, TrialEvidence};
use brownout_record::Run;

use crate::{ReportError, charts, svg::draw};

const STYLE: &str = include_str!("../assets/figure.css");

/// One figure of the report as an SVG file: `percentiles`, or `trial-N-throughput`, `trial-N-latency`,
/// `trial-N-coordinators`, or of what witnesses saw, as `trial-N-clocks`; the ids of the figures in the report. None if there is no such figure.
pub fn svg(run: &Run, findings: &Findings, which: &str) -> Result<Option<String>, ReportError> {
    let rows = run.trials()?;
    let evidence = rows.iter().map(|row| TrialEvidence::read(run, row)).collect::<Result<Vec<_>, _>>()?;
    let mut figures = vec![charts::percentiles(findings, &evidence)];
    for (evidence, trial) in evidence.iter().zip(&findings.trials) {
        figures.extend(charts::over_time(findings, evidence, trial));
    }
    Ok(figures.iter().find(|figure| figure.id == which).map(|figure| {
        // A file of its own needs its namespace and its styles; both stand in the report's page otherwise.
        let head = "<svg xmlns=\"http://www.w3.org/2000/svg\" ";
        let drawing = draw(figure).replacen("<svg ", head, 1);
        drawing.replacen("<title", &format!("<style>{STYLE}</style><title"), 1)
    }))
}
