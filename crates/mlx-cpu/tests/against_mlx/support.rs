//! Random arrays, and comparison with MLX.

use mlx_cpu::Float;
use mlx_rs::{Array, Dtype, ops::indexing::TryIndexOp};

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Between -1 and 1.
    pub fn array(&mut self, shape: &[i32]) -> Array {
        let count: i32 = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|_| self.next() as f32 / (1u64 << 30) as f32 - 1.0).collect();
        Array::from_slice(&values, shape)
    }

    /// The same kind of array as a view into a larger one: rows a stride apart, or columns of a transposed one.
    pub fn strided(&mut self, rows: i32, width: i32) -> Array {
        match self.below(3) {
            0 => self.array(&[rows, width]),
            1 => {
                let wide = self.array(&[rows, width + 7]);
                wide.try_index((.., 3..3 + width)).expect("a slice")
            }
            _ => self.array(&[width, rows]).transpose_axes(&[1, 0]).expect("a transpose"),
        }
    }
}

pub fn values(array: &Array) -> Vec<f32> {
    let array = array.as_dtype(Dtype::Float32).expect("a cast").contiguous().expect("a copy");
    array.eval().expect("it evaluates");
    array.to_vec_exact().expect("f32 in order")
}

/// Compares with a tolerance relative to the reference's largest value.
pub fn close(ours: &Array, reference: &Array, tolerance: f32, what: &str) {
    assert_eq!(ours.shape(), reference.shape(), "{what}: shapes");
    let (ours, reference) = (values(ours), values(reference));
    let largest = reference.iter().fold(1e-6_f32, |largest, value| largest.max(value.abs()));
    for (index, (a, b)) in ours.iter().zip(&reference).enumerate() {
        assert!((a - b).abs() <= tolerance * largest, "{what}: element {index} is {a}, MLX says {b}");
    }
}

pub fn float_bytes(array: &Array, float: Float) -> Vec<u8> {
    let array = array.contiguous().expect("a copy");
    array.eval().expect("it evaluates");
    match float {
        Float::F32 => array.as_slice::<f32>().iter().flat_map(|value| value.to_le_bytes()).collect(),
        Float::F16 => array.as_slice::<half::f16>().iter().flat_map(|value| value.to_le_bytes()).collect(),
        Float::BF16 => array.as_slice::<half::bf16>().iter().flat_map(|value| value.to_le_bytes()).collect(),
    }
}

pub fn dtype(float: Float) -> Dtype {
    match float {
        Float::F32 => Dtype::Float32,
        Float::F16 => Dtype::Float16,
        Float::BF16 => Dtype::Bfloat16,
    }
}

pub const FLOATS: [Float; 3] = [Float::F32, Float::F16, Float::BF16];
