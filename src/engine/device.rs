//! The device: one thread that owns every instance and gives each its turn. Arrays are born, used and freed there.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, channel},
    },
    thread,
};

use super::{
    handle::{Handle, Health},
    instance::{Instance, Loader},
    places::Capacity,
    rounds::{Hosted, LoadError, Order, Rounds},
    shared::{Unshared, awaited},
    stats::Counters,
    thread::DeviceThread,
};

/// The device thread. Clones share it; it ends when the last of them and the last handle of an instance is dropped.
#[derive(Clone)]
pub struct Device {
    thread: Arc<DeviceThread>,
    /// `None` when the thread has ended: what is ordered then would never be made.
    orders: Arc<Mutex<Option<Vec<Order>>>>,
}

impl Device {
    /// Starts the thread. A process has one.
    pub fn start() -> Device {
        let orders = Arc::new(Mutex::new(Some(Vec::new())));
        let arriving = Arc::clone(&orders);
        let thread = DeviceThread::start(move |ended| work(&ended, &arriving));
        Device { thread: Arc::new(thread), orders }
    }

    /// Begins to load an instance that may hold as many jobs as `capacity` says. `make` makes the loader on the device
    /// thread; it is handed the counters that the instance is to keep.
    pub fn load<L, M>(&self, capacity: Capacity, make: M) -> Loading<<L::Output as Instance>::Job, L::Error>
    where
        L: Loader + 'static,
        L::Output: Instance,
        L::Error: Send,
        M: FnOnce(Arc<Counters>) -> L + Send + 'static,
    {
        let (handle, counters) = self.handle(capacity);
        let inbox = Arc::clone(handle.inbox());
        let (sender, outcome) = channel();
        self.order(Box::new(move || vec![Hosted::boxed(move || make(counters), inbox, sender)]));
        Loading { handle, outcome }
    }

    /// Begins to load two instances that share something, such as a model's weights: one loader makes both. Each ends
    /// by itself.
    pub fn load_both<L, A, B, M>(&self, capacities: [Capacity; 2], make: M) -> LoadingBoth<A::Job, B::Job, L::Error>
    where
        L: Loader<Output = (A, B)> + 'static,
        A: Instance + 'static,
        B: Instance + 'static,
        L::Error: Send,
        M: FnOnce([Arc<Counters>; 2]) -> L + Send + 'static,
    {
        let (first, first_counters) = self.handle(capacities[0]);
        let (second, second_counters) = self.handle(capacities[1]);
        let (first_inbox, second_inbox) = (Arc::clone(first.inbox()), Arc::clone(second.inbox()));
        let (first_sender, first_outcome) = channel();
        let (second_sender, second_outcome) = channel();
        self.order(Box::new(move || {
            let (promise, awaited) = awaited();
            let loader = move || {
                make([first_counters, second_counters]).then(move |(first, second)| {
                    promise.keep(second);
                    first
                })
            };
            let second = Hosted::boxed(move || awaited, second_inbox, second_sender);
            vec![Hosted::boxed(loader, first_inbox, first_sender), second]
        }));
        (Loading { handle: first, outcome: first_outcome }, Loading { handle: second, outcome: second_outcome })
    }

    fn handle<J>(&self, capacity: Capacity) -> (Handle<J>, Arc<Counters>) {
        let counters = Arc::new(Counters::default());
        (Handle::new(capacity, Arc::clone(&counters), Arc::clone(&self.thread)), counters)
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &mut *self.orders.lock().unwrap_or_else(PoisonError::into_inner) {
            orders.push(order);
        }
        self.thread.wake();
    }

    /// Ends whatever runs, drops all instances and returns when the thread is gone.
    pub fn close(&self) {
        self.thread.end();
    }
}

/// The thread's life: rounds while there is something to do, sleep while there is not.
fn work(ended: &AtomicBool, arriving: &Mutex<Option<Vec<Order>>>) {
    let mut rounds = Rounds::default();
    while !ended.load(Ordering::Acquire) {
        if let Some(orders) = &mut *arriving.lock().unwrap_or_else(PoisonError::into_inner) {
            rounds.take(orders);
        }
        if !rounds.round() {
            thread::park();
        }
    }
    // Orders that nobody carries out any more are dropped, which whoever waits for them sees.
    drop(arriving.lock().unwrap_or_else(PoisonError::into_inner).take());
    rounds.close();
}

/// Two instances that are being loaded by one loader.
pub type LoadingBoth<A, B, E> = (Loading<A, E>, Loading<B, Unshared>);

/// An instance that is being loaded. Dropping this ends the loading.
#[must_use]
pub struct Loading<J, E> {
    handle: Handle<J>,
    outcome: Receiver<Result<(), LoadError<E>>>,
}

impl<J, E> Loading<J, E> {
    /// How far it has come.
    pub fn health(&self) -> Health {
        self.handle.health()
    }

    /// Waits until it is loaded. Blocks.
    ///
    /// # Errors
    /// What the loader returned, or that it panicked.
    pub fn wait(self) -> Result<Handle<J>, LoadError<E>> {
        self.outcome.recv().unwrap_or(Err(LoadError::Closed))?;
        Ok(self.handle)
    }
}
