//! Accounts of what happens on many threads: events by call, a gauge, numbers that look random.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use hedgerow::{
    Decision, Delay, End, Event, EventKind, Exhausted, FailureStart, Hedge, Losers, Observer,
    Panics,
};
use tokio::task::yield_now;

use crate::support::lock;

/// What was told of one call.
#[derive(Clone, Default, Debug)]
pub(crate) struct Tally {
    pub(crate) started: usize,
    pub(crate) ended: Vec<(u8, End)>,
    pub(crate) decided: usize,
    pub(crate) over: Vec<Decision>,
}

impl Tally {
    fn add(&mut self, event: &Event) {
        match event.kind {
            EventKind::Started { .. } => self.started += 1,
            EventKind::Ended { end, .. } => self.ended.push((event.attempt.unwrap(), end)),
            EventKind::Decided => self.decided += 1,
            EventKind::Over { how } => self.over.push(how),
            _ => {}
        }
    }

    pub(crate) fn ended(&self, how: End) -> usize {
        self.ended.iter().filter(|(_, end)| *end == how).count()
    }

    /// Each started attempt ends once, one decision at most, and the end of the call fits them.
    pub(crate) fn check(&self) {
        assert!(self.started <= 4, "{self:?}");
        let mut ended: Vec<_> = self.ended.iter().map(|(attempt, _)| *attempt).collect();
        ended.sort_unstable();
        assert!(ended.into_iter().eq(0..u8::try_from(self.started).unwrap()), "{self:?}");
        assert!(self.decided <= 1, "{self:?}");
        assert_eq!(self.ended(End::Won), self.decided, "{self:?}");
        match self.over[..] {
            [Decision::Accepted(_)] => assert_eq!(self.decided, 1, "{self:?}"),
            [Decision::Exhausted(_)] => {
                let failed = self.ended(End::Failed) + self.ended(End::Panicked);
                assert_eq!(failed, self.started, "{self:?}");
            }
            [Decision::Aborted] => assert_eq!(self.ended(End::Panicked), 1, "{self:?}"),
            [Decision::Cancelled] => {}
            _ => panic!("the call is over once: {self:?}"),
        }
    }

    /// Whether a panic reached the caller.
    pub(crate) fn panicked(&self) -> bool {
        match self.over[..] {
            [Decision::Aborted] => true,
            [Decision::Exhausted(attempt)] => self.ended.contains(&(attempt, End::Panicked)),
            _ => false,
        }
    }
}

/// Keeps a tally of each call.
#[derive(Default)]
pub(crate) struct Ledger(pub(crate) Mutex<HashMap<u64, Tally>>);

impl Observer for Ledger {
    fn event(&self, event: &Event) {
        lock(&self.0).entry(event.call).or_default().add(event);
    }
}

/// A small generator of numbers that look random.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }

    /// A policy that needs no clock, with one of these ways to get rid of losers.
    pub(crate) fn policy(&mut self, losers: &[Losers]) -> Hedge {
        let delays = [Delay::Immediately, Delay::OnFailure];
        Hedge::default()
            .delay(vec![self.pick(&delays), self.pick(&delays), self.pick(&delays)])
            .max_hedges(u32::try_from(self.below(4)).unwrap())
            .failure_start(self.pick(&[FailureStart::Launch, FailureStart::LaunchWhenIdle]))
            .exhausted(self.pick(&[Exhausted::Primary, Exhausted::First, Exhausted::Last]))
            .panics(self.pick(&[Panics::Propagate, Panics::AsFailure]))
            .losers(self.pick(losers))
    }
}

/// Goes up while it lives.
pub(crate) struct Gauge(pub(crate) Arc<AtomicI64>);

impl Gauge {
    pub(crate) fn up(gauge: &Arc<AtomicI64>) -> Self {
        gauge.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(gauge))
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits until nothing counted by the gauge lives any more.
pub(crate) async fn drained(gauge: &AtomicI64) {
    let empty = async {
        while gauge.load(Ordering::SeqCst) != 0 {
            yield_now().await;
        }
    };
    let limit = std::time::Duration::from_secs(30);
    tokio::time::timeout(limit, empty).await.expect("something never ends");
}
