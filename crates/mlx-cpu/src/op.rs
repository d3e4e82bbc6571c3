//! Puts a Rust closure into MLX's lazy graph: [`apply`] builds the node, MLX calls the closure when it evaluates.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    slice,
};

use mlx_rs::Array;

use crate::kernels::rows::Rows;

/// What went wrong while a node was built: shapes that do not fit, a dtype no kernel reads.
#[derive(Debug, Clone)]
pub struct Error(pub String);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// The element types kernels read and write. The numbers are prims.cpp's codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Dtype {
    U8 = 0,
    U32 = 1,
    I32 = 2,
    F16 = 3,
    BF16 = 4,
    F32 = 5,
}

impl Dtype {
    fn from_code(code: c_int) -> Option<Dtype> {
        [Dtype::U8, Dtype::U32, Dtype::I32, Dtype::F16, Dtype::BF16, Dtype::F32]
            .into_iter()
            .find(|dtype| *dtype as c_int == code)
    }

    fn of(array: &Array) -> Result<Dtype, Error> {
        Ok(match array.dtype() {
            mlx_rs::Dtype::Uint8 => Dtype::U8,
            mlx_rs::Dtype::Uint32 => Dtype::U32,
            mlx_rs::Dtype::Int32 => Dtype::I32,
            mlx_rs::Dtype::Float16 => Dtype::F16,
            mlx_rs::Dtype::Bfloat16 => Dtype::BF16,
            mlx_rs::Dtype::Float32 => Dtype::F32,
            other => return Err(Error(format!("mlx-cpu: no kernel reads {other:?}"))),
        })
    }
}

/// A Rust type that stands for a [`Dtype`].
pub trait Element: Copy + Send + Sync + 'static {
    const DTYPE: Dtype;
}

macro_rules! element {
    ($($rust:ty => $dtype:ident),*) => { $(impl Element for $rust { const DTYPE: Dtype = Dtype::$dtype; })* };
}
element!(u8 => U8, u32 => U32, i32 => I32, half::f16 => F16, half::bf16 => BF16, f32 => F32);

#[repr(C)]
struct RawView {
    data: *mut c_void,
    shape: *const c_int,
    strides: *const i64,
    ndim: usize,
    dtype: c_int,
}

#[repr(C)]
struct RawSpec {
    shape: *const c_int,
    ndim: usize,
    dtype: c_int,
    donor: c_int,
}

unsafe extern "C" {
    #[allow(clippy::too_many_arguments)]
    fn mettle_op(
        kernel: *mut c_void,
        name: *const c_char,
        inputs: *const *mut c_void,
        n_inputs: usize,
        outputs: *const RawSpec,
        n_outputs: usize,
        results: *mut *mut c_void,
        error: *mut c_char,
        capacity: usize,
    ) -> c_int;
}

/// An input as a kernel sees it.
pub struct View<'a> {
    raw: &'a RawView,
}

impl<'a> View<'a> {
    /// The extent of each axis.
    pub fn shape(&self) -> &'a [i32] {
        shape(self.raw)
    }

    /// The type of its elements.
    pub fn dtype(&self) -> Dtype {
        Dtype::from_code(self.raw.dtype).expect("apply checked the dtype")
    }

    fn strides(&self) -> &'a [i64] {
        match self.raw.ndim {
            0 => &[],
            // SAFETY: prims.cpp keeps `ndim` strides alive while the kernel runs.
            ndim => unsafe { slice::from_raw_parts(self.raw.strides, ndim) },
        }
    }

    fn elements(&self) -> usize {
        self.shape().iter().map(|&extent| extent as usize).product()
    }

    /// All elements in order, or `None` where they do not lie side by side.
    pub fn slice<T: Element>(&self) -> Option<&'a [T]> {
        assert_eq!(self.dtype(), T::DTYPE, "an input's dtype");
        let mut expected = 1;
        for (&extent, &stride) in self.shape().iter().zip(self.strides()).rev() {
            if extent != 1 && stride != expected {
                return None;
            }
            expected *= i64::from(extent);
        }
        // SAFETY: the array's buffer holds its elements; row-contiguous strides were just checked; MLX allocates at
        // least 16-byte aligned and nobody writes to an input.
        Some(unsafe { slice::from_raw_parts(self.raw.data.cast(), self.elements()) })
    }

    /// The elements as rows that lie a stride apart: all but the last `inner` axes are folded into one. `None` where
    /// the inner axes do not lie side by side or the outer ones do not fold.
    pub fn rows<T: Element>(&self, inner: usize) -> Option<Rows<'a, T>> {
        assert_eq!(self.dtype(), T::DTYPE, "an input's dtype");
        let (shape, strides) = (self.shape(), self.strides());
        let split = shape.len() - inner;
        let mut width = 1i64;
        for axis in (split..shape.len()).rev() {
            if shape[axis] != 1 && strides[axis] != width {
                return None;
            }
            width *= i64::from(shape[axis]);
        }
        let (mut count, mut stride) = (1i64, width);
        for axis in (0..split).rev() {
            if shape[axis] == 1 {
                continue;
            }
            if count == 1 {
                stride = strides[axis];
            } else if strides[axis] != count * stride {
                return None;
            }
            count *= i64::from(shape[axis]);
        }
        if stride < 0 || (count > 1 && stride < width) {
            return None;
        }
        let span = if count == 0 || width == 0 { 0 } else { (count - 1) * stride + width };
        // SAFETY: the last row ends at `span` elements, inside the array's buffer, as its own strides say.
        let data = unsafe { slice::from_raw_parts(self.raw.data.cast(), span as usize) };
        Some(Rows { data, count: count as usize, stride: stride as usize, width: width as usize })
    }

    /// The elements in order, copied together if need be.
    pub fn gather<T: Element>(&self) -> Vec<T> {
        if let Some(slice) = self.slice() {
            return slice.to_vec();
        }
        assert_eq!(self.dtype(), T::DTYPE, "an input's dtype");
        let (shape, strides) = (self.shape(), self.strides());
        let mut out = Vec::with_capacity(self.elements());
        let mut index = vec![0i64; shape.len()];
        for _ in 0..self.elements() {
            let offset: i64 = index.iter().zip(strides).map(|(i, stride)| i * stride).sum();
            // SAFETY: every index lies within the shape, so the offset lies within the buffer.
            out.push(unsafe { *self.raw.data.cast::<T>().offset(offset as isize) });
            for axis in (0..shape.len()).rev() {
                index[axis] += 1;
                if index[axis] < i64::from(shape[axis]) {
                    break;
                }
                index[axis] = 0;
            }
        }
        out
    }
}

/// An output as a kernel sees it: contiguous, not initialised unless it has a donor.
pub struct ViewMut<'a> {
    raw: &'a RawView,
}

impl<'a> ViewMut<'a> {
    /// The extent of each axis.
    pub fn shape(&self) -> &'a [i32] {
        shape(self.raw)
    }

    /// The type of its elements.
    pub fn dtype(&self) -> Dtype {
        Dtype::from_code(self.raw.dtype).expect("apply made the dtype")
    }

    /// All elements in order.
    pub fn slice<T: Element>(&mut self) -> &'a mut [T] {
        assert_eq!(self.dtype(), T::DTYPE, "an output's dtype");
        let elements = self.shape().iter().map(|&extent| extent as usize).product();
        // SAFETY: prims.cpp allocated the buffer for this shape and dtype, or took it from a donor that nobody else
        // holds; the view is the kernel's alone and plain numbers have no invalid bits.
        unsafe { slice::from_raw_parts_mut(self.raw.data.cast(), elements) }
    }
}

fn shape(raw: &RawView) -> &[i32] {
    match raw.ndim {
        0 => &[],
        // SAFETY: prims.cpp keeps `ndim` extents alive while the kernel runs.
        ndim => unsafe { slice::from_raw_parts(raw.shape, ndim) },
    }
}

/// What an output is.
pub struct Output<'a> {
    pub shape: &'a [i32],
    pub dtype: Dtype,
    /// The input whose contents the output starts with. Its buffer is taken over, without a copy, where this graph
    /// holds the only reference to it.
    pub donor: Option<usize>,
}

type Kernel = Box<dyn Fn(&[View], &mut [ViewMut]) + Send + Sync>;

/// Adds a node to MLX's graph whose outputs `kernel` computes from `inputs`, on MLX's CPU thread, when one of them
/// is evaluated.
///
/// # Errors
/// An input of a dtype no kernel reads. A panic of the kernel is an error of the evaluation, not of this call.
pub fn apply(
    name: &'static CStr,
    inputs: &[&Array],
    outputs: &[Output],
    kernel: impl Fn(&[View], &mut [ViewMut]) + Send + Sync + 'static,
) -> Result<Vec<Array>, Error> {
    for input in inputs {
        Dtype::of(input)?;
    }
    let handles: Vec<*mut c_void> = inputs.iter().map(|input| input.as_ptr().ctx).collect();
    let specs: Vec<RawSpec> = outputs
        .iter()
        .map(|output| RawSpec {
            shape: output.shape.as_ptr(),
            ndim: output.shape.len(),
            dtype: output.dtype as c_int,
            donor: output.donor.map_or(-1, |donor| donor as c_int),
        })
        .collect();
    let kernel: Box<Kernel> = Box::new(Box::new(kernel));
    let mut results = vec![std::ptr::null_mut(); outputs.len()];
    let mut error = [0 as c_char; 256];
    // SAFETY: all pointers live through the call, with the lengths given; the kernel's box passes to C++, which drops
    // it by mettle_kernel_drop; the name is static.
    let status = unsafe {
        mettle_op(
            Box::into_raw(kernel).cast(),
            name.as_ptr(),
            handles.as_ptr(),
            handles.len(),
            specs.as_ptr(),
            specs.len(),
            results.as_mut_ptr(),
            error.as_mut_ptr(),
            error.len(),
        )
    };
    if status != 0 {
        // SAFETY: on failure prims.cpp wrote a string that ends within the capacity.
        let text = unsafe { CStr::from_ptr(error.as_ptr()) };
        return Err(Error(text.to_string_lossy().into_owned()));
    }
    // SAFETY: on success each result is a new mlx::core::array that is now ours alone.
    Ok(results.into_iter().map(|ctx| unsafe { Array::from_ptr(mlx_sys::mlx_array { ctx }) }).collect())
}

/// [`apply`] for one output.
///
/// # Errors
/// As [`apply`].
pub fn apply_one(
    name: &'static CStr,
    inputs: &[&Array],
    output: Output,
    kernel: impl Fn(&[View], &mut ViewMut) + Send + Sync + 'static,
) -> Result<Array, Error> {
    let mut made = apply(name, inputs, &[output], move |inputs, outputs| kernel(inputs, &mut outputs[0]))?;
    Ok(made.pop().expect("one output was asked for"))
}

#[unsafe(no_mangle)]
extern "C" fn mettle_kernel_run(
    kernel: *mut c_void,
    inputs: *const RawView,
    n_inputs: usize,
    outputs: *const RawView,
    n_outputs: usize,
    error: *mut c_char,
    capacity: usize,
) -> c_int {
    // SAFETY: `kernel` is the box that `apply` leaked and prims.cpp holds; the views are arrays of these lengths.
    let (kernel, inputs, outputs) = unsafe {
        (
            &*kernel.cast::<Kernel>(),
            if n_inputs == 0 { &[] } else { slice::from_raw_parts(inputs, n_inputs) },
            slice::from_raw_parts(outputs, n_outputs),
        )
    };
    let inputs: Vec<View> = inputs.iter().map(|raw| View { raw }).collect();
    let mut outputs: Vec<ViewMut> = outputs.iter().map(|raw| ViewMut { raw }).collect();
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| kernel(&inputs, &mut outputs))) else {
        return 0;
    };
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a kernel panicked");
    let length = text.len().min(capacity - 1);
    // SAFETY: `error` has `capacity` bytes and the text is cut to fit with its final zero.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), error, length);
        *error.add(length) = 0;
    }
    1
}

#[unsafe(no_mangle)]
extern "C" fn mettle_kernel_drop(kernel: *mut c_void) {
    // SAFETY: called once, by the last owner of the box that `apply` leaked.
    drop(unsafe { Box::from_raw(kernel.cast::<Kernel>()) });
}
