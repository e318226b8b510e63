//! Of a run of every earlier format, the same findings are made as when it was new.

use std::{fs, path::Path};

use brownout_analysis::{Proof, Validity, findings};
use brownout_record::{Recorder, Run};

#[test]
fn findings_of_a_run_of_every_earlier_format_are_what_they_were() {
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/formats");
    for format in 1..today() {
        let path = formats.join(format!("{format}.db"));
        let found = findings(&Run::open(&path).unwrap()).unwrap();
        let [trial] = found.trials.as_slice() else { panic!("{} has one trial", path.display()) };
        // Half of the operations went through n2, which answered 100 ms late; 50 ms were the objective.
        assert_eq!(trial.effect.degradation, Some(0.5), "{}", path.display());
        assert_eq!(trial.faults.iter().map(|fault| fault.verdict).collect::<Vec<_>>(), [Proof::Proven]);
        assert_eq!(found.verdict.validity, Validity::Valid, "{}: {}", path.display(), found.verdict.sentence);
    }
}

/// The format that is written today: SQLite keeps `user_version` at byte 60 of a file.
fn today() -> u32 {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.db");
    Recorder::create(&path, 0, 0).unwrap().finish().unwrap();
    let header = fs::read(&path).unwrap();
    u32::from_be_bytes(header[60..64].try_into().unwrap())
}
