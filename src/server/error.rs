//! What can go wrong: the server does not start, or a request gets no answer.

use std::{io, net::SocketAddr};

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use super::reply::json;
use crate::protocol::{Kind, Refusal, openai};

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("port {port} of {host} is in use already; choose another port", port = .0.port(), host = .0.ip())]
    PortInUse(SocketAddr),
    #[error("cannot listen at {address}: {source}; choose another address or port")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("cannot listen at {host}: {reason}; name an address of this machine, such as 127.0.0.1")]
    Host { host: String, reason: String },
    #[error("all ports of {host} from {first} to {last} are in use; choose another port")]
    NoFreePort { host: String, first: u16, last: u16 },
}

impl Error {
    pub(super) fn of_bind(address: SocketAddr, source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::AddrInUse => Error::PortInUse(address),
            _ => Error::Listen { address, source },
        }
    }
}

/// A refusal on its way out.
#[derive(Debug)]
pub(super) struct Refused(Refusal);

impl<T: Into<Refusal>> From<T> for Refused {
    fn from(refusal: T) -> Refused {
        Refused(refusal.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = (status(self.0.kind), json(openai::error::to_wire(&self.0))).into_response();
        if matches!(self.0.kind, Kind::Busy | Kind::Closing) {
            // Seconds. An answer takes about as long, and a row is free as soon as the first of them ends.
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

fn status(kind: Kind) -> StatusCode {
    match kind {
        Kind::Invalid | Kind::TooLong => StatusCode::BAD_REQUEST,
        Kind::UnknownModel | Kind::UnknownPath => StatusCode::NOT_FOUND,
        Kind::Method => StatusCode::METHOD_NOT_ALLOWED,
        Kind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::Busy => StatusCode::TOO_MANY_REQUESTS,
        Kind::Closing => StatusCode::SERVICE_UNAVAILABLE,
        Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
