//! Consistency levels: the options that set them, and their names in Java.

use brownout_load::{Consistency, SerialConsistency};

use super::grammar::{Pattern, Sub, Taken, value};

const LEVELS: &str = "ONE|QUORUM|LOCAL_QUORUM|EACH_QUORUM|ALL|ANY|TWO|THREE|LOCAL_ONE|SERIAL|LOCAL_SERIAL";
const SERIAL_LEVELS: &str = "SERIAL|LOCAL_SERIAL";

/// `cl=`
pub(super) fn consistency_option() -> Sub {
    value("cl=", Pattern::Words(LEVELS), "consistency level")
}

/// `serial-cl=`
pub(super) fn serial_option() -> Sub {
    value("serial-cl=", Pattern::Words(SERIAL_LEVELS), "serial consistency level of conditional writes")
}

/// The level given by `cl=`, whose pattern has been checked.
pub(super) fn consistency(taken: &Taken) -> Option<Consistency> {
    taken.get("cl=").and_then(|text| text.parse().ok())
}

/// The level given by `serial-cl=`.
pub(super) fn serial(taken: &Taken) -> Option<SerialConsistency> {
    taken.get("serial-cl=").map(|text| {
        if text.eq_ignore_ascii_case("serial") { SerialConsistency::Serial } else { SerialConsistency::LocalSerial }
    })
}

/// As Java shows a level: `LOCAL_ONE`.
pub fn consistency_name(level: Consistency) -> String {
    let name = Consistency::all().find(|(known, _)| *known == level).map_or("", |(_, name)| name);
    name.to_ascii_uppercase().replace('-', "_")
}

/// As Java shows a serial level.
pub fn serial_name(level: SerialConsistency) -> &'static str {
    match level {
        SerialConsistency::Serial => "SERIAL",
        SerialConsistency::LocalSerial => "LOCAL_SERIAL",
    }
}
