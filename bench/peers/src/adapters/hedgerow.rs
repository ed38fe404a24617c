//! Hedgerow itself.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use counts::operation::{Operation, Outcome};
use hedgerow::{Budget, Event, ExtraLoad, Hedge, Observer, Properties, RatioBudget};

use crate::contender::{Call, Contender, Kind};

pub(super) struct HedgeCall<O> {
    pub(super) operation: O,
    pub(super) hedge: Hedge,
}

impl<O: Operation> Call for HedgeCall<O> {
    fn call(&self, request: u64) -> impl Future<Output = Outcome> + Send {
        // No async block: it would add its own state to the future.
        self.hedge.call(move |_| self.operation.start(request)).into_future()
    }
}

/// A fixed delay, a policy that is kept, nothing else asked for.
pub struct Plain;

impl Contender for Plain {
    const NAME: &'static str = "hedgerow";
    const KIND: Kind = Kind::Library;
    const OURS: bool = true;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        HedgeCall { operation, hedge: Hedge::after(delay).max_hedges(1) }
    }
}

/// The same by the ring timer.
pub struct OnRing;

impl Contender for OnRing {
    const NAME: &'static str = "hedgerow, ring";
    const KIND: Kind = Kind::Library;
    const OURS: bool = true;
    const REAL_TIME: bool = true;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        HedgeCall { operation, hedge: Hedge::after(delay).max_hedges(1).ring_timer() }
    }
}

/// Tokio's timer, and a budget of 10 %.
pub struct Budgeted;

impl Contender for Budgeted {
    const NAME: &'static str = "hedgerow, 10 % budget";
    const KIND: Kind = Kind::Library;
    const OURS: bool = true;
    const FIXED_DELAY: bool = false;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        HedgeCall { operation, hedge: Hedge::after(delay).max_hedges(1).max_extra_load(0.1) }
    }
}

/// The recommended policy: learns delay and probability for p99 under 5 % extra load.
pub struct Adaptive;

impl Contender for Adaptive {
    const NAME: &'static str = "hedgerow, adaptive";
    const KIND: Kind = Kind::Library;
    const OURS: bool = true;
    const FIXED_DELAY: bool = false;
    const STEADY: bool = true;

    fn build<O: Operation>(operation: O, _delay: Duration) -> impl Call {
        HedgeCall { operation, hedge: Hedge::adaptive() }
    }
}

/// Everything that can be asked for at once, by a caller who uses none of it much.
pub struct EveryOption;

struct EveryOptionCall<O> {
    operation: O,
    hedge: Hedge,
    properties: Properties,
    told: Arc<Told>,
}

/// What hooks and observer were told, counted so that none of it is optimised away.
#[derive(Debug, Default)]
struct Told {
    events: AtomicU64,
    hedges: AtomicU64,
    discarded: AtomicU64,
}

impl Observer for Told {
    fn event(&self, _: &Event) {
        self.events.fetch_add(1, Relaxed);
    }
}

#[derive(Clone)]
struct Tenant(#[expect(dead_code, reason = "only carried along")] u32);

impl<O: Operation> Call for EveryOptionCall<O> {
    fn call(&self, request: u64) -> impl Future<Output = Outcome> + Send {
        self.hedge
            .call(move |_| self.operation.start(request))
            .tokens()
            .properties(&self.properties)
            .deadline(Duration::from_secs(10))
            .handle(Outcome::is_err)
            .on_hedge(|_| {
                self.told.hedges.fetch_add(1, Relaxed);
            })
            .on_discard(|_| {
                self.told.discarded.fetch_add(1, Relaxed);
            })
            .into_future()
    }
}

impl Contender for EveryOption {
    const NAME: &'static str = "hedgerow, every option on";
    const KIND: Kind = Kind::Library;
    const OURS: bool = true;
    const OPEN_LOOP: bool = false;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        let told = Arc::new(Told::default());
        let hedge = Hedge::after(delay)
            .max_hedges(1)
            .budget(ample_budget())
            .observer(Arc::clone(&told) as Arc<dyn Observer>);
        let properties = Properties::new();
        properties.insert(Tenant(7));
        EveryOptionCall { operation, hedge, properties, told }
    }
}

/// A budget that every call pays into and that never refuses: it starts with 100,000 hedges saved
/// up, and each call earns ten.
fn ample_budget() -> Arc<dyn Budget> {
    let ratio = ExtraLoad::new(10.0).expect("the highest ratio");
    let budget = RatioBudget::with_cap(ratio, u32::MAX);
    (0..10_000).for_each(|_| budget.deposit());
    Arc::new(budget)
}
