//! Rotary position embedding (Su et al. 2021) and its scalings. Every variant here is a table of inverse
//! frequencies and one factor on the rotated features, worked out at load.

use std::{f64::consts::PI, sync::Arc};

use mlx_rs::{Array, fast, ops};

use crate::mlx::{Error, config::Config};

/// Rotates the first `dims` features of every head by the token's position.
#[derive(Clone)]
pub struct Rope {
    /// Features of a head that turn.
    pub dims: usize,
    /// Pairs are (2i, 2i+1) if true, (i, i + dims/2) if false.
    pub interleaved: bool,
    /// Radians a position for each pair, `[dims / 2]`.
    pub inverse: Arc<[f32]>,
    /// On the rotated features, before the rotation (yarn, longrope).
    pub factor: f32,
    /// Whether a pair turns by time (0), height (1) or width (2), where positions tell them apart.
    axes: Option<Arc<[u8]>>,
    frequencies: Array, // [dims / 2], 1 / inverse, as MLX takes them
}

impl Rope {
    /// Reads `rope_theta` and `rope_scaling` (or both inside `rope_parameters`, as newer configs have it).
    ///
    /// # Errors
    /// A scaling that is unknown, or that depends on the length of the sequence: a remembered prefix would be wrong.
    pub fn load(config: Config, dims: usize) -> Result<Rope, Error> {
        let scaling = config.object("rope_scaling").or_else(|| config.object("rope_parameters"));
        let theta = match scaling.map(|scaling| scaling.number("rope_theta")).transpose()?.flatten() {
            Some(theta) => theta,
            None => config.number("rope_theta")?.unwrap_or(10_000.0),
        };
        let periods = periods(theta, dims);
        let kind = scaling.and_then(|scaling| scaling.text("rope_type").or_else(|| scaling.text("type")));
        let (periods, factor) = match (kind.unwrap_or("default"), scaling) {
            ("default" | "mrope", _) => (periods, 1.0),
            ("linear", Some(scaling)) => {
                let by = required(scaling, "factor")?;
                (periods.into_iter().map(|period| period * by).collect(), 1.0)
            }
            ("llama3", Some(scaling)) => (llama3(periods, scaling)?, 1.0),
            ("yarn", Some(scaling)) => yarn(periods, theta, dims, scaling)?,
            ("longrope" | "su", Some(scaling)) => longrope(periods, config, scaling)?,
            (other, _) => {
                return Err(Error(format!(
                    "config.json: rope_scaling of type {other} is not supported (default, linear, llama3, yarn and longrope are)"
                )));
            }
        };
        let axes = scaling.map(|scaling| axes(scaling, periods.len())).transpose()?.flatten();
        Ok(Rope { axes, ..Rope::of(&periods, factor as f32) })
    }

    fn of(periods: &[f64], factor: f32) -> Rope {
        let inverse: Arc<[f32]> = periods.iter().map(|period| (1.0 / period) as f32).collect();
        let frequencies: Vec<f32> = periods.iter().map(|period| *period as f32).collect();
        let frequencies = Array::from_slice(&frequencies, &[frequencies.len() as i32]);
        Rope { dims: 2 * periods.len(), interleaved: false, inverse, factor, axes: None, frequencies }
    }

    /// The rope whose pairs turn slower by a factor each, as GGUF files say it in place of a scaling's settings.
    ///
    /// # Errors
    /// Another number of factors than of pairs.
    pub fn slowed(&self, factors: &[f32]) -> Result<Rope, Error> {
        if factors.len() != self.inverse.len() {
            let (found, pairs) = (factors.len(), self.inverse.len());
            return Err(Error(format!("rope_freqs.weight: {found} factors for {pairs} pairs")));
        }
        let periods: Vec<f64> =
            self.inverse.iter().zip(factors).map(|(inverse, by)| f64::from(*by) / f64::from(*inverse)).collect();
        Ok(Rope { axes: self.axes.clone(), ..Rope::of(&periods, self.factor) })
    }

    /// `[1, heads, length, dim]` at positions from `offset`, by MLX's own op.
    pub fn forward(&self, x: &Array, offset: usize) -> Result<Array, Error> {
        let scaled = match self.factor {
            1.0 => x.clone(),
            factor => {
                let mut parts = x.split_at_indices(&[self.dims as i32], -1)?;
                parts[0] = parts[0].multiply(Array::from_f32(factor).as_dtype(x.dtype())?)?;
                ops::concatenate(&parts, -1)?
            }
        };
        let (dims, offset) = (self.dims as i32, offset as i32);
        Ok(fast::rope(&scaled, dims, self.interleaved, None, 1.0, offset, &self.frequencies)?)
    }

    /// What our CPU kernel needs to know.
    pub(super) fn kernel(&self) -> mlx_cpu::Rope {
        mlx_cpu::Rope {
            interleaved: self.interleaved,
            inverse: self.inverse.clone(),
            factor: self.factor,
            axes: self.axes.clone(),
        }
    }
}

/// The axis of each pair by `mrope_section`, the pairs of time, height and width (Qwen2-VL, arXiv 2409.12191): one run
/// after the other, or taking turns (Qwen3-VL) until height and width have theirs; the rest is time's.
fn axes(scaling: Config, pairs: usize) -> Result<Option<Arc<[u8]>>, Error> {
    if !scaling.has("mrope_section") {
        return Ok(None);
    }
    let section = scaling.numbers("mrope_section")?;
    if section.len() != 3 || section.iter().sum::<f64>() != pairs as f64 {
        return Err(Error(format!("config.json: mrope_section {section:?} does not divide {pairs} pairs in three")));
    }
    let [time, height, width] = [0, 1, 2].map(|axis| section[axis] as usize);
    let axis = |pair: usize| match (pair % 3, scaling.flag("mrope_interleaved")) {
        (1, Ok(Some(true))) => u8::from(pair < 3 * height),
        (2, Ok(Some(true))) => 2 * u8::from(pair < 3 * width),
        (_, Ok(Some(true))) => 0,
        _ => u8::from(pair >= time) + u8::from(pair >= time + height),
    };
    Ok(Some((0..pairs).map(axis).collect()))
}

/// Positions a radian, for each pair: theta^(2i/dims).
fn periods(theta: f64, dims: usize) -> Vec<f64> {
    (0..dims / 2).map(|pair| theta.powf(2.0 * pair as f64 / dims as f64)).collect()
}

fn required(scaling: Config, key: &str) -> Result<f64, Error> {
    scaling.number(key)?.ok_or_else(|| Error(format!("config.json: rope_scaling has no {key}")))
}

/// Llama 3.1's: long wavelengths slowed by the factor, short ones kept, a smooth ramp between.
fn llama3(periods: Vec<f64>, scaling: Config) -> Result<Vec<f64>, Error> {
    let factor = required(scaling, "factor")?;
    let low = scaling.number("low_freq_factor")?.unwrap_or(1.0);
    let high = scaling.number("high_freq_factor")?.unwrap_or(4.0);
    let context = scaling.number("original_max_position_embeddings")?.unwrap_or(8192.0);
    let scale = |period: f64| {
        let wavelength = 2.0 * PI * period;
        if wavelength > context / low {
            period * factor
        } else if wavelength > context / high {
            let smooth = (context / wavelength - low) / (high - low);
            period / ((1.0 - smooth) / factor + smooth)
        } else {
            period
        }
    };
    Ok(periods.into_iter().map(scale).collect())
}

/// YaRN (Peng et al. 2023): interpolation for slow pairs, none for fast ones, and a temperature on the attention.
fn yarn(periods: Vec<f64>, theta: f64, dims: usize, scaling: Config) -> Result<(Vec<f64>, f64), Error> {
    let factor = required(scaling, "factor")?;
    let number = |key: &str, default: f64| Ok::<f64, Error>(scaling.number(key)?.unwrap_or(default));
    let context = number("original_max_position_embeddings", 4096.0)?;
    let pair_of = |rotations: f64| dims as f64 * (context / (rotations * 2.0 * PI)).ln() / (2.0 * theta.ln());
    let low = pair_of(number("beta_fast", 32.0)?).floor().max(0.0);
    let high = pair_of(number("beta_slow", 1.0)?).ceil().min(dims as f64 - 1.0);
    let width = if low == high { 0.001 } else { high - low };
    let blend = |(pair, period): (usize, f64)| {
        let kept = 1.0 - ((pair as f64 - low) / width).clamp(0.0, 1.0);
        let stretched = factor * period;
        stretched * period / (stretched * kept + period * (1.0 - kept))
    };
    let temperature = |scale: f64| if factor <= 1.0 { 1.0 } else { 0.1 * scale * factor.ln() + 1.0 };
    let on_features = match scaling.number("attention_factor")? {
        Some(factor) => factor,
        None => temperature(number("mscale", 1.0)?) / temperature(number("mscale_all_dim", 0.0)?),
    };
    Ok((periods.into_iter().enumerate().map(blend).collect(), on_features))
}

/// LongRoPE (Ding et al. 2024): a factor a pair. The long factors are used at every length, so that a key computed
/// early stays right when the sequence grows.
fn longrope(periods: Vec<f64>, config: Config, scaling: Config) -> Result<(Vec<f64>, f64), Error> {
    let factors = scaling.numbers("long_factor")?;
    if factors.len() != periods.len() {
        return Err(Error(format!(
            "config.json: rope_scaling.long_factor has {} entries, the heads have {} pairs",
            factors.len(),
            periods.len()
        )));
    }
    let context = match scaling.number("original_max_position_embeddings")? {
        Some(context) => context,
        None => config.number("original_max_position_embeddings")?.unwrap_or(4096.0),
    };
    let stretch = config.number("max_position_embeddings")?.unwrap_or(131_072.0) / context;
    let default = if stretch <= 1.0 { 1.0 } else { (1.0 + stretch.ln() / context.ln()).sqrt() };
    let factor = match scaling.number("attention_factor")? {
        Some(factor) => factor,
        None => scaling.number("long_mscale")?.unwrap_or(default),
    };
    Ok((periods.iter().zip(factors).map(|(period, by)| period * by).collect(), factor))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_axes_of_pairs() {
        let of =
            |config: serde_json::Value, pairs| axes(Config(&config), pairs).map(|axes| axes.map(|axes| axes.to_vec()));
        assert_eq!(of(json!({}), 4).expect("no section"), None);
        let runs = json!({ "mrope_section": [2, 3, 3] });
        assert_eq!(of(runs.clone(), 8).expect("runs"), Some(vec![0, 0, 1, 1, 1, 2, 2, 2]));
        let turns = json!({ "mrope_section": [4, 2, 2], "mrope_interleaved": true });
        assert_eq!(of(turns, 8).expect("turns"), Some(vec![0, 1, 2, 0, 1, 2, 0, 0]));
        assert!(of(runs, 9).expect_err("too few").0.contains("does not divide 9 pairs"));
    }
}
