//! The recurrences against f64; a prompt in chunks gives the same bits as at once.

use super::*;
use crate::kernels::{
    level::{levels, with_level},
    testing::{Random, close, same_bits, with_threads},
};

struct Delta {
    key_heads: usize,
    heads: usize,
    dk: usize,
    dv: usize,
    /// q, k, v, g, beta
    data: [Vec<f32>; 5],
}

impl Delta {
    fn new(random: &mut Random, tokens: usize, [key_heads, heads, dk, dv]: [usize; 4]) -> Delta {
        let mut data =
            [key_heads * dk, key_heads * dk, heads * dv, heads, heads].map(|width| random.vec(tokens * width));
        data[3].iter_mut().for_each(|g| *g = 0.9 + 0.1 * *g);
        // Keys of length one, as models make them: the state stays bounded.
        for k in data[1].chunks_mut(dk) {
            let length = k.iter().map(|k| k * k).sum::<f32>().sqrt();
            k.iter_mut().for_each(|k| *k /= length);
        }
        Delta { key_heads, heads, dk, dv, data }
    }

    fn run(&self, tokens: std::ops::Range<usize>, lengths: &[usize], states: &mut [Vec<f32>]) -> Vec<f32> {
        let part = |index: usize, width: usize| &self.data[index][tokens.start * width..tokens.end * width];
        let op = GatedDelta {
            q: Heads::packed(part(0, self.key_heads * self.dk), self.key_heads, self.dk),
            k: Heads::packed(part(1, self.key_heads * self.dk), self.key_heads, self.dk),
            v: Heads::packed(part(2, self.heads * self.dv), self.heads, self.dv),
            g: Rows::packed(part(3, self.heads), self.heads),
            beta: Rows::packed(part(4, self.heads), self.heads),
        };
        let mut out = vec![0.0; tokens.len() * self.heads * self.dv];
        let sequences = lengths.iter().zip(states);
        let mut sequences: Vec<Recurrent> =
            sequences.map(|(tokens, state)| Recurrent { tokens: *tokens, state }).collect();
        gated_delta(&op, &mut sequences, HeadsMut::packed(&mut out, self.heads, self.dv));
        out
    }

    fn reference(&self, tokens: std::ops::Range<usize>, state: &mut [f64]) -> Vec<f64> {
        let mut out = Vec::new();
        for (token, head) in tokens.flat_map(|token| (0..self.heads).map(move |head| (token, head))) {
            let key_head = head / (self.heads / self.key_heads);
            let keys = (token * self.key_heads + key_head) * self.dk;
            let number = |index: usize, at: usize| f64::from(self.data[index][at]);
            for row in 0..self.dv {
                let state = &mut state[(head * self.dv + row) * self.dk..][..self.dk];
                state.iter_mut().for_each(|x| *x *= number(3, token * self.heads + head));
                let memory: f64 = (0..self.dk).map(|i| state[i] * number(1, keys + i)).sum();
                let v = number(2, (token * self.heads + head) * self.dv + row);
                let delta = (v - memory) * number(4, token * self.heads + head);
                (0..self.dk).for_each(|i| state[i] += delta * number(1, keys + i));
                out.push((0..self.dk).map(|i| state[i] * number(0, keys + i)).sum());
            }
        }
        out
    }
}

#[test]
fn the_delta_rule_agrees_with_f64() {
    let mut random = Random::new(61);
    for shape in [[1, 1, 4, 3], [2, 4, 64, 64], [1, 3, 128, 130], [2, 2, 40, 37]] {
        let delta = Delta::new(&mut random, 17, shape);
        let [_, heads, dk, dv] = shape;
        let start: Vec<Vec<f32>> = (0..2).map(|_| random.vec(heads * dv * dk)).collect();
        let mut wanted: Vec<Vec<f64>> = start.iter().map(|s| s.iter().map(|x| f64::from(*x)).collect()).collect();
        let mut want = delta.reference(0..6, &mut wanted[0]);
        want.extend(delta.reference(6..17, &mut wanted[1]));
        for level in levels() {
            let mut states = start.clone();
            let got = with_level(level, || delta.run(0..17, &[6, 11], &mut states));
            close(&got, &want, 3e-6, &format!("{shape:?} at {level:?}"));
            for (got, want) in states.iter().zip(&wanted) {
                close(got, want, 3e-6, &format!("state of {shape:?} at {level:?}"));
            }
        }
    }
}

#[test]
fn chunks_and_threads_do_not_change_a_recurrence() {
    let mut random = Random::new(62);
    let shape = [2, 4, 128, 128];
    let delta = Delta::new(&mut random, 40, shape);
    let mut state = vec![vec![0.0; 4 * 128 * 128]];
    let all = with_threads(1, || delta.run(0..40, &[40], &mut state));
    let mut chunked = vec![vec![0.0; 4 * 128 * 128]];
    let mut some = Vec::new();
    for (threads, tokens) in [(3, 0..1), (1, 1..2), (2, 2..30), (4, 30..40)] {
        some.extend(with_threads(threads, || delta.run(tokens.clone(), &[tokens.len()], &mut chunked)));
    }
    same_bits(&some, &all, "outputs");
    same_bits(&chunked[0], &state[0], "states");
}

#[test]
fn short_convolutions_agree_with_f64_in_any_chunks() {
    let mut random = Random::new(63);
    for (channels, width, silu) in [(1, 4, true), (37, 4, true), (300, 3, false), (64, 1, true)] {
        let tokens = 23;
        let x = random.vec(tokens * (channels + 2));
        let (weight, bias) = (random.vec(channels * width), random.vec(channels));
        let start = random.vec((width - 1) * channels);
        let rows = Rows { data: &x, count: tokens, stride: channels + 2, width: channels };
        let input = |token: isize, channel: usize| match usize::try_from(token) {
            Ok(token) => rows.row(token)[channel],
            Err(_) => start[(token + width as isize - 1) as usize * channels + channel],
        };
        let mut want = Vec::new();
        for (token, channel) in (0..tokens).flat_map(|token| (0..channels).map(move |channel| (token, channel))) {
            let tap = |i: usize| {
                f64::from(weight[channel * width + i])
                    * f64::from(input(token as isize - (width as isize - 1) + i as isize, channel))
            };
            let y = (0..width).map(tap).sum::<f64>() + f64::from(bias[channel]);
            want.push(if silu { y / (1.0 + (-y).exp()) } else { y });
        }
        for level in levels() {
            let mut state = start.clone();
            let mut out = vec![0.0; tokens * channels];
            for range in [0..1, 1..3, 3..20, 20..23] {
                let x = Rows { data: &x[range.start * rows.stride..], count: range.len(), ..rows };
                let op = ShortConv { x, weight: &weight, width, bias: Some(&bias), silu };
                let sequences = &mut [Recurrent { tokens: range.len(), state: &mut state }];
                let out = &mut out[range.start * channels..range.end * channels];
                with_level(level, || short_conv(&op, sequences, RowsMut::packed(out, channels)));
            }
            close(&out, &want, 1e-6, &format!("{channels} channels, width {width}, {level:?}"));
        }
    }
}
