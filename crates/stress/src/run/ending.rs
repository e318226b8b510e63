//! The end of a run: the files that are written then, the last line, the exit code.

use super::{
    RunError,
    execution::Run,
    logs::{Logs, both_clocks},
    phase::How,
    plan,
};
use crate::output::{self, Ended, RunFacts, Total};

/// How a run has ended: what decides about its exit code.
pub struct Outcome {
    /// All of it; of thread counts, the last.
    pub total: Total,
    /// Each step by its name, if there are any.
    pub steps: Vec<(String, Total)>,
    /// How the last ended.
    pub how: How,
    /// The search's objective was never kept.
    pub missed: bool,
}

impl Run<'_> {
    /// Writes what is written at the end; prints END or FAILURE; returns the exit code.
    pub(super) fn finish(&mut self, logs: Logs, outcome: &Outcome, started_unix_ms: u64) -> Result<u8, RunError> {
        let settings = self.settings;
        let success = outcome.how == How::Done && !outcome.missed;
        let ended = match outcome.how {
            How::Done => Ended::Done,
            How::Interrupted => Ended::Interrupted,
            How::Failed => Ended::Failed("an operation failed"),
        };
        let (tests, broken) = logs.close(ended, &outcome.total.balance);
        let mut written = broken.is_empty();
        for text in broken {
            self.stage.aside(text);
        }
        if let Some(error) = self.stage.broken() {
            let text = format!("-log file= could not be written and is not whole: {error}");
            self.stage.aside(text);
            written = false;
        }
        if let Some(file) = &settings.graph.file {
            output::write_graph(file, settings.graph.title.as_deref(), chrono_now(), &tests)?;
        }
        if let Some(path) = &settings.log.json {
            let facts = RunFacts {
                command: settings.words.join(" "),
                started_unix_ms,
                success: success && written,
                seed: Some(plan::seed(settings) as u64),
            };
            let object = output::to_json(&facts, &outcome.total, &outcome.steps);
            std::fs::write(path, format!("{object:#}\n"))
                .map_err(|source| RunError::File { path: path.clone(), source })?;
        }
        self.stage.line(if success && written { output::END } else { output::FAILURE });
        let total = &outcome.total;
        let late = plan::is_open(settings) && total.late_intervals.len() as u64 * 2 > total.intervals;
        let balances = |total: &Total| total.balance.balances();
        let unbalanced = !balances(total) || !outcome.steps.iter().all(|(_, total)| balances(total));
        Ok(match outcome.how {
            How::Interrupted => 130,
            How::Failed => 1,
            How::Done if outcome.missed || !written => 1,
            How::Done if unbalanced => {
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
        })
    }
}

fn chrono_now() -> chrono::DateTime<chrono::Utc> {
    let (_, unix_ms) = both_clocks();
    chrono::DateTime::from_timestamp_millis(unix_ms as i64).unwrap_or_default()
}
