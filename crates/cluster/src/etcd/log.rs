//! What an etcd server's log tells that no metric does: the moments of elections, and single syncs that were slow. Lines are JSON
//! (`--logger=zap`), with times in UTC (`TZ`).

use serde_json::Value;

use super::calendar;

/// Something that a line tells.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Told {
    /// By the node's own clock, ns since 1970.
    pub(super) unix_ns: u64,
    /// What the stamp's last digit stands for, ns.
    pub(super) resolution_ns: u64,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// This member leads from now on, elected in this term.
    Elected { leader: u64, term: u64 },
    /// This member led until now.
    Lost { leader: u64, term: u64 },
    /// The server itself begins an election; with pre-vote it asks first whether one would be won.
    Campaign { term: u64 },
    /// A sync of the log took this long, ns.
    SlowSync { took_ns: f64 },
}

/// Reads a line; none if it tells nothing of this.
pub(super) fn read(line: &str) -> Option<Told> {
    // Most lines are of something else, and need not be read as JSON.
    if ![" leader ", "new election at term", "slow fdatasync"].iter().any(|sign| line.contains(sign)) {
        return None;
    }
    let line: Value = serde_json::from_str(line).ok()?;
    let what = what(line.get("msg")?.as_str()?, line.get("took").and_then(Value::as_str))?;
    let (unix_ns, resolution_ns) = calendar::of_log(line.get("ts")?.as_str()?)?;
    Some(Told { unix_ns, resolution_ns, what })
}

fn what(said: &str, took: Option<&str>) -> Option<What> {
    if said == "slow fdatasync" {
        return Some(What::SlowSync { took_ns: took.and_then(duration_ns)? });
    }
    if let Some((_, term)) = said.split_once(" is starting a new election at term ") {
        return Some(What::Campaign { term: term.trim().parse().ok()? });
    }
    // raft.node: A elected leader B at term 2; A lost leader B at term 2; A changed leader from B to C at term 3
    let (said, term) = said.strip_prefix("raft.node: ")?.rsplit_once(" at term ")?;
    let term = term.trim().parse().ok()?;
    let id = |text: &str| u64::from_str_radix(text, 16).ok();
    if let Some((_, leader)) = said.split_once(" elected leader ") {
        Some(What::Elected { leader: id(leader)?, term })
    } else if let Some((_, leader)) = said.split_once(" lost leader ") {
        Some(What::Lost { leader: id(leader)?, term })
    } else {
        let (_, leader) = said.split_once(" changed leader from ")?.1.split_once(" to ")?;
        Some(What::Elected { leader: id(leader)?, term })
    }
}

/// A duration as Go writes it, `1m2.5s`, `120.3ms`, in ns.
fn duration_ns(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 7] =
        [("ns", 1.0), ("µs", 1e3), ("us", 1e3), ("ms", 1e6), ("h", 3.6e12), ("m", 6e10), ("s", 1e9)];
    let (mut rest, mut sum) = (text.trim(), 0.0);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let value: f64 = rest[..digits].parse().ok()?;
        let (unit, ns) = UNITS.iter().find(|(unit, _)| rest[digits..].starts_with(unit))?;
        sum += value * ns;
        rest = &rest[digits + unit.len()..];
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(said: &str) -> Option<What> {
        let line = format!(
            r#"{{"level":"info","ts":"2026-11-24T01:45:16.123456Z","caller":"etcdserver/raft.go:1","msg":"{said}","took":"1.25s"}}"#
        );
        read(&line).map(|told| told.what)
    }

    #[test]
    fn elections_are_read_with_who_leads_and_the_term() {
        let (one, other) = (0x8e9e_05c5_2164_694d, 0x91bc_3c39_8fb3_c146);
        assert_eq!(
            told("raft.node: 8e9e05c52164694d elected leader 91bc3c398fb3c146 at term 2"),
            Some(What::Elected { leader: other, term: 2 })
        );
        assert_eq!(
            told("raft.node: 91bc3c398fb3c146 lost leader 8e9e05c52164694d at term 3"),
            Some(What::Lost { leader: one, term: 3 })
        );
        assert_eq!(
            told("raft.node: 1 changed leader from 8e9e05c52164694d to 91bc3c398fb3c146 at term 4"),
            Some(What::Elected { leader: other, term: 4 })
        );
        assert_eq!(told("8e9e05c52164694d is starting a new election at term 1"), Some(What::Campaign { term: 1 }));
        assert_eq!(told("slow fdatasync"), Some(What::SlowSync { took_ns: 1.25e9 }));
        let others =
            ["8e9e05c52164694d became leader at term 2", "raft.node: x elected leader y at term 2", "ready to serve"];
        assert_eq!(others.map(told), [None, None, None]);
        assert_eq!(read("exit status 2"), None);
    }

    #[test]
    fn a_line_has_the_time_of_its_stamp() {
        let line = r#"{"ts":"2026-11-24T01:45:16.123456Z","msg":"1 is starting a new election at term 7"}"#;
        let told = read(line).unwrap();
        assert_eq!((told.unix_ns, told.resolution_ns), (1_795_484_716_123_456_000, 1_000));
    }

    #[test]
    fn durations_are_read_as_go_writes_them() {
        for (text, ns) in [("1.5s", Some(1.5e9)), ("120ms", Some(1.2e8)), ("1m2s", Some(6.2e10)), ("3µs", Some(3e3))] {
            assert_eq!(duration_ns(text), ns, "{text}");
        }
        assert_eq!([duration_ns(""), duration_ns("7"), duration_ns("7 apples")], [None; 3]);
    }
}
