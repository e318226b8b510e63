//! Reads the text of a distribution.
//!
//! The grammar is that of cassandra-stress: `~?NAME(arguments)`, case apart; arguments are separated by commas, empty
//! ones are skipped; a range is `a..b` with two or more dots; whole numbers take K, M and B (10³, 10⁶, 10⁹).

use super::{DEFAULT_EXPONENT, Spec, SpecError};

/// Each name with the distribution that it stands for.
const ALIASES: [(&str, &str); 22] = [
    ("fixed", "fixed"),
    ("uniform", "uniform"),
    ("gaussian", "gaussian"),
    ("gauss", "gaussian"),
    ("normal", "gaussian"),
    ("norm", "gaussian"),
    ("exp", "exp"),
    ("extreme", "extreme"),
    ("extr", "extreme"),
    ("weibull", "extreme"),
    ("qextreme", "qextreme"),
    ("qextr", "qextreme"),
    ("seq", "seq"),
    ("zipf", "zipf"),
    ("zipfian", "zipf"),
    ("szipf", "szipf"),
    ("scrambled-zipf", "szipf"),
    ("scrambledzipf", "szipf"),
    ("scrambled-zipfian", "szipf"),
    ("latest", "latest"),
    ("hotspot", "hotspot"),
    ("hot-spot", "hotspot"),
];

impl std::str::FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let form = || SpecError::Form(text.to_owned());
        let (inverted, rest) = match text.strip_prefix('~') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (name, rest) = rest.split_once('(').ok_or_else(form)?;
        let inside = rest.strip_suffix(')').filter(|inside| !inside.is_empty()).ok_or_else(form)?;
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphabetic() || c == '-') {
            return Err(form());
        }
        let known = ALIASES
            .iter()
            .find(|(alias, _)| alias.eq_ignore_ascii_case(name))
            .ok_or_else(|| SpecError::Name { name: name.to_owned(), nearest: nearest(name) })?;
        let arguments = Arguments { all: inside.split(',').filter(|part| !part.is_empty()).collect() };
        let spec = arguments.read(known.1)?;
        Ok(if inverted { Spec::Inverted(Box::new(spec)) } else { spec })
    }
}

/// The known name that shares most with what was written: the same beginning of at least two letters.
fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let shared = |alias: &str| alias.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    // Of names that share as much the first counts: they come before their short forms.
    ALIASES.iter().rev().map(|(alias, _)| *alias).max_by_key(|alias| shared(alias)).filter(|alias| shared(alias) >= 2)
}

struct Arguments<'a> {
    all: Vec<&'a str>,
}

/// What an argument turned out to be instead, in a few words.
type Wrong = String;

impl Arguments<'_> {
    fn read(&self, name: &str) -> Result<Spec, SpecError> {
        // In two of its messages cassandra-stress names another distribution than the one at fault.
        let (count, said_of_count, said) = match name {
            "fixed" => (1..=1, "fixed distribution", "fixed distribution"),
            "uniform" => (1..=1, "uniform distribution", "uniform distribution"),
            "gaussian" => (1..=3, "gaussian distribution", "uniform distribution"),
            "exp" => (1..=1, "gaussian distribution", "uniform distribution"),
            "extreme" => (2..=2, "extreme (Weibull) distribution", "extreme (Weibull) distribution"),
            "qextreme" => {
                (3..=3, "quantized extreme (Weibull) distribution", "quantized extreme (Weibull) distribution")
            }
            "seq" => (1..=1, "sequence distribution", "sequence distribution"),
            "zipf" => (1..=2, "zipf distribution", "zipf distribution"),
            "szipf" => (1..=2, "scrambled zipf distribution", "scrambled zipf distribution"),
            "latest" => (1..=2, "latest distribution", "latest distribution"),
            _ => (3..=3, "hotspot distribution", "hotspot distribution"),
        };
        let usage = match name {
            "fixed" => "fixed(value)",
            "uniform" => "uniform(min..max)",
            "gaussian" => {
                "gaussian(min..max), gaussian(min..max,deviations to the edge) or gaussian(min..max,mean,deviation)"
            }
            "exp" => "exp(min..max)",
            "extreme" => "extreme(min..max,shape)",
            "qextreme" => "qextreme(min..max,shape,bands)",
            "seq" => "seq(min..max)",
            "zipf" => "zipf(min..max[,exponent])",
            "szipf" => "szipf(min..max[,exponent])",
            "latest" => "latest(min..max[,exponent])",
            _ => "hotspot(min..max,share of the values that is hot,share of the draws that is hot)",
        };
        let refuse = |kind, wrong: Wrong| SpecError::Arguments {
            kind,
            arguments: self.all.join(", "),
            remedy: format!("{wrong}; it is written {usage}"),
        };
        if !count.contains(&self.all.len()) {
            return Err(refuse(said_of_count, format!("{} arguments", self.all.len())));
        }
        if name == "fixed" {
            return whole(self.all[0]).map(Spec::Fixed).map_err(|wrong| refuse(said, wrong));
        }
        let (min, max) = range(self.all[0]).map_err(|wrong| refuse(said, wrong))?;
        if name == "seq" && min >= max {
            let kind = if min == max { "sequence distribution (min==max)" } else { "sequence distribution (min>max)" };
            return Err(refuse(kind, "a sequence goes up".to_owned()));
        }
        if min > max {
            return Err(refuse(said, format!("{min} is above {max}")));
        }
        if (max as i128 - min as i128) >= i64::MAX as i128 {
            return Err(refuse(said, format!("the range {min}..{max} holds more values than a number can count")));
        }
        self.shaped(name, min, max).map_err(|wrong| refuse(said, wrong))
    }

    /// The distribution of this range, which is sound, and what the other arguments say.
    fn shaped(&self, name: &str, min: i64, max: i64) -> Result<Spec, Wrong> {
        let argument = |i: usize| self.all.get(i).copied();
        let exponent = || argument(1).map_or(Ok(DEFAULT_EXPONENT), |text| above_zero("the exponent", text));
        let spec = match name {
            "uniform" => Spec::Uniform { min, max },
            "gaussian" => {
                let first = argument(1).map(real).transpose()?;
                let half = (max - min) as f64 / 2.0;
                let (mean, deviation) = match argument(2) {
                    Some(text) => (first.unwrap_or_default(), real(text)?),
                    None => ((min as f64 + max as f64) / 2.0, half / first.unwrap_or(3.0)),
                };
                if min != max && !(deviation.is_finite() && deviation > 0.0) {
                    return Err(format!("the standard deviation would be {deviation}, and must be above 0 and finite"));
                }
                Spec::Gaussian { min, max, mean, deviation }
            }
            "exp" if max == min + 1 => {
                return Err("two values are too few for this shape; uniform takes them".to_owned());
            }
            "exp" => Spec::Exponential { min, max },
            "extreme" => Spec::Extreme { min, max, shape: above_zero("the shape", self.all[1])? },
            "qextreme" => {
                let shape = above_zero("the shape", self.all[1])?;
                let bands = self.all[2].parse::<i32>().ok().filter(|bands| *bands > 0);
                let bands = bands.ok_or_else(|| format!("`{}` is not a number of bands", self.all[2]))?;
                if min == max {
                    return Err("one value has no bands".to_owned());
                }
                Spec::Quantized { min, max, shape, bands }
            }
            "seq" => Spec::Sequence { min, max },
            "zipf" => Spec::Zipf { min, max, exponent: exponent()? },
            "szipf" => Spec::ScrambledZipf { min, max, exponent: exponent()? },
            "latest" => Spec::Latest { min, max, exponent: exponent()? },
            _ => Spec::Hotspot { min, max, hot_set: share(self.all[1])?, hot_draws: share(self.all[2])? },
        };
        Ok(if min == max { Spec::Fixed(min) } else { spec })
    }
}

/// A whole number with an optional K, M or B.
///
/// # Errors
/// In a few words, what the text is instead.
pub(super) fn whole(text: &str) -> Result<i64, Wrong> {
    let lower = text.trim().to_ascii_lowercase();
    let wrong = || format!("`{}` is not a whole number", text.trim());
    let (digits, unit) = match lower.chars().last().ok_or_else(wrong)? {
        'b' => (&lower[..lower.len() - 1], 1_000_000_000),
        'm' => (&lower[..lower.len() - 1], 1_000_000),
        'k' => (&lower[..lower.len() - 1], 1_000),
        _ => (lower.as_str(), 1),
    };
    digits
        .parse::<i64>()
        .map_err(|_| wrong())?
        .checked_mul(unit)
        .ok_or_else(|| format!("`{}` is too large", text.trim()))
}

fn range(text: &str) -> Result<(i64, i64), Wrong> {
    let wrong = || format!("`{text}` is not a range");
    let (low, rest) = text.split_once("..").ok_or_else(wrong)?;
    let high = rest.trim_start_matches('.');
    if high.contains("..") {
        return Err(wrong());
    }
    Ok((whole(low)?, whole(high)?))
}

fn real(text: &str) -> Result<f64, Wrong> {
    text.trim().parse::<f64>().ok().filter(|value| value.is_finite()).ok_or_else(|| format!("`{text}` is not a number"))
}

fn above_zero(what: &str, text: &str) -> Result<f64, Wrong> {
    let value = real(text)?;
    if value > 0.0 { Ok(value) } else { Err(format!("{what} must be above 0, not {value}")) }
}

/// A share: 0.2 or 20%.
fn share(text: &str) -> Result<f64, Wrong> {
    let value = match text.trim().strip_suffix('%') {
        Some(percent) => real(percent)? / 100.0,
        None => real(text)?,
    };
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(format!("`{text}` is not a share between 0 and 1")) }
}
