//! A run that searches.

use std::{sync::Arc, time::Duration};

use brownout_base::clock::monotonic_ns;
use brownout_load::{Balance, Bucket, ConnectionEvent, Engine, Outcome as Ended};
use brownout_statistics::capacity::{Estimate, StepOutcome};

use super::{Found, SearchWatch, Step, bucket, search};
use crate::{
    operations::StressWorkload,
    output::{self, Fold, Interval, Measure, SearchFacts, Total},
    run::{
        RunError,
        console::Console,
        execution::Run,
        logs::{Logs, Telling},
        outcome::Outcome,
        phase::{How, Watch},
        plan,
    },
    settings::Search,
};

impl Run<'_> {
    /// The highest rate that keeps the objectives.
    pub(in crate::run) fn search(&mut self, logs: &mut Logs, asked: &Search) -> Result<Outcome, RunError> {
        let settings = self.settings;
        let mut phase = self.phase(None, None, Vec::new(), None)?;
        phase.config.bucket = bucket(asked);
        self.console.line(format!("Running {} with {}", self.source.description(), plan::words(settings)));
        let engine = Engine::launch_unless(phase.config.clone(), Arc::clone(&phase.workload) as _, self.interrupted)?;
        logs.begin(&settings.graph.operation, None);
        let mut told = SearchTelling {
            fold: Fold::new(monotonic_ns(), Measure::Response).with_conditional(phase.workload.conditional()),
            steps: Vec::new(),
            workload: &phase.workload,
            console: &mut *self.console,
            logs: &mut *logs,
        };
        let found = search(asked, &engine, &mut told, self.interrupted)?;
        let (cpu_ns, connections) = (engine.cpu_ns(), engine.connection_events());
        let (buckets, balance) = engine.stop(Duration::from_secs(1));
        told.take(&buckets, cpu_ns, &connections);
        let SearchTelling { fold, steps, .. } = told;
        let mut total = fold.into_total();
        total.balance = balance;
        let how = if matches!(found, Found::Interrupted(_)) { How::Interrupted } else { How::Done };
        if how == How::Done {
            self.ask_disks(&mut total);
        }
        logs.end(&total);
        if let Some(step) = shown(&steps) {
            logs.show(step);
        }
        let facts = facts(asked, &found);
        self.account(&total);
        self.console.line(told_found(&facts.objectives.join(", "), &found));
        if settings.log.summary {
            self.results(&steps, &total);
        }
        let steps = steps.into_iter().map(|(step, total)| (told_rate(step.rate), total)).collect();
        Ok(Outcome { search: Some(facts), ..Outcome::of(total, steps, how) })
    }

    /// Prints the figures of one step rather than all: percentiles over several rates would describe none of them.
    fn results(&mut self, steps: &[(Step, Total)], whole: &Total) {
        let shown = shown(steps).and_then(|index| steps.get(index));
        if let Some((step, _)) = shown {
            let kept = step.verdict == StepOutcome::Kept;
            let why = if kept { "the highest rate that kept it" } else { "the lowest rate tried" };
            self.console.line(format!("Below: the step at {}, {why}", told_rate(step.rate)));
        }
        self.console.text(&output::results(shown.map_or(whole, |(_, total)| total)));
    }
}

/// The step whose figures are shown: the one at the highest rate that kept the objectives, or else the one at the
/// lowest rate.
fn shown(steps: &[(Step, Total)]) -> Option<usize> {
    let rate = |index: &usize| steps[*index].0.rate;
    let by_rate = |one: &usize, other: &usize| rate(one).total_cmp(&rate(other));
    let kept = (0..steps.len()).filter(|index| steps[*index].0.verdict == StepOutcome::Kept).max_by(by_rate);
    kept.or_else(|| (0..steps.len()).min_by(by_rate))
}

fn told_rate(rate: f64) -> String {
    format!("{rate:.0}/s")
}

/// The balance sheet of a step's measured part: all operations have ended before the next step begins.
fn balance(interval: &Interval) -> Balance {
    let mut sheet = Balance {
        scheduled: interval.scheduled,
        sent: interval.sent,
        never_sent: interval.never_sent,
        ..Balance::default()
    };
    for cell in interval.operations.iter().flat_map(|operation| &operation.cells) {
        match cell.outcome {
            Ended::Ok => sheet.answered_ok += cell.count,
            Ended::TimedOut => sheet.timed_out += cell.count,
            Ended::Late => sheet.late += cell.count,
            Ended::Failed(class) => {
                sheet.failed += cell.count;
                *sheet.failures.entry(class).or_default() += cell.count;
            }
        }
    }
    sheet
}

/// The result, for programs.
fn facts(asked: &Search, found: &Found) -> SearchFacts {
    let (name, rate, estimate) = match *found {
        Found::Threshold(estimate) => ("threshold", Some(estimate.rate), Some(estimate)),
        Found::Always { highest } => (SearchFacts::ALWAYS, Some(highest), None),
        Found::Never { lowest } => (SearchFacts::NEVER, Some(lowest), None),
        Found::Client { at_least, .. } => (SearchFacts::CLIENT, at_least, None),
        Found::Dry { at_least, .. } => (SearchFacts::DRY, at_least, None),
        Found::Interrupted(known) => ("interrupted", known.map(|known| known.rate), known),
    };
    SearchFacts {
        objectives: asked.objectives.iter().map(ToString::to_string).collect(),
        found: name,
        rate,
        interval: estimate.map(|estimate| estimate.interval),
        safe_rate: estimate.map(|estimate| estimate.safe),
    }
}

/// The result, for people.
fn told_found(objectives: &str, found: &Found) -> String {
    match found {
        Found::Threshold(estimate) => told_estimate(objectives, estimate),
        Found::Always { highest } => {
            format!("{objectives} was kept up to the highest rate tried, {highest:.0}/s; set to= higher")
        }
        Found::Never { lowest } => format!("{objectives} was missed even at the lowest rate tried, {lowest:.1}/s"),
        Found::Client { at_least, tried } => {
            let known =
                at_least.map_or_else(|| "nothing is known yet".to_owned(), |rate| format!("at least {rate:.0}/s"));
            format!(
                "the client is the limit here: {known} ({objectives}; it was late itself in every step at {tried:.0}/s: use a \
                 machine with a free processor)"
            )
        }
        Found::Dry { at_least, tried } => {
            let known = at_least.map_or_else(
                || "nothing is known of a threshold".to_owned(),
                |rate| format!("{objectives} was kept up to {rate:.0}/s, and no more is known"),
            );
            format!("there were no more operations at {tried:.0}/s: {known}; let -pop or -tokenrange wrap")
        }
        Found::Interrupted(None) => "Interrupted; nothing is known yet".to_owned(),
        Found::Interrupted(Some(known)) => format!("Interrupted; {}", told_estimate(objectives, known)),
    }
}

fn told_estimate(objectives: &str, estimate: &Estimate) -> String {
    let (low, high) = estimate.interval;
    format!(
        "Highest rate that keeps {objectives}: {:.0}/s (95 % interval {low:.0}/s to {high:.0}/s; at that rate half of the \
         steps keep it; at {:.0}/s 19 of 20 do, with 90 % probability)",
        estimate.rate, estimate.safe
    )
}

/// Reports the progress of a search.
struct SearchTelling<'a> {
    fold: Fold,
    /// What was measured in each.
    steps: Vec<(Step, Total)>,
    workload: &'a StressWorkload,
    console: &'a mut Console,
    logs: &'a mut Logs,
}

impl SearchTelling<'_> {
    fn telling(&mut self) -> Telling<'_> {
        Telling { logs: &mut *self.logs, console: &mut *self.console }
    }

    fn take(&mut self, buckets: &[Bucket], cpu_ns: u64, connections: &[ConnectionEvent]) {
        self.telling().buckets(buckets, cpu_ns, connections);
        let interval = self.fold.interval(monotonic_ns(), buckets);
        self.logs.interval(&interval, self.fold.total());
    }
}

impl SearchWatch for SearchTelling<'_> {
    fn begun(&mut self, start_ns: u64, rate: f64) {
        self.logs.label(told_rate(rate));
        self.telling().begun(start_ns);
    }

    fn step(&mut self, step: &Step, stretch: &[Bucket], known: Option<&Estimate>) {
        let start_ns = stretch.first().map_or_else(monotonic_ns, |bucket| bucket.start_ns);
        let mut fold = Fold::new(start_ns, Measure::Response).with_conditional(self.workload.conditional());
        let end_ns = stretch.last().map_or(start_ns, |bucket| bucket.start_ns + bucket.length_ns);
        fold.interval(end_ns, stretch);
        self.logs.stretch(start_ns, end_ns);
        let mut total = fold.into_total();
        total.balance = balance(&total.interval);
        self.steps.push((*step, total));

        for line in self.workload.complaints().take() {
            self.console.aside(line);
        }
        let (verdict, why) = match step.verdict {
            StepOutcome::Kept => ("keeps it", ""),
            StepOutcome::Missed => ("misses it", ""),
            StepOutcome::Unusable => ("is unusable", " (the client was late; the rate is tried again)"),
        };
        let latency =
            step.at_quantile_ns.map_or_else(|| "never".to_owned(), |ns| format!("{:.2} ms", output::ms(ns as f64)));
        let so_far = known.map_or_else(String::new, |known| {
            format!("; threshold {:.0}/s ({:.0} to {:.0})", known.rate, known.interval.0, known.interval.1)
        });
        self.console.line(format!(
            "search: {:.0}/s {verdict}: {} operations, {:.0}/s answered, {latency} at the quantile of all that were \
             due{why}{so_far}",
            step.rate, step.operations, step.goodput
        ));
    }

    fn drained(&mut self, engine: &Engine, buckets: &[Bucket]) {
        self.telling().live(&engine.live(), None);
        self.take(buckets, engine.cpu_ns(), &engine.connection_events());
    }

    fn dry(&self) -> bool {
        self.workload.may_be_exhausted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_is_the_limit_is_told_with_what_the_database_can_do_at_least() {
        let told = |at_least| told_found("p99<20ms", &Found::Client { at_least, tried: 3_200.0 });
        assert_eq!(
            told(Some(1_600.0)),
            "the client is the limit here: at least 1600/s (p99<20ms; it was late itself in every step at 3200/s: use a \
             machine with a free processor)"
        );
        assert!(
            told(None).starts_with("the client is the limit here: nothing is known yet (p99<20ms;"),
            "{}",
            told(None)
        );
    }
}
