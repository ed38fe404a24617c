//! Bounds how many start in a time.

mod quota;
mod waiting;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hedgerow_core::InvalidOption;
use hedgerow_core::text::format_duration;

use super::admit::AdmitRun;
use super::builder::Builder;
use super::context::Context;
use super::error::Rejected;
use super::layer::{Layer, Place};
use super::line::Line;
use super::next::{Next, Strategy};
use super::outcome::{MayReject, Raises};
use quota::{Meter, NEVER, Quota, in_vain};
use waiting::Waiting;

/// Lets so many start in a time, and rejects the rest or makes them wait.
///
/// | option | values | default |
/// |---|---|---|
/// | `permits` | 1 or more, at most one a nanosecond | none |
/// | `period` | more than zero; longer than a century is never | none |
/// | `burst` | 1 or more; must be full again within a century | `permits` |
/// | `max_wait` | a duration; zero rejects at once, [`Duration::MAX`] is without bound | zero |
///
/// Permits come back one by one, each `period / permits` (to the nanosecond, rounded up) after the
/// one before, and `burst` of them can be saved up; at first they all are. So in any time `t` there
/// start at most `burst + permits * t / period`. An execution takes one permit when it starts, and
/// never gives it back, however it ends. Inside a hedge or a retry each attempt takes one.
///
/// **Waiting.** Who waits is served in the order in which waiting began, and takes nothing before
/// it starts: who gives up leaves the permit to the next. Nobody waits for what cannot come in time.
/// Waits are as exact as the timer: where a permit comes back in less than that (tokio's and the
/// ring's milliseconds), a `burst` of 1 lets one waiter through each time the timer does.
///
/// **Errors.** [`Rejected`]: `rate exceeded`, with the time after which there is a permit, if there
/// ever is one and nobody waits for it already; `waited too long` for those whose turn did not come.
///
/// Clones share the permits and the line. The first of them that is used says whose time it is: that
/// of its pipeline. Use a [`ConcurrencyLimiter`](super::ConcurrencyLimiter) where what is scarce is
/// what runs at the same time: a rate does not see that the target has become slow.
///
/// ```
/// use std::time::Duration;
/// use hedgerow::pipeline::{Pipeline, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let limiter = RateLimiter::per(2, Duration::from_secs(3600));
/// let pipeline = Pipeline::builder().rate_limiter(limiter).build().unwrap();
/// for _ in 0..2 {
///     assert_eq!(pipeline.execute(|_| async { Ok::<_, String>(7) }).await, Ok(7));
/// }
/// let third = pipeline.execute(|_| async { Ok::<_, String>(7) }).await.unwrap_err();
/// let rejected = third.rejected().unwrap();
/// assert_eq!(rejected.reason(), "rate exceeded");
/// assert!(rejected.retry_after().unwrap() <= Duration::from_secs(1800));
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RateLimiter {
    quota: Quota,
    max_wait: Duration,
    shared: Arc<Shared>,
    place: Place,
}

/// What clones share.
#[derive(Debug)]
struct Shared {
    /// Made when it is first used: where a limiter is used is known only then.
    meter: OnceLock<Meter>,
    /// Whoever has the one slot asks for the next permit; all others wait behind it.
    line: Line,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self { meter: OnceLock::new(), line: Line::new(1) })
    }
}

impl RateLimiter {
    /// Lets `permits` start in each `period`.
    pub fn per(permits: u32, period: Duration) -> Self {
        let quota = Quota { permits, period, burst: permits };
        let (max_wait, place) = (Duration::ZERO, Place::default());
        Self { quota, max_wait, shared: Shared::new(), place }
    }

    /// How many may start at once, if there was a lull before. Default: as many. To be said
    /// before the limiter is cloned or its control taken: it shares nothing with what has another.
    pub fn burst(mut self, most: u32) -> Self {
        if self.quota.burst != most {
            self.quota.burst = most;
            self.shared = Shared::new();
        }
        self
    }

    /// How long each may wait. Default: zero, which rejects at once.
    pub fn max_wait(mut self, longest: Duration) -> Self {
        self.max_wait = longest;
        self
    }

    /// Shows what this limiter and its clones do, before and after it is built into a pipeline.
    pub fn control(&self) -> RateControl {
        RateControl(Arc::clone(&self.shared))
    }

    /// Goes on with the permits and the line of an earlier limiter, if all settings are the same.
    #[cfg_attr(not(feature = "serde"), expect(dead_code, reason = "for configurations"))]
    pub(crate) fn taking_over(&mut self, earlier: &Self) {
        if (self.quota, self.max_wait) == (earlier.quota, earlier.max_wait) {
            self.shared = Arc::clone(&earlier.shared);
        }
    }

    fn meter(&self) -> &Meter {
        self.shared.meter.get_or_init(|| Meter::new(self.quota, &self.place.time))
    }

    /// There is no permit for `next`, or somebody waits for one. `known` is when there is one.
    #[cold]
    fn wait<N: Next>(&self, next: N, cx: &Context, known: Option<Duration>) -> RateRun<'_, N> {
        let hopeless =
            self.max_wait.is_zero() || known.is_some_and(|wait| in_vain(wait, self.max_wait));
        let place = if hopeless { None } else { self.shared.line.line_up(usize::MAX) };
        match place {
            Some(place) => AdmitRun::ahead(next, cx, Waiting::new(place, self), &self.place.time),
            None => AdmitRun::instead(Err(self.exceeded(cx, known).into())),
        }
    }

    fn exceeded(&self, cx: &Context, known: Option<Duration>) -> Rejected {
        self.place.reject(cx, "rate exceeded", known.filter(|wait| *wait != NEVER))
    }
}

impl Layer for RateLimiter {
    type Raises<I: Raises> = MayReject<I>;

    fn kind(&self) -> &'static str {
        "rate-limiter"
    }

    fn settings(&self) -> String {
        let Quota { permits, period, burst } = self.quota;
        let period = format_duration(period);
        let burst = if burst == permits { String::new() } else { format!(", burst {burst}") };
        let rest = match self.max_wait {
            Duration::ZERO => String::new(),
            Duration::MAX => ", the rest waits".to_owned(),
            longest => format!(", the rest waits for {}", format_duration(longest)),
        };
        format!("{permits} per {period}{burst}{rest}")
    }

    fn check(&self, mistakes: &mut Vec<InvalidOption>) {
        self.quota.check(mistakes);
    }

    fn attach(&mut self, place: Place) {
        self.place = place;
    }
}

impl<'p, N: Next> Strategy<N> for &'p RateLimiter {
    type Run = RateRun<'p, N>;

    const FORKS: bool = N::FORKS;

    #[inline]
    fn run(self, next: N, cx: &Context) -> Self::Run {
        if self.shared.line.free() == 0 {
            return self.wait(next, cx, None); // not before those who wait
        }
        match self.meter().take() {
            Ok(()) => AdmitRun::running(next, cx, ()),
            Err(wait) => self.wait(next, cx, Some(wait)),
        }
    }

    fn attempts(run: &Self::Run) -> u32 {
        run.attempts()
    }
}

/// A run that has its permit, or waits for one.
pub type RateRun<'p, N> = AdmitRun<N, Waiting<'p>>;

/// Shows what a [`RateLimiter`] and its clones do.
#[derive(Debug, Clone)]
pub struct RateControl(Arc<Shared>);

impl RateControl {
    /// How many wait now.
    pub fn queued(&self) -> usize {
        self.0.line.waiting()
    }
}

impl<S> Builder<S> {
    /// Adds a [`RateLimiter`].
    pub fn rate_limiter(self, limiter: RateLimiter) -> Builder<(S, RateLimiter)> {
        self.with(limiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_settings_go_on_with_the_same_permits() {
        let hour = Duration::from_secs(3600);
        let earlier = RateLimiter::per(1, hour).burst(2);
        assert_eq!(earlier.meter().take(), Ok(()));
        for (mut later, permits) in [
            (RateLimiter::per(1, hour).burst(2), 1),
            (RateLimiter::per(1, hour).burst(2).max_wait(hour), 2),
            (RateLimiter::per(1, hour).burst(3), 3),
        ] {
            later.taking_over(&earlier);
            let left = (0..9).take_while(|_| later.meter().take().is_ok()).count();
            assert_eq!(left, permits);
        }
    }
}
