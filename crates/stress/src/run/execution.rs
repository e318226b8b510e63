//! A run: its warm-up, its phases, and its messages.

use std::sync::Arc;

use brownout_load::Pace;

use super::{
    RunError, connect,
    console::Console,
    disk::TableName,
    ending,
    logs::{Logs, Telling, both_clocks},
    outcome::Outcome,
    phase::{End, Finished, How, Phase},
    plan::{self, Source},
    setup::Interrupted,
};
use crate::{
    operations::StressWorkload,
    output::{self, Total},
    schema::{Control, Member},
    settings::{Length, Level, Rate, Settings, Truncate},
};

/// A run in progress.
pub struct Run<'a> {
    /// What is asked for.
    pub settings: &'a Settings,
    /// Which operations there are.
    pub source: &'a dyn Source,
    /// For control work.
    pub control: Control,
    /// The nodes that take the load.
    pub members: Vec<Member>,
    /// The tables that are truncated, flushed, and queried for statistics.
    pub tables: Vec<TableName>,
    /// Where output goes.
    pub console: &'a mut Console,
    /// Whether the user has interrupted.
    pub interrupted: Interrupted<'a>,
}

impl Run<'_> {
    /// Everything up to END; returns the exit code.
    ///
    /// # Errors
    /// It cannot begin, or cannot go on.
    pub fn everything(&mut self) -> Result<u8, RunError> {
        let settings = self.settings;
        self.console.line("Sleeping 2s...");
        let plan = self.run_plan();
        let mut logs = Logs::open(settings, &plan, plan::is_open(settings))?;
        let (_, started_unix_ms) = both_clocks();
        let outcome = self.load(&mut logs).unwrap_or_else(|error| {
            self.console.aside(format!("brownout: {error}"));
            Outcome::without_figures(error)
        });
        Ok(ending::finish(settings, self.console, logs, &outcome, started_unix_ms))
    }

    /// The warm-up and what follows it.
    fn load(&mut self, logs: &mut Logs) -> Result<Outcome, RunError> {
        let settings = self.settings;
        if settings.command.warmup {
            self.warm_up()?;
        }
        let stepwise = matches!(settings.rate, Rate::Steps { .. });
        if settings.command.truncate == Truncate::Once || settings.command.truncate == Truncate::Always && !stepwise {
            self.truncate()?;
        }
        self.settle_disks()?;
        match &settings.rate {
            Rate::Steps { least, most, until_saturated } => {
                self.console.line("Thread count was not specified");
                self.steps(logs, *least, *most, *until_saturated)
            }
            Rate::Search(search) => self.search(logs, search),
            _ => self.single(logs),
        }
    }

    pub(super) fn phase(
        &self,
        only: Option<usize>,
        partitions: Option<u64>,
        paces: Vec<Pace>,
        users: Option<u32>,
    ) -> Result<Phase, RunError> {
        let settings = self.settings;
        let mut operations = plan::operations(self.source, settings, only, partitions)?;
        if let Some(host) = &settings.node.pin {
            let pin = connect::place("-node pin=", host, settings, &self.members)?;
            for named in &mut operations.kinds {
                named.pin.get_or_insert(pin);
            }
        }
        let workload = Arc::new(StressWorkload::new(operations)?);
        Ok(Phase {
            workload,
            config: connect::engine(settings, self.control.contact(), &self.members, plan::seed(settings), users),
            paces,
            end: match settings.command.length {
                Length::Count(_) => End::Dry,
                Length::Time(time) => End::After(time),
                Length::Uncertainty(uncertainty) => {
                    End::Sure { target: uncertainty.target, least: uncertainty.least, most: uncertainty.most }
                }
            },
            measure: plan::measure(settings),
            interval: settings.log.interval,
            stop_on_error: plan::stops_on_error(settings),
        })
    }

    /// One run, and what is printed about it before END.
    pub(super) fn step(&mut self, logs: &mut Logs, paces: Vec<Pace>, users: Option<u32>) -> Result<Finished, RunError> {
        let settings = self.settings;
        let phase = self.phase(None, plan::partitions(settings), paces, users)?;
        let told = users.filter(|_| matches!(settings.rate, Rate::Steps { .. }));
        logs.begin(&settings.graph.operation, told);
        logs.head(self.console);
        self.console.aside(output::NO_JMX);
        let mut finished =
            phase.run(&mut Telling { logs: &mut *logs, console: &mut *self.console }, self.interrupted)?;
        if finished.how != How::Interrupted {
            self.ask_disks(&mut finished.total);
        }
        logs.end(&finished.total);
        self.summary(&finished);
        Ok(finished)
    }

    /// Prints the account; of a run that is to say little only what its times are of, which every output says.
    pub(super) fn account(&mut self, total: &Total) {
        let lines = match self.settings.log.level {
            Level::Minimal => output::populations(total),
            Level::Normal | Level::Verbose => output::account(total),
        };
        for line in lines {
            self.console.line(line);
        }
    }

    fn summary(&mut self, finished: &Finished) {
        let total = &finished.total;
        if finished.how == How::Interrupted {
            let seconds = total.interval.length_ns as f64 / 1e9;
            self.console.line(format!("Interrupted after {seconds:.1} s; what was done until then:"));
        }
        self.account(total);
        if self.settings.log.summary {
            self.console.text(&output::results(total));
        }
    }

    fn single(&mut self, logs: &mut Logs) -> Result<Outcome, RunError> {
        let settings = self.settings;
        let paces = plan::paces(&self.source.names(), settings)?;
        let users = plan::users(settings);
        let by = match users {
            Some(threads) => format!("{threads} threads"),
            None => plan::words(settings),
        };
        self.console.line(format!("Running {} with {by} {}", self.source.description(), plan::until(settings)));
        let finished = self.step(logs, paces, users)?;
        Ok(Outcome::of(finished.total, Vec::new(), finished.how))
    }
}
