//! Requests to the hub: redirects by hand, so that the token goes to the endpoint only, and statuses turned into errors.

use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, LOCATION, RANGE};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, Url};

use super::Error;
use super::place::Repo;

/// Longer silence on an open connection counts as a broken one.
const SILENCE: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(10);
/// Waits before the second, third and fourth try.
const PAUSES: [Duration; 3] = [Duration::from_millis(200), Duration::from_millis(400), Duration::from_millis(800)];

#[derive(Debug)]
pub(super) struct Http {
    client: Client,
    endpoint: Url,
    token: Option<String>,
}

/// What a request is about, for the error texts.
#[derive(Clone, Copy)]
pub(super) struct About<'a> {
    pub repo: &'a Repo,
    /// `None` for the listing.
    pub file: Option<&'a str>,
}

/// What is asked of an address, and with it how far redirects are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// Its bytes, wherever they lie.
    Get,
    /// Its headers. Redirects are followed only within the endpoint (renamed repositories): the answer that sends
    /// elsewhere is itself the one wanted.
    Head,
}

impl Http {
    /// A client of the hub at this address.
    ///
    /// # Errors
    /// The address is none.
    pub fn new(endpoint: &str, token: Option<String>) -> Result<Http, Error> {
        // One provider of cryptography for the process; a second call finds it in place, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let wrong = |reason: String| Error::Network { url: endpoint.to_string(), reason };
        let client = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .user_agent(concat!("mettle/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| wrong(chain(&error)))?;
        let endpoint = Url::parse(&format!("{}/", endpoint.trim_end_matches('/')));
        let endpoint = endpoint.map_err(|error| wrong(format!("that is no web address ({error})")))?;
        Ok(Http { client, endpoint, token: token.filter(|token| !token.is_empty()) })
    }

    /// The address below the endpoint made of `parts`, each escaped as one segment of it.
    pub fn url(&self, parts: &[&str]) -> Url {
        let mut url = self.endpoint.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(parts);
        }
        url
    }

    /// Sends until an answer comes, at most four times; a passing fault is waited out.
    pub async fn send(&self, verb: Verb, url: Url, about: About<'_>) -> Result<Response, Error> {
        let mut pauses = PAUSES.iter();
        loop {
            let error = match self.send_once(verb, url.clone(), 0, about).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            match pauses.next() {
                Some(pause) if error.is_transient() => tokio::time::sleep(*pause).await,
                _ => return Err(error),
            }
        }
    }

    /// One try, through at most ten redirects. `from` > 0 asks for the bytes from there on.
    pub async fn send_once(&self, verb: Verb, mut url: Url, from: u64, about: About<'_>) -> Result<Response, Error> {
        let method = match verb {
            Verb::Get => Method::GET,
            Verb::Head => Method::HEAD,
        };
        for _ in 0..10 {
            let mut request = self.client.request(method.clone(), url.clone()).header(ACCEPT_ENCODING, "identity");
            if let Some(token) = self.token.as_ref().filter(|_| self.is_endpoint(&url)) {
                request = request.header(AUTHORIZATION, format!("Bearer {token}"));
            }
            if from > 0 {
                request = request.header(RANGE, format!("bytes={from}-"));
            }
            let response = request.send().await.map_err(|error| broken(&error))?;
            if !response.status().is_redirection() {
                return self.judge(response, about);
            }
            let target = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let target = target.and_then(|to| url.join(to).ok());
            let target = target.ok_or_else(|| nonsense(&url, "a redirect to nowhere"))?;
            if verb == Verb::Head && !self.is_endpoint(&target) {
                return Ok(response);
            }
            url = target;
        }
        Err(nonsense(&url, "redirects in a circle"))
    }

    fn is_endpoint(&self, url: &Url) -> bool {
        url.origin() == self.endpoint.origin()
    }

    fn judge(&self, response: Response, about: About<'_>) -> Result<Response, Error> {
        let status = response.status().as_u16();
        let code = header(response.headers(), "x-error-code").unwrap_or_default();
        let repo = about.repo.repo.clone();
        match (status, code.as_str(), about.file) {
            (200..=299 | 416, ..) => Ok(response),
            (401 | 403, ..) => {
                Err(Error::Denied { repo, status, gated: code == "GatedRepo", with_token: self.token.is_some() })
            }
            (404, "RevisionNotFound", _) => {
                Err(Error::NoSuchRevision { repo, revision: about.repo.revision().to_string() })
            }
            (404, "EntryNotFound", Some(file)) | (404, "", Some(file)) => {
                Err(Error::NoSuchFile { place: repo, file: file.to_string(), models: Vec::new() })
            }
            (404, ..) => Err(Error::NoSuchRepo { similar: super::alias::similar(&repo), repo }),
            _ => Err(Error::Status { url: shown(response.url()), status }),
        }
    }
}

/// A header's text, if it is there and is text.
pub(super) fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_string)
}

/// A connection that failed, in the words of its innermost cause.
pub(super) fn broken(error: &reqwest::Error) -> Error {
    let url = error.url().map(shown).unwrap_or_default();
    let reason = if error.is_timeout() { "no answer in time".to_string() } else { chain(error) };
    Error::Network { url, reason }
}

pub(super) fn nonsense(url: &Url, why: impl Into<String>) -> Error {
    Error::Protocol { url: shown(url), why: why.into() }
}

/// Without the query: redirects carry signatures there, which are secrets.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_escaped_and_shown_without_their_query() {
        let http = Http::new("http://hub.test/mirror/", None).expect("a client");
        let url = http.url(&["org", "name", "resolve", "refs/pr/1", "a b#c.gguf"]);
        assert_eq!(url.as_str(), "http://hub.test/mirror/org/name/resolve/refs%2Fpr%2F1/a%20b%23c.gguf");
        let signed = Url::parse("http://elsewhere.test/x?signature=secret").expect("an address");
        assert_eq!(shown(&signed), "http://elsewhere.test/x");
    }

    #[test]
    fn an_endpoint_that_is_no_address_is_told() {
        let error = Http::new("not an address", None).expect_err("it is none");
        assert!(error.to_string().contains("no web address"), "{error}");
    }
}
