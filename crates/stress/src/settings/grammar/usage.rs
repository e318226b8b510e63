//! Usage texts of commands and option groups.

use super::option::{Alternative, Kind, Sub};

/// Every alternative on a line of its own, then what each option does.
pub(crate) fn usage(group: &str, alternatives: &[Alternative]) -> String {
    let mut text = String::new();
    for (place, alternative) in alternatives.iter().enumerate() {
        if place > 0 {
            text.push_str(" OR \n");
        }
        text.push_str(&format!("Usage: {group}"));
        for sub in &alternative.subs {
            text.push_str(&format!(" {}", short(sub)));
        }
        text.push('\n');
    }
    text.push('\n');
    let mut told: Vec<&str> = Vec::new();
    let mut distributions = false;
    for sub in alternatives.iter().flat_map(|alternative| &alternative.subs) {
        if told.contains(&sub.name) {
            continue;
        }
        told.push(sub.name);
        line(&mut text, 2, sub);
        if let Kind::Multi { subs, .. } = &sub.kind {
            subs.iter().for_each(|inner| line(&mut text, 6, inner));
        }
        distributions |= matches!(sub.kind, Kind::Distribution | Kind::Ratio);
    }
    if distributions {
        text.push_str("\nDIST is a distribution: see 'help distributions'.\n");
    }
    text
}

fn line(text: &mut String, indent: usize, sub: &Sub) {
    let mut head = long(sub);
    if let Some(default) = sub.default.as_deref().filter(|default| !default.is_empty()) {
        head.push_str(&format!(" (default={default})"));
    }
    text.push_str(&format!("{:indent$}{head:<40} {}\n", "", sub.help));
}

fn long(sub: &Sub) -> String {
    match sub.kind {
        Kind::Value(_) if sub.name.ends_with(['=', '<', '>']) => format!("{}?", sub.name),
        Kind::Value(_) if sub.name.is_empty() => "HOST[,HOST…]".to_owned(),
        Kind::Value(_) => sub.name.to_owned(),
        Kind::Distribution => format!("{}DIST", sub.name),
        Kind::Ratio => format!("{}DIST/DIVISOR", sub.name),
        Kind::Multi { .. } => format!("{}(?)", sub.name),
    }
}

fn short(sub: &Sub) -> String {
    if sub.required { long(sub) } else { format!("[{}]", long(sub)) }
}

/// The possible forms of a distribution.
pub(crate) const DISTRIBUTIONS: &str = "\
Distributions (DIST); ~DIST mirrors one, so that what was rarest is most frequent; numbers take K, M and B:
  fixed(value)                          always the same
  uniform(min..max)                     each as likely as the other
  gaussian(min..max[,r])                normal; deviation (max - min) / 2 / r, r = 3
  gaussian(min..max,mean,deviation)     normal, both given
  exp(min..max)                         exponential
  extreme(min..max,shape)               Weibull
  qextreme(min..max,shape,bands)        Weibull in bands of equal probability
  seq(min..max)                         one after the other
  zipf(min..max[,exponent])             the first most often; exponent 0.99
  szipf(min..max[,exponent])            zipf, scattered over the range
  latest(min..max[,exponent])           what was written last most often
  hotspot(min..max,hot set,hot draws)   a share of the values gets a share of the draws
Aliases: gauss, normal, norm (gaussian); extr, weibull (extreme); qextr (qextreme).
A ratio is DIST/DIVISOR, such as fixed(1)/10.
";
