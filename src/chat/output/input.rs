//! Text that comes in pieces, read as if all of it were there. A parser is an async function that waits where the text
//! is not long enough to decide; so its result cannot depend on how the text was cut.
//!
//! Nothing here wakes anybody: whoever pushes text polls the parser afterwards.

use std::{
    collections::{BTreeSet, VecDeque},
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

/// The names of a model's special tokens, made once a model.
pub type SpecialTokens = Arc<BTreeSet<String>>;

/// The text, and how far it has been read.
#[derive(Debug)]
pub struct Input(Mutex<Text>);

#[derive(Debug, Default)]
struct Text {
    /// What has not been let go.
    text: String,
    /// Where `text` begins in the whole.
    base: usize,
    /// Where reading goes on, in the whole.
    at: usize,
    /// Nothing from here on is let go, so that reading can go back there.
    pinned: Option<usize>,
    /// The pin stays where it is.
    holds: bool,
    /// Special tokens that the text ends before, as far as reading goes now.
    fence: Vec<String>,
    /// Where special tokens stand in the whole, and how long they are.
    specials: VecDeque<(usize, usize)>,
    /// Marks that the model writes as special tokens: the same characters as plain text are no marks.
    special_tokens: SpecialTokens,
    ended: bool,
    /// The model itself ended its answer.
    complete: bool,
    /// Marks that the end stands for: the model ended with one of these tokens, which is no text.
    ended_by: &'static [&'static str],
    /// Whether anything was decided by there being no more.
    met_end: bool,
}

impl Input {
    /// No text yet.
    pub fn new(special_tokens: SpecialTokens) -> Input {
        Input(Mutex::new(Text { special_tokens, ..Text::default() }))
    }

    /// A text that is all there.
    pub fn whole(text: &str) -> Input {
        let input = Input::new(SpecialTokens::default());
        input.push(text);
        input.end_with(&[]);
        input
    }

    fn lock(&self) -> MutexGuard<'_, Text> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// More text.
    pub fn push(&self, text: &str) {
        let mut shared = self.lock();
        shared.let_go();
        shared.text.push_str(text);
    }

    /// A special token, by its name.
    pub fn push_special(&self, name: &str) {
        let mut shared = self.lock();
        shared.let_go();
        let at = shared.base + shared.text.len();
        shared.specials.push_back((at, name.len()));
        shared.text.push_str(name);
    }

    /// There will be no more, as the model ended its answer with one of these special tokens.
    pub fn end_with(&self, tokens: &'static [&'static str]) {
        let mut shared = self.lock();
        shared.ended = true;
        shared.complete = true;
        shared.ended_by = tokens;
    }

    /// There will be no more.
    pub fn end(&self) {
        self.lock().ended = true;
    }

    /// Whether everything has been read and there will be no more.
    pub fn is_over(&self) -> bool {
        let shared = self.lock();
        shared.ended && shared.rest().is_empty()
    }

    /// Whether there will be no more because the model itself ended its answer: then nothing was on its way.
    pub fn is_complete(&self) -> bool {
        self.lock().complete
    }

    /// Whether a reader has come to the end since the last pin, so that more text might have led it elsewhere.
    pub fn met_end(&self) -> bool {
        self.lock().met_end
    }

    /// Whether a reader has come to the end since the last pin, and the answer was cut there.
    pub fn is_cut(&self) -> bool {
        let shared = self.lock();
        shared.met_end && !shared.complete
    }

    /// Bytes held at the moment.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.lock().text.len()
    }

    /// From here on, everything stays until [`Input::unpin`].
    pub fn pin(&self) {
        let mut shared = self.lock();
        if !shared.holds {
            shared.pinned = Some(shared.at);
        }
        shared.met_end = false;
    }

    /// The pin stays where it is until [`Input::unpin`], whoever would move it.
    pub fn hold(&self) {
        self.lock().holds = true;
    }

    /// Whether the pin stays where it is.
    pub fn holds(&self) -> bool {
        self.lock().holds
    }

    /// What has been read need not stay any more.
    pub fn unpin(&self) {
        let mut shared = self.lock();
        shared.pinned = None;
        shared.holds = false;
    }

    /// Up to [`Input::unfence`], the text ends before the first of these where that is a special token.
    pub fn fence(&self, marks: &[&str]) {
        self.lock().fence = marks.iter().map(|mark| (*mark).to_owned()).collect();
    }

    /// The text goes on behind the fence. Where nothing but space and `skipped`, if it is there, stood before the fence,
    /// that is taken, and this is true.
    pub fn unfence(&self, skipped: char) -> bool {
        let mut shared = self.lock();
        let is_met = shared.fenced_at().is_some();
        let rest = shared.rest().trim();
        let is_clear = is_met && (rest.is_empty() || rest.strip_prefix(skipped).is_some_and(str::is_empty));
        shared.at += if is_clear { shared.rest().len() } else { 0 };
        shared.fence.clear();
        is_clear
    }

    /// Whether reading has come to the fence.
    pub fn is_at_fence(&self) -> bool {
        let shared = self.lock();
        shared.rest().is_empty() && shared.fenced_at().is_some()
    }

    /// Whether one of these marks follows behind white space; `None` where the text ends before that is certain.
    pub async fn follows(&self, marks: &[&str]) -> Option<bool> {
        self.wait(|shared| {
            let rest = shared.rest();
            let ahead = rest.trim_start();
            let at = shared.at + rest.len() - ahead.len();
            if marks.iter().any(|mark| ahead.starts_with(mark) && shared.counts(at, mark)) {
                return Some(Some(true));
            }
            if marks.iter().any(|mark| mark.len() > ahead.len() && mark.starts_with(ahead)) {
                return shared.is_all().then_some(None);
            }
            Some(Some(false))
        })
        .await
    }

    /// Goes back to where the pin is.
    pub fn rewind(&self) {
        let mut shared = self.lock();
        shared.at = shared.pinned.expect("going back to no pin is a bug");
    }

    /// Waits until `decide` knows, given the text there is and whether it is all.
    async fn wait<T>(&self, mut decide: impl FnMut(&mut Text) -> Option<T>) -> T {
        poll_fn(|_| match decide(&mut self.lock()) {
            Some(decided) => Poll::Ready(decided),
            None => Poll::Pending,
        })
        .await
    }

    /// The next character, not taken; `None` at the end.
    pub async fn peek(&self) -> Option<char> {
        self.wait(|shared| match shared.rest().chars().next() {
            Some(char) => Some(Some(char)),
            None => shared.is_all().then_some(None),
        })
        .await
    }

    /// Takes the next character.
    pub async fn next(&self) -> Option<char> {
        let char = self.peek().await;
        self.lock().at += char.map_or(0, char::len_utf8);
        char
    }

    /// Whether this is next. Waits only as long as it may be.
    pub async fn is_next(&self, mark: &str) -> bool {
        self.wait(|shared| shared.starts_with(mark)).await
    }

    /// Takes this if it is next.
    pub async fn eat(&self, mark: &str) -> bool {
        let found = self.is_next(mark).await;
        self.lock().at += if found { mark.len() } else { 0 };
        found
    }

    /// Takes white space.
    pub async fn skip_space(&self) {
        self.skip_while(char::is_whitespace).await;
    }

    /// Takes characters as long as they hold.
    pub async fn skip_while(&self, holds: impl Fn(char) -> bool) {
        self.take_while(holds, |_| {}).await;
    }

    /// Takes characters as long as they hold, and emits them piece by piece.
    pub async fn take_while(&self, holds: impl Fn(char) -> bool, mut emit: impl FnMut(&str)) {
        self.wait(|shared| {
            let rest = shared.rest();
            let end = rest.find(|char| !holds(char));
            let length = end.unwrap_or(rest.len());
            emit(&rest[..length]);
            shared.at += length;
            (end.is_some() || shared.is_all()).then_some(())
        })
        .await;
    }

    /// Takes a word of at most `limit` bytes whose characters hold; `None` where it is empty or longer.
    pub async fn word(&self, holds: impl Fn(char) -> bool, limit: usize) -> Option<String> {
        let word = self
            .wait(|shared| {
                let length = shared.rest().len();
                let end = shared.rest().find(|char| !holds(char));
                let end = end.or_else(|| shared.is_all().then_some(length));
                match end {
                    Some(end) if end <= limit => Some(Some(shared.rest()[..end].to_owned())),
                    None if length <= limit => None,
                    _ => Some(None),
                }
            })
            .await?;
        self.lock().at += word.len();
        Some(word).filter(|word| !word.is_empty())
    }

    /// Takes the text before the first of these marks, and the mark. Emits the text piece by piece and holds back only
    /// what may become a mark. Of marks that begin at the same place the longest counts. Returns the mark's index, or
    /// `None` where the text ended without one. Special tokens that are no mark are left out.
    pub async fn until(&self, marks: &[&str], emit: impl FnMut(&str)) -> Option<usize> {
        self.scan(marks, true, emit).await
    }

    /// As [`Input::until`], but where the text ends without a mark, its end that may have become one is left out.
    pub async fn until_mark(&self, marks: &[&str], emit: impl FnMut(&str)) -> Option<usize> {
        self.scan(marks, false, emit).await
    }

    async fn scan(&self, marks: &[&str], to_the_end: bool, mut emit: impl FnMut(&str)) -> Option<usize> {
        self.wait(|shared| {
            let (length, found) = shared.find(marks);
            shared.emit(length, &mut emit);
            match found {
                Found::Mark(index) => {
                    shared.at += marks[index].len();
                    Some(Some(index))
                }
                Found::Undecided if shared.ended && marks.iter().any(|mark| shared.ended_by.contains(mark)) => {
                    let left = shared.rest().len();
                    shared.emit(left, &mut emit);
                    // Once: whoever goes on reading comes to the end itself.
                    let ended_by = std::mem::take(&mut shared.ended_by);
                    Some(marks.iter().position(|mark| ended_by.contains(mark)))
                }
                Found::Undecided if shared.is_all() => {
                    let left = shared.rest().len();
                    shared.emit(left, &mut |text| {
                        if to_the_end {
                            emit(text)
                        }
                    });
                    Some(None)
                }
                Found::Undecided => None,
            }
        })
        .await
    }

    /// As [`Input::until`], in one piece.
    pub async fn text_until(&self, marks: &[&str]) -> Option<(String, usize)> {
        let mut text = String::new();
        let index = self.until(marks, |piece| text.push_str(piece)).await?;
        Some((text, index))
    }

    /// The character after `skipped` bytes; `None` at the end.
    pub async fn peek_at(&self, skipped: usize) -> Option<char> {
        self.wait(|shared| match shared.rest().get(skipped..)?.chars().next() {
            Some(char) => Some(Some(char)),
            None => shared.is_all().then_some(None),
        })
        .await
    }

    /// Takes all there is; nobody will read it.
    pub fn discard(&self) {
        let mut shared = self.lock();
        shared.at = shared.base + shared.text.len();
    }

    /// The text there is at the moment, from here on.
    pub fn pending(&self) -> String {
        self.lock().rest().to_owned()
    }

    /// The first character, from here on, after `skipped` bytes and white space; `None` at the end.
    pub async fn peek_after(&self, skipped: usize) -> Option<(char, usize)> {
        self.wait(|shared| {
            let rest = shared.rest();
            let found = rest.get(skipped..)?.char_indices().find(|(_, char)| !char.is_whitespace());
            match found {
                Some((at, char)) => Some(Some((char, skipped + at + char.len_utf8()))),
                None => shared.is_all().then_some(None),
            }
        })
        .await
    }
}

enum Found {
    Mark(usize),
    Undecided,
}

impl Text {
    /// Whether there will be no more, where that decides.
    fn is_all(&mut self) -> bool {
        if self.fenced_at().is_some() {
            return true;
        }
        self.met_end |= self.ended;
        self.ended
    }

    fn rest(&self) -> &str {
        let end = self.fenced_at().unwrap_or(self.base + self.text.len());
        &self.text[self.at - self.base..end - self.base]
    }

    /// Where the fence stands, if it is there.
    fn fenced_at(&self) -> Option<usize> {
        if self.fence.is_empty() {
            return None;
        }
        let is_fence = |&&(at, size): &&(usize, usize)| {
            at >= self.at && self.fence.contains(&self.text[at - self.base..at + size - self.base].to_owned())
        };
        self.specials.iter().find(is_fence).map(|&(at, _)| at)
    }

    /// Forgets what nobody can go back to.
    fn let_go(&mut self) {
        let keep = self.pinned.unwrap_or(self.at).min(self.at);
        let gone = keep - self.base;
        // Moving what stays costs as much as it is long, so this waits until that is the smaller part.
        if gone > self.text.len() / 2 {
            self.text.drain(..gone);
            self.base = keep;
            while self.specials.front().is_some_and(|&(at, size)| at + size <= keep) {
                self.specials.pop_front();
            }
        }
    }

    fn starts_with(&mut self, mark: &str) -> Option<bool> {
        let rest = self.rest();
        if rest.len() < mark.len() && mark.starts_with(rest) {
            return self.is_all().then_some(false);
        }
        Some(rest.starts_with(mark) && self.counts(self.at, mark))
    }

    /// Whether a mark found at `at` is one: a special token where the model has it as one.
    fn counts(&self, at: usize, mark: &str) -> bool {
        !self.special_tokens.contains(mark) || self.specials.iter().any(|&(start, _)| start == at)
    }

    /// How much text stands before the first mark or before what may become one, and which.
    fn find(&mut self, marks: &[&str]) -> (usize, Found) {
        let rest = self.rest();
        let first = marks.iter().enumerate().filter_map(|(index, mark)| {
            let mut places = rest.match_indices(mark).map(|(at, _)| at);
            Some((places.find(|&at| self.counts(self.at + at, mark))?, std::cmp::Reverse(mark.len()), index))
        });
        let first = first.min();
        match (first, undecided(rest, marks)) {
            // A longer mark may be on its way at the same place or before.
            (Some((at, _, _)), Some(maybe)) if maybe <= at && !self.ended => (maybe, Found::Undecided),
            (Some((at, _, index)), Some(maybe)) if maybe <= at => {
                self.met_end = true;
                (at, Found::Mark(index))
            }
            (Some((at, _, index)), _) => (at, Found::Mark(index)),
            (None, Some(maybe)) => (maybe, Found::Undecided),
            (None, None) => (rest.len(), Found::Undecided),
        }
    }

    /// Takes `length` bytes and emits them, without special tokens.
    fn emit(&mut self, length: usize, emit: &mut impl FnMut(&str)) {
        let start = self.at;
        let end = start + length;
        let mut from = start;
        for &(at, size) in self.specials.iter().filter(|&&(at, size)| at + size > start && at < end) {
            if at > from {
                emit(&self.text[from - self.base..at - self.base]);
            }
            from = from.max((at + size).min(end));
        }
        if from < end {
            emit(&self.text[from - self.base..end - self.base]);
        }
        self.at = end;
    }
}

/// Where the longest end begins that is the beginning of a mark.
fn undecided(rest: &str, marks: &[&str]) -> Option<usize> {
    let longest = marks.iter().map(|mark| mark.len()).max().unwrap_or(0);
    let from = rest.len().saturating_sub(longest.saturating_sub(1));
    (from..rest.len()).find(|&start| {
        rest.get(start..).is_some_and(|end| marks.iter().any(|mark| mark.len() > end.len() && mark.starts_with(end)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::json::now;
    use super::*;

    /// What is left of a special token behind a mark within its name is left out, also where the beginning was let go.
    #[test]
    fn a_special_token_that_was_read_in_part_stays_one() {
        let input = Input::new(SpecialTokens::default());
        let mut emitted = String::new();
        input.push("a");
        input.push_special("long<m>y");
        assert_eq!(now(input.until(&["<m>"], |text| emitted.push_str(text))), Some(0));
        input.push("b!");
        assert_eq!(now(input.until(&["!"], |text| emitted.push_str(text))), Some(0));
        assert_eq!(emitted, "ab");
    }
}
