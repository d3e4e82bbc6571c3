//! Pages in a browser: which origins may call the server. The browser asks by a preflight, and reads an answer only
//! where it is told that it may.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{App, error};
use crate::protocol::{Kind, Refusal, openai};

/// For a public page that asks for an address in a local network.
const ASKS_PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOWS_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");
/// Seconds that a browser may remember a preflight's answer.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

/// Answers preflights, and says on every answer to an origin that may read it that it may.
pub(super) async fn cross_origin(State(app): State<App>, request: Request, next: Next) -> Response {
    let Some(origin) = request.headers().get(header::ORIGIN).cloned() else { return next.run(request).await };
    let allowed = origin.to_str().is_ok_and(|origin| is_allowed(origin, &app.0.config.origins));
    let asked = request.headers().get(header::ACCESS_CONTROL_REQUEST_METHOD).is_some();
    let mut response = if request.method() != Method::OPTIONS || !asked {
        next.run(request).await
    } else if allowed {
        preflight(request.headers())
    } else {
        let origin = String::from_utf8_lossy(origin.as_bytes());
        let message = format!(
            "pages of {origin} may not call this server; it takes localhost's and those that it was started for \
             (--cors-origin)"
        );
        error::response(openai::error::refused(&Refusal::new(Kind::Forbidden, message)))
    };
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if allowed {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        // What a page may read beside the usual: when to come back, and what had no effect.
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
    }
    response
}

/// Every method and header of the server's own; the server knows no cookies.
fn preflight(asked: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, POST, OPTIONS"));
    if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    if asked.contains_key(&ASKS_PRIVATE) {
        headers.insert(ALLOWS_PRIVATE, HeaderValue::from_static("true"));
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, REMEMBERED);
    response
}

/// Pages of this machine, and of the origins named; `*` names all.
fn is_allowed(origin: &str, named: &[String]) -> bool {
    named.iter().any(|name| name == "*" || name.trim_end_matches('/').eq_ignore_ascii_case(origin)) || is_local(origin)
}

fn is_local(origin: &str) -> bool {
    let Some(host) = origin.strip_prefix("http://").or(origin.strip_prefix("https://")) else { return false };
    let name = match host.strip_prefix('[') {
        Some(address) => address.split(']').next(),
        None => host.split(':').next(),
    };
    name.is_some_and(|name| ["localhost", "127.0.0.1", "::1"].contains(&name) || name.ends_with(".localhost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_of_this_machine_and_named_ones() {
        let named = ["https://chat.example/".to_owned()];
        for (origin, expected) in [
            ("http://localhost", true),
            ("http://localhost:5173", true),
            ("https://127.0.0.1:8443", true),
            ("http://[::1]:3000", true),
            ("http://app.localhost:1", true),
            ("https://chat.example", true),
            ("http://chat.example", false),
            ("https://chat.example.evil", false),
            ("http://localhost.evil", false),
            ("http://127.0.0.1.evil:80", false),
            ("file://localhost", false),
            ("null", false),
        ] {
            assert_eq!(is_allowed(origin, &named), expected, "{origin}");
        }
        assert!(is_allowed("null", &["*".to_owned()]));
    }
}
