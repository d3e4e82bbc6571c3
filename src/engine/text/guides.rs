//! The threads that guides think on, and what device thread and runner hold of a thought that is on its way.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread::{JoinHandle, available_parallelism},
};

use super::guide::{Advice, Guide};
use crate::engine::{failure::panic_text, token::TokenId, token_set::TokenSet};

/// More would compete with the forward pass for the cores.
const MOST_THREADS: usize = 4;

/// The guide threads. They start with the first question and end with this.
#[derive(Default)]
pub struct Guides {
    inbox: Option<Sender<Question>>,
    threads: Vec<JoinHandle<()>>,
}

struct Question {
    guide: Box<dyn Guide>,
    taken: Vec<TokenId>,
    answer: Pending,
}

impl Guides {
    /// Has the guide think about these tokens.
    pub fn ask(&mut self, guide: Box<dyn Guide>, taken: Vec<TokenId>) -> Pending {
        let answer = Pending::default();
        let threads = &mut self.threads;
        let inbox = self.inbox.get_or_insert_with(|| start(threads));
        inbox
            .send(Question { guide, taken, answer: answer.clone() })
            .expect("a thread listens as long as there is an inbox");
        answer
    }
}

impl Drop for Guides {
    fn drop(&mut self) {
        self.inbox = None;
        for thread in self.threads.drain(..) {
            thread.join().expect("a guide's panic is caught, so a panic here is a bug");
        }
    }
}

fn start(threads: &mut Vec<JoinHandle<()>>) -> Sender<Question> {
    let (inbox, questions) = channel();
    let questions = Arc::new(Mutex::new(questions));
    let count = available_parallelism().map_or(1, |cores| cores.get() / 2).clamp(1, MOST_THREADS);
    threads.extend((0..count).map(|_| {
        let questions = Arc::clone(&questions);
        let thread = std::thread::Builder::new().name("guide".into()).spawn(move || think(&questions));
        thread.expect("the system starts a thread")
    }));
    inbox
}

/// A guide thread's life.
fn think(questions: &Mutex<Receiver<Question>>) {
    loop {
        let question = questions.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Question { guide, taken, answer }) = question else { return };
        // A cancelled job's guide need not think.
        if Arc::strong_count(&answer.0) > 1 {
            answer.fill(advised(guide, &taken));
        }
    }
}

fn advised(mut guide: Box<dyn Guide>, taken: &[TokenId]) -> Advised {
    let advice = catch_unwind(AssertUnwindSafe(|| guide.advise(taken)));
    let advice = advice.unwrap_or_else(|panic| Err(format!("the answer's guide panicked: {}", panic_text(&*panic))))?;
    let possible = match &advice {
        Advice::Mask(mask) => !mask.is_empty(),
        Advice::Force(tokens) => !tokens.is_empty(),
        Advice::Free | Advice::End => true,
    };
    if possible { Ok((guide, advice)) } else { Err("the answer's guide allows no token".into()) }
}

/// A guide and what it advises, or why it cannot.
pub type Advised = Result<(Box<dyn Guide>, Advice), String>;

/// Advice that is being thought of. Clones share it.
#[derive(Clone, Default)]
pub struct Pending(Arc<Slot>);

#[derive(Default)]
struct Slot {
    advised: Mutex<Option<Advised>>,
    ready: Condvar,
}

impl Pending {
    /// Waits for the advice and says which tokens may be drawn; `None` where any may, or where the draw will not
    /// count.
    pub fn mask(&self) -> Option<Arc<TokenSet>> {
        let advised = self.0.advised.lock().unwrap_or_else(PoisonError::into_inner);
        let advised = self.0.ready.wait_while(advised, |advised| advised.is_none());
        match &*advised.unwrap_or_else(PoisonError::into_inner) {
            Some(Ok((_, Advice::Mask(mask)))) => Some(Arc::clone(mask)),
            Some(Ok((_, Advice::Force(tokens)))) => Some(Arc::new(tokens.iter().take(1).copied().collect())),
            _ => None,
        }
    }

    /// Waits for the advice and takes it, with the guide.
    pub(super) fn take(self) -> Advised {
        let advised = self.0.advised.lock().unwrap_or_else(PoisonError::into_inner);
        let advised = self.0.ready.wait_while(advised, |advised| advised.is_none());
        advised.unwrap_or_else(PoisonError::into_inner).take().expect("waited for")
    }

    fn fill(&self, advised: Advised) {
        *self.0.advised.lock().unwrap_or_else(PoisonError::into_inner) = Some(advised);
        self.0.ready.notify_all();
    }
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pending")
    }
}
