//! What a call has beside its primary, while only the primary runs and after.

use std::pin::Pin;
use std::time::{Duration, Instant};

use hedgerow_core::latency::Record;
use hedgerow_core::{Delay, End};
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
        // The primary has not been polled, or is at its first poll; somebody counts how it ends.
        Counted,
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
    tell(policy, &rest, dropped());
    match rest.as_mut().project() {
        RestProj::Racing { race } => {
            race.as_mut().abandon(Abandoned::Dropped, policy, rules, primary);
        }
        // It ended at its first poll, by a panic.
        RestProj::Counted if primary.is_running() => {
            if let Some(observer) = &policy.policy().observer {
                observer.alone(dropped(), Duration::ZERO);
            }
        }
        _ => {}
    }
    rest.set(Rest::Nothing);
}

/// Tells whoever wants to know how the primary ended, if it is all there was.
pub(super) fn tell<Fut, R>(policy: &Hedge, rest: &Rest<Fut, R>, end: End)
where
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    if policy.is_told() {
        tell_all(policy, rest, end);
    }
}

/// Out of line, so that a call of which nobody is told does not make room for it.
#[inline(never)]
fn tell_all<Fut, R>(policy: &Hedge, rest: &Rest<Fut, R>, end: End)
where
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    let started = match rest {
        Rest::Waiting { timer, delay, .. } => timer.deadline().checked_sub(*delay),
        Rest::Alone { started } => Some(*started),
        _ => None,
    };
    let Some(started) = started else { return };
    let now = clock_of(policy).now();
    let took = now.saturating_duration_since(started);
    if let Some(learner) = policy.learner() {
        let record = if end == End::Won { Record::Finished } else { Record::Cut };
        learner.record(record(took));
        policy.tick(learner, now);
    }
    if let Some(observer) = &policy.policy().observer {
        observer.alone(end, took);
    }
}

/// Tells whoever wants to know that the primary answered at its first poll.
#[inline(never)]
pub(super) fn tell_at_once<Fut, R>(policy: &Hedge, mut rest: Pin<&mut Option<Rest<Fut, R>>>)
where
    Fut: Work,
    R: Rules<Fut::Value, Fut::Error>,
{
    if let Some(learner) = policy.learner() {
        learner.record(Record::Finished(Duration::ZERO));
    }
    if let Some(observer) = &policy.policy().observer {
        rest.set(None);
        observer.alone(End::Won, Duration::ZERO);
    }
}

/// How a primary ends that is dropped. Whoever drops a call while its thread unwinds does so, as far
/// as one can tell, because that primary panicked.
fn dropped() -> End {
    if std::thread::panicking() { End::Panicked } else { End::Cancelled }
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
