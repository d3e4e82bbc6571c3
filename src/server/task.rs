//! The kinds of work that a model can be asked for, and how each is begun. A wire says which kind it asks for; the
//! rest of the server treats them alike.

use std::{future::Future, pin::Pin, sync::Arc};

use super::pool::Loaded;
use crate::chat::{self, Answers, EmbedPermit, EmbeddingRequest, Embeddings, Field};

/// What a request comes down to once its vendor's words are gone.
pub(super) trait Task: Send + Sized + 'static {
    /// What comes of it, bit by bit.
    type Events: Events;
    /// The model that does it.
    type Model: Send + 'static;
    /// Room for it, taken before any work and given back when it is dropped.
    type Permit: Send + 'static;

    /// What such a request is called, with its article.
    const NAME: &'static str;

    /// The model, if it is one that does this.
    fn model(loaded: Loaded) -> Option<Self::Model>;

    /// Takes room for this many answers.
    fn reserve(model: &Self::Model, answers: usize) -> Result<Self::Permit, chat::Error>;

    /// Begins. Takes milliseconds of the calling thread's time.
    fn begin(self, model: &Self::Model, permit: Self::Permit) -> Result<Self::Events, chat::Error>;
}

/// What comes of a task. Dropping it cancels what is left.
pub(super) trait Events: Send + 'static {
    type Event: Send + 'static;

    /// How many answers there are.
    fn count(&self) -> usize;

    /// The next event and the number of its answer; `None` after the last.
    ///
    /// # Errors
    /// The task failed as a whole.
    fn next(&mut self) -> impl Future<Output = Result<Option<(usize, Self::Event)>, chat::Error>> + Send;

    /// Gathers this many tokens into an event, after the first.
    fn set_interval(&mut self, _tokens: usize) {}

    /// Parts of the request that have no effect on this model.
    fn ignored(&self) -> Vec<Field> {
        Vec::new()
    }
}

impl Task for chat::Request {
    type Events = Answers;
    type Model = Arc<chat::Model>;
    type Permit = chat::Permit;

    const NAME: &'static str = "a chat";

    fn model(loaded: Loaded) -> Option<Arc<chat::Model>> {
        match loaded {
            Loaded::Chat(model) => Some(model),
            Loaded::Embedding(_) => None,
        }
    }

    fn reserve(model: &Arc<chat::Model>, answers: usize) -> Result<chat::Permit, chat::Error> {
        model.reserve(answers)
    }

    fn begin(self, model: &Arc<chat::Model>, permit: chat::Permit) -> Result<Answers, chat::Error> {
        model.generate_in(&self, permit)
    }
}

impl Events for Answers {
    type Event = chat::Event;

    fn count(&self) -> usize {
        Answers::count(self)
    }

    async fn next(&mut self) -> Result<Option<(usize, chat::Event)>, chat::Error> {
        Ok(Answers::next(self).await)
    }

    fn set_interval(&mut self, tokens: usize) {
        Answers::set_interval(self, tokens);
    }

    fn ignored(&self) -> Vec<Field> {
        Answers::ignored(self).to_vec()
    }
}

impl Task for EmbeddingRequest {
    type Events = OneEvent<Embeddings>;
    type Model = Arc<chat::EmbeddingModel>;
    type Permit = EmbedPermit;

    const NAME: &'static str = "embeddings";

    fn model(loaded: Loaded) -> Option<Arc<chat::EmbeddingModel>> {
        match loaded {
            Loaded::Embedding(model) => Some(model),
            Loaded::Chat(model) => model.embeddings().cloned(),
        }
    }

    /// Its vectors are one answer, however many there are.
    fn reserve(model: &Arc<chat::EmbeddingModel>, _: usize) -> Result<EmbedPermit, chat::Error> {
        model.reserve()
    }

    fn begin(
        self,
        model: &Arc<chat::EmbeddingModel>,
        permit: EmbedPermit,
    ) -> Result<OneEvent<Embeddings>, chat::Error> {
        Ok(OneEvent(Some(Box::pin(model.embed(&self, permit)?))))
    }
}

/// What comes all at once.
pub(super) struct OneEvent<T>(Option<Coming<T>>);

type Coming<T> = Pin<Box<dyn Future<Output = Result<T, chat::Error>> + Send>>;

impl<T: Send + 'static> Events for OneEvent<T> {
    type Event = T;

    fn count(&self) -> usize {
        1
    }

    async fn next(&mut self) -> Result<Option<(usize, T)>, chat::Error> {
        let Some(event) = &mut self.0 else { return Ok(None) };
        let event = event.as_mut().await;
        self.0 = None;
        Ok(Some((0, event?)))
    }
}
