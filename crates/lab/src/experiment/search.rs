//! `search:` — a severity or a rate that is looked for, instead of cells that are known beforehand.
//!
//! `danger-zone` names a severity as `vary:` names a factor: by its key (`faults.0.slow.delay`), or by the name of a `${variable}`.
//! `max-rate` varies `load.rate`. Which severities or rates are tried follows from what trials have shown (`crate::planner`).

use brownout_analysis::search::{Amount, DangerZone, MaxRate};
use brownout_record::SearchDescription;
use brownout_units::{Delay, Share};
use brownout_yaml::{FileError, nearest};
use serde::Deserialize;

use super::{Source, choice::MAX_RATE};

/// `search:`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SearchSection {
    /// The severity that is varied: its key, or the name of a variable. This or `max-rate` is required.
    pub danger_zone: Option<String>,
    /// Of a danger zone: the losses of goodput that are looked for, ascending. Default: [10%, 50%].
    pub between: Option<Vec<Share>>,
    /// What has to be kept in the phase `fault`, or without faults in the baseline: one percentile of all operations that are due,
    /// with its response time.
    pub max_rate: Option<MaxRateSection>,
    /// The mildest severity; the first rate. Default: 1ms for times, 0.1% for shares; `load.rate` of the file.
    pub from: Option<String>,
    /// The most severe one; the highest rate. Default: 1s for times, 80% for shares; ten times doubled, and at most
    /// 1000k/s.
    pub to: Option<String>,
    /// Of a largest rate: how narrow its interval has to be. Default: 10%.
    pub precision: Option<Share>,
}

/// `search.max-rate:`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MaxRateSection {
    /// Half of the operations within this.
    pub p50: Option<Delay>,
    /// 95 % of the operations within this.
    pub p95: Option<Delay>,
    /// 99 % of the operations within this.
    pub p99: Option<Delay>,
    /// 99.9 % of the operations within this.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<Delay>,
}

/// What is searched, checked.
#[derive(Debug, Clone)]
pub struct Search {
    /// What varies: a key, or the name of a variable.
    pub factor: String,
    /// As the record keeps it.
    pub description: SearchDescription,
    /// How it goes on.
    pub(crate) method: Method,
}

/// How a search goes on.
#[derive(Debug, Clone)]
pub(crate) enum Method {
    /// The severities at which a loss passes thresholds.
    DangerZone(DangerZone),
    /// The largest rate.
    MaxRate(MaxRate),
}

/// What a search decides itself.
const EXCLUDED: [&str; 4] = ["vary", "trials", "without-fault", "margin"];
/// Ends that lie closer together leave too little to search.
const LEAST_RANGE: f64 = 2.0;
/// More thresholds are no question any more.
const MOST_THRESHOLDS: usize = 4;
/// What varies in a search for a rate.
const RATE: &str = "load.rate";

impl Source {
    /// What the file searches; none without `search:`.
    ///
    /// # Errors
    /// `search:` is not as it should be, or stands beside what it excludes.
    pub fn search(&self) -> Result<Option<Search>, FileError> {
        let Some(node) = self.node("search") else { return Ok(None) };
        let section: SearchSection = self.structs(node, "search")?;
        if let Some(other) = EXCLUDED.into_iter().find(|key| self.node(key).is_some()) {
            let message = format!("a search chooses its trials itself; take {other}: or search: out of the file");
            return Err(self.complain(other, message));
        }
        match (&section.danger_zone, &section.max_rate) {
            (Some(factor), None) => self.danger_zone(factor, &section).map(Some),
            (None, Some(asked)) => self.max_rate(asked, &section).map(Some),
            _ => {
                let message = "write what is searched: danger-zone: faults.0.slow.delay, or max-rate: { p99: 20ms }";
                Err(self.complain("search", message.to_owned()))
            }
        }
    }

    fn danger_zone(&self, factor: &str, section: &SearchSection) -> Result<Search, FileError> {
        if section.precision.is_some() {
            let message = "a danger zone has no precision: its trials are bounded; take it out".to_owned();
            return Err(self.complain("search.precision", message));
        }
        let keys = self.severity(factor)?;
        let thresholds = self.thresholds(section.between.as_deref())?;
        let (from, to) = self.range(factor, &keys, section)?;
        let zone = DangerZone::new(&from, &to, &thresholds)
            .ok_or_else(|| self.complain("search.from", "write from: and to: as amounts of one kind".to_owned()))?;
        Ok(Search {
            factor: factor.to_owned(),
            description: SearchDescription::DangerZone { thresholds, from, to },
            method: Method::DangerZone(zone),
        })
    }

    /// The keys of the file that the severity is the value of.
    fn severity(&self, factor: &str) -> Result<Vec<String>, FileError> {
        const SUCH_AS: &str = "name a severity of a fault, such as faults.0.slow.delay";
        let key = "search.danger-zone";
        let variable = format!("${{{factor}}}");
        let keys = match self.holds(&variable) {
            true => self.keys_with(&variable),
            false if factor.contains('.') => vec![factor.to_owned()],
            false => {
                let known = self.variables();
                let meant = nearest(factor, known.iter().map(String::as_str));
                let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
                let message = format!("{variable} is not in the file, and '{factor}' is not a key; {SUCH_AS}{meant}");
                return Err(self.complain(key, message));
            }
        };
        if let Some(other) = keys.iter().find(|key| !key.starts_with("faults.")) {
            let message = format!(
                "'{other}' is not the severity of a fault, and trials without a fault would differ in it, too; \
                 {SUCH_AS}"
            );
            return Err(self.complain(key, message));
        }
        if let Some(value) = self.node(factor)
            && value.as_scalar().and_then(|value| Amount::of(value.as_str())).is_none()
        {
            let value = value
                .as_scalar()
                .map_or_else(|| "what it has below it".to_owned(), |value| format!("'{}'", value.as_str()));
            let message = format!("'{factor}' is not a severity: {value} is not a number with a unit; {SUCH_AS}");
            return Err(self.complain(key, message));
        }
        Ok(keys)
    }

    fn thresholds(&self, between: Option<&[Share]>) -> Result<Vec<f64>, FileError> {
        let shares: Vec<f64> =
            between.map_or_else(|| vec![0.1, 0.5], |all| all.iter().map(|one| one.fraction()).collect());
        let is_right = (1..=MOST_THRESHOLDS).contains(&shares.len())
            && shares.iter().all(|share| *share > 0.0 && *share < 1.0)
            && shares.windows(2).all(|pair| pair[0] < pair[1]);
        is_right.then_some(shares).ok_or_else(|| {
            let message = format!(
                "these are not losses of goodput to look for; write 1 to {MOST_THRESHOLDS} shares between 0% and 100%, \
                 ascending, such as [10%, 50%]"
            );
            self.complain("search.between", message)
        })
    }

    /// The mildest and the most severe value.
    fn range(&self, factor: &str, keys: &[String], section: &SearchSection) -> Result<(String, String), FileError> {
        let written = self.node(factor).and_then(|value| value.as_scalar()).map(|value| value.as_str());
        let kind = [written, section.from.as_deref(), section.to.as_deref()].into_iter().flatten().next();
        let kind = kind.and_then(Amount::of);
        // A limit is the worse the lower it is.
        let falls = kind == Some(Amount::BitRate) || keys.iter().any(|key| key.ends_with(".cpu.share"));
        let defaults = match kind {
            Some(Amount::Time) => Some(("1ms", "1s")),
            Some(Amount::Share) if !falls => Some(("0.1%", "80%")),
            _ => None,
        };
        let end = |name: &str, given: &Option<String>, default: Option<&str>| {
            let key = format!("search.{name}");
            let text = given.as_deref().or(default).ok_or_else(|| {
                let message = format!(
                    "for {factor} the range has to be written: from: the mildest value, to: the most severe one"
                );
                self.complain(&key, message)
            })?;
            match kind.and_then(|kind| kind.read(text)) {
                Some(value) if value > 0.0 => Ok((text.to_owned(), value)),
                Some(_) => Err(self.complain(&key, format!("'{text}' has no logarithm; write a value above 0"))),
                None => {
                    let like = written.map_or_else(
                        || "a number with a unit, such as 1ms or 5%".to_owned(),
                        |value| format!("an amount like {value}"),
                    );
                    Err(self.complain(&key, format!("'{text}' is not {like}")))
                }
            }
        };
        let (from, mild) = end("from", &section.from, defaults.map(|(from, _)| from))?;
        let (to, severe) = end("to", &section.to, defaults.map(|(_, to)| to))?;
        let (smaller, larger) = if falls { (severe, mild) } else { (mild, severe) };
        let message = if smaller >= larger && falls {
            format!("the lower {factor} is, the more severe: from: {from} has to be above to: {to}; exchange them")
        } else if smaller >= larger {
            format!("from: {from} has to be below to: {to}; exchange them")
        } else if larger < LEAST_RANGE * smaller {
            format!("from {from} to {to} is too narrow for a search; let the ends lie a factor of 2 apart, or more")
        } else {
            return Ok((from, to));
        };
        Err(self.complain(if section.from.is_some() { "search.from" } else { "search.to" }, message))
    }

    fn max_rate(&self, asked: &MaxRateSection, section: &SearchSection) -> Result<Search, FileError> {
        if section.between.is_some() {
            let message = "a search for a rate has no thresholds of loss; take it out".to_owned();
            return Err(self.complain("search.between", message));
        }
        let given = [(0.5, asked.p50), (0.95, asked.p95), (0.99, asked.p99), (0.999, asked.p99_9)];
        let given: Vec<(f64, Delay)> = given.into_iter().filter_map(|(share, within)| Some((share, within?))).collect();
        let [(share, response)] = given[..] else {
            let message =
                "one percentile is what a rate has to keep; write one of p50, p95, p99, p99.9, such as { p99: 20ms }";
            return Err(self.complain("search.max-rate", message.to_owned()));
        };
        if response == Delay::ZERO {
            let message = "a response time of 0 is not possible; write one above 0".to_owned();
            return Err(self.complain("search.max-rate", message));
        }
        if self.node("load.threads").is_some() {
            let message =
                "threads are a closed loop, which has no rate to search; take them out, and write rate: 400/s"
                    .to_owned();
            return Err(self.complain("load.threads", message));
        }
        let of_load = self.node(RATE).and_then(|value| value.as_scalar()).map(|value| value.as_str());
        let Some(from) = section.from.as_deref().or(of_load) else {
            let message = "the first rate is missing; write from: 100/s, or load: { rate: 100/s }".to_owned();
            return Err(self.complain("search", message));
        };
        let key = if section.from.is_some() { "search.from" } else { RATE };
        let no_rate = |key: &str, text: &str| {
            self.complain(key, format!("'{text}' is not a rate to search from or to; write from: 100/s"))
        };
        let highest = MaxRate::highest(from).ok_or_else(|| no_rate(key, from))?;
        let is_too_much = |text: &str| Amount::Rate.read(text).is_some_and(|rate| rate > MAX_RATE);
        let most = Amount::Rate.write(MAX_RATE).filter(|_| is_too_much(&highest));
        let to = section.to.clone().or(most).unwrap_or(highest);
        if Amount::Rate.read(&to).is_none() {
            return Err(no_rate("search.to", &to));
        }
        // What comes in the middle of a run must not be found wrong only there.
        let ends = [(key, from), ("search.to", to.as_str())];
        if let Some((key, rate)) = ends.into_iter().find(|(_, rate)| is_too_much(rate)) {
            let message = format!("{rate} is beyond what one lab can offer; at most 1000k/s");
            return Err(self.complain(key, message));
        }
        let precision = section.precision.map_or(0.1, Share::fraction);
        if !(0.02..=0.5).contains(&precision) {
            let message = "below 2% trials cannot tell one rate from the next, and above 50% none are needed; write a \
                           share from 2% to 50%";
            return Err(self.complain("search.precision", message.to_owned()));
        }
        let method = MaxRate::new(from, &to, precision)
            .ok_or_else(|| self.complain("search.to", format!("to: {to} is below from: {from}; exchange them")))?;
        Ok(Search {
            factor: RATE.to_owned(),
            description: SearchDescription::MaxRate {
                share,
                response_ns: response.ns(),
                from: from.to_owned(),
                to,
                precision,
            },
            method: Method::MaxRate(method),
        })
    }
}

impl Search {
    /// Severities or rates that are surely tried: the ends of a range, the first rate.
    pub(crate) fn beforehand(&self) -> Vec<String> {
        match &self.description {
            SearchDescription::DangerZone { from, to, .. } => vec![from.clone(), to.clone()],
            SearchDescription::MaxRate { from, .. } => vec![from.clone()],
        }
    }

    /// What is tried beside that, unless the run ends before.
    pub(crate) fn likely(&self) -> Vec<String> {
        match &self.method {
            Method::DangerZone(zone) => zone.scan(),
            Method::MaxRate(_) => Vec::new(),
        }
    }

    /// Trials without a fault.
    pub(crate) fn without_fault(&self) -> u32 {
        match &self.method {
            Method::DangerZone(zone) => zone.without_fault() as u32,
            Method::MaxRate(_) => 0,
        }
    }
}
