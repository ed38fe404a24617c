//! What the tests share.

use std::any::Any;
use std::fmt::Display;
use std::future::{Future, IntoFuture, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use hedgerow::{
    Attempt, Budget, Clock, Decision, Event, EventKind, Hedge, ManualClock, Observer, Origin,
};
use tokio::time::{Instant, sleep, timeout};

/// Milliseconds.
pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What most scripted attempts return.
pub(crate) type Answer = Result<&'static str, &'static str>;

/// A future that a script makes.
pub(crate) type Scripted = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// What one scripted attempt does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// It returns this after so many milliseconds.
    Return(u64, Answer),
    /// It panics with this text.
    Panic(u64, &'static str),
    /// It stays pending.
    Never,
}

pub(crate) const fn ok(after: u64, value: &'static str) -> Act {
    Act::Return(after, Ok(value))
}

pub(crate) const fn err(after: u64, error: &'static str) -> Act {
    Act::Return(after, Err(error))
}

pub(crate) const fn panics(after: u64, text: &'static str) -> Act {
    Act::Panic(after, text)
}

pub(crate) const fn never() -> Act {
    Act::Never
}

/// Plays an act on tokio's clock. What takes no time is ready at the first poll.
pub(crate) async fn act(act: Act) -> Answer {
    let wait = async |after| {
        if after > 0 {
            sleep(ms(after)).await;
        }
    };
    match act {
        Act::Never => pending().await,
        Act::Return(after, answer) => {
            wait(after).await;
            answer
        }
        Act::Panic(after, text) => {
            wait(after).await;
            std::panic::panic_any(text)
        }
    }
}

/// Work whose attempts do what the script says, one entry each; what becomes of them is noted.
/// Attempts past the script never end.
pub(crate) fn work<const N: usize>(
    notes: &Notes,
    script: [Act; N],
) -> impl FnMut(Attempt) -> Scripted + Clone + Send + use<N> {
    let notes = notes.clone();
    move |attempt| {
        let number = attempt.hedge_number();
        let does = script.get(usize::from(number)).copied();
        Box::pin(notes.clone().attempt(number, act(does.unwrap_or(Act::Never))))
    }
}

/// Handles errors but those that begin with `fatal`, and values that begin with `bad`.
pub(crate) fn transient(answer: &Answer) -> bool {
    match answer {
        Ok(value) => value.starts_with("bad"),
        Err(error) => !error.starts_with("fatal"),
    }
}

/// Waits until an attempt is told to stop; panics rather than wait for ever.
pub(crate) async fn told(attempt: &Attempt) {
    let day = Duration::from_secs(86_400);
    timeout(day, attempt.cancelled()).await.expect("it is told to stop");
}

/// Counts who pays, and grants everything.
#[derive(Debug, Default)]
pub(crate) struct Counting(AtomicU64);

impl Counting {
    /// How many have paid since it was last asked.
    pub(crate) fn paid(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl Budget for Counting {
    fn deposit(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn try_take(&self) -> bool {
        true
    }

    fn give_back(&self) {}
}

/// What happened, in order, each line with the virtual millisecond at which it did.
#[derive(Clone)]
pub(crate) struct Notes {
    elapsed: Arc<dyn Fn() -> Duration + Send + Sync>,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Notes {
    /// Counts from now, on tokio's clock.
    pub(crate) fn new() -> Self {
        let start = Instant::now();
        Self::counting(move || start.elapsed())
    }

    /// Counts from now, on this clock.
    pub(crate) fn on(clock: &ManualClock) -> Self {
        let (clock, start) = (clock.clone(), clock.now());
        Self::counting(move || clock.now() - start)
    }

    fn counting(elapsed: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { elapsed: Arc::new(elapsed), lines: Arc::default() }
    }

    /// How many milliseconds have passed; whole, or the test is not exact.
    pub(crate) fn at(&self) -> u64 {
        let elapsed = (self.elapsed)();
        assert_eq!(elapsed.subsec_nanos() % 1_000_000, 0, "whole milliseconds");
        u64::try_from(elapsed.as_millis()).unwrap()
    }

    pub(crate) fn note(&self, what: impl Display) {
        let line = format!("{what} @{}", self.at());
        lock(&self.lines).push(line);
    }

    /// Everything noted so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        lock(&self.lines).clone()
    }

    /// How many lines begin like this.
    pub(crate) fn count(&self, start: &str) -> usize {
        let lines = lock(&self.lines);
        lines.iter().filter(|line| line.starts_with(start)).count()
    }

    /// Runs the work of an attempt and notes what becomes of it: that it starts (at its first
    /// poll), and that it ends, panics or is dropped.
    pub(crate) async fn attempt<T>(self, number: u8, work: impl Future<Output = T>) -> T {
        self.note(format_args!("A{number} starts"));
        let mut guard = self.guard(format!("A{number}"));
        let outcome = work.await;
        guard.disarmed = true;
        self.note(format_args!("A{number} ends"));
        outcome
    }

    /// Notes when it is dropped.
    pub(crate) fn guard(&self, name: impl Into<String>) -> Guard {
        Guard { notes: self.clone(), name: name.into(), disarmed: false }
    }

    /// A budget that grants everything and notes that it was asked.
    pub(crate) fn budget(&self) -> Arc<dyn Budget> {
        Arc::new(Noted(self.clone()))
    }

    /// Notes every event, as [`Events::text`] spells it.
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        let notes = self.clone();
        Arc::new(move |event: &Event| notes.note(spell(event)))
    }
}

/// See [`Notes::guard`].
pub(crate) struct Guard {
    notes: Notes,
    name: String,
    disarmed: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.disarmed {
            let how = if std::thread::panicking() { "panics" } else { "dropped" };
            self.notes.note(format_args!("{} {how}", self.name));
        }
    }
}

struct Noted(Notes);

impl std::fmt::Debug for Noted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Noted")
    }
}

impl Budget for Noted {
    fn deposit(&self) {
        self.0.note("pays in");
    }

    fn try_take(&self) -> bool {
        self.0.note("takes a token");
        true
    }

    fn give_back(&self) {
        self.0.note("gives the token back");
    }
}

/// Every event of every observed call.
#[derive(Clone, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<Event>>>);

impl Events {
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        let events = Arc::clone(&self.0);
        Arc::new(move |event: &Event| lock(&events).push(*event))
    }

    pub(crate) fn all(&self) -> Vec<Event> {
        lock(&self.0).clone()
    }

    /// Each event on a line: `hedge(1,delay)@50`, `end(0,cancelled,70)@70`.
    pub(crate) fn text(&self) -> Vec<String> {
        let line = |event: &Event| format!("{}@{}", spell(event), event.at.as_millis_f64());
        self.all().iter().map(line).collect()
    }

    /// How many lines begin like this.
    pub(crate) fn count(&self, start: &str) -> usize {
        let lines = self.text();
        lines.iter().filter(|line| line.starts_with(start)).count()
    }
}

fn spell(event: &Event) -> String {
    let number = event.attempt.map(|number| number.to_string());
    let number = number.unwrap_or_default();
    match event.kind {
        EventKind::Started { origin: Origin::Primary } => format!("start({number})"),
        EventKind::Started { origin } => {
            format!("hedge({number},{})", lower(&format!("{origin:?}")))
        }
        EventKind::Denied { gate } => format!("denied({number},{gate})"),
        EventKind::ToldToStop => format!("stop({number})"),
        EventKind::Ended { end, ran } => {
            let end = lower(&format!("{end:?}"));
            format!("end({number},{end},{})", ran.as_secs_f64() * 1e3)
        }
        EventKind::Decided => format!("win({number})"),
        EventKind::Exhausted => format!("exhausted({number})"),
        EventKind::Over { how } => {
            let how = match how {
                Decision::Accepted(_) => "accepted",
                Decision::Exhausted(_) => "exhausted",
                Decision::Cancelled => "cancelled",
                Decision::Aborted => "aborted",
            };
            format!("over({how})")
        }
        other => panic!("an event that the tests do not know: {other:?}"),
    }
}

fn lower(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// The same policy on the fast path, and on the path of calls that somebody watches.
pub(crate) fn both(hedge: Hedge) -> [Hedge; 2] {
    let watched = hedge.clone().observer(Arc::new(|_: &Event| {}));
    [hedge, watched]
}

/// Awaits, and catches a panic: its text.
pub(crate) async fn caught<F: IntoFuture>(work: F) -> Result<F::Output, String> {
    let mut work = Box::pin(work.into_future());
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => Poll::Ready(Err(panic_text(panic.as_ref()))),
    })
    .await
}

/// The text that a panic was made with.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without text".to_owned())
}

/// Polls once, with a waker that wakes nothing.
pub(crate) fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(std::task::Waker::noop()))
}

pub(crate) fn lock<V: ?Sized>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    mutex.lock().unwrap()
}
