//! What a model's tokens cost, counted while the model is loaded: bytes that have to be read, and products that have to
//! be added up.
//!
//! Writing a token reads every weight once a step, but for the embedding table, of which it needs a row (and all of it
//! where it is the output head as well), and the experts that no sequence is sent to; and each sequence's keys and
//! values. Reading a prompt multiplies every weight with every token, but for the head, which only the last token needs.
//! Attention's own products and recurrent states are left out, so true shares are a little higher.

/// What was read of a checkpoint so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Bytes that every token uses.
    shared_bytes: f64,
    /// Bytes of experts.
    expert_bytes: f64,
    /// Products that a token needs.
    products: f64,
    /// The share of the experts that a token is sent to; 0 where there are none.
    active: f64,
}

impl Tally {
    /// Counts bytes of which a token uses the share `active`.
    pub fn read(&mut self, bytes: usize, active: f64) {
        if active == 1.0 {
            self.shared_bytes += bytes as f64;
        } else {
            self.expert_bytes += bytes as f64;
            self.active = active;
        }
    }

    /// Counts numbers that a token is multiplied with, or the share `active` of them.
    pub fn multiplies(&mut self, numbers: usize, active: f64) {
        self.products += numbers as f64 * active;
    }

    /// What was read after `before`.
    pub fn since(self, before: Tally) -> Tally {
        Tally {
            shared_bytes: self.shared_bytes - before.shared_bytes,
            expert_bytes: self.expert_bytes - before.expert_bytes,
            products: self.products - before.products,
            active: self.active,
        }
    }

    /// All bytes.
    pub fn bytes(self) -> f64 {
        self.shared_bytes + self.expert_bytes
    }
}

/// What an attention layer remembers of a position, and for how long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionCost {
    /// Bytes of keys and values of one position.
    pub position_bytes: f64,
    /// A token sees this many positions; `None` sees all before it.
    pub window: Option<usize>,
}

/// The cost of one model's tokens, and what the model needs and has room for.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    layers: Tally,
    head: Tally,
    attention: Vec<AttentionCost>,
    /// Bytes of the checkpoint's weights, those included that are rarely read.
    pub memory: f64,
    /// The most positions of a sequence.
    pub context: usize,
    /// The number of token ids.
    pub vocabulary: usize,
    /// Features of a hidden state, and so numbers of an embedding.
    pub dim: usize,
}

/// What a model was read as.
pub struct Parts {
    /// The embedding table.
    pub embedding: Tally,
    /// All layers.
    pub layers: Tally,
    /// The output head, where it is not the table; `None` where it is, and where there is none `Some` of nothing.
    pub head: Option<Tally>,
    /// The layers that have keys and values.
    pub attention: Vec<AttentionCost>,
}

/// A model's sizes.
pub struct Sizes {
    /// The most positions of a sequence.
    pub context: usize,
    /// The number of token ids.
    pub vocabulary: usize,
    /// Features of a hidden state.
    pub dim: usize,
}

impl Cost {
    /// The cost of a model of these parts.
    pub fn new(parts: Parts, sizes: Sizes) -> Cost {
        let Parts { embedding, layers, head, attention } = parts;
        let Sizes { context, vocabulary, dim } = sizes;
        let memory = embedding.bytes() + layers.bytes() + head.map_or(0.0, Tally::bytes);
        Cost { layers, head: head.unwrap_or(embedding), attention, memory, context, vocabulary, dim }
    }

    /// Bytes of weights that every step reads, experts aside.
    pub fn shared_bytes(&self) -> f64 {
        self.layers.shared_bytes + self.head.shared_bytes
    }

    /// Bytes of all experts.
    pub fn expert_bytes(&self) -> f64 {
        self.layers.expert_bytes
    }

    /// Bytes read for each token of `batch` answers written together, each behind `context` tokens.
    pub fn bytes_to_write(&self, batch: usize, context: usize) -> f64 {
        // The tokens choose their experts each on its own.
        let chosen = 1.0 - (1.0 - self.layers.active).powi(batch as i32);
        (self.shared_bytes() + self.expert_bytes() * chosen) / batch as f64 + self.kv_bytes(context)
    }

    /// Bytes of the keys and values that one token looks at behind `context` tokens.
    pub fn kv_bytes(&self, context: usize) -> f64 {
        let seen = |layer: &AttentionCost| layer.window.map_or(context, |window| context.min(window)) as f64;
        self.attention.iter().map(|layer| layer.position_bytes * seen(layer)).sum()
    }

    /// Products for each token of a prompt of so many.
    pub fn products_to_read(&self, length: usize) -> f64 {
        self.layers.products + self.head.products / length as f64
    }

    /// Products for a token of an answer.
    pub fn products_to_write(&self) -> f64 {
        self.layers.products + self.head.products
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(layers: Tally, attention: Vec<AttentionCost>) -> Cost {
        let nothing = Tally::default();
        Cost::new(
            Parts { embedding: nothing, layers, head: Some(nothing), attention },
            Sizes { context: 4096, vocabulary: 256, dim: 64 },
        )
    }

    #[test]
    fn keys_and_values() {
        let layer = |window| AttentionCost { position_bytes: 2.0, window };
        let cost = cost(Tally::default(), vec![layer(None), layer(Some(10)), layer(None)]);
        assert_eq!((cost.kv_bytes(4), cost.kv_bytes(100)), (24.0, 420.0));
    }

    #[test]
    fn experts_are_read_once_however_many_tokens_choose_them() {
        let mut layers = Tally::default();
        layers.read(100, 1.0);
        layers.read(800, 0.25);
        layers.multiplies(400, 0.25);
        let cost = cost(layers, Vec::new());
        assert_eq!(cost.bytes_to_write(1, 0), 300.0);
        assert_eq!(cost.bytes_to_write(2, 0), (100.0 + 800.0 * (1.0 - 0.75 * 0.75)) / 2.0);
        assert_eq!((cost.products_to_write(), cost.memory), (100.0, 900.0));
    }

    #[test]
    fn a_tied_head_is_the_table() {
        let mut embedding = Tally::default();
        embedding.read(50, 1.0);
        embedding.multiplies(25, 1.0);
        let parts = Parts { embedding, layers: Tally::default(), head: None, attention: Vec::new() };
        let cost = Cost::new(parts, Sizes { context: 1, vocabulary: 1, dim: 1 });
        assert_eq!((cost.shared_bytes(), cost.products_to_write(), cost.memory), (50.0, 25.0, 50.0));
    }
}
