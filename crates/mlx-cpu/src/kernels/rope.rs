//! Rotary position embedding (Su et al. 2021, arXiv 2104.09864), over all or the first values of a head; with positions
//! of time, height and width where a model has them (Wang et al. 2024, Qwen2-VL, arXiv 2409.12191).

use super::{
    math,
    scratch::Scratch,
    simd::{LANES, Simd},
};

/// Which values of a head turn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Value i with value i + dims / 2.
    Halves,
    /// Value 2 i with value 2 i + 1.
    Neighbours,
}

/// A rotation of pair i of a head by position * inv_freq[i].
#[derive(Clone, Copy)]
pub struct Rotation<'a> {
    /// [dims / 2], for the first dims values of a head; the others stay.
    pub inv_freq: &'a [f32],
    /// [dims / 2]: whether a pair turns by time (0), height (1) or width (2). None: all by time.
    pub axes: Option<&'a [u8]>,
    pub pairing: Pairing,
    /// What rotated values are multiplied by (yarn's attention factor; else 1).
    pub scale: f32,
}

/// The sines and cosines of a token's pairs, times the scale.
pub(super) struct Angles {
    /// Whole vectors of sines, then as many of cosines.
    table: Scratch<f32>,
}

impl Rotation<'_> {
    /// # Panics
    /// If a head of `dim` values cannot be rotated so.
    pub(super) fn check(&self, dim: usize) {
        assert!(2 * self.inv_freq.len() <= dim, "rope: more rotated values than a head has");
        let known = |axes: &[u8]| axes.len() == self.inv_freq.len() && axes.iter().all(|axis| *axis < 3);
        assert!(self.axes.is_none_or(known), "rope: an axis for each pair");
    }

    /// Room for a token's angles.
    #[inline(always)]
    pub(super) fn angles(&self) -> Angles {
        Angles { table: Scratch::new(2 * self.inv_freq.len().next_multiple_of(LANES)) }
    }

    /// Works out the angles of a token at a position in time, height and width.
    #[inline(always)]
    pub(super) fn fill<S: Simd>(&self, s: S, position: [i32; 3], angles: &mut Angles) {
        let middle = angles.table.len() / 2;
        let (sin, cos) = angles.table.split_at_mut(middle);
        let (sin, _) = sin.as_chunks_mut::<LANES>();
        let (cos, _) = cos.as_chunks_mut::<LANES>();
        let position = position.map(|position| position as f32);
        for (v, (sin, cos)) in sin.iter_mut().zip(cos).enumerate() {
            let freqs = &self.inv_freq[v * LANES..];
            let mut thetas = [0.0; LANES];
            match self.axes {
                None => thetas.iter_mut().zip(freqs).for_each(|(theta, freq)| *theta = position[0] * freq),
                Some(axes) => {
                    for ((theta, freq), axis) in thetas.iter_mut().zip(freqs).zip(&axes[v * LANES..]) {
                        *theta = position[usize::from(*axis)] * freq;
                    }
                }
            }
            math::sin_cos(&thetas, sin, cos);
            for table in [sin, cos] {
                let scaled = s.mul(s.read(table), s.splat(self.scale));
                s.write(table, scaled);
            }
        }
    }

    /// Rotates a head into `out`.
    #[inline(always)]
    pub(super) fn turn<S: Simd>(&self, s: S, x: &[f32], angles: &Angles, out: &mut [f32]) {
        let half = self.inv_freq.len();
        let (sin, cos) = angles.table.split_at(angles.table.len() / 2);
        match self.pairing {
            Pairing::Halves => halves(s, x, &sin[..half], &cos[..half], out),
            Pairing::Neighbours => neighbours(x, &sin[..half], &cos[..half], out),
        }
        out[2 * half..].copy_from_slice(&x[2 * half..]);
    }
}

#[inline(always)]
fn halves<S: Simd>(s: S, x: &[f32], sin: &[f32], cos: &[f32], out: &mut [f32]) {
    let half = sin.len();
    let (out_low, out_high) = out.split_at_mut(half);
    let whole = half / LANES * LANES;
    for i in (0..whole).step_by(LANES) {
        let (a, b) = (s.read(&x[i..]), s.read(&x[half + i..]));
        let (sin, cos) = (s.read(&sin[i..]), s.read(&cos[i..]));
        s.write(&mut out_low[i..], s.sub(s.mul(a, cos), s.mul(b, sin)));
        s.write(&mut out_high[i..], s.add(s.mul(a, sin), s.mul(b, cos)));
    }
    for i in whole..half {
        out_low[i] = x[i] * cos[i] - x[half + i] * sin[i];
        out_high[i] = x[i] * sin[i] + x[half + i] * cos[i];
    }
}

#[inline(always)]
fn neighbours(x: &[f32], sin: &[f32], cos: &[f32], out: &mut [f32]) {
    let (x, _) = x.as_chunks::<2>();
    let (out, _) = out.as_chunks_mut::<2>();
    for ((out, x), (sin, cos)) in out.iter_mut().zip(x).zip(sin.iter().zip(cos)) {
        *out = [x[0] * cos - x[1] * sin, x[0] * sin + x[1] * cos];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{
        level::{Kernel, levels},
        testing::{Random, close, same_bits},
    };

    /// Heads of `dim` values, turned one after the other.
    struct Turn<'a>(Rotation<'a>, &'a [f32], usize, [i32; 3]);

    impl Kernel for Turn<'_> {
        type Out = Vec<f32>;
        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> Vec<f32> {
            let Turn(rotation, x, dim, position) = self;
            let mut angles = rotation.angles();
            rotation.fill(s, position, &mut angles);
            let mut out = vec![0.0; x.len()];
            for (x, out) in x.chunks(dim).zip(out.chunks_mut(dim)) {
                rotation.turn(s, x, &angles, out);
            }
            out
        }
    }

    fn reference(rotation: &Rotation, x: &[f32], position: [i32; 3]) -> Vec<f64> {
        let half = rotation.inv_freq.len();
        let mut y: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
        for i in 0..half {
            let (a, b) = match rotation.pairing {
                Pairing::Halves => (i, i + half),
                Pairing::Neighbours => (2 * i, 2 * i + 1),
            };
            let axis = rotation.axes.map_or(0, |axes| usize::from(axes[i]));
            let (sin, cos) = f64::from(position[axis] as f32 * rotation.inv_freq[i]).sin_cos();
            let scale = f64::from(rotation.scale);
            y[a] = scale * (f64::from(x[a]) * cos - f64::from(x[b]) * sin);
            y[b] = scale * (f64::from(x[a]) * sin + f64::from(x[b]) * cos);
        }
        y
    }

    #[test]
    fn rotations_agree_with_f64() {
        let mut random = Random::new(41);
        for (dim, dims) in [(64, 64), (128, 128), (80, 20), (96, 90), (256, 64), (10, 6), (16, 0)] {
            let inv_freq: Vec<f32> = (0..dims / 2).map(|i| 10_000f32.powf(-2.0 * i as f32 / dims as f32)).collect();
            let axes: Vec<u8> = (0..dims / 2).map(|_| random.below(3) as u8).collect();
            for (pairing, axes) in [
                (Pairing::Halves, None),
                (Pairing::Neighbours, None),
                (Pairing::Halves, Some(&axes[..])),
                (Pairing::Neighbours, Some(&axes[..])),
            ] {
                let rotation = Rotation { inv_freq: &inv_freq, axes, pairing, scale: 1.2 };
                let position = [(); 3].map(|()| random.below(100_000) as i32);
                let heads = 1 + random.below(6);
                let x = random.vec(heads * dim);
                let want: Vec<f64> = x.chunks(dim).flat_map(|x| reference(&rotation, x, position)).collect();
                for level in levels() {
                    let got = level.run(Turn(rotation, &x, dim, position));
                    close(&got, &want, 5e-7, &format!("{pairing:?} of {dims} of {dim} by {axes:?} at {level:?}"));
                }
            }
        }
    }

    #[test]
    fn one_position_on_all_axes_is_plain_rope() {
        let mut random = Random::new(42);
        let inv_freq: Vec<f32> = (0..37).map(|i| 1e6f32.powf(-2.0 * i as f32 / 74.0)).collect();
        let axes: Vec<u8> = (0..37).map(|i| i % 3).collect();
        let x = random.vec(80 * 4);
        for position in [0, 7, 4096, 131_071] {
            let plain = Rotation { inv_freq: &inv_freq, axes: None, pairing: Pairing::Halves, scale: 1.0 };
            for level in levels() {
                let a = level.run(Turn(plain, &x, 80, [position, -1, -1]));
                let b = level.run(Turn(Rotation { axes: Some(&axes), ..plain }, &x, 80, [position; 3]));
                same_bits(&a, &b, "rope by three axes");
            }
        }
    }
}
