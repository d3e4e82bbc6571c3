//! The architectures against mlx-lm, on tiny random checkpoints: `tests/data/models/README.md` says how they and the
//! answers beside them were made.

mod bad;
mod embeddings;
mod golden;
mod prefix;
mod same;
mod side_by_side;
