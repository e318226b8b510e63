//! `legacy`: the options of cassandra-stress 2.0, translated to today's.
//!
//! cassandra-stress still has such a translation, but into options that it no longer understands itself. This one
//! yields what they meant, and refuses what no longer has a meaning.

use super::SettingsError;

/// Short name, long name, whether a value follows, help text.
const OPTIONS: [(&str, &str, bool, &str); 39] = [
    ("h", "help", false, "this list"),
    ("n", "num-keys", true, "count of operations (1000000)"),
    ("F", "num-different-keys", true, "count of keys (as many as operations)"),
    ("t", "threads", true, "clients (50)"),
    ("c", "columns", true, "columns (5)"),
    ("S", "column-size", true, "bytes of a value (34)"),
    ("C", "unique columns", true, "without effect"),
    ("RC", "unique rows", true, "without effect"),
    ("d", "nodes", true, "nodes, separated by commas"),
    ("D", "nodesfile", true, "file of nodes"),
    ("s", "stdev", true, "spread of the keys read (0.1)"),
    ("r", "random", false, "read keys at random"),
    ("f", "file", true, "copy of the output"),
    ("p", "port", true, "without effect: the port of Thrift"),
    ("o", "operation", true, "INSERT, READ, COUNTER_ADD or COUNTER_GET"),
    ("u", "supercolumns", true, "gone"),
    ("y", "family-type", true, "Standard; others are gone"),
    ("K", "keep-trying", true, "tries of an operation"),
    ("k", "keep-going", false, "go on after errors"),
    ("i", "progress-interval", true, "seconds between rows (10)"),
    ("g", "keys-per-call", true, "gone"),
    ("l", "replication-factor", true, "replicas"),
    ("L3", "enable-cql3", false, "without effect: there is nothing else"),
    ("b", "enable-native-protocol", false, "without effect: there is nothing else"),
    ("P", "use-prepared-statements", false, "without effect: they are"),
    ("e", "consistency-level", true, "consistency level (ONE)"),
    ("x", "create-index", true, "gone"),
    ("R", "replication-strategy", true, "replication strategy"),
    ("O", "strategy-properties", true, "DC:REPLICAS,…"),
    ("V", "average-size-values", false, "sizes around that of -S"),
    ("T", "send-to", true, "without effect: there is no daemon any more"),
    ("I", "compression", true, "compression of tables"),
    ("Q", "query-names", true, "names of columns"),
    ("Z", "compaction-strategy", true, "compaction strategy"),
    ("U", "comparator", true, "without effect"),
    ("ns", "no-statistics", false, "no results at the end"),
    ("ts", "truststore", true, "TLS: truststore"),
    ("tspw", "truststore-password", true, "TLS: its password"),
    ("th", "throttle", true, "operations per second at the most"),
];

/// The given options, by short name.
type Given<'a> = Vec<(&'static str, &'a str)>;

/// Translates legacy options to today's words.
pub(super) fn translate(words: &[String]) -> Result<Vec<String>, SettingsError> {
    let given = read(words)?;
    let get = |short: &str| given.iter().find(|(known, _)| *known == short).map(|(_, value)| *value);
    let mut out: Vec<String> = Vec::new();
    let operation = get("o").unwrap_or("INSERT").to_ascii_lowercase();
    let command = match operation.as_str() {
        "insert" | "write" => "write",
        "read" => "read",
        "counter_add" | "counterwrite" | "counter_write" | "counteradd" => "counter_write",
        "counter_get" | "counterread" | "counter_read" | "counterget" => "counter_read",
        gone => {
            return Err(SettingsError::senseless(
                format!("legacy -o {gone}"),
                "write INSERT, READ, COUNTER_ADD or COUNTER_GET; slices, indexes and multi-gets are queries of a profile now",
            ));
        }
    };
    for (gone, instead) in [
        ("u", "super columns are gone"),
        ("g", "multi-gets are queries of a profile now"),
        ("x", "indexes are extra_definitions of a profile now"),
    ] {
        if get(gone).is_some() {
            return Err(SettingsError::senseless(format!("legacy -{gone} has no meaning any more"), instead));
        }
    }
    if get("y").is_some_and(|family| !family.eq_ignore_ascii_case("standard")) {
        return Err(SettingsError::senseless("legacy -y: column families are Standard now", "leave it out"));
    }
    let count = get("n").unwrap_or("1000000");
    let keys = get("F").unwrap_or(count);
    out.extend([command.to_owned(), format!("n={count}")]);
    out.extend(get("e").map(|level| format!("cl={level}")).or(Some("cl=ONE".to_owned())));
    out.push("-pop".to_owned());
    if command.ends_with("write") {
        out.push(format!("seq=1..{keys}"));
    } else if get("r").is_some() {
        out.push(format!("dist=uniform(1..{keys})"));
    } else {
        let spread = get("s").unwrap_or("0.1");
        let spread: f64 = spread.parse().ok().filter(|spread| *spread > 0.0).ok_or_else(|| {
            SettingsError::senseless(format!("legacy -s {spread}"), "write a number above 0, such as 0.1")
        })?;
        out.push(format!("dist=gauss(1..{keys},{:.2})", 0.5 / spread));
    }
    out.push("-col".to_owned());
    match get("Q") {
        Some(names) => out.push(format!("names={names}")),
        None => out.push(format!("n=fixed({})", get("c").unwrap_or("5"))),
    }
    let size = get("S").unwrap_or("34");
    let twice = size.parse::<u32>().ok().and_then(|size| size.checked_mul(2));
    match (get("V"), twice) {
        (None, _) => out.push(format!("size=fixed({size})")),
        (Some(_), Some(twice)) => out.push(format!("size=uniform(1..{twice})")),
        (Some(_), None) => {
            return Err(SettingsError::senseless(format!("legacy -S {size}"), "write a whole number of bytes"));
        }
    }
    out.extend(["-rate".to_owned(), format!("threads={}", get("t").unwrap_or("50"))]);
    out.extend(get("th").map(|rate| format!("throttle={rate}/s")));
    out.extend(["-log".to_owned(), format!("interval={}", get("i").unwrap_or("10"))]);
    out.extend(get("f").map(|file| format!("file={file}")));
    out.extend(get("ns").map(|_| "no-summary".to_owned()));
    // -K counts tries, retries= counts those after the first.
    let retries = get("K").map(|tries| match tries.parse::<u32>() {
        Ok(tries) => Ok(format!("retries={}", tries.saturating_sub(1))),
        Err(_) => Err(SettingsError::senseless(format!("legacy -K {tries}"), "write a whole number")),
    });
    let retries = retries.transpose()?.or_else(|| get("k").map(|_| "retries=0".to_owned()));
    if retries.is_some() || get("k").is_some() {
        out.push("-errors".to_owned());
        out.extend(retries);
        out.extend(get("k").map(|_| "ignore".to_owned()));
    }
    schema(&mut out, &get);
    if get("d").is_some() || get("D").is_some() {
        out.push("-node".to_owned());
        out.extend(get("d").map(str::to_owned));
        out.extend(get("D").map(|file| format!("file={file}")));
    }
    if get("ts").is_some() || get("tspw").is_some() {
        out.push("-transport".to_owned());
        out.extend(get("ts").map(|file| format!("truststore={file}")));
        out.extend(get("tspw").map(|password| format!("truststore-password={password}")));
    }
    // These have no effect, as the notes of today's groups say.
    out.extend(get("p").map(|port| format!("-port thrift={port}")));
    out.extend(get("T").map(|host| format!("-sendto {host}")));
    Ok(out.iter().flat_map(|word| word.split(' ')).map(str::to_owned).collect())
}

fn schema<'a>(out: &mut Vec<String>, get: &dyn Fn(&str) -> Option<&'a str>) {
    let strategy = get("R").map(|strategy| format!("strategy={strategy}"));
    let factor = get("l").map(|factor| format!("factor={factor}"));
    let centres = get("O").map(|centres| centres.replace(':', "="));
    let parts: Vec<String> = [strategy, factor, centres].into_iter().flatten().collect();
    let replication = (!parts.is_empty()).then(|| format!("replication({})", parts.join(",")));
    let compression = get("I").map(|class| format!("compression={class}"));
    let compaction = get("Z").map(|class| format!("compaction(strategy={class})"));
    let all: Vec<String> = [replication, compression, compaction].into_iter().flatten().collect();
    if !all.is_empty() {
        out.push("-schema".to_owned());
        out.extend(all);
    }
}

/// `-n 5`, `-n5`, `--num-keys 5`, `--num-keys=5`.
fn read(words: &[String]) -> Result<Given<'_>, SettingsError> {
    let mut given: Given<'_> = Vec::new();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let unknown = || {
            SettingsError::senseless(
                format!("Application does not allow arbitrary arguments: [{word}]"),
                format!("the options of old are:\n{}", help()),
            )
        };
        let (option, mut value) = if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            (OPTIONS.iter().find(|(_, known, ..)| *known == name).ok_or_else(unknown)?, value)
        } else {
            let short = word.strip_prefix('-').filter(|short| !short.is_empty()).ok_or_else(unknown)?;
            let exact = OPTIONS.iter().find(|(known, ..)| *known == short).map(|option| (option, None));
            let attached = || {
                let first = short.chars().next().map_or(0, char::len_utf8);
                let (name, value) = short.split_at(first);
                OPTIONS.iter().find(|(known, _, takes, _)| *takes && *known == name).map(|option| (option, Some(value)))
            };
            exact.or_else(attached).ok_or_else(unknown)?
        };
        let (short, _, takes_value, _) = option;
        if *short == "h" {
            return Err(SettingsError::senseless("legacy -h", help()));
        }
        if *takes_value && value.is_none() {
            value = words.next();
        }
        match (takes_value, value) {
            (true, None) => return Err(SettingsError::senseless(format!("legacy {word} has no value"), "write one")),
            (false, Some(_)) => return Err(unknown()),
            _ => given.push((short, value.unwrap_or_default())),
        }
    }
    Ok(given)
}

/// The help text of the legacy options.
pub(super) fn help() -> String {
    let mut text = String::from("Usage: legacy [OPTIONS]\n\nOptions of cassandra-stress 2.0:\n");
    for (short, long, takes_value, what) in OPTIONS {
        let value = if takes_value { " VALUE" } else { "" };
        text.push_str(&format!("  {:<40} {what}\n", format!("-{short}, --{long}{value}")));
    }
    text
}
