//! Numbers as scripts for cassandra-stress expect them: those of Java's `Formatter` in the C locale.
//!
//! Java rounds the shortest decimal text of a double half up; Rust rounds the exact value half to even. `0.15` with one
//! decimal is `0.2` there and `0.1` here, so the text is built by hand.

/// A number with this many decimals, as Java's `%.{decimals}f` prints it, including the words `NaN` and `Infinity`.
pub fn fixed(value: f64, decimals: usize) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() };
    }
    // `Display` prints the shortest digits that read back as the same double, never an exponent.
    let text = value.abs().to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut digits: Vec<u8> =
        whole.bytes().chain(fraction.bytes().chain(std::iter::repeat(b'0')).take(decimals)).collect();
    if fraction.as_bytes().get(decimals).is_some_and(|next| *next >= b'5') {
        round_up(&mut digits);
    }
    let point = digits.len() - decimals;
    let mut out = String::with_capacity(digits.len() + 2);
    if value < 0.0 {
        out.push('-');
    }
    for (place, digit) in digits.iter().enumerate() {
        if place == point {
            out.push('.');
        }
        out.push(char::from(*digit));
    }
    out
}

/// Adds one to the last digit, with the carry.
fn round_up(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
}

/// The same with commas between thousands, as Java's `%,.{decimals}f`.
pub fn grouped(value: f64, decimals: usize) -> String {
    group(&fixed(value, decimals))
}

/// A count with commas between thousands, as Java's `%,d`.
pub fn count(value: u64) -> String {
    group(&value.to_string())
}

fn group(text: &str) -> String {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = text.find('.').map_or((text, ""), |point| text.split_at(point));
    if !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("{sign}{text}");
    }
    let mut out = sign.to_owned();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_the_shortest_decimal_half_up_as_java_does() {
        // Expected: `String.format("%.1f", …)` and so on of OpenJDK 17.
        for (value, decimals, expected) in [
            (0.25, 1, "0.3"),
            (0.15, 1, "0.2"),
            (0.35, 1, "0.4"),
            (2.5, 0, "3"),
            (0.5, 0, "1"),
            (9.96, 1, "10.0"),
            (999.95, 1, "1000.0"),
            (0.04999, 1, "0.0"),
            (1e21, 0, "1000000000000000000000"),
            (1e-7, 5, "0.00000"),
            (0.0, 5, "0.00000"),
            (-1.25, 1, "-1.3"),
            (f64::NAN, 1, "NaN"),
            (f64::INFINITY, 0, "Infinity"),
        ] {
            assert_eq!(fixed(value, decimals), expected, "{value} with {decimals} decimals");
        }
    }

    #[test]
    fn thousands_are_parted_by_commas_whatever_the_locale() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(12_345_678), "12,345,678");
        assert_eq!(grouped(11_448.6, 0), "11,449");
        assert_eq!(grouped(1_234.56, 1), "1,234.6");
        assert_eq!(grouped(-1_234.56, 1), "-1,234.6");
        assert_eq!(grouped(f64::NAN, 1), "NaN");
    }
}
