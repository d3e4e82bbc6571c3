//! How a tensor's numbers are stored: the element types of safetensors and the block types of GGUF, in one table.
//!
//! Sizes and numbers: the safetensors format description and ggml's `ggml_type`.

macro_rules! dtypes {
    ($($kind:ident $name:literal $gguf:literal $elements:literal $bytes:literal),* $(,)?) => {
        /// An element type. The quantised ones store blocks of several elements.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(non_camel_case_types, reason = "the formats' own names")]
        pub enum Dtype { $($kind),* }

        /// Each type with its name, its number in a GGUF (-1: not there), and its block: elements and bytes.
        const TABLE: &[(Dtype, &str, i64, usize, usize)] = &[$((Dtype::$kind, $name, $gguf, $elements, $bytes)),*];
    };
}

dtypes! {
    F32 "F32" 0 1 4,
    F16 "F16" 1 1 2,
    Q4_0 "Q4_0" 2 32 18,
    Q4_1 "Q4_1" 3 32 20,
    Q5_0 "Q5_0" 6 32 22,
    Q5_1 "Q5_1" 7 32 24,
    Q8_0 "Q8_0" 8 32 34,
    Q8_1 "Q8_1" 9 32 36,
    Q2_K "Q2_K" 10 256 84,
    Q3_K "Q3_K" 11 256 110,
    Q4_K "Q4_K" 12 256 144,
    Q5_K "Q5_K" 13 256 176,
    Q6_K "Q6_K" 14 256 210,
    Q8_K "Q8_K" 15 256 292,
    IQ2_XXS "IQ2_XXS" 16 256 66,
    IQ2_XS "IQ2_XS" 17 256 74,
    IQ3_XXS "IQ3_XXS" 18 256 98,
    IQ1_S "IQ1_S" 19 256 50,
    IQ4_NL "IQ4_NL" 20 32 18,
    IQ3_S "IQ3_S" 21 256 110,
    IQ2_S "IQ2_S" 22 256 82,
    IQ4_XS "IQ4_XS" 23 256 136,
    I8 "I8" 24 1 1,
    I16 "I16" 25 1 2,
    I32 "I32" 26 1 4,
    I64 "I64" 27 1 8,
    F64 "F64" 28 1 8,
    IQ1_M "IQ1_M" 29 256 56,
    BF16 "BF16" 30 1 2,
    TQ1_0 "TQ1_0" 34 256 54,
    TQ2_0 "TQ2_0" 35 256 66,
    MXFP4 "MXFP4" 39 32 17,
    NVFP4 "NVFP4" 40 64 36,
    BOOL "BOOL" -1 1 1,
    U8 "U8" -1 1 1,
    U16 "U16" -1 1 2,
    U32 "U32" -1 1 4,
    U64 "U64" -1 1 8,
    F8_E4M3 "F8_E4M3" -1 1 1,
    F8_E5M2 "F8_E5M2" -1 1 1,
    F8_E8M0 "F8_E8M0" -1 1 1,
}

impl Dtype {
    /// The type's name, the same in both formats.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// One block: how many elements it holds and how many bytes it takes. A plain type's block is one element.
    pub fn block(self) -> (usize, usize) {
        let (_, _, _, elements, bytes) = *self.row();
        (elements, bytes)
    }

    /// The bytes that a tensor of this shape takes, its last dimension in whole blocks. `None` where the last
    /// dimension is no multiple of the block or the size overflows.
    pub fn bytes(self, shape: &[usize]) -> Option<usize> {
        let (elements, bytes) = self.block();
        let last = shape.last().copied().unwrap_or(1);
        if !last.is_multiple_of(elements) {
            return None;
        }
        let count = shape.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim))?;
        (count / elements).checked_mul(bytes)
    }

    pub(super) fn from_safetensors(name: &str) -> Option<Dtype> {
        TABLE.iter().find(|row| row.1 == name && row.3 == 1).map(|row| row.0)
    }

    pub(super) fn from_gguf(number: u32) -> Option<Dtype> {
        TABLE.iter().find(|row| row.2 == i64::from(number)).map(|row| row.0)
    }

    fn row(self) -> &'static (Dtype, &'static str, i64, usize, usize) {
        TABLE.iter().find(|row| row.0 == self).expect("a dtype without a row is a bug")
    }
}

impl std::fmt::Display for Dtype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(Dtype::F32.bytes(&[3, 5]), Some(60));
        assert_eq!(Dtype::F32.bytes(&[]), Some(4));
        assert_eq!(Dtype::F32.bytes(&[0, 5]), Some(0));
        assert_eq!(Dtype::Q4_1.bytes(&[2, 64]), Some(80));
        assert_eq!(Dtype::Q4_1.bytes(&[64, 2]), None);
        assert_eq!(Dtype::Q6_K.bytes(&[1, 256]), Some(210));
        assert_eq!(Dtype::F64.bytes(&[usize::MAX, 2]), None);
    }

    #[test]
    fn names_and_numbers() {
        assert_eq!(Dtype::from_gguf(8), Some(Dtype::Q8_0));
        assert_eq!(Dtype::from_gguf(4), None);
        assert_eq!(Dtype::from_gguf(u32::MAX), None);
        assert_eq!(Dtype::from_safetensors("BF16"), Some(Dtype::BF16));
        assert_eq!(Dtype::from_safetensors("F8_E4M3"), Some(Dtype::F8_E4M3));
        assert_eq!(Dtype::from_safetensors("Q4_0"), None);
        assert_eq!(Dtype::Q4_K.to_string(), "Q4_K");
    }
}
