//! The machines that made a trial together: the same rows for the terminal and for the page.

use brownout_analysis::{MachineFindings, Meanwhile, TrialFindings};
use brownout_units::format_ns;

use crate::{
    markup::{cell, table},
    page::Page,
    table::{Paint, Table},
};

const CAPTION: &str = "What each knew of the others' monotonic clocks: by how much they were ahead, ± the bound of that, median and at \
                       the worst";
const HEADINGS: [&str; 3] = ["machine", "has", "clocks of others"];

impl Page {
    /// Of trials that several machines have made, each with what it is called. All of a run are made by the same: one is shown.
    pub(crate) fn machines<'a>(&mut self, mut trials: impl Iterator<Item = (String, &'a TrialFindings)>) {
        let Some((name, trial)) = trials.find(|(_, trial)| !trial.machines.is_empty()) else { return };
        self.section(&format!("Machines, {name}"));
        self.line(Paint::Dim, &format!("  {CAPTION}"));
        let mut table = Table::new(&HEADINGS);
        rows(&trial.machines).into_iter().for_each(|row| table.row(Paint::Plain, row));
        self.table(&table);
    }
}

/// Of what happened to the nodes so much is shown at the terminal of each trial; the page and the JSON have all.
const MOST_SHOWN: usize = 10;

impl Page {
    /// What whoever runs the nodes did to them meanwhile.
    pub(crate) fn meanwhile<'a>(&mut self, trials: impl Iterator<Item = (String, &'a TrialFindings)>) {
        for (name, trial) in trials.filter(|(_, trial)| !trial.meanwhile.is_empty()) {
            self.section(&format!("Kubernetes meanwhile, {name}"));
            for Meanwhile { node, at_ns, error_ns, text } in trial.meanwhile.iter().take(MOST_SHOWN) {
                let seconds = at_ns.saturating_sub(trial.starts_ns) as f64 / 1e9;
                let error = format_ns(*error_ns as f64);
                self.line(Paint::Plain, &format!("  {seconds:.1} s after its beginning (± {error}), {node}: {text}"));
            }
            let more = trial.meanwhile.len().saturating_sub(MOST_SHOWN);
            if more > 0 {
                self.line(Paint::Dim, &format!("  and {more} more"));
            }
        }
    }
}

/// The same for the page; none if one machine made it.
pub(crate) fn html(trial: &TrialFindings) -> Option<String> {
    let rows = rows(&trial.machines).into_iter().map(|row| ("", row.into_iter().map(cell).collect()));
    (!trial.machines.is_empty()).then(|| table("", CAPTION, &HEADINGS, rows.collect()))
}

/// One for each machine and each clock that it knew; of one that asked nobody one alone.
fn rows(machines: &[MachineFindings]) -> Vec<Vec<String>> {
    let of = |machine: &MachineFindings| {
        let has = match (&machine.lost, machine.sends) {
            (Some(lost), _) => format!("the load, until it was lost at {:.1} s", lost.at_ns as f64 / 1e9),
            (None, true) => "the load".to_owned(),
            (None, false) => machine.hosts.join(", "),
        };
        let known = machine.clocks.iter().map(|clock| {
            let sign = if clock.ahead_ns > 0.0 { "+" } else { "" };
            let (ahead, error, worst) =
                (format_ns(clock.ahead_ns), format_ns(clock.error_ns), format_ns(clock.worst_ns as f64));
            format!("{} {sign}{ahead} ± {error}, at the worst ± {worst}", clock.other)
        });
        let known: Vec<String> = known.collect();
        let first = known.first().cloned().unwrap_or_else(|| "–".to_owned());
        let more = known.into_iter().skip(1).map(|clock| vec![String::new(), String::new(), clock]);
        std::iter::once(vec![machine.machine.clone(), has, first]).chain(more).collect::<Vec<_>>()
    };
    machines.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use brownout_analysis::{MachineClock, MachineLost};

    use super::*;

    #[test]
    fn each_machine_has_a_row_for_each_clock_that_it_knows() {
        let clock = |other: &str, ahead_ns| MachineClock {
            other: other.to_owned(),
            ahead_ns,
            error_ns: 12_000.0,
            worst_ns: 30_000,
        };
        let machine = |name: &str, sends, hosts: &[&str], clocks| MachineFindings {
            machine: name.to_owned(),
            sends,
            hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
            clocks,
            lost: None,
        };
        let lost = MachineLost {
            at_ns: 31_240_000_000,
            error_ns: 0,
            why: "it has ended without a word".to_owned(),
            shares: Default::default(),
        };
        let all = [
            machine("a", false, &["n1", "n2"], vec![clock("b", 5e12), clock("c", -2e3)]),
            machine("l", true, &[], Vec::new()),
            MachineFindings { lost: Some(lost), ..machine("m", true, &[], Vec::new()) },
        ];
        assert_eq!(
            rows(&all),
            [
                ["a", "n1, n2", "b +5000s ± 12.0us, at the worst ± 30.0us"],
                ["", "", "c -2.00us ± 12.0us, at the worst ± 30.0us"],
                ["l", "the load", "–"],
                ["m", "the load, until it was lost at 31.2 s", "–"],
            ]
        );
    }
}
