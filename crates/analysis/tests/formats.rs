//! Of a run of every earlier format, the same findings are made as when it was new.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::path::Path;

use brownout_analysis::{Proof, Validity, findings};
use brownout_record::Run;

#[test]
fn findings_of_a_run_of_every_earlier_format_are_what_they_were() {
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/formats");
    let mut read = 0;
    for file in formats.read_dir().unwrap() {
        let path = file.unwrap().path();
        let found = findings(&Run::open(&path).unwrap()).unwrap();
        let [trial] = found.trials.as_slice() else { panic!("{} has one trial", path.display()) };
        // Half of the operations went through n2, which answered 100 ms late; 50 ms were the objective.
        assert_eq!(trial.effect.degradation, Some(0.5), "{}", path.display());
        assert_eq!(trial.faults.iter().map(|fault| fault.verdict).collect::<Vec<_>>(), [Proof::Proven]);
        assert_eq!(found.verdict.validity, Validity::Valid, "{}: {}", path.display(), found.verdict.sentence);
        read += 1;
    }
    assert!(read >= 2, "the runs of earlier formats are missing");
}
