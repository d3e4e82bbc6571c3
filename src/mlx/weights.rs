//! A cursor over a checkpoint's tensors: blocks ask for what they need by name and load themselves. What nobody
//! asked for is an error at the end, as is what is not there.

use std::{cell::RefCell, collections::BTreeSet, fmt::Display, ops::Range};

use super::{
    Backend, Error,
    config::Config,
    cost::Tally,
    gguf,
    quant::{Affine, Data, Float, Matrix, SmallFloats},
};
use crate::checkpoint::{Checkpoint, Dtype, Tensor};

/// A place in the checkpoint's tree of names.
#[derive(Clone)]
pub struct Weights<'a> {
    source: &'a Source<'a>,
    prefix: String,
    /// The share of what is read here that one token uses.
    active: f64,
    /// The only rows of a matrix, or matrices of a stack, that are read; `None` reads all.
    rows: Option<Range<usize>>,
}

/// What all cursors of one load share.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The model on disk.
    pub checkpoint: &'a Checkpoint,
    /// What the model will compute with.
    pub backend: Backend,
    /// Tensors that the model has no use for and that may stay unread, by a part of their name.
    pub unused: &'a [&'a str],
    /// What was read so far.
    pub ledger: &'a Ledger,
    /// A step of loading reads about so many bytes, counted as f32.
    pub piece: usize,
}

/// What was read of a checkpoint.
#[derive(Default)]
pub struct Ledger {
    taken: RefCell<BTreeSet<String>>,
    tally: RefCell<Tally>,
}

impl Ledger {
    /// Bytes and products.
    pub fn tally(&self) -> Tally {
        *self.tally.borrow()
    }
}

impl<'a> Source<'a> {
    /// The cursor at the top of the tree.
    pub fn root(&'a self) -> Weights<'a> {
        Weights { source: self, prefix: String::new(), active: 1.0, rows: None }
    }

    /// The settings of the checkpoint's config.json.
    pub fn config(&self) -> Config<'a> {
        Config(self.checkpoint.config())
    }

    /// What was read so far.
    pub fn tally(&self) -> Tally {
        self.ledger.tally()
    }

    /// # Errors
    /// Names every tensor that no block asked for: the model would not be the one in the checkpoint.
    pub fn all_read(&self) -> Result<(), Error> {
        let taken = self.ledger.taken.borrow();
        let left: Vec<&str> = self
            .checkpoint
            .tensors()
            .map(|tensor| tensor.name.as_str())
            .filter(|name| !taken.contains(*name) && !self.unused.iter().any(|part| name.contains(part)))
            .collect();
        match left.len() {
            0 => Ok(()),
            count => Err(Error(format!(
                "{count} tensors of the checkpoint have no place in this model: {}{}",
                left[..count.min(8)].join(", "),
                if count > 8 { ", …" } else { "" }
            ))),
        }
    }
}

impl<'a> Weights<'a> {
    /// The cursor one name further down.
    pub fn at(&self, name: impl Display) -> Weights<'a> {
        let prefix = if self.prefix.is_empty() { name.to_string() } else { format!("{}.{name}", self.prefix) };
        Weights { prefix, ..self.clone() }
    }

    /// The cursor at the top of the tree.
    pub fn root(&self) -> Weights<'a> {
        self.source.root()
    }

    /// The same place, where one token uses `active` of `all` parts: experts.
    pub fn shared_by(&self, active: usize, all: usize) -> Weights<'a> {
        Weights { active: active as f64 / all as f64, ..self.clone() }
    }

    /// The same place, where only these rows of a matrix, or these matrices of a stack, are read.
    pub fn rows(&self, rows: Range<usize>) -> Weights<'a> {
        Weights { rows: Some(rows), ..self.clone() }
    }

    /// What the model will compute with.
    pub fn backend(&self) -> Backend {
        self.source.backend
    }

    /// The place's name.
    pub fn path(&self) -> &str {
        &self.prefix
    }

    /// About how many bytes a step reads, counted as f32.
    pub fn piece(&self) -> usize {
        self.source.piece
    }

    /// What was read so far.
    pub fn tally(&self) -> Tally {
        self.source.tally()
    }

    /// Forgets what was read since.
    pub fn set_tally(&self, tally: Tally) {
        *self.source.ledger.tally.borrow_mut() = tally;
    }

    /// Whether a tensor of this name is in the checkpoint.
    pub fn has(&self, name: &str) -> bool {
        self.source.checkpoint.tensor(&self.at(name).prefix).is_some()
    }

    /// Lets everything below this place stay unread.
    pub fn ignore(&self) {
        let below = format!("{}.", self.prefix);
        let names = self.source.checkpoint.tensors().map(|tensor| tensor.name.clone());
        self.source.ledger.taken.borrow_mut().extend(names.filter(|name| name.starts_with(&below)));
    }

    /// The shape of a tensor, without reading it.
    pub fn shape(&self, name: &str) -> Option<&'a [usize]> {
        self.source.checkpoint.tensor(&self.at(name).prefix).map(|tensor| tensor.shape.as_slice())
    }

    fn tensor(&self, name: &str) -> Result<&'a Tensor, Error> {
        let path = self.at(name).prefix;
        let tensor = self.source.checkpoint.tensor(&path);
        let tensor = tensor.ok_or_else(|| Error(format!("the checkpoint has no tensor {path}")))?;
        self.source.ledger.taken.borrow_mut().insert(path);
        Ok(tensor)
    }

    fn bytes(&self, tensor: &Tensor) -> Result<Vec<u8>, Error> {
        let bytes = match &self.rows {
            Some(rows) => self.source.checkpoint.read_rows(tensor, rows.clone())?,
            None => self.source.checkpoint.read(tensor)?,
        };
        self.source.ledger.tally.borrow_mut().read(bytes.len(), self.active);
        Ok(bytes)
    }

    /// A floating-point tensor of any form but quantised, as f32 and with its shape.
    pub fn floats(&self, name: &str) -> Result<(Vec<f32>, Vec<usize>), Error> {
        let tensor = self.tensor(name)?;
        let float = float(&tensor.dtype)
            .ok_or_else(|| Error(format!("{}: expected floats, found {:?}", tensor.name, tensor.dtype)))?;
        let bytes = self.bytes(tensor)?;
        let values = bytes.chunks_exact(float.bytes()).map(|number| float.read(number)).collect();
        Ok((values, tensor.shape.clone()))
    }

    /// A vector of `length` floats.
    pub fn numbers(&self, name: &str, length: usize) -> Result<Vec<f32>, Error> {
        let (values, shape) = self.floats(name)?;
        if shape == [length] {
            Ok(values)
        } else {
            Err(Error(format!("{}: expected a vector of {length}, found {shape:?}", self.at(name).prefix)))
        }
    }

    /// The `bias` of so many outputs at this place, where there is one.
    pub fn bias(&self, outputs: usize) -> Result<Option<Vec<f32>>, Error> {
        self.has("bias").then(|| self.numbers("bias", outputs)).transpose()
    }

    /// The `weight` of `n` outputs and `k` inputs at this place, in the form the checkpoint holds it.
    pub fn matrix(&self, n: usize, k: usize) -> Result<Matrix, Error> {
        self.weight(&[n, k])
    }

    /// The `weight` of so many matrices of `n` outputs and `k` inputs, as one matrix of all their rows.
    pub fn matrices(&self, count: usize, n: usize, k: usize) -> Result<Matrix, Error> {
        self.weight(&[count, n, k])
    }

    /// `shape` ends with the inputs.
    fn weight(&self, shape: &[usize]) -> Result<Matrix, Error> {
        let matrix = if self.has("scales") { self.quantized(shape) } else { self.plain(shape) }?;
        self.source.ledger.tally.borrow_mut().multiplies(matrix.n * matrix.k, self.active);
        Ok(matrix)
    }

    fn plain(&self, shape: &[usize]) -> Result<Matrix, Error> {
        let tensor = self.tensor("weight")?;
        if tensor.shape != shape {
            return Err(Error(format!("{}: expected {shape:?}, found {:?}", tensor.name, tensor.shape)));
        }
        let (n, k) = self.extent(shape);
        let bytes = self.bytes(tensor)?;
        if let Some(float) = float(&tensor.dtype) {
            return Ok(Matrix { n, k, data: Data::Dense { float, values: bytes } });
        }
        let plain = match self.backend() {
            Backend::Cpu { mode: mlx_cpu::Mode::Exact, .. } | Backend::Mlx { activations: Float::F32 } => Float::F32,
            _ => Float::F16,
        };
        gguf::matrix(tensor.dtype.name(), [n, k], &bytes, plain).ok_or_else(|| {
            Error(format!(
                "{} is stored as {}, which mettle does not read; take a file in one of {}",
                tensor.name,
                tensor.dtype.name(),
                gguf::READABLE.join(", ")
            ))
        })
    }

    /// MLX's quantised `weight` as u32 with its `scales` and, where it is affine, `biases`. The shapes must agree with
    /// what the config says.
    fn quantized(&self, shape: &[usize]) -> Result<Matrix, Error> {
        let (weight, scales, quantization) = (self.tensor("weight")?, self.tensor("scales")?, self.quantization()?);
        let Quantization { mode, bits, group } = quantization;
        let (n, k) = self.extent(shape);
        let last = |extent: usize| [&shape[..shape.len() - 1], &[extent]].concat();
        let fits = k.is_multiple_of(group)
            && weight.dtype == Dtype::U32
            && weight.shape == last(k * bits / 32)
            && scales.shape == last(k / group);
        let wrong = || {
            let (w, s) = ((&weight.dtype, &weight.shape), (&scales.dtype, &scales.shape));
            let form = format!("{} of {bits} bits in groups of {group}", mode.name());
            Error(format!("{}: weight {w:?} with scales {s:?} is no {shape:?} in {form}", self.prefix))
        };
        if !fits {
            return Err(wrong());
        }
        let data = match mode {
            Mode::SmallFloats(format) => {
                if scales.dtype != Dtype::U8 {
                    return Err(wrong());
                }
                Data::SmallFloats(SmallFloats { format, codes: self.bytes(weight)?, scales: self.bytes(scales)? })
            }
            Mode::Affine => {
                let (biases, float) = (self.tensor("biases")?, float(&scales.dtype).ok_or_else(wrong)?);
                if (&biases.shape, &biases.dtype) != (&scales.shape, &scales.dtype) {
                    let (found, wanted) = ((&biases.dtype, &biases.shape), (&scales.dtype, &scales.shape));
                    return Err(Error(format!("{}: {found:?}, beside scales {wanted:?}", biases.name)));
                }
                let (weights, scales, biases) = (self.bytes(weight)?, self.bytes(scales)?, self.bytes(biases)?);
                Data::Affine(Affine { bits, group, float, weights, scales, biases })
            }
        };
        Ok(Matrix { n, k, data })
    }

    /// The outputs that are read of a matrix or a stack of this shape, and its inputs.
    fn extent(&self, shape: &[usize]) -> (usize, usize) {
        let (k, outputs) = shape.split_last().expect("a shape ends with the inputs");
        let first = self.rows.as_ref().map_or(outputs[0], Range::len);
        (first * outputs[1..].iter().product::<usize>(), *k)
    }

    /// What the config says of this path, or of the whole model. As in MLX, a path that has settings of its own takes
    /// none of the model's: what they leave out follows from their mode.
    fn quantization(&self) -> Result<Quantization, Error> {
        let whole = self
            .source
            .config()
            .object("quantization")
            .ok_or_else(|| Error(format!("{} is quantised, but config.json has no quantization", self.prefix)))?;
        let settings = whole.object(&self.prefix).unwrap_or(whole);
        let name = settings.text("mode").unwrap_or("affine");
        let known = MODES.iter().find(|(mode, ..)| mode.name() == name);
        let unknown = |what: String| {
            Error(format!("{}: quantization {name} with {what} is not supported ({READABLE} are)", self.prefix))
        };
        let &(mode, bits, group) = known.ok_or_else(|| unknown("any number of bits".into()))?;
        let bits = settings.optional_count("bits")?.unwrap_or(bits);
        let group = settings.optional_count("group_size")?.unwrap_or(group);
        let supported = match mode {
            Mode::Affine => [2, 3, 4, 5, 6, 8].contains(&bits) && [32, 64, 128].contains(&group),
            Mode::SmallFloats(format) => (bits, group) == (format.bits(), format.group()),
        };
        if supported {
            Ok(Quantization { mode, bits, group })
        } else {
            Err(unknown(format!("{bits} bits in groups of {group}")))
        }
    }
}

/// How a matrix is quantised.
struct Quantization {
    mode: Mode,
    bits: usize,
    group: usize,
}

#[derive(Clone, Copy)]
enum Mode {
    Affine,
    SmallFloats(mlx_cpu::Micro),
}

impl Mode {
    /// MLX's name.
    fn name(self) -> &'static str {
        match self {
            Mode::Affine => "affine",
            Mode::SmallFloats(mlx_cpu::Micro::Mxfp4) => "mxfp4",
            Mode::SmallFloats(mlx_cpu::Micro::Nvfp4) => "nvfp4",
            Mode::SmallFloats(mlx_cpu::Micro::Mxfp8) => "mxfp8",
        }
    }
}

/// The modes with MLX's defaults for bits and group.
const MODES: &[(Mode, usize, usize)] = &[
    (Mode::Affine, 4, 64),
    (Mode::SmallFloats(mlx_cpu::Micro::Mxfp4), 4, 32),
    (Mode::SmallFloats(mlx_cpu::Micro::Nvfp4), 4, 16),
    (Mode::SmallFloats(mlx_cpu::Micro::Mxfp8), 8, 32),
];
const READABLE: &str = "affine, 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128, mxfp4, nvfp4 and mxfp8";

fn float(dtype: &Dtype) -> Option<Float> {
    match dtype {
        Dtype::F32 => Some(Float::F32),
        Dtype::F16 => Some(Float::F16),
        Dtype::BF16 => Some(Float::BF16),
        _ => None,
    }
}
