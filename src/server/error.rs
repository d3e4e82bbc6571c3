//! What can go wrong: the server does not start, or a request gets no answer.

use std::{io, net::SocketAddr};

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::protocol::Refused;

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

/// A refusal as its wire sends it.
pub(super) fn response(refused: Refused) -> Response {
    let Refused { status, content_type, body, retry_after } = refused;
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, [(header::CONTENT_TYPE, content_type)], body).into_response();
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
