//! What is in force on hosts, in words: read back, not remembered.

use brownout_cluster::NodeState;

use super::{Failure, lab::Lab, link_state::LinkStates, status::disk};

impl Lab {
    /// What is in force on these hosts, or, where none are named, at the ends of these links.
    pub(super) fn in_force(
        &self,
        hosts: Option<&[String]>,
        links: &[(String, String)],
    ) -> Result<Vec<String>, Failure> {
        let read = LinkStates::of(self.testbed.controls, &self.layout)?;
        let words = read.by_host(&self.layout.hosts, &self.ledger());
        let groups = read.groups(&self.layout.hosts);
        let told = |name: &str| match hosts {
            Some(hosts) => hosts.iter().any(|host| host == name),
            None => links.iter().any(|(from, _)| from == name),
        };
        let mut lines = Vec::new();
        for host in self.layout.hosts.iter().filter(|host| told(&host.name)) {
            let mut parts = Vec::new();
            if self.is_node(&host.name) {
                let state = self.node_state(&host.name)?;
                parts.extend((state != NodeState::Up).then(|| state.to_string()));
            }
            parts.extend(words.get(&host.name).cloned().unwrap_or_default());
            parts.extend(disk(self, &host.name)?.into_iter().map(|words| format!("disk {words}")));
            if self.is_node(&host.name) {
                parts.extend(self.control.cpu_share(&host.name)?.map(|share| format!("cpu {share}")));
            }
            if let Some(skew) = self.testbed.controls.clocks.get(&host.name).map(|clock| clock.skew())
                && (skew.offset_ns, skew.drift_ppb) != (0, 0)
            {
                parts.push(format!("clock {}", clock_words(skew.offset_ns, skew.drift_ppb)));
            }
            if let Some(groups) = groups.get(&host.name) {
                let groups: Vec<String> = groups.iter().map(usize::to_string).collect();
                parts.push(format!("in group {} of the partition", groups.join(" and ")));
            }
            let what = if parts.is_empty() { "NORMAL".to_owned() } else { parts.join("; ") };
            lines.push(format!("{}: {what}", host.name));
        }
        Ok(lines)
    }
}

/// "+5s", "-20ms, gaining 100ppm".
pub(super) fn clock_words(offset_ns: i64, drift_ppb: i64) -> String {
    let sign = if offset_ns < 0 { '-' } else { '+' };
    let offset = format!("{sign}{}", brownout_units::format_ns(offset_ns.unsigned_abs() as f64));
    match drift_ppb {
        0 => offset,
        drift if drift > 0 => format!("{offset}, gaining {}ppm", drift as f64 / 1e3),
        drift => format!("{offset}, losing {}ppm", drift.unsigned_abs() as f64 / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_told_with_their_sign() {
        assert!(clock_words(5_000_000_000, 0).starts_with("+5"));
        assert!(clock_words(-20_000_000, -100_000).starts_with("-20"));
        assert!(clock_words(0, 100_000).contains("gaining 100ppm"));
    }
}
