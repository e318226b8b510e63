//! The number in front of a unit: digits, optional fraction, `_` between digits.

/// Splits `"1_500.5ms"` into `(1500.5, "ms")`. The unit may be empty; white space around it is dropped.
pub(crate) fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    if digits.starts_with('_') || digits.ends_with('_') {
        return None;
    }
    let value: f64 = digits.replace('_', "").parse().ok()?;
    value.is_finite().then_some((value, unit.trim()))
}

/// The shortest of `value` with up to `digits` decimals, without trailing zeros.
pub(crate) fn short(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_ends_where_its_unit_begins() {
        assert_eq!(split("1_500.5ms"), Some((1500.5, "ms")));
        assert_eq!(split(" 7 /s "), Some((7.0, "/s")));
        assert_eq!(split("12"), Some((12.0, "")));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "ms", "_1", "1_", "1.2.3", "-4", "n2", "."] {
            assert_eq!(split(text), None, "{text}");
        }
    }
}
