//! Whether encryption is proven, in made-up runs.

use crate::common::Synthetic;
use brownout_analysis::{Proof, TrialFindings, Validity, findings};
use brownout_record::EvidenceRow;

fn row(node: &str, source: &str, subject: &str, name: &str, value: f64) -> EvidenceRow {
    EvidenceRow {
        at_ns: 1_000_000,
        error_ns: 0,
        node: node.to_owned(),
        source: source.to_owned(),
        subject: subject.to_owned(),
        name: name.to_owned(),
        value,
    }
}

/// Both nodes encrypt between each other and not to clients, and all is as it should be.
fn good() -> Vec<EvidenceRow> {
    let link = |from: &str, to: &str, name: &str, value: f64| row(from, "emulator", to, name, value);
    vec![
        row("load", "load", "", "marker-writes", 6.0),
        link("n1", "n2", "marker-on-encrypted-link", 0.0),
        link("n2", "n1", "marker-on-encrypted-link", 0.0),
        link("load", "n1", "marker-on-open-link", 24.0),
        link("n1", "load", "marker-on-open-link", 24.0),
        row("n1", "system-log", "n2", "encrypted-connection", 1.0),
        row("n2", "system-log", "n1", "encrypted-connection", 1.0),
        row("n1", "system-log", "clients", "unencrypted-connection", 1.0),
    ]
}

/// Both encrypt to clients, too, so the marker is seen nowhere; of their ports for clients no log says anything.
fn sealed() -> Vec<EvidenceRow> {
    let mut all = good();
    all.retain(|row| row.subject != "clients");
    for row in all.iter_mut().filter(|row| row.name == "marker-on-open-link") {
        row.name = "marker-on-encrypted-link".to_owned();
        row.value = 0.0;
    }
    all
}

fn trial(database: fn() -> Vec<EvidenceRow>) -> TrialFindings {
    trial_over("", database)
}

fn trial_over(overlay: &'static str, database: fn() -> Vec<EvidenceRow>) -> TrialFindings {
    let directory = tempfile::tempdir().unwrap();
    let run = Synthetic { trials: 1, planned_trials: 1, overlay, database, ..Synthetic::default() };
    findings(&run.run(directory.path())).unwrap().trials.remove(0)
}

#[test]
fn where_nobody_looked_and_nothing_is_encrypted_nothing_is_said() {
    assert_eq!(trial(Vec::new).encryption, None);
}

#[test]
fn a_marker_that_is_seen_only_where_it_may_be_proves_the_encryption() {
    let trial = trial(good);
    let found = trial.encryption.unwrap();
    assert_eq!((found.verdict, found.writes, found.links.len()), (Proof::Proven, 6, 4), "{:?}", found.reasons);
    assert_eq!(found.links.iter().map(|link| link.sightings).sum::<u64>(), 48);
    assert_eq!(trial.validity, Validity::Valid, "{:?}", trial.invalid);
    assert_eq!(trial.database, None, "it is no evidence of what the database did under load");
}

#[test]
fn clear_text_on_an_encrypted_link_makes_the_trial_invalid() {
    let trial = trial(|| {
        let mut all = good();
        all[1].value = 2.0;
        all
    });
    let found = trial.encryption.unwrap();
    assert_eq!(found.verdict, Proof::Refuted);
    assert_eq!(found.reasons, ["n1 → n2: the marker passed in clear 2 times"]);
    assert_eq!(trial.validity, Validity::Invalid);
    let said = |why: &String| why.starts_with("the encryption is refuted: n1 → n2");
    assert!(trial.invalid.iter().any(said), "{:?}", trial.invalid);
}

#[test]
fn a_log_that_names_clear_connections_refutes_and_one_that_names_none_proves_nothing() {
    let refuted = trial(|| {
        let mut all = good();
        all.push(row("n2", "system-log", "n1", "unencrypted-connection", 1.0));
        all
    });
    assert_eq!(refuted.encryption.unwrap().verdict, Proof::Refuted);
    let silent = trial(|| good().into_iter().filter(|row| row.name != "encrypted-connection").collect());
    let found = silent.encryption.unwrap();
    assert_eq!(found.verdict, Proof::Unproven);
    let nobody_names = [("n1", "n2"), ("n2", "n1")]
        .map(|(from, to)| format!("the log of {from} names no encrypted connection with {to}"));
    assert_eq!(found.reasons, nobody_names);
    assert_eq!(silent.validity, Validity::Invalid);
}

#[test]
fn an_encrypted_connection_with_one_node_stands_for_none_with_another() {
    let trial = trial(|| {
        let mut all = good();
        for (from, to) in [("n1", "n3"), ("n3", "n1")] {
            all.push(row(from, "emulator", to, "marker-on-encrypted-link", 0.0));
        }
        // Of its port for nodes alone, as 3.11 does.
        all.push(row("n3", "system-log", "nodes", "encrypted-connection", 1.0));
        all
    });
    let found = trial.encryption.unwrap();
    assert_eq!(found.verdict, Proof::Unproven);
    assert_eq!(found.reasons, ["the log of n1 names no encrypted connection with n3"]);
}

#[test]
fn that_clients_are_encrypted_has_to_be_logged_by_every_node() {
    for overlay in ["", "wireguard"] {
        let found = trial_over(overlay, sealed).encryption.unwrap();
        assert_eq!(found.verdict, Proof::Unproven, "{overlay}");
        assert_eq!(found.reasons, ["the log of n1 does not say that its port for clients is encrypted"], "{overlay}");
        let told = trial_over(overlay, || {
            let mut all = sealed();
            all.push(row("n1", "system-log", "clients", "encrypted-connection", 1.0));
            all
        });
        let found = told.encryption.unwrap();
        assert_eq!(found.verdict, Proof::Proven, "{overlay}: {:?}", found.reasons);
    }
}

#[test]
fn a_look_that_sees_nothing_where_clear_text_passes_cannot_tell() {
    let blind = trial(|| {
        let mut all = good();
        all.iter_mut().filter(|row| row.source == "emulator").for_each(|row| row.value = 0.0);
        all
    });
    let found = blind.encryption.unwrap();
    assert_eq!(found.verdict, Proof::Unproven);
    assert!(found.reasons[0].contains("the look cannot tell"), "{:?}", found.reasons);
}

#[test]
fn the_look_has_to_see_the_marker_on_every_link_that_nobody_may_encrypt() {
    let blind = trial(|| {
        let mut all = good();
        all.push(row("load", "emulator", "n2", "marker-on-open-link", 0.0));
        all
    });
    let found = blind.encryption.unwrap();
    assert_eq!(found.verdict, Proof::Unproven);
    assert_eq!(found.reasons, ["the marker was not seen where it passes in clear: the look cannot tell"]);
    // n1 and n3 are in one data centre: they need not encrypt between them, and may.
    let careful = trial(|| {
        let mut all = good();
        all.push(row("n1", "emulator", "n3", "marker-on-open-link", 0.0));
        all
    });
    let found = careful.encryption.unwrap();
    assert_eq!(found.verdict, Proof::Proven, "{:?}", found.reasons);
}
