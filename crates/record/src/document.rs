//! JSON texts in the run file. Each says its own format, so that it can be read by itself and for ever.
//!
//! A field that may be missing (`#[serde(default)]`) can be added without more. For any other change, raise the type's
//! [`Document::FORMAT`] and have [`Document::upgrade`] make the new form of the one before.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::RecordError;

/// The key that holds the format. A text without it is of format 1.
const KEY: &str = "format";

/// What is stored as JSON.
pub trait Document: Serialize + DeserializeOwned {
    /// What it is called in messages.
    const WHAT: &'static str;
    /// The format that is written.
    const FORMAT: u64 = 1;

    /// Makes the form of format `format + 1` of one of `format`.
    ///
    /// # Errors
    /// What is not as it has to be.
    fn upgrade(format: u64, fields: &mut Map<String, Value>) -> Result<(), String> {
        let _ = fields;
        Err(format!("there was never a format {format} of it"))
    }
}

pub(crate) fn write<T: Document>(document: &T) -> Result<String, RecordError> {
    let damaged = |why: String| RecordError::Damaged { what: T::WHAT, why };
    let mut value = serde_json::to_value(document).map_err(|error| damaged(error.to_string()))?;
    let fields = value.as_object_mut().ok_or_else(|| damaged("it has no fields".to_owned()))?;
    fields.insert(KEY.to_owned(), T::FORMAT.into());
    Ok(value.to_string())
}

pub(crate) fn read<T: Document>(text: &str) -> Result<T, RecordError> {
    let damaged = |why: String| RecordError::Damaged { what: T::WHAT, why };
    let mut fields: Map<String, Value> = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
    let format = fields.remove(KEY).map_or(Some(1), |format| format.as_u64());
    let format = format.filter(|format| *format > 0).ok_or_else(|| damaged(format!("its {KEY:?} is not a number")))?;
    if format > T::FORMAT {
        let why = format!("it has format {format}, this version reads up to {}", T::FORMAT);
        return Err(RecordError::Newer { what: T::WHAT, why });
    }
    (format..T::FORMAT).try_for_each(|format| T::upgrade(format, &mut fields)).map_err(damaged)?;
    serde_json::from_value(Value::Object(fields)).map_err(|error| damaged(error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use super::*;
    use crate::{Description, Environment, FaultRecord, Quantity, Subject};

    #[test]
    fn a_document_says_its_format_and_comes_back_as_it_was() {
        let environment = Environment { seed: u64::MAX, cpu: "of the past".to_owned(), ..Environment::default() };
        let text = write(&environment).unwrap();
        assert!(text.contains(r#""format":1"#), "{text}");
        assert_eq!(read::<Environment>(&text).unwrap(), environment);
    }

    #[test]
    fn a_plan_that_says_nothing_of_limits_of_rate_does_not_say_that_there_are_none() {
        let text = |network: &str| {
            format!(
                r#"{{"name":"old","question":null,"hosts":[],"system":"","load":{{"text":"","rate":null,"threads":null,
                "consistency":"one","replication":1,"timeout_ns":1}},"phases":[],"faults":[],"network":[{network}],
                "trials":1,"objective":{{"response_ns":1,"share":0.9,"phases":[]}},"interval_ns":1,"warnings":[]}}"#
            )
        };
        let may_queue = |text: &str| read::<Description>(text).unwrap().may_queue(&Subject::pair("n1", "n2"));
        assert!(may_queue(&text("\"site a: 100Mbit/s\"")));
        assert!(!may_queue(&text("")), "one LAN without limits");
        let told = text("\"site a: 100Mbit/s\"").replace("\"trials\"", "\"bottlenecks\":[],\"trials\"");
        assert!(!may_queue(&told));
    }

    #[test]
    fn a_plan_of_before_there_were_several_databases_names_its_own_and_no_overlay_or_encryption() {
        let text = r#"{"name":"old","question":null,"hosts":[],"system":"Cassandra 5.0.9","load":{"text":"","rate":null,
            "threads":null,"consistency":"one","replication":1,"timeout_ns":1},"phases":[],"faults":[],"trials":1,
            "objective":{"response_ns":1,"share":0.9,"phases":[]},"interval_ns":1,"warnings":[]}"#;
        let old: Description = read(text).unwrap();
        assert_eq!((old.database.as_str(), old.overlay.as_str(), old.encryption.len()), ("Cassandra 5.0.9", "", 0));
        assert!(!old.external);
        let new = Description { encryption: vec!["to clients".to_owned()], overlay: "vxlan".to_owned(), ..old };
        let text = write(&new).unwrap();
        assert!(text.contains(r#""format":2"#) && text.contains(r#""database":"Cassandra 5.0.9""#), "{text}");
        assert_eq!(read::<Description>(&text).unwrap(), new);
        let nameless = text.replace("database", "datebase").replace(r#""format":2"#, r#""format":1"#);
        assert!(read::<Description>(&nameless).unwrap_err().to_string().contains("it has no system"));
    }

    #[test]
    fn a_document_of_the_future_is_refused_with_both_formats() {
        let text = r#"{"format": 7, "severity": "unheard of"}"#;
        let error = read::<FaultRecord>(text).unwrap_err().to_string();
        assert!(error.contains("newer Brownout") && error.contains("format 7") && error.contains("up to 2"), "{error}");
        for text in [r#"{"format": "two"}"#, r#"{"format": 0}"#, "[]", r#"{"format": 1, "expectations": 3}"#] {
            assert!(read::<FaultRecord>(text).unwrap_err().to_string().contains("damaged"), "{text}");
        }
    }

    #[test]
    fn a_fault_of_the_first_format_has_one_severity_and_one_period() {
        let text = r#"{"index":0,"kind":"slow","text":"n2 is slow","effect":"RTTs grow","expectations":[
            {"from":"n2","to":"n1","quantity":"one-way-delay","hit":true,"asked":100e6,"tolerance":2e6},
            {"from":"n1","to":"n2","quantity":"one-way-delay","hit":false,"asked":0.0,"tolerance":2e6}],
            "injected":{"at_ns":5,"error_ns":1},"healed":null}"#;
        let fault: FaultRecord = read(text).unwrap();
        assert_eq!((fault.injected().map(|stamp| stamp.at_ns), fault.healed()), (Some(5), None));
        assert_eq!(fault.unsettled_ns, 600_000_000);
        let [severity] = fault.severities.as_slice() else { panic!("{fault:?}") };
        let hit = &severity.expectations[0];
        assert_eq!((&hit.subject, hit.quantity), (&Subject::pair("n2", "n1"), Quantity::OneWayDelay));
        assert!(hit.hit && !severity.expectations[1].hit);
        // A fault that was never in force had a period, too, which had not begun.
        let never: FaultRecord = read(&text.replace(r#"{"at_ns":5,"error_ns":1}"#, "null")).unwrap();
        assert_eq!(never.injected(), None);
    }
}
