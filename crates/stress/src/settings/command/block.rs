//! The command's part of the block of settings.

use super::{
    super::{
        level::{consistency_name, serial_name},
        number,
    },
    Command, Length, Share, Uncertainty,
    kind::CommandKind as K,
};

/// A weight as Java's `Double.toString` writes it, for the usual sizes of weights.
fn java_double(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e7 { format!("{value:.1}") } else { format!("{value}") }
}

impl Command {
    pub(in crate::settings) fn block(&self) -> String {
        let count = match self.length {
            _ if self.kind == K::VerifySizes => -1,
            Length::Count(count) => i64::try_from(count).unwrap_or(i64::MAX),
            _ => -1,
        };
        let mut text = format!("  Type: {}\n  Count: {}\n", self.kind.name(), number::grouped(count));
        if let Length::Time(time) = self.length {
            let shown = match self.written_duration() {
                Some((number, unit)) => format!("{} {unit}", number::grouped(number)),
                None => format!("{} MILLISECONDS", number::grouped(time.as_millis() as i64)),
            };
            text.push_str(&format!("  Duration: {shown}\n"));
        }
        text.push_str(&format!(
            "  No Warmup: {}\n  Consistency Level: {}\n  Serial Consistency Level: {}\n",
            !self.warmup,
            consistency_name(self.consistency),
            serial_name(self.serial_consistency)
        ));
        match self.length {
            Length::Uncertainty(Uncertainty { target, least, most }) => text.push_str(&format!(
                "  Target Uncertainty: {target:.3}\n  Minimum Uncertainty Measurements: {}\n  Maximum Uncertainty \
                 Measurements: {}\n",
                number::grouped(least as i64),
                number::grouped(most as i64)
            )),
            _ => text.push_str("  Target Uncertainty: not applicable\n"),
        }
        match self.kind {
            K::User => {
                let ratios = self.ops.iter().map(|op| match op.share {
                    Share::Weight(weight) => format!("{}={}", op.name, java_double(weight)),
                    Share::Rate(rate) => format!("{}={rate}", op.name),
                });
                text.push_str(&self.mix(&ratios.collect::<Vec<_>>()));
                text.push_str(&format!("  Profile File(s): {}\n", self.profiles.join(",")));
            }
            K::VerifySizes => text.push_str(&format!("  Profile File(s): {}\n", self.profiles.join(","))),
            // "Distibution" is cassandra-stress's spelling here.
            _ => text.push_str(&format!(
                "  Key Size (bytes): {}\n  Counter Increment Distibution: add={}\n",
                self.key_size, self.add_text
            )),
        }
        if self.kind == K::Mixed {
            let ratios = self.ratio.iter().map(|(kind, weight)| format!("{}={}", kind.shown(), java_double(*weight)));
            text.push_str(&self.mix(&ratios.collect::<Vec<_>>()));
        }
        text
    }

    /// `duration=` in the unit in which it was written, as cassandra-stress names it: 5, `MINUTES`. `None`: it is in a
    /// form that cassandra-stress does not have.
    pub fn written_duration(&self) -> Option<(i64, &'static str)> {
        let text = self.duration_text.to_ascii_lowercase();
        let units = [("s", "SECONDS"), ("m", "MINUTES"), ("h", "HOURS")];
        let (number, unit) = units.iter().find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, *unit)))?;
        Some((number.parse().ok()?, unit))
    }

    fn mix(&self, ratios: &[String]) -> String {
        format!(
            "  Command Ratios: {{{}}}\n  Command Clustering Distribution: clustering={}\n",
            ratios.join(", "),
            self.clustering_text
        )
    }
}
