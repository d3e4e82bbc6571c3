//! What goes wrong on the device or while a model is loaded.

/// A sentence that says what was wrong and, where there is one, the fix.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

impl From<mlx_rs::error::Exception> for Error {
    fn from(exception: mlx_rs::error::Exception) -> Error {
        Error(format!("MLX: {}", exception.what()))
    }
}

impl From<mlx_cpu::Error> for Error {
    fn from(error: mlx_cpu::Error) -> Error {
        Error(error.to_string())
    }
}

impl From<crate::checkpoint::Error> for Error {
    fn from(error: crate::checkpoint::Error) -> Error {
        Error(error.to_string())
    }
}
