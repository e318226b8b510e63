//! `-schema`: the keyspace and the tables of predefined commands.

use super::{
    CommandKind, SettingsError,
    grammar::{Alternative, Extra, Pattern, Taken, multi, select, value},
    number::null,
};

/// Options of a CQL map, in the order in which they were written.
pub type Options = Vec<(String, String)>;

/// The keyspace and the tables of predefined commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Its name; `None` with `user`, where the profile names it.
    pub keyspace: Option<String>,
    /// Class of the replication strategy.
    pub replication_strategy: String,
    /// The strategy's options: `replication_factor`, or a factor for each data centre.
    pub replication: Options,
    /// Class of the compaction strategy.
    pub compaction_strategy: Option<String>,
    /// Its options.
    pub compaction: Options,
    /// Class of the compressor; `None`: no compression.
    pub compression: Option<String>,
    /// ScyllaDB's storage type.
    pub storage_type: Option<String>,
    /// Its options.
    pub storage: Options,
}

const PACKAGE: &str = "org.apache.cassandra.locator.";
const NETWORK_TOPOLOGY: &str = "org.apache.cassandra.locator.NetworkTopologyStrategy";
/// Cassandra's strategies; others are classes of the server's own and need their full name.
const STRATEGIES: [&str; 5] =
    ["NetworkTopologyStrategy", "SimpleStrategy", "LocalStrategy", "OldNetworkTopologyStrategy", "EverywhereStrategy"];

pub(super) fn alternatives() -> Vec<Alternative> {
    vec![
        Alternative::new(vec![
            multi(
                "replication",
                vec![
                    value("strategy=", Pattern::Something, "class of the strategy").or(NETWORK_TOPOLOGY),
                    value("factor=", Pattern::Digits, "replicas, in every data centre").or("1"),
                ],
                Extra::Pairs,
                "replication; further options are data centres: replication(dc1=3,dc2=2)",
            ),
            multi(
                "storage",
                vec![
                    value("type=", Pattern::Words("LOCAL|S3"), "ScyllaDB: where SSTables are kept"),
                    value("endpoint=", Pattern::Something, "address of the S3 server"),
                    value("bucket=", Pattern::Something, "bucket of the keyspace"),
                ],
                Extra::Pairs,
                "ScyllaDB's storage options",
            ),
            value("keyspace=", Pattern::Something, "name of the keyspace").or("keyspace1"),
            multi(
                "compaction",
                vec![value("strategy=", Pattern::Something, "class of the strategy")],
                Extra::Pairs,
                "compaction; further options are the strategy's",
            ),
            value("compression=", Pattern::Something, "class of the compressor (default: no compression)"),
        ])
        .complete(storage_is_whole),
    ]
}

fn storage_is_whole(taken: &Taken) -> bool {
    taken.multi("storage").is_none_or(|storage| match storage.get("type=") {
        Some(kind) if kind.eq_ignore_ascii_case("s3") => {
            storage.get("endpoint=").is_some() && storage.get("bucket=").is_some()
        }
        _ => true,
    })
}

impl Schema {
    pub(super) fn parse(words: Option<&[String]>, kind: CommandKind) -> Result<Self, SettingsError> {
        let profiled = matches!(kind, CommandKind::User | CommandKind::VerifySizes);
        if profiled && words.is_some() {
            return Err(SettingsError::senseless(
                "-schema can only be provided with predefined operations insert, read, etc.; the 'user' command requires a \
                 schema yaml instead",
                "write keyspace_definition and table_definition in the profile",
            ));
        }
        let (_, taken) = select("-schema", words.unwrap_or_default(), alternatives())?;
        let part = |name: &str, key: &str| taken.multi(name).and_then(|part| part.get(key)).map(str::to_owned);
        let pairs = |name: &str| taken.multi(name).map(|part| part.pairs().to_vec()).unwrap_or_default();
        let replication_strategy = match part("replication", "strategy=") {
            Some(name) => strategy(&name)?,
            None => NETWORK_TOPOLOGY.to_owned(),
        };
        let mut replication = pairs("replication");
        let factor = taken.multi("replication").and_then(|part| part.given("factor="));
        // As in ScyllaDB's fork: the factor, for data centres that are not named, comes last, whether given or not.
        if !replication.iter().any(|(key, _)| key == "replication_factor")
            && (factor.is_some() || replication_strategy == NETWORK_TOPOLOGY)
        {
            replication.push(("replication_factor".to_owned(), factor.unwrap_or("1").to_owned()));
        }
        let mut storage = pairs("storage");
        for key in ["endpoint=", "bucket="] {
            storage.extend(part("storage", key).map(|value| (key.trim_end_matches('=').to_owned(), value)));
        }
        Ok(Schema {
            keyspace: (!profiled).then(|| taken.text("keyspace=").to_owned()),
            replication_strategy,
            replication,
            compaction_strategy: part("compaction", "strategy="),
            compaction: pairs("compaction"),
            compression: taken.get("compression=").map(str::to_owned),
            storage_type: part("storage", "type="),
            storage,
        })
    }

    pub(super) fn block(&self) -> String {
        let map = |options: &Options| {
            let entries: Vec<String> = options.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("{{{}}}", entries.join(", "))
        };
        format!(
            "  Keyspace: {}\n  Replication Strategy: {}\n  Replication Strategy Options: {}\n  Storage Options: {}\n  Table \
             Compression: {}\n  Table Compaction Strategy: {}\n  Table Compaction Strategy Options: {}\n",
            null(self.keyspace.as_ref()),
            self.replication_strategy,
            map(&self.replication),
            map(&self.storage),
            null(self.compression.as_ref()),
            null(self.compaction_strategy.as_ref()),
            map(&self.compaction),
        )
    }
}

/// The full name of a strategy's class.
fn strategy(name: &str) -> Result<String, SettingsError> {
    let short = name.strip_prefix(PACKAGE).unwrap_or(name);
    match STRATEGIES.iter().find(|known| **known == short) {
        Some(known) => Ok(format!("{PACKAGE}{known}")),
        // Written in full, it may be a class that only the servers know.
        None if name.contains('.') && !name.starts_with(PACKAGE) => Ok(name.to_owned()),
        None => Err(SettingsError::senseless(
            format!("Invalid replication strategy: {name}"),
            format!("write one of {}, or a class in full", STRATEGIES.join(", ")),
        )),
    }
}
