//! How many permits there are, and when.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use governor::clock::Clock as _;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use hedgerow_core::InvalidOption;
use hedgerow_core::text::format_duration;

use crate::clock::Time;

/// A permit that never comes.
pub(super) const NEVER: Duration = Duration::MAX;

/// Whether a permit that comes after `wait` is no use to who has so much time left.
pub(super) fn in_vain(wait: Duration, left: Duration) -> bool {
    wait == NEVER || wait > left
}

/// The longest that is told from never, in nanoseconds: a century.
const CENTURY: u64 = 100 * 365 * 86_400 * 1_000_000_000;

/// Where the time of a meter ends. What is added to it is two centuries at most: that never
/// overflows.
const LAST: u64 = u64::MAX - 2 * CENTURY;

/// So many permits in a time, of which so many can be saved up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quota {
    pub(super) permits: u32,
    pub(super) period: Duration,
    pub(super) burst: u32,
}

impl Quota {
    pub(super) fn check(&self, mistakes: &mut Vec<InvalidOption>) {
        let Self { permits, period, burst } = *self;
        let mut mistake = |option, value, remedy: &str| {
            mistakes.push(InvalidOption::new(option, value, remedy));
        };
        if permits == 0 {
            let remedy = "nothing could ever start; give it at least 1, or leave the limiter out";
            mistake("permits", permits.to_string(), remedy);
        }
        if period.is_zero() {
            let remedy = "nothing is bounded; give it a time, or leave the limiter out";
            mistake("period", "0s".to_owned(), remedy);
        } else if u128::from(permits) > period.as_nanos() {
            let remedy = format!(
                "more than one a nanosecond, as period = {}, is no limit; make the period longer, \
                 or leave the limiter out",
                format_duration(period)
            );
            mistake("permits", permits.to_string(), &remedy);
        }
        if burst == 0 && permits != 0 {
            let remedy = "nothing could ever start; it is 1 or more";
            mistake("burst", burst.to_string(), remedy);
        }
        if let Some(interval) = self.interval()
            && interval.checked_mul(burst.into()).is_none_or(|full| full > CENTURY)
        {
            let remedy = format!(
                "at one permit in {} it takes more than a century to be full again; make it smaller",
                format_duration(Duration::from_nanos(interval))
            );
            mistake("burst", burst.to_string(), &remedy);
        }
    }

    /// How many there are at most.
    fn most(&self) -> NonZeroU32 {
        NonZeroU32::new(self.burst).unwrap_or(NonZeroU32::MIN)
    }

    /// How far apart permits come back, in nanoseconds; `None` if none does.
    fn interval(&self) -> Option<u64> {
        let each = self.period.as_nanos().div_ceil(u128::from(self.permits.max(1))).max(1);
        u64::try_from(each).ok().filter(|each| *each <= CENTURY)
    }
}

/// Hands out permits.
pub(super) struct Meter {
    quota: Quota,
    governor: governor::RateLimiter<NotKeyed, InMemoryState, Elapsed, NoOpMiddleware<Nanos>>,
    clock: Elapsed,
    /// Goes on where the numbers of this one end.
    next: OnceLock<Box<Meter>>,
}

impl Meter {
    /// All permits are there, and time is taken from here.
    pub(super) fn new(quota: Quota, time: &Time) -> Self {
        let interval = quota.interval();
        let clock =
            Elapsed { start: time.clock().now(), time: time.clone(), stands: interval.is_none() };
        let burst = quota.most();
        // Where no permit comes back, time stands: any interval will do.
        let interval = Duration::from_nanos(interval.unwrap_or(1));
        let governed = governor::Quota::with_period(interval);
        let governed = governed.expect("no interval is zero").allow_burst(burst);
        let governor = governor::RateLimiter::direct_with_clock(governed, clock.clone());
        Self { governor, clock, quota, next: OnceLock::new() }
    }

    /// Takes a permit, or says how long it takes until there is one.
    pub(super) fn take(&self) -> Result<(), Duration> {
        let Err(until) = self.governor.check() else { return Ok(()) };
        let now = self.clock.now();
        match now.as_u64() {
            _ if self.clock.stands => Err(NEVER),
            LAST => self.later().take(),
            _ => Err(until.wait_time_from(now)),
        }
    }

    /// Centuries later: no permit is there, and time is taken from here.
    #[cold]
    fn later(&self) -> &Self {
        self.next.get_or_init(|| {
            let next = Self::new(self.quota, &self.clock.time);
            let all = next.governor.check_n(next.quota.most());
            debug_assert!(matches!(all, Ok(Ok(()))), "all permits were there");
            Box::new(next)
        })
    }

    /// Whose time it is.
    pub(super) fn time(&self) -> &Time {
        &self.clock.time
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter").field("clock", &self.clock).finish_non_exhaustive()
    }
}

/// The time since a limiter began.
#[derive(Debug, Clone)]
struct Elapsed {
    time: Time,
    start: Instant,
    stands: bool,
}

impl governor::clock::Clock for Elapsed {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        if self.stands {
            return Nanos::new(0);
        }
        let elapsed = self.time.clock().now().saturating_duration_since(self.start);
        Nanos::new(u64::try_from(elapsed.as_nanos()).unwrap_or(LAST).min(LAST))
    }
}
