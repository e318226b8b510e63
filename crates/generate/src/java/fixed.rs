//! Numbers with a fixed count of decimals, as Java's `String.format("%.nf")` writes them.

use std::fmt::Write as _;

/// `value` with `decimals` digits behind the point.
///
/// Java rounds the *shortest decimal text* of the number, halves away from zero; Rust rounds its exact binary value. So
/// `%.1f` of 0.25 is 0.3 in Java and 0.2 in Rust. What is not finite is `NaN`, `Infinity` or `-Infinity`.
pub fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "NaN"
        } else if value > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
        .to_owned();
    }
    // The shortest text: d.ddde±x. Its digits, and how many of them stand before the point.
    let shortest = format!("{:e}", value.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
    let point = exponent.parse::<i32>().unwrap_or(0) + 1;
    let wanted = point + decimals as i32;

    let mut kept: Vec<u8> = (0..wanted.max(0)).map(|i| digits.get(i as usize).copied().unwrap_or(0)).collect();
    let next = if wanted < 0 { 0 } else { digits.get(wanted as usize).copied().unwrap_or(0) };
    let mut carry = next >= 5;
    for digit in kept.iter_mut().rev() {
        if !carry {
            break;
        }
        carry = *digit == 9;
        *digit = if carry { 0 } else { *digit + 1 };
    }
    let mut whole = point;
    if carry {
        kept.insert(0, 1);
        whole += 1;
    }
    let mut text = String::with_capacity(kept.len() + 4);
    if value.is_sign_negative() {
        text.push('-');
    }
    let digit = |i: i32| if i < 0 { 0 } else { kept.get(i as usize).copied().unwrap_or(0) };
    if whole <= 0 {
        text.push('0');
    }
    for i in 0..whole.max(0) {
        let _ = write!(text, "{}", digit(i));
    }
    if decimals > 0 {
        text.push('.');
        for i in 0..decimals as i32 {
            let _ = write!(text, "{}", digit(whole + i));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::fixed;

    #[test]
    fn halves_of_the_decimal_text_go_away_from_zero() {
        assert_eq!(fixed(0.25, 1), "0.3");
        assert_eq!(fixed(0.05, 1), "0.1");
        assert_eq!(fixed(-2.5, 0), "-3");
        assert_eq!(fixed(1.005, 2), "1.01");
        assert_eq!(fixed(0.15, 1), "0.2");
    }

    #[test]
    fn zeros_are_filled_in_on_both_sides() {
        assert_eq!(fixed(0.0, 1), "0.0");
        assert_eq!(fixed(-0.0, 1), "-0.0");
        assert_eq!(fixed(0.000_04, 3), "0.000");
        assert_eq!(fixed(1e7, 2), "10000000.00");
        assert_eq!(fixed(0.001, 6), "0.001000");
        assert_eq!(fixed(1e-12, 2), "0.00");
    }

    #[test]
    fn a_carry_may_lengthen_the_number() {
        assert_eq!(fixed(9.96, 1), "10.0");
        assert_eq!(fixed(0.99, 1), "1.0");
        assert_eq!(fixed(0.96, 0), "1");
        assert_eq!(fixed(99.5, 0), "100");
    }

    #[test]
    fn what_is_not_a_number_has_javas_name() {
        assert_eq!(
            [fixed(f64::NAN, 1), fixed(f64::INFINITY, 1), fixed(f64::NEG_INFINITY, 0)],
            ["NaN", "Infinity", "-Infinity"]
        );
    }
}
