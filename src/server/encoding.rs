//! Bodies that a client has compressed (RFC 9110, 8.4). What they unpack to has the same limit as any other body.

use std::io::Read;

use axum::http::{HeaderMap, header};
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use crate::protocol::{Kind, Refusal};

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Gzip,
    Deflate,
}

/// The encodings of a body, in the order that they were applied in.
///
/// # Errors
/// One that is not taken here.
pub(super) fn of(headers: &HeaderMap) -> Result<Vec<Encoding>, Refusal> {
    let mut encodings = Vec::new();
    for value in headers.get_all(header::CONTENT_ENCODING) {
        let value = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        for name in value.split(',').map(str::trim) {
            match name {
                "" | "identity" => {}
                "gzip" | "x-gzip" => encodings.push(Encoding::Gzip),
                "deflate" => encodings.push(Encoding::Deflate),
                other => {
                    let message = format!(
                        "Content-Encoding: bodies in {other:?} are not taken here; send gzip, deflate or the plain body"
                    );
                    return Err(Refusal::new(Kind::Encoding, message));
                }
            }
        }
    }
    Ok(encodings)
}

/// Unpacks a body; `None` if it is larger than `limit` bytes then.
///
/// # Errors
/// It is not what its header says.
pub(super) fn unpacked(body: Vec<u8>, encodings: &[Encoding], limit: usize) -> Result<Option<Vec<u8>>, Refusal> {
    let mut body = body;
    for encoding in encodings.iter().rev() {
        let packed = body.as_slice();
        let reader: Box<dyn Read + '_> = match encoding {
            Encoding::Gzip => Box::new(MultiGzDecoder::new(packed)),
            // Some clients leave the header of zlib out.
            Encoding::Deflate if is_zlib(packed) => Box::new(ZlibDecoder::new(packed)),
            Encoding::Deflate => Box::new(DeflateDecoder::new(packed)),
        };
        let mut plain = Vec::new();
        reader.take(limit as u64 + 1).read_to_end(&mut plain).map_err(|error| {
            let name = format!("{encoding:?}").to_lowercase();
            Refusal::new(
                Kind::Invalid,
                format!("Content-Encoding: the body is not {name}, as the header says: {error}"),
            )
        })?;
        if plain.len() > limit {
            return Ok(None);
        }
        body = plain;
    }
    Ok(Some(body))
}

fn is_zlib(packed: &[u8]) -> bool {
    matches!(packed, [first, second, ..] if first & 15 == 8 && u16::from_be_bytes([*first, *second]) % 31 == 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use axum::http::HeaderValue;
    use flate2::{Compression, write};

    use super::*;

    fn headers(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_ENCODING, HeaderValue::from_static(value))])
    }

    #[test]
    fn each_encoding_up_to_the_limit() {
        let text = b"a body ".repeat(20);
        let mut gzip = write::GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&text).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut zlib = write::ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(&text).unwrap();
        let mut raw = write::DeflateEncoder::new(Vec::new(), Compression::default());
        raw.write_all(&text).unwrap();
        let mut twice = write::GzEncoder::new(Vec::new(), Compression::default());
        twice.write_all(&gzip).unwrap();
        for (header, body) in [
            ("identity", text.clone()),
            ("gzip", gzip.clone()),
            ("X-GZIP", gzip.clone()),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", raw.finish().unwrap()),
            ("gzip, gzip", twice.finish().unwrap()),
        ] {
            let encodings = of(&headers(header)).unwrap();
            assert_eq!(unpacked(body.clone(), &encodings, text.len()).unwrap().unwrap(), text, "{header}");
            if header != "identity" {
                assert_eq!(unpacked(body, &encodings, text.len() - 1).unwrap(), None, "{header}");
            }
        }
        assert!(unpacked(gzip[..20].to_vec(), &[Encoding::Gzip], 1000).is_err());
        let refusal = of(&headers("br")).unwrap_err();
        assert!(refusal.kind == Kind::Encoding && refusal.message.contains("\"br\""));
    }
}
