//! From values to places on an axis, and the ticks between.

use brownout_units::format_ns;

use crate::{
    figure::{Axis, Scale, Unit},
    text,
};

impl Axis {
    /// Where a value lies on the axis, 0 to 1 (beyond these, beyond the axis); none if it has no place at all.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let (at, from, to) = (self.stretch(value)?, self.stretch(self.from)?, self.stretch(self.to)?);
        let place = if to > from { (at - from) / (to - from) } else { 0.5 };
        place.is_finite().then_some(place)
    }

    fn stretch(&self, value: f64) -> Option<f64> {
        let at = match self.scale {
            Scale::Linear => value,
            Scale::Log => value.log10(),
            Scale::Nines => -(1.0 - value).log10(),
        };
        at.is_finite().then_some(at)
    }

    /// Values worth a line, with their texts.
    pub(crate) fn ticks(&self, about: usize) -> Vec<(f64, String)> {
        let values = match self.scale {
            Scale::Linear => linear(self.from, self.to, about),
            Scale::Log => decades(self.from, self.to, about),
            Scale::Nines => vec![0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999],
        };
        let inside = values.into_iter().filter(|value| *value >= self.from && *value <= self.to);
        inside.map(|value| (value, self.write(value))).collect()
    }

    /// A value as the axis writes it.
    pub(crate) fn write(&self, value: f64) -> String {
        match self.unit {
            Unit::Seconds => {
                if value.fract().abs() < 1e-9 {
                    format!("{value:.0}s")
                } else {
                    format!("{value:.1}s")
                }
            }
            Unit::Nanoseconds => tidy(&format_ns(value)),
            Unit::Rate if value == 0.0 => "0".to_owned(),
            Unit::Rate => text::rate(value),
            Unit::Share => format!("{:.0}%", value * 100.0),
            Unit::Bits => {
                let (size, unit) = match value {
                    value if value >= 1e9 => (value / 1e9, "G"),
                    value if value >= 1e6 => (value / 1e6, "M"),
                    value if value >= 1e3 => (value / 1e3, "k"),
                    value => (value, ""),
                };
                tidy(&format!("{size:.2}{unit}"))
            }
            Unit::Percentile => {
                let percent = format!("{:.4}", value * 100.0);
                format!("{}%", percent.trim_end_matches('0').trim_end_matches('.'))
            }
        }
    }
}

/// `10.0ms` as `10ms`: ticks are round numbers.
fn tidy(written: &str) -> String {
    let end = written.find(char::is_alphabetic).unwrap_or(written.len());
    let (number, unit) = written.split_at(end);
    if !number.contains('.') {
        return written.to_owned();
    }
    format!("{}{unit}", number.trim_end_matches('0').trim_end_matches('.'))
}

/// 1, 2 or 5 times a power of ten.
fn step(span: f64, about: usize) -> f64 {
    let rough = span / about.max(1) as f64;
    let power = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough).unwrap_or(10.0 * power)
}

fn linear(from: f64, to: f64, about: usize) -> Vec<f64> {
    if to <= from {
        return vec![from];
    }
    let step = step(to - from, about);
    let first = (from / step).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    (first..=last).map(|at| at as f64 * step).collect()
}

/// Powers of ten; between few of them also twice and five times.
fn decades(from: f64, to: f64, about: usize) -> Vec<f64> {
    let (first, last) = (from.log10().floor() as i32, to.log10().ceil() as i32);
    let factors: &[f64] = if (last - first) as usize * 3 <= about + 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    (first..=last).flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power))).collect()
}

/// From 0 to a round number above all values.
pub fn from_zero(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let most = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
    if most <= 0.0 {
        return (0.0, 1.0);
    }
    let step = step(most * 1.02, 4);
    (0.0, (most * 1.02 / step).ceil() * step)
}

/// From a round number below all values, and below nothing, to one above.
pub(crate) fn around_zero(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let (_, most) = from_zero(values.clone().filter(|value| *value > 0.0).chain([0.0]));
    let (_, least) = from_zero(values.filter(|value| *value < 0.0).map(|value| -value).chain([0.0]));
    let larger = most.max(least);
    // A side without values still shows where nothing is.
    (-least.max(larger / 20.0), most.max(larger / 20.0))
}

/// From a 1, 2 or 5 below all values to one above.
pub fn log_range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| value.is_finite() && *value > 0.0)
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if high <= 0.0 {
        return (1e6, 1e9);
    }
    let round = |value: f64, up: bool| {
        let power = 10_f64.powf(value.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let found = if up {
            steps.into_iter().find(|step| *step >= value)
        } else {
            steps.into_iter().rev().find(|step| *step <= value)
        };
        found.unwrap_or(value)
    };
    (round(low / 1.1, false), round(high * 1.1, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: Scale, unit: Unit, from: f64, to: f64) -> Axis {
        Axis { label: String::new(), scale, unit, from, to }
    }

    #[test]
    fn nines_are_equally_far_apart() {
        let axis = axis(Scale::Nines, Unit::Percentile, 0.0, 0.9999);
        let place = |share: f64| (axis.place(share).unwrap() * 100.0).round();
        assert_eq!([place(0.0), place(0.9), place(0.99), place(0.999), place(0.9999)], [0.0, 25.0, 50.0, 75.0, 100.0]);
        assert_eq!(axis.place(1.0), None);
    }

    #[test]
    fn what_has_no_logarithm_has_no_place() {
        let axis = axis(Scale::Log, Unit::Nanoseconds, 1e5, 1e9);
        assert_eq!(axis.place(0.0), None);
        assert_eq!(axis.place(f64::NAN), None);
        assert_eq!(axis.place(1e7), Some(0.5));
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let texts = |axis: Axis| axis.ticks(5).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(axis(Scale::Linear, Unit::Seconds, 0.0, 90.0)), ["0s", "20s", "40s", "60s", "80s"]);
        assert_eq!(texts(axis(Scale::Log, Unit::Nanoseconds, 5e5, 2e8)), ["1ms", "10ms", "100ms"]);
        assert_eq!(texts(axis(Scale::Log, Unit::Nanoseconds, 1e6, 5e6)), ["1ms", "2ms", "5ms"]);
        assert_eq!(texts(axis(Scale::Nines, Unit::Percentile, 0.0, 0.9995)), ["0%", "50%", "90%", "99%", "99.9%"]);
    }

    #[test]
    fn ranges_hold_their_values_and_survive_none() {
        assert_eq!(from_zero([1200.0].into_iter()), (0.0, 1500.0));
        assert_eq!(from_zero(std::iter::empty()), (0.0, 1.0));
        assert_eq!(log_range([9e5, 1.2e8].into_iter()), (5e5, 2e8));
        assert_eq!(log_range(std::iter::empty()), (1e6, 1e9));
    }
}
