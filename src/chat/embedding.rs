//! Texts as vectors: what is asked for and what comes of it, whatever protocol it came by.

/// What to make vectors of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingRequest {
    /// At least one; each becomes a vector.
    pub inputs: Vec<Input>,
    /// How many numbers of each vector are wanted, from its beginning; `None` is all the model has. What is left of a
    /// vector is scaled to length 1 again.
    pub dimensions: Option<usize>,
}

/// One text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    Text(String),
    /// A text that the caller has tokenised already, with the special tokens that it wants.
    Tokens(Vec<u32>),
}

/// The vectors of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Embeddings {
    /// In the order of the inputs, each of length 1 and of as many numbers as were asked for.
    pub vectors: Vec<Vec<f32>>,
    /// What the inputs were in tokens together, special ones included.
    pub tokens: usize,
}
