//! Server-sent events (WHATWG HTML, section 9.2), as far as answers need them.

use serde::Serialize;

/// The media type of a stream of events.
pub const CONTENT_TYPE: &str = "text/event-stream";

/// A comment: readers skip it, and whoever watches the connection sees that it lives.
pub const KEEP_ALIVE: &str = ": keep-alive\n\n";

/// The last frame of a vendor's stream that ends with a word rather than with the connection.
pub const DONE: &str = "data: [DONE]\n\n";

/// One event of this name.
pub fn event(name: &str, value: &impl Serialize) -> String {
    format!("event: {name}\n{}", data(value))
}

/// One event without a name. JSON holds no raw line break, so it is one line.
pub fn data(value: &impl Serialize) -> String {
    format!("data: {}\n\n", json(value))
}

/// A wire struct as JSON.
pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a wire struct without JSON is a bug")
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_event_is_one_line() {
        assert_eq!(super::data(&"a\nb\r\u{2028}"), "data: \"a\\nb\\r\u{2028}\"\n\n");
        assert_eq!(super::event("ping", &1), "event: ping\ndata: 1\n\n");
    }
}
