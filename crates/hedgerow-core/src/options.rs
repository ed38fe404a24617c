//! The options of a policy, without the types of the caller.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::budget::Budget;
use crate::delay::{Delay, Schedule};
use crate::event::Observer;
use crate::invalid::InvalidOption;
use crate::latency::Learner;
use crate::quiet::Quiet;
use crate::time::Moment;
use crate::verdict::Pushback;

/// The most hedges that a policy may allow.
pub const MOST_HEDGES: u8 = 10;

/// How many attempts beyond the primary may start: 0 to 10. Zero means no hedging.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MaxHedges(u8);

impl MaxHedges {
    /// # Errors
    ///
    /// More than [`MOST_HEDGES`] is refused: every hedge is another request.
    pub fn new(hedges: u32) -> Result<Self, InvalidOption> {
        match u8::try_from(hedges) {
            Ok(hedges) if hedges <= MOST_HEDGES => Ok(Self(hedges)),
            _ => Err(InvalidOption::new(
                "max_hedges",
                hedges,
                format!("at most {MOST_HEDGES} hedges may start; use 0 to {MOST_HEDGES}"),
            )),
        }
    }

    /// The same as a total that counts the primary (K3): one more than the hedges.
    ///
    /// # Errors
    ///
    /// Zero is refused (K27), and so is a total of more than 11.
    pub fn from_total(attempts: u32) -> Result<Self, InvalidOption> {
        let refused = |remedy| InvalidOption::new("total_attempts", attempts, remedy);
        let Some(hedges) = attempts.checked_sub(1) else {
            return Err(refused("the primary counts too; use 1 for no hedging".to_owned()));
        };
        Self::new(hedges).map_err(|_| refused(format!("use 1 to {}", MOST_HEDGES + 1)))
    }

    /// The number.
    #[inline]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// What a handled failure does while hedges are left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FailureStart {
    /// Each handled failure starts the next attempt at once (T8, M4).
    #[default]
    Launch,
    /// The next attempt starts at once if nothing else runs; else the schedule goes on (K8, K9).
    LaunchWhenIdle,
    /// A failure starts nothing: only the delay does.
    Wait,
}

/// Which failure is returned when every attempt has failed.
///
/// Of work that must not run twice it is always that of the attempt that did run, if one did: a
/// rejection would say that nothing has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Exhausted {
    /// The primary's (T10).
    #[default]
    Primary,
    /// The one that completed first (K10).
    First,
    /// The one that completed last (M8).
    Last,
}

/// What happens to attempts that still run when the call is decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Losers {
    /// They are dropped before the result is returned. Threads, which cannot be, are told to stop
    /// and let go.
    #[default]
    Drop,
    /// They are told to stop and waited for, at most for `grace` (`None`: as long as it takes). Work
    /// that does not look at its token is not stopped by it: without a grace the call then lasts as
    /// long as its slowest attempt.
    Join {
        /// How long to wait for them after the decision.
        grace: Option<Duration>,
    },
    /// They run on in the background and their outcomes are discarded (M7). Needs attempts that
    /// are tasks or threads of their own.
    Detach,
}

/// What a hedge that was rejected before it started means for the call (D32).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RejectedHedge {
    /// No further hedge starts; running attempts go on. The rejection never decides while another
    /// attempt runs.
    #[default]
    Stop,
    /// The predicate judges it like any other outcome, so that an unhandled rejection ends the
    /// call.
    Decide,
    /// It is a handled failure: the next attempt may start.
    Hedge,
}

/// What a panic of an attempt means for the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Panics {
    /// It reaches the caller, after all other attempts are dropped. A loser's panic after the
    /// decision is discarded like any other outcome.
    #[default]
    Propagate,
    /// It is a handled failure: another attempt may answer. If none does and the panic is the
    /// failure to return, it reaches the caller then.
    AsFailure,
}

/// Every option of a policy that needs no type of the caller.
///
/// Plain data, valid by construction. `Hedge` of the `hedgerow` crate is this with setters; the
/// simulator and the engine take it as it is.
#[derive(Clone)]
pub struct Policy {
    /// When the next attempt is due.
    pub schedule: Schedule,
    /// How many attempts beyond the primary may start.
    pub max_hedges: MaxHedges,
    /// What a handled failure does while hedges are left.
    pub failure_start: FailureStart,
    /// Which failure is returned when every attempt has failed.
    pub exhausted: Exhausted,
    /// What happens to attempts that still run at the decision.
    pub losers: Losers,
    /// What a rejected hedge means.
    pub rejected_hedge: RejectedHedge,
    /// Whether the default predicate handles rejections.
    pub hedge_rejections: bool,
    /// What a panic of an attempt means.
    pub panics: Panics,
    /// What learns the delay; it takes the place of `schedule`.
    pub learner: Option<Arc<Learner>>,
    /// What bounds the extra load; `None` is no bound.
    pub budget: Option<Arc<dyn Budget>>,
    /// Whether completed calls pay into the budget; not if whoever runs them does.
    pub pays: bool,
    /// Where later calls read that a target asked for quiet; `None`: a pushback counts for its own
    /// call alone.
    pub quiet: Option<Arc<Quiet>>,
    /// Whether to decide and count everything and to start no hedge.
    pub dry_run: bool,
    /// Who is told of every event.
    pub observer: Option<Arc<dyn Observer>>,
}

impl Policy {
    /// The delay before hedge number `hedge` (1 is the first) of a call with this draw.
    pub fn delay(&self, hedge: u8, draw: u64) -> Delay {
        match &self.learner {
            None => self.schedule.delay(hedge),
            Some(learner) => {
                // Why a call has no delay is counted once, whatever may follow its first hedge.
                let delay = if hedge > 1 { learner.planned(draw) } else { learner.delay(draw).1 };
                delay.map_or(Delay::OnFailure, Delay::After)
            }
        }
    }

    /// The chances of one call: see [`Terms::draw`](crate::Terms::draw).
    pub fn draw(&self) -> u64 {
        self.learner.as_ref().map_or(0, |learner| learner.draw())
    }

    /// Counts a completed call towards the budget. [`Call`](crate::Call) does this by itself; a
    /// front that returns without making one must do it.
    #[inline]
    pub fn completed(&self) {
        if let Some(budget) = &self.budget
            && self.pays
        {
            budget.deposit();
        }
    }

    /// Tells later calls that a target asked for quiet at this moment of the policy's time.
    /// [`Call`](crate::Call) does this by itself; a front that returns without making one must do
    /// it.
    pub fn pushed_back(&self, pushback: Pushback, now: Moment) {
        if let Some(quiet) = &self.quiet {
            quiet.ask(pushback, now);
        }
    }
}

impl Default for Policy {
    /// One hedge after two seconds, launched early by a failure; the primary's failure is
    /// returned; losers are dropped.
    fn default() -> Self {
        Self {
            schedule: Schedule::Every(Delay::After(Duration::from_secs(2))),
            max_hedges: MaxHedges(1),
            failure_start: FailureStart::default(),
            exhausted: Exhausted::default(),
            losers: Losers::default(),
            rejected_hedge: RejectedHedge::default(),
            hedge_rejections: false,
            panics: Panics::default(),
            learner: None,
            budget: None,
            pays: true,
            quiet: None,
            dry_run: false,
            observer: None,
        }
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("schedule", &self.schedule)
            .field("max_hedges", &self.max_hedges.get())
            .field("failure_start", &self.failure_start)
            .field("exhausted", &self.exhausted)
            .field("losers", &self.losers)
            .field("rejected_hedge", &self.rejected_hedge)
            .field("hedge_rejections", &self.hedge_rejections)
            .field("panics", &self.panics)
            .field("learner", &self.learner)
            .field("budget", &self.budget)
            .field("pays", &self.pays)
            .field("quiet", &self.quiet)
            .field("dry_run", &self.dry_run)
            .field("observed", &self.observer.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h46_counts_out_of_range_are_refused_by_name() {
        let message = |result: Result<MaxHedges, InvalidOption>| result.unwrap_err().to_string();
        assert!(message(MaxHedges::new(11)).starts_with("max_hedges = 11: "));
        assert!(message(MaxHedges::new(u32::MAX)).contains("use 0 to 10"));
        assert!(message(MaxHedges::from_total(0)).starts_with("total_attempts = 0: "));
        assert!(message(MaxHedges::from_total(12)).contains("use 1 to 11"));
    }

    #[test]
    fn zero_hedges_are_legal() {
        assert_eq!(MaxHedges::new(0).map(MaxHedges::get), Ok(0));
        assert_eq!(MaxHedges::from_total(1).map(MaxHedges::get), Ok(0));
        assert_eq!(MaxHedges::from_total(11).map(MaxHedges::get), Ok(10));
    }
}
