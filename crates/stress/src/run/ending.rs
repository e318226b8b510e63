//! The end of a run: the files that are written then, the last line, the exit code.

use brownout_base::clock::monotonic_ns;

use super::{
    RunError,
    execution::Run,
    logs::{Logs, both_clocks},
    phase::How,
    plan,
};
use crate::output::{self, Ended, Measure, RunFacts, SearchFacts, Total};

/// How a run has ended: what decides about its exit code.
pub struct Outcome {
    /// All of it; of thread counts, the last.
    pub total: Total,
    /// Each step by its name, if there are any.
    pub steps: Vec<(String, Total)>,
    /// How the last ended.
    pub how: How,
    /// What a search has found.
    pub search: Option<SearchFacts>,
    /// Why there are no figures.
    pub error: Option<RunError>,
}

impl Outcome {
    /// Of a run that measured something.
    pub fn of(total: Total, steps: Vec<(String, Total)>, how: How) -> Self {
        Outcome { total, steps, how, search: None, error: None }
    }

    /// Of one that could not begin, or not go on.
    pub fn without_figures(error: RunError) -> Self {
        let how = if error.exit_code() == 130 { How::Interrupted } else { How::Failed };
        Outcome { error: Some(error), ..Outcome::of(Total::new(monotonic_ns(), Measure::default()), Vec::new(), how) }
    }
}

impl Run<'_> {
    /// Writes what is written at the end; prints END or FAILURE; returns the exit code.
    pub(super) fn finish(&mut self, logs: Logs, outcome: &Outcome, started_unix_ms: u64) -> u8 {
        let settings = self.settings;
        let missed = outcome.search.as_ref().is_some_and(|search| search.found == SearchFacts::NEVER);
        let success = outcome.how == How::Done && !missed;
        let error = outcome.error.as_ref().map_or_else(|| "an operation failed".to_owned(), ToString::to_string);
        let ended = match outcome.how {
            How::Done => Ended::Done,
            How::Interrupted => Ended::Interrupted,
            How::Failed => Ended::Failed(&error),
        };
        // One that cannot be written does not keep the others from it.
        let total = &outcome.total;
        let sheets = || outcome.steps.iter().map(|(_, total)| total).chain([total]).map(|total| &total.balance);
        let unbalanced = sheets().find(|sheet| !sheet.balances());
        let (tests, mut broken) = logs.close(ended, &total.warnings, unbalanced.unwrap_or(&total.balance));
        if let Some(error) = self.stage.broken() {
            broken.push(format!("-log file= could not be written and is not whole: {error}"));
        }
        if let Some(file) = &settings.graph.file {
            let done = output::write_graph(file, settings.graph.title.as_deref(), chrono_now(), &tests);
            broken.extend(done.err().map(|error| error.to_string()));
        }
        if let Some(path) = &settings.log.json {
            let facts = RunFacts {
                command: settings.words.join(" "),
                started_unix_ms,
                success: success && broken.is_empty(),
                seed: Some(plan::seed(settings) as u64),
                search: outcome.search.clone(),
            };
            let object = output::to_json(&facts, &outcome.total, &outcome.steps);
            let done = std::fs::write(path, format!("{object:#}\n"));
            let failed = |source| RunError::File { path: path.clone(), source }.to_string();
            broken.extend(done.err().map(failed));
        }
        let written = broken.is_empty();
        for text in broken {
            self.stage.aside(format!("brownout: {text}"));
        }
        self.stage.line(if success && written { output::END } else { output::FAILURE });
        let late = plan::is_open(settings) && total.late_intervals.len() as u64 * 2 > total.intervals;
        match outcome.how {
            How::Interrupted => 130,
            How::Failed => outcome.error.as_ref().map_or(1, RunError::exit_code),
            How::Done if missed || !written => 1,
            How::Done if unbalanced.is_some() => {
                self.stage.aside("its account does not balance: this run is no evidence about the database");
                3
            }
            How::Done if late => {
                self.stage.aside(
                    "the client itself was late in most intervals: this run is no evidence about the database; use a \
                     machine with a free processor, or a lower rate",
                );
                3
            }
            How::Done => 0,
        }
    }
}

fn chrono_now() -> chrono::DateTime<chrono::Utc> {
    let (_, unix_ms) = both_clocks();
    chrono::DateTime::from_timestamp_millis(unix_ms as i64).unwrap_or_default()
}
