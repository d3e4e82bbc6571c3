//! Half-precision conversions without a branch, so that loops over them vectorise, and what the codes of the small
//! floats of micro-scaled formats stand for.

/// A half-precision number as f32, exactly.
#[inline(always)]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff) << 13;
    // Read as f32 the number is too small by 2^112; the product is exact, subnormals included.
    let finite = (f32::from_bits(magnitude) * f32::from_bits(0x7780_0000)).to_bits();
    let special = magnitude | 0x7f80_0000;
    f32::from_bits(sign | if bits & 0x7c00 == 0x7c00 { special } else { finite })
}

/// A bfloat16 number as f32, exactly.
#[inline(always)]
pub(crate) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The nearest bfloat16 number, ties to even.
#[inline(always)]
pub(crate) fn f32_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    let quiet = bits | 0x0040_0000;
    ((if value.is_nan() { quiet } else { rounded }) >> 16) as u16
}

/// The nearest half-precision number, ties to even; what is too large becomes infinite.
#[inline(always)]
pub(crate) fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    // Adding 0.5 to a subnormal result rounds it at bit 2^-24, the last of a half-precision subnormal.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let normal = magnitude.wrapping_sub(0x3800_0000).wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13;
    let special = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    let rounded = match magnitude {
        0x4780_0000.. => special,
        0x3880_0000.. => normal,
        _ => subnormal,
    };
    sign | rounded as u16
}

/// 2^(byte - 127); 255, which is no number in the specification (OCP MX 1.0), is infinity to MLX.
pub(crate) fn e8m0(byte: u8) -> f32 {
    f32::from_bits((u32::from(byte) << 23).max(1 << 22))
}

/// Sign, four bits of exponent, three of mantissa. 0x7f, which is no number in the specification, is 480 to MLX.
pub(crate) fn e4m3(byte: u8) -> f32 {
    let byte = u16::from(byte);
    f16_to_f32((byte & 0x80) << 8 | (byte & 0x7f) << 7) * 256.0
}

/// Sign, two bits of exponent, one of mantissa.
pub(crate) fn e2m1(code: u8) -> f32 {
    (f32::from(E2M1[usize::from(code)]) - f32::from(E2M1_ZERO)) * 0.5
}

/// Twice the values of e2m1's codes, plus [`E2M1_ZERO`].
pub(crate) const E2M1: [u8; 16] = [12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0];
/// What stands for zero in [`E2M1`].
pub(crate) const E2M1_ZERO: u8 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_goes_to_f32_and_back() {
        for bits in 0..=u16::MAX {
            let want = half::f16::from_bits(bits);
            let got = f16_to_f32(bits);
            assert!(got.to_bits() == want.to_f32().to_bits() || (got.is_nan() && want.is_nan()), "{bits:04x}");
            if !got.is_nan() {
                assert_eq!(f32_to_f16(got), bits);
            }
        }
    }

    #[test]
    fn rounding_agrees_with_the_half_crate() {
        for i in 0..4_000_000u32 {
            let value = f32::from_bits(i.wrapping_mul(2_654_435_761));
            if !value.is_nan() {
                assert_eq!(f32_to_f16(value), half::f16::from_f32(value).to_bits(), "{value:e}");
                assert_eq!(f32_to_bf16(value), half::bf16::from_f32(value).to_bits(), "{value:e}");
            }
        }
    }
}
