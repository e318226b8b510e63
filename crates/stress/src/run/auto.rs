//! An automatic run: one step per number of threads, with more and more threads.

use std::time::Duration;

use brownout_load::Pace;

use super::{
    RunError,
    execution::Run,
    logs::Logs,
    outcome::Outcome,
    phase::How,
    plan,
    steps::{self, StepRule},
};
use crate::{
    output::{self, Total},
    settings::{Length, Truncate},
};

impl Run<'_> {
    /// Runs steps with more and more threads.
    pub(super) fn steps(
        &mut self,
        logs: &mut Logs,
        least: u32,
        most: u32,
        until_saturated: bool,
    ) -> Result<Outcome, RunError> {
        let settings = self.settings;
        let target = match settings.command.length {
            Length::Uncertainty(uncertainty) => {
                self.console.line(
                    "WARNING: uncertainty mode (err<) results in uneven workload between thread runs, so should be \
                     used for high level analysis only",
                );
                uncertainty.target
            }
            _ => -1.0,
        };
        let rule = if settings.extras.apache { StepRule::Apache } else { StepRule::Scylla };
        let mut steps: Vec<(String, Total)> = Vec::new();
        let mut last;
        let mut rates: Vec<f64> = Vec::new();
        let mut threads = least;
        let how = loop {
            self.console.line("");
            self.console.line(format!("Running with {threads} threadCount"));
            if settings.command.truncate == Truncate::Always {
                self.truncate()?;
            }
            self.console.line(format!(
                "Running {} with {threads} threads {}",
                self.source.description(),
                plan::until(settings)
            ));
            let paces = vec![Pace::Closed { threads }];
            let finished = self.step(logs, paces, Some(threads))?;
            rates.push(finished.total.rate());
            let before = steps.last().map(|(name, _)| name.clone());
            last = finished.total.clone();
            steps.push((format!("{threads} threadCount"), finished.total));
            if finished.how != How::Done {
                break finished.how;
            }
            if let (Some(before), Some(better)) = (before, steps::improvement(&rates, 1)) {
                self.console.line(format!("Improvement over {before}: {:.0}%", 100.0 * better));
            }
            threads = rule.next(threads);
            if threads > most || until_saturated && !steps::goes_on(&rates, target) {
                break How::Done;
            }
            if self.source.updates() && self.rest() {
                break How::Interrupted;
            }
        };
        for line in output::steps(logs.rows(), &steps) {
            self.console.line(line);
        }
        Ok(Outcome::of(last, steps, how))
    }

    /// Rests between two steps of a run that writes; returns whether the user interrupted.
    fn rest(&mut self) -> bool {
        self.console.line("Sleeping for 15s");
        for _ in 0..150 {
            if (self.interrupted)() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        false
    }
}
