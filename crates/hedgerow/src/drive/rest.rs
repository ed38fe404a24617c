//! What a call has beside its primary, while only the primary runs and after.

use std::pin::Pin;
use std::time::{Duration, Instant};

use hedgerow_core::Delay;
use hedgerow_core::latency::{Learner, Record};
use pin_project_lite::pin_project;

use super::Work;
use super::leave::Abandoned;
use super::race::{Race, clock_of};
use super::slots::Primary;
use crate::clock::Timer;
use crate::hedge::Hedge;
use crate::rules::Rules;

pin_project! {
    /// What a call has beside its primary.
    #[project = RestProj]
    pub(super) enum Rest<Fut, R>
    where
        Fut: Work,
        R: Rules<Fut::Value, Fut::Error>,
    {
        // The first hedge is due when it ends.
        Waiting { #[pin] timer: Timer, delay: Duration, draw: u64 },
        // No delay starts a hedge: this is when the primary started.
        Alone { started: Instant },
        // There is something to decide.
        Racing { race: Pin<Box<Race<Fut, R>>> },
        // The race is over.
        Answered { outcome: Option<Result<Fut::Value, Fut::Error>> },
        Nothing,
    }
}

/// The call is dropped while it has more than its primary.
///
/// Empties the rest although it is about to be dropped anyway: with a second place that drops what
/// is in it, the compiler keeps that code out of line, and the fast path drops an absent rest by
/// one comparison.
#[cold]
pub(super) fn abandon<Fut, R>(
    policy: &Hedge,
    rules: &mut R,
    primary: Pin<&mut Primary<Fut>>,
    mut rest: Pin<&mut Rest<Fut, R>>,
) where
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    learn(policy, &rest, Record::Cut);
    if let RestProj::Racing { race } = rest.as_mut().project() {
        race.as_mut().abandon(Abandoned::Dropped, policy, rules, primary);
    }
    rest.set(Rest::Nothing);
}

/// Tells the learner how long the primary ran, if somebody learns and the primary is all there is.
pub(super) fn learn<Fut, R>(policy: &Hedge, rest: &Rest<Fut, R>, record: fn(Duration) -> Record)
where
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    if let Some(learner) = policy.learner() {
        learn_from(policy, learner, rest, record);
    }
}

/// Out of line, so that a call from which nobody learns does not make room for it.
#[inline(never)]
fn learn_from<Fut, R>(
    policy: &Hedge,
    learner: &Learner,
    rest: &Rest<Fut, R>,
    record: fn(Duration) -> Record,
) where
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    let started = match rest {
        Rest::Waiting { timer, delay, .. } => timer.deadline().checked_sub(*delay),
        Rest::Alone { started } => Some(*started),
        _ => None,
    };
    if let Some(started) = started {
        let now = clock_of(policy).now();
        learner.record(record(now.saturating_duration_since(started)));
        policy.tick(learner, now);
    }
}

/// Leaves the fast path: makes the race that would be there had it been made at the start.
#[cold]
pub(super) fn begin_race<Fut, R>(
    policy: &Hedge,
    rest: Pin<&mut Option<Rest<Fut, R>>>,
    asked: Option<Delay>,
) -> Pin<Box<Race<Fut, R>>>
where
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    let now = || clock_of(policy).now();
    match rest.as_pin_mut().map(Rest::project) {
        Some(RestProj::Waiting { timer, delay, draw }) => {
            let started = timer.deadline().checked_sub(*delay);
            let started = started.unwrap_or_else(now);
            Race::resumed(policy, started, Some(Delay::After(*delay)), *draw)
        }
        Some(RestProj::Alone { started }) => {
            Race::resumed(policy, *started, asked, policy.policy().draw())
        }
        _ => Race::resumed(policy, now(), asked, policy.policy().draw()),
    }
}
