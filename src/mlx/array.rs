//! Bytes in, bytes out: the only file of the library with `unsafe`.

use mlx_rs::{Array, Dtype};

use super::Error;

/// An array of `shape` whose elements are `bytes`, as they lie in memory. Copies them.
///
/// # Errors
/// A length that does not fit shape and dtype.
pub fn from_bytes(bytes: &[u8], shape: &[i32], dtype: Dtype) -> Result<Array, Error> {
    let elements: usize = shape.iter().map(|&extent| extent as usize).product();
    let expected = elements * size_of_dtype(dtype)?;
    if bytes.len() != expected {
        return Err(Error(format!("{} bytes do not fill {shape:?} of {dtype:?}, which takes {expected}", bytes.len())));
    }
    // SAFETY: MLX copies exactly `expected` bytes from the pointer before it returns; the length was just checked,
    // and every bit pattern is a valid number.
    Ok(unsafe { Array::from_raw_data(bytes.as_ptr().cast(), shape, dtype) })
}

fn size_of_dtype(dtype: Dtype) -> Result<usize, Error> {
    Ok(match dtype {
        Dtype::Uint8 => 1,
        Dtype::Float16 | Dtype::Bfloat16 => 2,
        Dtype::Float32 | Dtype::Uint32 | Dtype::Int32 => 4,
        other => return Err(Error(format!("arrays of {other:?} are not made from bytes here"))),
    })
}
