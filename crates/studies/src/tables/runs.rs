//! Danger zones, and where all figures come from.

use std::collections::BTreeMap;

use crate::{
    published::PublishedZone,
    stored::{Crossing, Stored},
    table::Table,
    words::{percent, time},
};

/// Zones that were published, beside ours; `name` says in which findings that is.
pub fn danger_zones(
    zones: &[PublishedZone],
    findings: &BTreeMap<String, Stored>,
    name: impl Fn(&PublishedZone) -> String,
) -> String {
    let mut table = Table::new([
        "fault",
        "load",
        "published: 10% … 50% lost",
        "measured: 10% lost",
        "measured: 50% lost",
        "trials",
    ]);
    for zone in zones {
        let run = findings.get(&name(zone));
        let found = run.and_then(|run| run.zone.as_ref());
        let crossing = |loss: f64| match (run, found) {
            (None, _) => "not measured yet".to_owned(),
            (Some(_), None) => "undetermined".to_owned(),
            (Some(_), Some(found)) => {
                let known = found.crossings.iter().find(|crossing| (crossing.loss - loss).abs() < 1e-9);
                known.map_or_else(|| "undetermined".to_owned(), |known| between(known, zone.fault == "delay"))
            }
        };
        table.row([
            zone.fault.clone(),
            zone.load.clone(),
            format!("{} … {}", zone.from, zone.to),
            crossing(0.1),
            crossing(0.5),
            run.map_or_else(|| "0".to_owned(), |run| run.valid.to_string()),
        ]);
    }
    table.text()
}

fn between(crossing: &Crossing, delay: bool) -> String {
    let value = |value: f64| if delay { time(Some(value)) } else { percent(value) };
    let text = match (crossing.low, crossing.high) {
        (Some(low), Some(high)) => format!("{} … {}", value(low), value(high)),
        (Some(low), None) => format!("above {}", value(low)),
        (None, Some(high)) => format!("below {}", value(high)),
        (None, None) => "undetermined".to_owned(),
    };
    if crossing.back.is_empty() {
        return text;
    }
    let back: Vec<String> = crossing.back.iter().map(|place| value(*place)).collect();
    format!("{text}; less again at {}", back.join(", "))
}

/// Command, day, machine and versions of each of our runs.
pub fn provenance(findings: &BTreeMap<String, Stored>) -> String {
    let mut table = Table::new(["findings", "command", "date", "valid trials", "verdict", "versions", "machine"]);
    for (name, run) in findings {
        let machine = &run.environment;
        table.row([
            format!("`findings/{name}.json`"),
            format!("`{}`", run.command),
            run.date.clone(),
            format!("{} of {}, {} planned", run.valid, run.run, run.planned),
            run.validity.clone(),
            match machine.java.as_str() {
                "" => format!("Brownout {}, {}", machine.brownout, machine.system),
                java => format!("Brownout {}, {}, Java {java}", machine.brownout, machine.system),
            },
            format!(
                "{} × {}, {:.0} GiB, Linux {}, {}, TCP {}",
                machine.cores,
                machine.cpu,
                machine.memory as f64 / f64::from(1 << 30),
                machine.kernel,
                machine.privilege,
                machine.congestion_control
            ),
        ]);
    }
    table.text()
}
