//! Makes trouble on purpose.

mod trouble;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_core::{InvalidOption, StrategyEventKind};

use super::admit::AdmitRun;
use super::builder::Builder;
use super::context::Context;
use super::layer::{Layer, Place};
use super::next::{Next, Strategy};
use super::outcome::Raises;
pub use trouble::{Behaviour, Delayed, Fault, Latency, Preceding, Replaced, Trouble};

/// Makes trouble on purpose, at a rate: to see what the strategies around it do about that.
///
/// | what | does |
/// |---|---|
/// | [`latency`](Chaos::latency) | waits before the work; [`Duration::MAX`] is for ever |
/// | [`fault`](Chaos::fault) | fails with an error of the work's type; the work does not run |
/// | [`outcome`](Chaos::outcome) | returns a value or an error; the work does not run |
/// | [`behaviour`](Chaos::behaviour) | does something, and waits for it, before the work |
///
/// | option | values | default |
/// |---|---|---|
/// | `rate` | 0 (never) to 1 (always) | 0.001 |
/// | `seed` | a number | random; [`ChaosControl::seed`] tells it |
/// | `enabled` | whether it does anything | yes |
///
/// It goes innermost, as the target is what fails: a hedge or a retry around it sees attempts fail,
/// one by one. Each run draws anew. With a seed the n-th run always fares the same, whatever thread it
/// is on; runs that come while it is off, or whose rate is 0, are not counted and cost nothing.
/// Several of them add up, each with a rate of its own.
///
/// Clones share the count and the switch ([`control`](Chaos::control)). It raises no error of its
/// own. It is for tests and for drills: in a program that serves people leave it out, or off.
///
/// ```
/// use hedgerow::Hedge;
/// use hedgerow::pipeline::{Chaos, Pipeline};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let chaos = Chaos::fault(|| "down").rate(1.0).seed(7);
/// let control = chaos.control();
/// let pipeline = Pipeline::builder().hedge(Hedge::default()).chaos(chaos).build().unwrap();
/// let answer = pipeline.execute(|_| async { Ok::<_, &str>(1) }).await;
/// assert_eq!(answer.unwrap_err().failed(), Some(&"down"));
///
/// control.disable();
/// assert_eq!(pipeline.execute(|_| async { Ok::<_, &str>(1) }).await, Ok(1));
/// # }
/// ```
#[derive(Clone)]
pub struct Chaos<A> {
    trouble: A,
    rate: f64,
    dice: Arc<Dice>,
    place: Place,
}

/// What clones share.
#[derive(Debug)]
struct Dice {
    seed: u64,
    /// How many runs have drawn.
    drawn: AtomicU64,
    enabled: AtomicBool,
}

impl Dice {
    fn new(seed: u64, enabled: bool) -> Arc<Self> {
        Arc::new(Self { seed, drawn: AtomicU64::new(0), enabled: AtomicBool::new(enabled) })
    }

    fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    /// Whether the next run is one of those. The draw of a run depends on the seed and on its place
    /// among the runs alone, so that threads share nothing but the count.
    fn strike(&self, rate: f64) -> bool {
        // Neighbouring seeds would have neighbouring streams.
        const APART: u64 = 0x9e37_79b9_7f4a_7c15;
        let nth = self.drawn.fetch_add(1, Ordering::Relaxed);
        let seed = self.seed.wrapping_add(nth.wrapping_mul(APART));
        fastrand::Rng::with_seed(seed).f64() < rate
    }
}

impl Chaos<Latency> {
    /// Waits for so long before the work.
    pub fn latency(latency: Duration) -> Self {
        Self::of(Latency(latency))
    }
}

impl<F> Chaos<Fault<F>> {
    /// Fails with this instead of the work.
    pub fn fault<E>(error: F) -> Self
    where
        F: Fn() -> E,
    {
        Self::of(Fault(error))
    }
}

impl<F> Chaos<Replaced<F>> {
    /// Returns this instead of the work's own outcome. A value that no predicate handles passes
    /// for a good one.
    pub fn outcome<T, E>(outcome: F) -> Self
    where
        F: Fn() -> Result<T, E>,
    {
        Self::of(Replaced(outcome))
    }
}

impl<F> Chaos<Behaviour<F>> {
    /// Does this, and then the work. A closure that has nothing to wait for returns
    /// [`ready(())`](std::future::ready).
    pub fn behaviour<Fut>(behaviour: F) -> Self
    where
        F: Fn() -> Fut,
        Fut: Future<Output = ()>,
    {
        Self::of(Behaviour(behaviour))
    }
}

impl<A> Chaos<A> {
    fn of(trouble: A) -> Self {
        let dice = Dice::new(fastrand::u64(..), true);
        Self { trouble, rate: 0.001, dice, place: Place::default() }
    }

    /// The share of runs that get into trouble, from 0 to 1. Default: 0.001.
    pub fn rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// Decides what each run gets, from the first: with the same seed the n-th fares the same.
    /// Default: random. To be said before it is cloned or its control taken: it shares nothing with
    /// them then.
    pub fn seed(mut self, seed: u64) -> Self {
        self.dice = Dice::new(seed, self.dice.is_enabled());
        self
    }

    /// Whether it does anything. Default: yes. It is one switch with that of the
    /// [`control`](Self::control), and of all clones.
    pub fn enabled(self, enabled: bool) -> Self {
        self.control().set(enabled);
        self
    }

    /// Switches it while it is used.
    pub fn control(&self) -> ChaosControl {
        ChaosControl(Arc::clone(&self.dice))
    }
}

impl<A: fmt::Debug> Layer for Chaos<A> {
    type Raises<I: Raises> = I;

    fn kind(&self) -> &'static str {
        "chaos"
    }

    fn settings(&self) -> String {
        format!("{:?}, rate {}, seed {}", self.trouble, self.rate, self.dice.seed)
    }

    fn check(&self, mistakes: &mut Vec<InvalidOption>) {
        if !(0.0..=1.0).contains(&self.rate) {
            let remedy = "a share of the runs, from 0 (none) to 1 (all)";
            mistakes.push(InvalidOption::new("rate", self.rate, remedy));
        }
    }

    fn attach(&mut self, place: Place) {
        self.place = place;
    }
}

impl<'p, N: Next, A: Trouble<'p, N>> Strategy<N> for &'p Chaos<A> {
    type Run = ChaosRun<'p, N, A>;

    const FORKS: bool = N::FORKS;

    #[inline]
    fn run(self, next: N, cx: &Context) -> Self::Run {
        if self.rate <= 0.0 || !self.dice.is_enabled() || !self.dice.strike(self.rate) {
            return AdmitRun::running(next, cx, ());
        }
        self.place.tell(cx, StrategyEventKind::Chaos { kind: A::KIND });
        match self.trouble.make(&self.place) {
            ControlFlow::Continue(ahead) => AdmitRun::ahead(next, cx, ahead, &self.place.time),
            ControlFlow::Break(outcome) => AdmitRun::instead(outcome),
        }
    }

    fn attempts(run: &Self::Run) -> u32 {
        run.attempts()
    }
}

/// A run that may get into trouble.
pub type ChaosRun<'p, N, A> = AdmitRun<N, <A as Trouble<'p, N>>::Ahead>;

impl<A: fmt::Debug> fmt::Debug for Chaos<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chaos")
            .field("trouble", &self.trouble)
            .field("rate", &self.rate)
            .field("dice", &self.dice)
            .finish_non_exhaustive()
    }
}

/// Switches a [`Chaos`] and its clones while they are used.
#[derive(Debug, Clone)]
pub struct ChaosControl(Arc<Dice>);

impl ChaosControl {
    fn set(&self, enabled: bool) {
        self.0.enabled.store(enabled, Ordering::Relaxed);
    }

    /// From now on runs get into trouble.
    pub fn enable(&self) {
        self.set(true);
    }

    /// From now on none does. Waits that have begun go on.
    pub fn disable(&self) {
        self.set(false);
    }

    /// Whether runs get into trouble.
    pub fn is_enabled(&self) -> bool {
        self.0.is_enabled()
    }

    /// What decides, to see the same again.
    pub fn seed(&self) -> u64 {
        self.0.seed
    }
}

impl<S> Builder<S> {
    /// Adds a [`Chaos`].
    pub fn chaos<A>(self, chaos: Chaos<A>) -> Builder<(S, Chaos<A>)>
    where
        Chaos<A>: Layer,
    {
        self.with(chaos)
    }
}
