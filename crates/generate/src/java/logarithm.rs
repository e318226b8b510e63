//! `StrictMath.log`: the logarithm of fdlibm 5.3, whose last bit Java promises.
//!
//! Later descendants of fdlibm (musl, FreeBSD and so the `libm` crate) add the same terms in another order and
//! differ from it in the last bit now and then.

const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);

/// The minimax polynomial of fdlibm (its comment: error below 2⁻⁵⁸·⁴⁵), as bits, for the powers 2 to 14 of s.
const REMEZ: [f64; 7] = [
    f64::from_bits(0x3fe5_5555_5555_5593),
    f64::from_bits(0x3fd9_9999_9997_fa04),
    f64::from_bits(0x3fd2_4924_9422_9359),
    f64::from_bits(0x3fcc_71c5_1d8e_78af),
    f64::from_bits(0x3fc7_4664_96cb_03de),
    f64::from_bits(0x3fc3_9a09_d078_c69f),
    f64::from_bits(0x3fc2_f112_df3e_5244),
];

/// The natural logarithm as Java's `StrictMath.log` gives it, for a positive normal number.
pub(super) fn strict_log(x: f64) -> f64 {
    let bits = x.to_bits();
    let fraction = ((bits >> 32) as u32) & 0x000f_ffff;
    // x = 2^exponent · (1 + f) with 1 + f between √½ and √2: from 1.41421… on, halve once more.
    let halved = u64::from((fraction + 0x9_5f64) >> 20);
    let exponent = (bits >> 52) as i32 - 1023 + halved as i32;
    let f = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | (1023 - halved) << 52) - 1.0;
    let scale = f64::from(exponent);
    let compose = |small: f64| match exponent {
        0 => f - small,
        _ => scale * LN2_HIGH - ((small - scale * LN2_LOW) - f),
    };

    if 0x000f_ffff & (2 + fraction) < 3 {
        // |f| below 2⁻²⁰: three terms of the series.
        if f == 0.0 {
            return if exponent == 0 { 0.0 } else { scale * LN2_HIGH + scale * LN2_LOW };
        }
        return compose(f * f * (0.5 - (1.0 / 3.0) * f));
    }
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (REMEZ[1] + w * (REMEZ[3] + w * REMEZ[5]));
    let odd = z * (REMEZ[0] + w * (REMEZ[2] + w * (REMEZ[4] + w * REMEZ[6])));
    let tail = odd + even;
    // Between about 1.38 and 1.42 half of f² is taken apart, which keeps a bit more.
    let inside = (fraction as i32 - 0x6_147a) | (0x6_b851 - fraction as i32);
    if inside > 0 {
        let half = 0.5 * f * f;
        if exponent == 0 {
            f - (half - s * (half + tail))
        } else {
            scale * LN2_HIGH - ((half - (s * (half + tail) + scale * LN2_LOW)) - f)
        }
    } else {
        compose(s * (f - tail))
    }
}
