//! The figures at the head of the report: of what the faults did, or, where there are none, of the load.

use brownout_analysis::{Proof, Quantile, Response, Validity, phase};
use brownout_units::{Delay, format_ns};

use crate::{
    escape::escape,
    scope::Scope,
    text::{self, SHOWN},
};

/// Name, value and note of a tile.
type Tile = (&'static str, String, String);

/// All tiles.
pub(crate) fn tiles(scope: &Scope<'_>) -> String {
    let tiles = if scope.planned_faults.is_empty() { of_load(scope) } else { of_faults(scope) };
    let tile = |(name, value, note): Tile| {
        format!(
            "<div class=\"tile\"><dt>{}</dt><dd>{}<small>{}</small></dd></div>",
            escape(name),
            escape(&value),
            escape(&note)
        )
    };
    // Numbers that nothing follows from do not shout.
    let class = if scope.findings.verdict.validity == Validity::Valid { "tiles" } else { "tiles doubt" };
    format!("<dl class=\"{class}\">{}</dl>", tiles.into_iter().map(tile).collect::<String>())
}

fn of_faults(scope: &Scope<'_>) -> Vec<Tile> {
    let of = |name: &str| scope.phases.iter().find(|phase| phase.name == name);
    let response = |name: &str| of(name).and_then(|phase| phase.response);
    let percentile = |name: &str, which: fn(&Response) -> Quantile| {
        text::or_none(response(name), |response| text::quantile(which(&response)))
    };
    let effect = &scope.effect;
    let spread = effect.change_max.zip(effect.change_min);
    let trials = &scope.trials;
    let healed = scope.own().map(|trial| &trial.effect).filter(|effect| effect.recovered.is_some());
    let slowest = healed.max_by_key(|effect| match effect.recovered {
        Some(false) => u64::MAX,
        _ => effect.recovery_ns.unwrap_or(0),
    });
    let faults = || trials.iter().flat_map(|trial| &trial.faults);
    let proven = faults().filter(|fault| fault.verdict == Proof::Proven).count();
    let release = trials.iter().filter_map(|trial| trial.instrument.release_error).map(|errors| errors.p99_ns).max();
    let busy = busy(scope);
    let within = Delay::from_ns(scope.objective.response_ns);
    vec![
        (
            // What is judged is what the faults do beyond what happens without them.
            if effect.interval.is_some() { "goodput lost to the faults" } else { "degradation of goodput" },
            text::or_none(effect.change, |change| text::share(-change)),
            text::or_none(spread, |(low, high)| {
                let against = if effect.interval.is_some() { ", against their own baselines" } else { "" };
                let (low, high) = (text::share(-low), text::share(-high));
                format!("{low} … {high} in single trials{against}; good: within {within}")
            }),
        ),
        (
            "response p50, fault",
            percentile(phase::FAULT, |response| response.p50),
            format!("{SHOWN}; baseline {}", percentile(phase::BASELINE, |response| response.p50)),
        ),
        (
            "response p99, fault",
            percentile(phase::FAULT, |response| response.p99),
            format!("{SHOWN}; baseline {}", percentile(phase::BASELINE, |response| response.p99)),
        ),
        (
            "delivered, fault",
            text::or_none(of(phase::FAULT).and_then(|phase| phase.rates), |rates| {
                format!("{}/s", text::rate(rates.delivered))
            }),
            text::or_none(of(phase::FAULT).and_then(|phase| phase.rates), |rates| {
                format!("offered {}/s", text::rate(rates.offered))
            }),
        ),
        (
            "good operations, fault",
            text::or_none(of(phase::FAULT).and_then(|phase| phase.objective_share), text::share),
            format!(
                "baseline {}; asked {}",
                text::or_none(of(phase::BASELINE).and_then(|phase| phase.objective_share), text::share),
                text::share(scope.objective.share)
            ),
        ),
        (
            "recovery after healing",
            text::or_none(slowest, |effect| match effect.recovered {
                Some(false) => "not reached".to_owned(),
                _ => text::recovery(effect),
            }),
            "the slowest trial".to_owned(),
        ),
        (
            "faults proven",
            format!("{proven} of {}", faults().count()),
            "on hit and spared subjects, before, during, after".to_owned(),
        ),
        (
            "instrument error p99",
            text::or_none(release, |ns| format_ns(ns as f64)),
            text::or_none(busy, |busy| format!("machine {:.0}% busy in the baseline", busy * 100.0)),
        ),
    ]
}

fn of_load(scope: &Scope<'_>) -> Vec<Tile> {
    let phase = scope.phases.iter().find(|phase| phase.name == phase::BASELINE);
    let rates = phase.and_then(|phase| phase.rates);
    let response = phase.and_then(|phase| phase.response);
    let percentile =
        |which: fn(&Response) -> Quantile| text::or_none(response, |response| text::quantile(which(&response)));
    let lateness = scope.trials.iter().filter_map(|trial| trial.instrument.lateness).map(|errors| errors.p99_ns).max();
    let within = Delay::from_ns(scope.objective.response_ns);
    vec![
        (
            "delivered",
            text::or_none(rates, |rates| format!("{}/s", text::rate(rates.delivered))),
            text::or_none(rates, |rates| format!("offered {}/s", text::rate(rates.offered))),
        ),
        ("response p50", percentile(|response| response.p50), format!("{SHOWN}, from the intended start")),
        (
            "response p99",
            percentile(|response| response.p99),
            format!(
                "{SHOWN}; of all due {}",
                text::or_none(phase.and_then(|phase| phase.due), |due| text::limit(due.p99))
            ),
        ),
        (
            "response p99.9",
            percentile(|response| response.p999),
            format!("{SHOWN}; largest {}", percentile(|response| response.max)),
        ),
        (
            "good operations",
            text::or_none(phase.and_then(|phase| phase.objective_share), text::share),
            match scope.objective.share {
                share if share > 0.0 => format!("within {within}; asked {}", text::share(share)),
                _ => format!("answered within {within}"),
            },
        ),
        (
            "failed or timed out",
            text::or_none(phase, |phase| (phase.counts.failed + phase.counts.timed_out).to_string()),
            text::or_none(phase.map(|phase| &phase.counts), |counts| {
                format!("and {} never sent", text::not_sent(counts.never_sent, counts.withheld))
            }),
        ),
        (
            "client late, p99",
            text::or_none(lateness, |ns| format_ns(ns as f64)),
            text::or_none(busy(scope), |busy| format!("machine {:.0}% busy", busy * 100.0)),
        ),
    ]
}

/// The share of the machine that was busy in the baseline; of several trials the largest.
fn busy(scope: &Scope<'_>) -> Option<f64> {
    let cpu = scope.trials.iter().flat_map(|trial| &trial.instrument.cpu);
    cpu.filter(|cpu| cpu.phase == phase::BASELINE).map(|cpu| cpu.busy).reduce(f64::max)
}
