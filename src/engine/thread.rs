//! The device's operating system thread: who wakes it, and when it ends.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{JoinHandle, Thread},
};

/// The thread. It ends when this is dropped, which is when nobody is left who could give it work.
pub struct DeviceThread {
    thread: Thread,
    join: Mutex<Option<JoinHandle<()>>>,
    ended: Arc<AtomicBool>,
}

impl DeviceThread {
    /// Starts a thread that runs `work`, which is to return when the flag is set.
    pub fn start(work: impl FnOnce(Arc<AtomicBool>) + Send + 'static) -> DeviceThread {
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        let spawned = std::thread::Builder::new().name("device".into()).spawn(move || work(flag));
        let join = spawned.expect("the system starts a thread");
        DeviceThread { thread: join.thread().clone(), join: Mutex::new(Some(join)), ended }
    }

    /// Wakes it where it sleeps; where it does not, it will not fall asleep before it has looked for work again.
    pub fn wake(&self) {
        self.thread.unpark();
    }

    /// Ends it and waits until it is gone.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.wake();
        let join = self.join.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(join) = join {
            // A panic of the thread was reported when it happened.
            let _ = join.join();
        }
    }
}

impl Drop for DeviceThread {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        self.wake();
    }
}
