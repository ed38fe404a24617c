//! Lets nothing through while too much of what went through has failed.

mod control;
mod run;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::InvalidOption;
use hedgerow_core::breaker::{Breaker, BreakerSettings, FailureRatio, OpenFor};
use hedgerow_core::text::format_duration;

use super::builder::Builder;
use super::classify::{HandleBy, Inherit, Own, PipelineResult};
use super::layer::{Layer, Place};
use super::outcome::{MayReject, Raises};
use control::Shared;

pub use control::BreakerControl;
pub use run::BreakerRun;

/// Lets nothing through while too much of what went through has failed, so that a target in trouble
/// is left alone, and callers know at once.
///
/// | option | values | default |
/// |---|---|---|
/// | `failure_ratio` | opens when this share of the calls in the window failed: above 0, at most 1 | 0.1; none for [`consecutive`](CircuitBreaker::consecutive) |
/// | `min_throughput` | how many calls the window must have seen for that: 1 to 100,000 | 100 |
/// | `window` | how long a call counts; what leaves the window does so a tenth at a time | 30 s |
/// | `consecutive` | opens after so many failures one after the other | none |
/// | `open_for` | how long it stays open; [`open_for_with`](CircuitBreaker::open_for_with) by how often it has opened in a row | 5 s |
/// | `probes` | how many calls go through after that; all must succeed | 1 |
/// | `probe_lease` | how long one of them may take | 30 s |
///
/// While it is open, what is inside is not asked at all: the execution is
/// [`Rejected`](super::Rejected), with the time after which it is worth another try. After that it is
/// half-open: `probes` calls go through; when all of them have succeeded it closes, with nothing
/// counted; when one fails it opens anew.
///
/// A handled outcome is a failure: by [`handle`](CircuitBreaker::handle) or
/// [`classify`](CircuitBreaker::classify), or as the [execution](super::Execution::handle) says, or by
/// the [defaults](super::Classify). So is a panic. Work that never started, that its caller gave up
/// or that lost a race counts neither way, and gives a probe's place back. Results that come from
/// before the breaker last changed its state count nowhere. A probe that is still running after its
/// lease makes room for another, and its result does not count: no breaker refuses calls for ever.
///
/// Around a hedge it counts each execution once; inside it counts each attempt, of which losers do
/// not count. Clones share the state, also those that are added to other pipelines; a breaker that is
/// to be looked at or switched by hand is [controlled](CircuitBreaker::control) from outside.
///
/// While it is closed an execution costs a clock read (none if only `consecutive` is set) and two
/// counts, and locks nothing. [On the ring](Builder::ring_timer), with a window of a second or more,
/// the time of the system's latest tick will do for what goes well: some milliseconds ago at most,
/// for a tenth of the price.
///
/// ```
/// use hedgerow::pipeline::{CircuitBreaker, Pipeline, PipelineError};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let pipeline =
///     Pipeline::builder().circuit_breaker(CircuitBreaker::consecutive(2)).build().unwrap();
/// for _ in 0..2 {
///     let failed = pipeline.execute(async |_| Err::<u32, _>("down")).await;
///     assert_eq!(failed, Err(PipelineError::Failed("down")));
/// }
/// let refused = pipeline.execute(async |_| Ok::<_, &str>(42)).await;
/// assert!(matches!(refused, Err(PipelineError::Rejected(_))));
/// # }
/// ```
#[derive(Clone)]
pub struct CircuitBreaker<P = Inherit> {
    settings: BreakerSettings,
    predicate: P,
    shared: Arc<Shared>,
    place: Place,
}

impl Default for CircuitBreaker {
    /// Opens for 5 s when a tenth of at least 100 calls in 30 s failed.
    fn default() -> Self {
        Self::with(BreakerSettings::default())
    }
}

impl CircuitBreaker {
    fn with(settings: BreakerSettings) -> Self {
        let (shared, place) = (Arc::default(), Place::default());
        Self { settings, predicate: Inherit, shared, place }
    }

    /// Opens after so many failures one after the other, and for no other reason unless it is given
    /// a [`failure_ratio`](CircuitBreaker::failure_ratio), too.
    pub fn consecutive(failures: u32) -> Self {
        let in_a_row = Some(failures);
        Self::with(BreakerSettings { ratio: None, in_a_row, ..BreakerSettings::default() })
    }
}

impl<P> CircuitBreaker<P> {
    /// Opens when this share of the calls in the window failed.
    pub fn failure_ratio(mut self, ratio: f64) -> Self {
        self.settings.ratio = Some(FailureRatio(ratio));
        self
    }

    /// How many calls the window must have seen before the ratio counts.
    pub fn min_throughput(mut self, calls: u32) -> Self {
        self.settings.min_throughput = calls;
        self
    }

    /// How long a call counts towards the ratio.
    pub fn window(mut self, window: Duration) -> Self {
        self.settings.window = window;
        self
    }

    /// Opens, too, after so many failures one after the other.
    pub fn or_consecutive(mut self, failures: u32) -> Self {
        self.settings.in_a_row = Some(failures);
        self
    }

    /// How long it stays open. [`Duration::MAX`] is until it is [reset](BreakerControl::reset).
    pub fn open_for(mut self, duration: Duration) -> Self {
        self.settings.open_for = OpenFor::Always(duration);
        self
    }

    /// How long it stays open, by how often it has opened since it was last closed: 1 is the first
    /// time.
    ///
    /// The closure may look at the breaker and switch it by [`control`](CircuitBreaker::control): what
    /// is done by hand holds. It may be asked by two executions that fail at the same time, of which
    /// one opens the breaker. If it panics the caller has the panic, and the breaker stays as it is.
    pub fn open_for_with(
        mut self,
        duration: impl Fn(u32) -> Duration + Send + Sync + 'static,
    ) -> Self {
        self.settings.open_for = OpenFor::By(Arc::new(duration));
        self
    }

    /// How many calls go through while it is half-open; all of them must succeed.
    pub fn probes(mut self, probes: u32) -> Self {
        self.settings.probes = probes;
        self
    }

    /// How long such a call may take; after that it makes room for another.
    pub fn probe_lease(mut self, lease: Duration) -> Self {
        self.settings.probe_lease = lease;
        self
    }

    /// Which outcomes are failures, whatever the execution says.
    pub fn handle<T, E, H>(self, handle: H) -> CircuitBreaker<HandleBy<H>>
    where
        H: Fn(&PipelineResult<T, E>) -> bool,
    {
        self.predicate(HandleBy(handle))
    }

    /// What outcomes mean, whatever the execution says.
    pub fn classify<C>(self, classifier: C) -> CircuitBreaker<Own<C>> {
        self.predicate(Own(classifier))
    }

    fn predicate<Q>(self, predicate: Q) -> CircuitBreaker<Q> {
        let Self { settings, predicate: _, shared, place } = self;
        CircuitBreaker { settings, predicate, shared, place }
    }

    /// Looks at the breaker and switches it by hand, also while executions run through it.
    pub fn control(&self) -> BreakerControl {
        BreakerControl::new(Arc::clone(&self.shared))
    }

    /// Goes on with the state of an earlier one, if it is set alike.
    #[cfg_attr(not(feature = "serde"), expect(dead_code, reason = "for configurations"))]
    pub(crate) fn taking_over(&mut self, earlier: &Self) {
        if self.settings == earlier.settings {
            self.shared = Arc::clone(&earlier.shared);
        }
    }

    fn breaker(&self) -> &Breaker {
        self.shared.breaker.get_or_make(&self.settings)
    }
}

impl<P: fmt::Debug> Layer for CircuitBreaker<P> {
    type Raises<I: Raises> = MayReject<I>;

    fn kind(&self) -> &'static str {
        "circuit-breaker"
    }

    fn settings(&self) -> String {
        let BreakerSettings { ratio, min_throughput, window, in_a_row, open_for, .. } =
            &self.settings;
        let ratio = ratio.map(|FailureRatio(ratio)| {
            let window = format_duration(*window);
            format!("{} % of at least {min_throughput} in {window}", ratio * 100.0)
        });
        let row = in_a_row.map(|failures| format!("{failures} in a row"));
        let when: Vec<_> = ratio.into_iter().chain(row).collect();
        let open = match open_for {
            OpenFor::Always(duration) => format!("open for {}", format_duration(*duration)),
            OpenFor::By(_) => "open as long as it says".to_owned(),
        };
        format!("{}, {open}", when.join(" or "))
    }

    fn check(&self, mistakes: &mut Vec<InvalidOption>) {
        self.settings.check(mistakes);
    }

    /// The state is made here, unless the breaker is in another pipeline already (T48).
    fn attach(&mut self, place: Place) {
        self.breaker();
        self.shared.attach(&place);
        self.place = place;
    }
}

impl<P: fmt::Debug> fmt::Debug for CircuitBreaker<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker")
            .field("settings", &self.settings)
            .field("predicate", &self.predicate)
            .field("state", &self.control().state())
            .finish_non_exhaustive()
    }
}

impl<S> Builder<S> {
    /// Adds a [`CircuitBreaker`].
    pub fn circuit_breaker<P>(self, breaker: CircuitBreaker<P>) -> Builder<(S, CircuitBreaker<P>)>
    where
        CircuitBreaker<P>: Layer,
    {
        self.with(breaker)
    }
}
