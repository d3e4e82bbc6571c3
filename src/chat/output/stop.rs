//! Stop strings over streamed text: all text before the first match is said, and nothing of the match.

/// Watches a stream of text for strings that end it. The match is the one that is complete first; of two complete at
/// the same character, the longer. So the result does not depend on how the text is cut into chunks.
#[derive(Debug, Default)]
pub(in crate::chat) struct StopStrings {
    strings: Vec<String>,
    /// The longest end of the text so far that a stop string may begin with.
    held: String,
}

/// What a chunk of text leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::chat) struct Watched {
    /// Text that is certain to belong to the answer.
    pub text: String,
    /// The stop string that was met; the rest of the stream is then no part of the answer.
    pub stopped: Option<String>,
}

impl StopStrings {
    /// Empty strings stop nothing.
    pub(in crate::chat) fn new(strings: &[String]) -> StopStrings {
        let strings = strings.iter().filter(|string| !string.is_empty()).cloned().collect();
        StopStrings { strings, held: String::new() }
    }

    /// More of the text.
    pub(in crate::chat) fn push(&mut self, chunk: &str) -> Watched {
        self.held.push_str(chunk);
        if let Some((start, string)) = self.first_match() {
            let stopped = Some(string.to_owned());
            let mut text = std::mem::take(&mut self.held);
            text.truncate(start);
            return Watched { text, stopped };
        }
        let keep = self.held.split_off(self.certain());
        Watched { text: std::mem::replace(&mut self.held, keep), stopped: None }
    }

    /// The text held back, at the end of the stream.
    pub(in crate::chat) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Where the match begins that is complete first.
    fn first_match(&self) -> Option<(usize, &str)> {
        let matches = self.strings.iter().filter_map(|string| {
            let start = self.held.find(string)?;
            Some((start + string.len(), start, string.as_str()))
        });
        matches.min().map(|(_, start, string)| (start, string))
    }

    /// How many bytes of the held text can be no part of a later match.
    fn certain(&self) -> usize {
        let longest = self.strings.iter().map(String::len).max().unwrap_or(0);
        let from = self.held.len().saturating_sub(longest.saturating_sub(1));
        let begins = |start: usize| {
            self.held.get(start..).is_some_and(|end| self.strings.iter().any(|string| string.starts_with(end)))
        };
        (from..self.held.len()).find(|&start| begins(start)).unwrap_or(self.held.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole text that is said, and whether it was stopped.
    fn watch<'a>(stops: &[&str], chunks: impl IntoIterator<Item = &'a str>) -> (String, bool) {
        let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
        let mut watcher = StopStrings::new(&stops);
        let mut said = String::new();
        for chunk in chunks {
            let Watched { text, stopped } = watcher.push(chunk);
            said.push_str(&text);
            if stopped.is_some() {
                return (said, true);
            }
        }
        (said + &watcher.finish(), false)
    }

    #[test]
    fn matches() {
        for (stops, text, expected, stopped) in [
            (&[][..], "abc", "abc", false),
            (&[""], "abc", "abc", false),
            (&["b"], "abc", "a", true),
            (&["\n\n"], "a\nb\n\nc", "a\nb", true),
            (&["xyz"], "ab xy", "ab xy", false),
            (&["abc", "b"], "abc", "a", true),
            (&["bc", "abc"], "abc", "", true),
            (&["aab"], "aaab", "a", true),
            (&["é!"], "caf\u{e8}é!", "caf\u{e8}", true),
        ] {
            assert_eq!(watch(stops, [text]), (expected.to_owned(), stopped), "{stops:?} in {text:?}");
        }
    }

    #[test]
    fn holds_back_no_more_than_it_must() {
        let mut watcher = StopStrings::new(&["###".to_owned()]);
        assert_eq!(watcher.push("a#").text, "a");
        assert_eq!(watcher.push("b").text, "#b");
        assert_eq!(watcher.push("##").text, "");
        assert_eq!(watcher.finish(), "##");
    }

    #[test]
    fn any_chunking_gives_the_same() {
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut stops_met = 0;
        for _ in 0..3000 {
            let mut word = |length: usize| (0..length).map(|_| ["a", "b", "é"][random(3)]).collect::<String>();
            let (text, stops) = (word(24), [word(2), word(3), word(4)]);
            let stops: Vec<&str> = stops[..1 + random(3)].iter().map(String::as_str).collect();
            let whole = watch(&stops, [text.as_str()]);
            let (mut chunks, mut rest) = (Vec::new(), text.as_str());
            while !rest.is_empty() {
                let count = 1 + random(5);
                let cut = rest.char_indices().nth(count).map_or(rest.len(), |(at, _)| at);
                chunks.push(&rest[..cut]);
                rest = &rest[cut..];
            }
            assert_eq!(watch(&stops, chunks), whole, "{stops:?} in {text:?}");
            assert!(stops.iter().all(|stop| !whole.0.contains(stop)));
            stops_met += usize::from(whole.1);
        }
        assert!((500..3000).contains(&stops_met), "{stops_met}");
    }
}
