//! A request's body, read up to a limit, which what it unpacks to has as well.

use std::{pin::pin, time::Duration};

use axum::{
    body::{BodyDataStream, Bytes},
    extract::Request,
    http::{HeaderMap, header},
};
use futures_util::StreamExt;
use tokio::time::timeout;

use super::encoding;
use crate::protocol::{Kind, Refusal};

/// How long a refused body is read and thrown away.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reads a body of at most `limit` bytes, which bring something within `patience` each time. Of a larger one no more than that is ever held.
pub(super) async fn read(request: Request, (limit, patience): (usize, Duration)) -> Result<Vec<u8>, Refusal> {
    let (head, body) = request.into_parts();
    let encodings = encoding::of(&head.headers)?;
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
    while let Some(chunk) = timeout(patience, chunks.next()).await.map_err(|_| too_slow(patience))? {
        let chunk: Bytes =
            chunk.map_err(|error| Refusal::new(Kind::Invalid, format!("the body broke off: {error}")))?;
        if bytes.len() + chunk.len() > limit {
            discard(chunks);
            return Err(too_large(limit));
        }
        bytes.extend_from_slice(&chunk);
    }
    if encodings.is_empty() {
        return Ok(bytes);
    }
    let unpacking = tokio::task::spawn_blocking(move || encoding::unpacked(bytes, &encodings, limit)).await;
    let unpacked =
        unpacking.map_err(|_| Refusal::new(Kind::Internal, "unpacking the body failed; please report it"))?;
    unpacked?.ok_or_else(|| too_large(limit))
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

fn too_slow(patience: Duration) -> Refusal {
    let message = format!("nothing of the body came for {} s; send it without a break", patience.as_secs_f64());
    Refusal::new(Kind::TooSlow, message)
}

fn too_large(limit: usize) -> Refusal {
    let size = match limit / 1_000_000 {
        0 => format!("{limit} bytes"),
        megabytes => format!("{megabytes} MB"),
    };
    Refusal::new(Kind::TooLarge, format!("the body is larger than the {size} that this server takes; send less"))
}
