//! An encoder without a model, for tests: a row's vector is a hash of its tokens. It can fail or panic on request, and
//! notes what it was asked to do.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Encoder, RunError, TokenId};

/// What the scripted encoder does.
#[derive(Debug, Clone, Default)]
pub struct EncoderScript {
    /// The most tokens of a row.
    pub context: usize,
    /// Steps of a pass, before the last one.
    pub steps: usize,
    /// A row that holds this token makes its pass fail.
    pub fails_at: Option<TokenId>,
    /// A row that holds this token makes its pass panic.
    pub panics_at: Option<TokenId>,
    /// For every pass, how many tokens each row had.
    pub passes: Arc<Mutex<Vec<Vec<usize>>>>,
}

/// See the module.
pub struct ScriptedEncoder {
    script: EncoderScript,
    rows: Vec<Vec<TokenId>>,
    /// Of this pass, before the last one.
    steps: usize,
}

impl ScriptedEncoder {
    /// One that does what the script says.
    pub fn new(script: EncoderScript) -> ScriptedEncoder {
        ScriptedEncoder { script, rows: Vec::new(), steps: 0 }
    }

    /// Numbers of a vector.
    pub const DIM: usize = 4;

    /// The vector of a row, of length 1.
    pub fn vector(row: &[TokenId]) -> Vec<f32> {
        let hash = row
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, token| (hash ^ u64::from(token.0)).wrapping_mul(0x0100_0000_01b3));
        let numbers: Vec<f32> =
            hash.to_le_bytes().as_chunks::<2>().0.iter().map(|pair| f32::from(pair[1]) - 127.5).collect();
        let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
        numbers.into_iter().map(|number| number / length).collect()
    }
}

impl Encoder for ScriptedEncoder {
    fn context(&self) -> usize {
        self.script.context
    }

    fn begin(&mut self, rows: &[&[TokenId]]) {
        self.rows = rows.iter().map(|row| row.to_vec()).collect();
        self.steps = self.script.steps;
        let lengths = rows.iter().map(|row| row.len()).collect();
        self.script.passes.lock().unwrap_or_else(PoisonError::into_inner).push(lengths);
    }

    fn step(&mut self) -> Result<Option<Vec<Vec<f32>>>, RunError> {
        if self.steps > 0 {
            self.steps -= 1;
            return Ok(None);
        }
        let rows = &self.rows;
        let holds = |token: Option<TokenId>| token.is_some_and(|token| rows.iter().any(|row| row.contains(&token)));
        assert!(!holds(self.script.panics_at), "the pass panics as the script says");
        if holds(self.script.fails_at) {
            return Err(RunError("the pass fails as the script says".into()));
        }
        Ok(Some(rows.iter().map(|row| ScriptedEncoder::vector(row)).collect()))
    }
}
