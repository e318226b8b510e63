//! What `--set` changed in the experiment file.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Document, RecordError, Recorder, Run, document};

/// The document that has it.
const SET: &str = "set";

/// In its order: `load.rate=400/s`.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Assignments {
    assignments: Vec<String>,
}

impl Document for Assignments {
    const WHAT: &'static str = "changes by --set";
    const FORMAT: u64 = 2;

    fn upgrade(format: u64, fields: &mut Map<String, Value>) -> Result<(), String> {
        if format != 1 {
            return Err(format!("there was never a format {format} of it"));
        }
        // Format 1 had a line for each.
        let lines = fields.remove("lines").ok_or("it has no lines")?;
        let lines = lines.as_str().ok_or("its lines are not text")?.lines().map(Value::from);
        fields.insert("assignments".to_owned(), lines.collect());
        Ok(())
    }
}

impl Recorder {
    /// Stores what `--set` changes in the experiment file.
    pub fn set(&self, assignments: &[String]) -> Result<(), RecordError> {
        self.json(SET, &Assignments { assignments: assignments.to_vec() })
    }
}

impl Run {
    /// What `--set` changed in the experiment file, in its order.
    pub fn set(&self) -> Result<Vec<String>, RecordError> {
        let text = self.document(SET)?;
        let read = text.map(|text| document::read::<Assignments>(&text)).transpose()?;
        Ok(read.unwrap_or_default().assignments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_first_format_are_read_and_what_is_none_is_refused() {
        let read = |text: &str| document::read::<Assignments>(text).map(|read| read.assignments);
        let lines = r#"{"format":1,"lines":"trials=2\nquestion=is 1 < 2?"}"#;
        assert_eq!(read(lines).unwrap(), ["trials=2", "question=is 1 < 2?"]);
        assert_eq!(read(r#"{"format":1,"lines":""}"#).unwrap(), [""; 0]);
        assert!(read(r#"{"format":1}"#).unwrap_err().to_string().contains("no lines"));
        let newer = read(r#"{"format":3,"assignments":[]}"#).unwrap_err().to_string();
        assert!(newer.contains("newer Brownout") && newer.contains("changes by --set"), "{newer}");
    }
}
