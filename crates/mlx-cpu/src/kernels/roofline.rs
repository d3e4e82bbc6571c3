//! What this machine can do at most: how fast all threads together read memory, and how many products of bytes they
//! add up. Measured, so that a kernel's speed can be given as a share of it (Williams et al. 2009, "Roofline").

use std::{hint::black_box, time::Instant};

use super::{
    level::{Kernel, level},
    pool,
    simd::Simd,
};

/// Bytes of one task: long enough for the hardware to see a stream, short enough to share out evenly.
const CHUNK: usize = 4 << 20;

/// Tasks of one run, for each thread. Runs are short, so that on a shared machine some have it to themselves.
const CHUNKS: usize = 8;

/// Steps of [`Simd::dot_step`] on each sum in one task, about a tenth of a millisecond.
const STEPS: usize = 50_000;

/// How far ahead of the reads memory is asked for: pages that the hardware's own prefetch does not cross into.
const AHEAD: usize = 4096;

/// Bytes a second that all threads read together from a buffer of about `bytes`, which should be several times what
/// the caches hold. The best stretch of four times the buffer.
pub fn read_rate(bytes: usize) -> f64 {
    let run = CHUNK * CHUNKS * pool::threads();
    // Written, or all its pages would be the one page of zeros.
    let buffer = vec![1u8; bytes.next_multiple_of(run)];
    let level = level();
    let runs = (0..4).flat_map(|_| buffer.chunks_exact(run));
    let seconds = fastest(runs, |part| {
        pool::run(run / CHUNK, |task| {
            black_box(level.run(Read(&part[task * CHUNK..][..CHUNK])));
        });
    });
    run as f64 / seconds
}

/// Products of two bytes a second that all threads together multiply and add in registers, by the instructions of
/// this thread's level.
pub fn dot_rate() -> f64 {
    // More sums than an instruction's latency times how many start in a cycle, fewer than there are registers: which
    // of the two that is depends on the level.
    dot_rate_of::<6>().max(dot_rate_of::<12>())
}

fn dot_rate_of<const SUMS: usize>() -> f64 {
    let (level, tasks) = (level(), 4 * pool::threads());
    let seconds = fastest(0..20, |_| {
        pool::run(tasks, |_| {
            black_box(level.run(Dot::<SUMS>));
        });
    });
    (tasks * STEPS * SUMS * 64) as f64 / seconds
}

/// The seconds of the fastest run: on a shared machine the others say what the neighbours do.
fn fastest<T>(runs: impl Iterator<Item = T>, mut run: impl FnMut(T)) -> f64 {
    let seconds = runs.map(|input| {
        let begin = Instant::now();
        run(input);
        begin.elapsed().as_secs_f64()
    });
    seconds.fold(f64::INFINITY, f64::min)
}

/// Reads a buffer; the largest of what it holds, so that nothing of it can be left out.
struct Read<'a>(&'a [u8]);

impl Kernel for Read<'_> {
    type Out = f32;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        let mut largest = [simd.zero(); 4];
        for line in self.0.chunks_exact(256) {
            for part in 0..4 {
                simd.prefetch(line.as_ptr().wrapping_add(AHEAD + 64 * part));
            }
            for (part, largest) in largest.iter_mut().enumerate() {
                // SAFETY: 64 of the line's 256 bytes; any bits are an f32, and the load asks for no alignment.
                *largest = simd.max(*largest, unsafe { simd.load(line[64 * part..].as_ptr().cast()) });
            }
        }
        let [a, b, c, d] = largest;
        simd.largest(simd.max(simd.max(a, b), simd.max(c, d)))
    }
}

/// Takes [`STEPS`] steps on each of so many sums; gives all they hold.
struct Dot<const SUMS: usize>;

impl<const SUMS: usize> Kernel for Dot<SUMS> {
    type Out = f32;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        let bytes: [u8; 64] = black_box(std::array::from_fn(|i| i as u8));
        // SAFETY: 64 bytes, as declared.
        let weights = unsafe { simd.load_u32(bytes.as_ptr()) };
        let mut sums = [weights; SUMS];
        for _ in 0..STEPS {
            for sum in &mut sums {
                // The sum is one of the factors too, or the product would be the same in every step and taken once.
                *sum = simd.dot_step(*sum, weights, *sum);
            }
        }
        sums.into_iter().map(|sum| simd.sum(simd.bits_to_f32::<0>(sum, 0xff))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::level::{levels, with_level};

    #[test]
    fn rates_are_of_this_world() {
        for level in levels() {
            with_level(level, || {
                let (read, dots) = (read_rate(32 << 20), dot_rate());
                assert!((1e8..1e14).contains(&read), "{level:?} reads {read} bytes a second");
                assert!((1e8..1e16).contains(&dots), "{level:?} adds {dots} products a second");
            });
        }
    }
}
