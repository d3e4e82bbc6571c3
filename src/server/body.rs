//! A request's body, read up to a limit.

use std::{pin::pin, time::Duration};

use axum::{
    body::{BodyDataStream, Bytes},
    extract::Request,
    http::{HeaderMap, header},
};
use futures_util::StreamExt;

use crate::protocol::{Kind, Refusal};

/// How long a refused body is read and thrown away.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reads a body of at most `limit` bytes. Of a larger one no more than that is ever held.
pub(super) async fn read(request: Request, limit: usize) -> Result<Vec<u8>, Refusal> {
    let (head, body) = request.into_parts();
    let announced = announced(&head.headers);
    if announced.is_some_and(|length| length > limit as u64) {
        // Who asks first has sent nothing yet.
        if !head.headers.contains_key(header::EXPECT) {
            discard(body.into_data_stream());
        }
        return Err(too_large(limit));
    }
    let mut chunks = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk: Bytes =
            chunk.map_err(|error| Refusal::new(Kind::Invalid, format!("the body broke off: {error}")))?;
        if bytes.len() + chunk.len() > limit {
            discard(chunks);
            return Err(too_large(limit));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Reads the rest of a body beside the refusal that goes out. A client that writes all before it reads would otherwise
/// see a broken connection in place of it.
fn discard(chunks: BodyDataStream) {
    tokio::spawn(tokio::time::timeout(PATIENCE, async move {
        let mut chunks = pin!(chunks);
        while let Some(Ok(_)) = chunks.next().await {}
    }));
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large(limit: usize) -> Refusal {
    let size = match limit / 1_000_000 {
        0 => format!("{limit} bytes"),
        megabytes => format!("{megabytes} MB"),
    };
    Refusal::new(Kind::TooLarge, format!("the body is larger than the {size} that this server takes; send less"))
}
