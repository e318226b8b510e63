//! Profiles as the load of an experiment: what is understood, and what is refused, where, with which remedy.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::{collections::BTreeMap, fs, path::Path};

use brownout_lab::{
    Plan,
    experiment::{FileError, Source},
};

const USERS: &str = "\
specname: users
keyspace: Shop
keyspace_definition: \"CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}\"
table: users
table_definition: \"CREATE TABLE users (id uuid, day date, name text, PRIMARY KEY ((id, day)))\"
columnspec:
  - { name: name, size: uniform(5..20) }
queries:
  one: { cql: 'SELECT name FROM users WHERE id = ? AND day = ?', fields: samerow }
  all: { cql: 'SELECT name FROM users WHERE id = ? AND day = ?', fields: samerow, consistencyLevel: ALL }
";

const EXPERIMENT: &str = "\
load:
  profile: users.yaml
  ops: { insert: 1, one: 2 }
  partitions: 500
  rate: 300/s
phases: { warm-up: 20s, baseline: 5s }
objective: { p99: 100ms }
";

/// The plan of an experiment beside profiles.
fn plan_of(experiment: &str, profiles: &[(&str, &str)]) -> Result<(Plan, Source), FileError> {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in profiles {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let source = Source::from_text(&directory.path().join("experiment.yaml"), experiment.to_owned())?;
    Plan::new(&source).map(|plan| (plan, source))
}

fn text_of(experiment: &str, profiles: &[(&str, &str)]) -> String {
    let (plan, _) = plan_of(experiment, profiles).unwrap();
    plan.description("Cassandra").load.text
}

#[test]
fn the_plan_says_operations_tables_and_pace() {
    let text = text_of(EXPERIMENT, &[("users.yaml", USERS)]);
    for part in ["open loop, 300/s", "insert × 1, one × 2", "shop.users", "500 partitions", "quorum", "replication 3"]
    {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
}

#[test]
fn what_a_statement_waits_for_is_not_made_up() {
    let (plan, _) = plan_of(EXPERIMENT, &[("users.yaml", USERS)]).unwrap();
    let placement = plan.description("").placement.unwrap();
    assert!(placement.operations.is_empty() && placement.ring.len() == 3, "{placement:?}");
}

#[test]
fn operations_with_rates_of_their_own_need_no_other_and_add_up() {
    let experiment =
        EXPERIMENT.replace("insert: 1, one: 2", "insert: 100/s, users.one: 250/s").replace("  rate: 300/s\n", "");
    let (plan, _) = plan_of(&experiment, &[("users.yaml", USERS)]).unwrap();
    assert_eq!(plan.load.operations(), ["insert", "users.one"]);
    assert_eq!(words(&plan), ["insert 100/s", "users.one 250/s"]);
    assert_eq!(plan.description("").load.rate, Some(350.0));
}

/// Each operation with how much there is of it.
fn words(plan: &Plan) -> Vec<String> {
    plan.load.parts().map(|(name, amount)| format!("{name} {amount}")).collect()
}

#[test]
fn operations_with_users_of_their_own_stand_beside_others_with_rates() {
    let experiment = EXPERIMENT
        .replace("insert: 1, one: 2", "insert: 100/s, users.one: { threads: 4 }")
        .replace("  rate: 300/s\n", "");
    let (plan, _) = plan_of(&experiment, &[("users.yaml", USERS)]).unwrap();
    assert_eq!(words(&plan), ["insert 100/s", "users.one 4 threads"]);
    let load = plan.description("").load;
    assert!(load.text.contains("insert 100/s, users.one 4 threads; shop.users"), "{}", load.text);
    assert_eq!((load.rate, load.threads), (Some(100.0), None));
}

#[test]
fn rates_of_the_profile_count_where_the_experiment_has_none() {
    let experiment = EXPERIMENT.replace("insert: 1, one: 2", "one: 1").replace("  rate: 300/s\n", "");
    let rated = USERS.replace("one: { cql", "one: { rate: 70/s, cql");
    let (plan, _) = plan_of(&experiment, &[("users.yaml", &rated)]).unwrap();
    assert_eq!(plan.description("").load.rate, Some(70.0));
    let error = plan_of(&experiment, &[("users.yaml", USERS)]).err().unwrap();
    assert!(error.message.contains("the amount of load is missing"), "{error}");
}

#[test]
fn what_the_experiment_says_of_replication_takes_the_place_of_the_profile_s() {
    let five = USERS.replace("'replication_factor': 3", "'replication_factor': 5");
    let error = plan_of(EXPERIMENT, &[("users.yaml", &five)]).err().unwrap();
    for part in ["keeps 5 copies of each row, and there are 3 nodes", "write replication:"] {
        assert!(error.message.contains(part), "'{part}' is not in: {error}");
    }
    assert_eq!(error.place.map(|(line, _)| line), Some(2), "{error}");
    let said = EXPERIMENT.replace("  partitions", "  replication: 2\n  partitions");
    assert!(text_of(&said, &[("users.yaml", &five)]).contains("replication 2"));
    let without = USERS.lines().filter(|line| !line.starts_with("keyspace_def")).collect::<Vec<_>>().join("\n");
    assert!(text_of(EXPERIMENT, &[("users.yaml", &without)]).contains("replication 3"), "the lab's own");
}

#[test]
fn a_run_can_be_planned_again_from_what_was_read_without_the_files() {
    let (plan, source) = plan_of(EXPERIMENT, &[("users.yaml", USERS)]).unwrap();
    let attached = source.attached();
    assert_eq!(attached.values().collect::<Vec<_>>(), [USERS]);
    let text = source.text().to_owned();
    let again = Source::from_text(source.file(), text.clone()).unwrap().with_attached(attached);
    assert_eq!(Plan::new(&again).unwrap().description(""), plan.description(""));
    let bare = Source::from_text(source.file(), text).unwrap().with_attached(BTreeMap::new());
    assert!(Plan::new(&bare).is_err(), "nothing is read from a disk that may be another one");
}

#[test]
fn what_is_set_on_the_command_line_counts_for_operations_too() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("users.yaml"), USERS).unwrap();
    let experiment =
        EXPERIMENT.replace("insert: 1, one: 2", "insert: 1/s, users.one: 2/s").replace("  rate: 300/s\n", "");
    let mut source = Source::from_text(&directory.path().join("e.yaml"), experiment).unwrap();
    source.set("load.ops.users.one=40/s").unwrap();
    assert_eq!(Plan::new(&source).unwrap().description("").load.rate, Some(41.0));
}

/// Exchanged for, in the experiment; the line of the complaint; and what it has to say.
const WRONG: &[(&str, &str, usize, &[&str])] = &[
    ("users.yaml", "userz.yaml", 2, &["userz.yaml cannot be read", "from where this file is"]),
    ("users.yaml", "~/users.yaml", 2, &["~", "write the path"]),
    ("users.yaml", "http://x/users.yaml", 2, &["not fetched", "download it"]),
    ("users.yaml", "[users.yaml, users.yaml]", 2, &["is also named 'users'", "specname"]),
    ("one: 2", "on: 2", 3, &["No query defined with name on", "did you mean 'one'?"]),
    ("one: 2", "shop.one: 2", 3, &["invalid profile specname: shop", "users"]),
    ("one: 2", "one: 200/s", 5, &["loads of their own", "leave rate out"]),
    ("one: 2", "one: { threads: 2 }", 5, &["loads of their own (one 2 threads)", "leave rate out"]),
    (
        "one: 2 }\n  partitions: 500\n  rate: 300/s",
        "one: 2/s }",
        3,
        &["one is a load of its own (2/s)", "insert has a weight"],
    ),
    ("one: 2", "one: { thread: 2 }", 3, &["thread"]),
    ("one: 2", "one: fast", 3, &["'fast'", "a weight such as 2", "500/s"]),
    ("one: 2", "one: 0", 3, &["a weight of 0"]),
    ("one: 2", "users.insert: 2", 3, &["the operation 'insert' is listed twice"]),
    ("  ops: { insert: 1, one: 2 }\n", "", 2, &["the operations are missing", "ops: { insert: 1 }"]),
    ("partitions: 500", "population: 500", 4, &["loads without a profile", "partitions"]),
    ("partitions: 500", "mix: { read: 1 }", 4, &["loads without a profile"]),
    ("partitions: 500", "partitions: 0", 4, &["0 partitions"]),
    ("partitions: 500", "keys: uniform(1..20000)", 4, &["the partitions 1 to 10000"]),
    ("partitions: 500", "keys: unifrm(1..20)", 4, &["unifrm"]),
    ("partitions: 500", "replication: 4", 4, &["4 copies of each row need 4 nodes"]),
    ("partitions: 500", "consistency: serial", 4, &["a level for reads only"]),
    ("partitions: 500", "replication: 1\n  consistency: two", 5, &["two of insert needs 2 replicas", "has 1"]),
    ("rate: 300/s", "threads: 0", 5, &["0 threads"]),
    ("  rate: 300/s\n", "", 1, &["the amount of load is missing", "insert: 500/s"]),
    ("p99: 100ms", "p99: 100ms, operation: tow", 7, &["no operation 'tow'", "insert, one"]),
];

#[test]
fn every_mistake_is_refused_where_it_stands_with_what_would_be_right() {
    for (found, instead, line, parts) in WRONG {
        assert!(EXPERIMENT.contains(found), "{found}");
        let error = plan_of(&EXPERIMENT.replacen(found, instead, 1), &[("users.yaml", USERS)]).err().unwrap();
        assert_eq!(error.place.map(|(line, _)| line), Some(*line), "{instead}: {error}");
        for part in *parts {
            assert!(error.message.contains(part), "{instead}: '{part}' is not in: {error}");
        }
    }
}

#[test]
fn a_mistake_in_a_profile_is_shown_in_the_profile() {
    let error = plan_of(EXPERIMENT, &[("users.yaml", &USERS.replace("columnspec:", "colspec:"))]).err().unwrap();
    assert_eq!(error.file.file_name(), Path::new("users.yaml").file_name(), "{error}");
    assert_eq!(error.place.map(|(line, _)| line), Some(6), "{error}");
}

#[test]
fn a_new_cluster_needs_a_definition_of_the_table_by_types_that_it_has() {
    let refused = |users: &str, version: &str| {
        let experiment = format!("cluster: {{ cassandra: \"{version}\" }}\n{EXPERIMENT}");
        plan_of(&experiment, &[("users.yaml", users)]).map(drop).map_err(|error| error.to_string())
    };
    let without = USERS.lines().filter(|line| !line.starts_with("table_def")).collect::<Vec<_>>().join("\n");
    assert!(refused(&without, "5.0").unwrap_err().contains("no table_definition"));
    assert!(refused(&USERS.replace("name text", "name txt"), "5.0").unwrap_err().contains("no type 'txt'"));
    let vector = USERS.replace("name text", "name text, v frozen<list<vector<float, 3>>>");
    assert_eq!(refused(&vector, "5.0"), Ok(()));
    let error = refused(&vector, "4.1").unwrap_err();
    assert!(error.contains("came with 5.0") && error.contains("column v"), "{error}");
}

#[test]
fn a_keyspace_that_would_stay_between_trials_is_refused() {
    let users = USERS.replace("Shop", "system_shop").replace("KEYSPACE shop", "KEYSPACE system_shop");
    let error = plan_of(EXPERIMENT, &[("users.yaml", &users)]).err().unwrap();
    assert!(error.message.contains("system_shop is taken for one of Cassandra's own"), "{error}");
}

#[test]
fn profiles_that_disagree_on_their_keyspace_are_refused() {
    let other = USERS.replace("specname: users", "specname: again").replace("_factor': 3", "_factor': 2");
    let experiment = EXPERIMENT.replace("users.yaml", "[users.yaml, again.yaml]");
    let error = plan_of(&experiment, &[("users.yaml", USERS), ("again.yaml", &other)]).err().unwrap();
    assert!(error.message.contains("different replications"), "{error}");
}

#[test]
fn data_centres_of_a_profile_are_those_of_the_lab() {
    let of = |text: &str| USERS.replace("'SimpleStrategy', 'replication_factor': 3", text);
    let error = plan_of(EXPERIMENT, &[("users.yaml", &of("'NetworkTopologyStrategy', 'dc1': 3"))]).err().unwrap();
    assert!(error.message.contains("no such data centre") && error.message.contains("datacenter1"), "{error}");
    let text = text_of(EXPERIMENT, &[("users.yaml", &of("'NetworkTopologyStrategy', 'datacenter1': 2"))]);
    assert!(text.contains("replication 2"), "{text}");
}
