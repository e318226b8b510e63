//! The end of a run: the files written then, the last line, the exit code.

use super::{
    RunError,
    console::Console,
    logs::{Logs, both_clocks},
    outcome::Outcome,
    phase::How,
    plan,
};
use crate::{
    output::{self, Ended, RunFacts, SearchFacts},
    settings::{Rate, Settings},
};

/// Writes the files that are written at the end; prints END or FAILURE; returns the exit code.
pub(super) fn finish(
    settings: &Settings,
    console: &mut Console,
    logs: Logs,
    outcome: &Outcome,
    started_unix_ms: u64,
) -> u8 {
    let missed =
        outcome.search.as_ref().is_some_and(|search| [SearchFacts::NEVER, SearchFacts::DRY].contains(&search.found));
    let success = outcome.how == How::Done && !missed;
    let error = outcome.error.as_ref().map_or_else(|| "an operation failed".to_owned(), ToString::to_string);
    let ended = match outcome.how {
        How::Done => Ended::Done,
        How::Interrupted => Ended::Interrupted,
        How::Failed => Ended::Failed(&error),
    };
    // If one cannot be written, the others still are.
    let total = &outcome.total;
    let sheets = || outcome.steps.iter().map(|(_, total)| total).chain([total]).map(|total| &total.balance);
    let unbalanced = sheets().find(|sheet| !sheet.balances());
    let (tests, mut broken) = logs.close(ended, &total.warnings, unbalanced.unwrap_or(&total.balance));
    if let Some(error) = console.broken() {
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
        console.aside(format!("brownout: {text}"));
    }
    console.line(if success && written { output::END } else { output::FAILURE });
    let late = match settings.rate {
        // Its steps were judged one by one, and late ones were unusable.
        Rate::Search(_) => false,
        _ if plan::has_schedule(settings) => total.too_late(),
        _ => total.stood_still_too_long(),
    };
    match outcome.how {
        How::Interrupted => 130,
        How::Failed => outcome.error.as_ref().map_or(1, RunError::exit_code),
        How::Done if missed || !written => 1,
        How::Done if unbalanced.is_some() => {
            console.aside("its account does not balance: this run is no evidence about the database");
            3
        }
        How::Done if outcome.search.as_ref().is_some_and(|search| search.found == SearchFacts::CLIENT) => 3,
        How::Done if late => {
            console.aside(
                "the client itself was late for more than a fifth of the time: this run is no evidence about the \
                 database; use a machine with a free processor, or a lower rate",
            );
            3
        }
        How::Done => 0,
    }
}

fn chrono_now() -> chrono::DateTime<chrono::Utc> {
    let (_, unix_ms) = both_clocks();
    chrono::DateTime::from_timestamp_millis(unix_ms as i64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use brownout_load::Balance;

    use super::*;
    use crate::output::{Measure, RunPlan, Total};

    #[test]
    fn a_search_that_found_the_client_or_nothing_is_no_success() {
        let exit = |found| {
            let settings = Settings::parse(&["write", "n=1", "-rate", "search(slo=p99<20ms)"]).unwrap();
            let logs = Logs::open(&settings, &RunPlan::default(), true).unwrap();
            let total = Total { balance: Balance::default(), ..Total::new(0, Measure::Response) };
            let facts =
                SearchFacts { objectives: Vec::new(), found, rate: Some(100.0), interval: None, safe_rate: None };
            let outcome = Outcome { search: Some(facts), ..Outcome::of(total, Vec::new(), How::Done) };
            finish(&settings, &mut Console::silent(), logs, &outcome, 0)
        };
        let found =
            ["threshold", SearchFacts::ALWAYS, SearchFacts::NEVER, SearchFacts::DRY, SearchFacts::CLIENT].map(exit);
        assert_eq!(found, [0, 0, 1, 1, 3]);
    }
}
