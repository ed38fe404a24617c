//! Pipelines that are ready to use.

use std::sync::Arc;
use std::time::Duration;

use super::breaker::CircuitBreaker;
use super::builder::Builder;
use super::classify::NeverStarted;
use super::concurrency::ConcurrencyLimiter;
use super::hedging::Hedging;
use super::layer::{End, Then};
use super::pipeline::Pipeline;
use super::retry::Retry;
use super::target::PerTarget;
use super::timeout::Timeout;
use crate::hedge::Hedge;

/// What [`Pipeline::standard`] has, the outermost first.
pub type Standard =
    Builder<((((((), ConcurrencyLimiter), Timeout), Retry), CircuitBreaker), Timeout)>;

/// What [`Pipeline::standard_hedging`] has, the outermost first.
pub type StandardHedging =
    Builder<(((((), Timeout), Hedging), Retry<NeverStarted>), PerTarget<Endpoint>)>;

/// What each target of [`Pipeline::standard_hedging`] has, the outermost first.
pub type Endpoint = Then<ConcurrencyLimiter, Then<CircuitBreaker, Then<Timeout, End>>>;

const TOTAL: Duration = Duration::from_secs(30);
const ATTEMPT: Duration = Duration::from_secs(10);
const SLOTS: usize = 1_000;

impl Pipeline<()> {
    /// For calls of one target: what most callers of a service want, to be changed by adding more
    /// inside, or taken as it is.
    ///
    /// | strategy | setting |
    /// |---|---|
    /// | concurrency limiter | 1,000 at the same time, no queue |
    /// | timeout `total` | 30 s |
    /// | retry | 3 times, after 2 s, twice as long each time, half of it by chance |
    /// | circuit breaker | opens for 5 s at a tenth of at least 100 calls in 30 s |
    /// | timeout `attempt` | 10 s |
    ///
    /// ```
    /// use hedgerow::pipeline::Pipeline;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pipeline = Pipeline::standard().name("search").build()?;
    /// assert_eq!(pipeline.execute(async |_| Ok::<_, String>(42)).await, Ok(42));
    /// # Ok(()) }
    /// ```
    pub fn standard() -> Standard {
        Self::builder()
            .with(ConcurrencyLimiter::new(SLOTS))
            .timeout(TOTAL)
            .named("total")
            .retry(Retry::exponential().jitter(0.5))
            .circuit_breaker(CircuitBreaker::default())
            .timeout(ATTEMPT)
            .named("attempt")
    }

    /// For calls that any of several targets can answer: hedges go from one to the next, and each
    /// target has a limiter and a breaker of its own. One that refuses is passed over, as nothing ran
    /// there. Each execution begins at one of them, by chance. The work reads where to go from
    /// [`Attempt::target`](crate::Attempt::target).
    ///
    /// | strategy | setting |
    /// |---|---|
    /// | timeout `total` | 30 s |
    /// | hedge | learns when to hedge, adds at most 5 % load |
    /// | retry `pass-over` | what a target refused goes, at once, to that of the next number; as often as there are others |
    /// | for each target: concurrency limiter | 1,000 at the same time, no queue |
    /// | circuit breaker | opens for 5 s at a tenth of at least 100 calls in 30 s |
    /// | timeout `attempt` | 10 s |
    ///
    /// ```
    /// use hedgerow::pipeline::Pipeline;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # async fn get(host: &str) -> Result<String, String> { Ok(host.to_owned()) }
    /// let hosts = ["eu.example", "us.example"];
    /// let pipeline = Pipeline::standard_hedging(hosts).build()?;
    /// let answer = pipeline.execute(|attempt| get(hosts[attempt.target().unwrap_or(0)])).await;
    /// assert!(answer.is_ok());
    /// # Ok(()) }
    /// ```
    #[expect(clippy::missing_panics_doc, reason = "the settings of an endpoint are possible")]
    pub fn standard_hedging<K: Into<Arc<str>>>(
        targets: impl IntoIterator<Item = K>,
    ) -> StandardHedging {
        let endpoint = |name: Arc<str>| {
            let strategies = Self::builder()
                .name(Arc::clone(&name))
                .with(ConcurrencyLimiter::new(SLOTS))
                .circuit_breaker(CircuitBreaker::default())
                .timeout(ATTEMPT)
                .named("attempt");
            (name, strategies.build().expect("its settings are possible"))
        };
        let targets = targets.into_iter().map(|name| endpoint(name.into()));
        let targets = PerTarget::new(targets).spread();
        Self::builder()
            .timeout(TOTAL)
            .named("total")
            .hedge(Hedge::adaptive())
            .retry(Retry::passing_over(targets.len()))
            .named("pass-over")
            .with(targets)
    }
}
