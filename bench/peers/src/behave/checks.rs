//! The checks, one per column.

use std::panic::AssertUnwindSafe;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use counts::operation::HedgeWins;
use futures_util::FutureExt;
use tokio::time::{self, sleep, timeout};

use super::trial::{DELAY, shown, trial};
use crate::contender::{Call, Contender};
use crate::machine;

/// Heads of the columns, in the order of [`run`].
pub(super) const ALL: [&str; 9] = [
    "primary slow, hedge wins",
    "caller gone at 40 ms, two attempts live",
    "primary fails at once, hedge would win",
    "all fail at once",
    "hedge fails, primary would win at 80 ms",
    "primary fails at 30 ms, hedge would win at 50 ms",
    "hedge panics, primary would win at 60 ms",
    "waker changed after the first poll",
    "tokio's time paused, delay 1 s",
];

/// The cells of `C`.
pub(super) fn run<C: Contender>() -> [String; 9] {
    let runtime = machine::current_thread();
    [
        runtime.block_on(hedge_wins::<C>()),
        runtime.block_on(caller_gone::<C>()),
        runtime.block_on(primary_fails_at_once::<C>()),
        runtime.block_on(all_fail::<C>()),
        runtime.block_on(hedge_fails::<C>()),
        runtime.block_on(primary_fails_later::<C>()),
        runtime.block_on(hedge_panics::<C>()),
        runtime.block_on(waker_changed::<C>()),
        machine::paused().block_on(time_paused::<C>()),
    ]
}

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

async fn hedge_wins<C: Contender>() -> String {
    let trial = trial::<C, _>(|number| async move {
        sleep(if number == 0 { ms(300) } else { ms(5) }).await;
        Ok(number)
    });
    trial.observe().await.to_string()
}

async fn caller_gone<C: Contender>() -> String {
    let trial = trial::<C, _>(|number| async move {
        sleep(ms(500)).await;
        Ok(number)
    });
    let call = async {
        match timeout(2 * DELAY, trial.contender.call(0)).await {
            Ok(outcome) => shown(&outcome),
            Err(_) => "gone".to_owned(),
        }
    };
    trial.observe_as(call).await.to_string()
}

async fn primary_fails_at_once<C: Contender>() -> String {
    let trial =
        trial::<C, _>(|number| async move { if number == 0 { Err(number) } else { Ok(number) } });
    trial.observe().await.to_string()
}

async fn all_fail<C: Contender>() -> String {
    let trial = trial::<C, _>(|number| async move { Err(number) });
    trial.observe().await.to_string()
}

async fn hedge_fails<C: Contender>() -> String {
    let trial = trial::<C, _>(|number| async move {
        if number > 0 {
            return Err(number);
        }
        sleep(ms(80)).await;
        Ok(number)
    });
    trial.observe().await.to_string()
}

async fn primary_fails_later<C: Contender>() -> String {
    let trial = trial::<C, _>(|number| async move {
        sleep(ms(30)).await;
        if number == 0 { Err(number) } else { Ok(number) }
    });
    trial.observe().await.to_string()
}

async fn hedge_panics<C: Contender>() -> String {
    let trial = trial::<C, _>(|number| async move {
        assert_eq!(number, 0, "the hedge's part is to panic");
        sleep(ms(60)).await;
        Ok(number)
    });
    let call = async {
        match AssertUnwindSafe(trial.contender.call(0)).catch_unwind().await {
            Ok(outcome) => shown(&outcome),
            Err(_) => "panic".to_owned(),
        }
    };
    trial.observe_as(call).await.to_string()
}

/// Polled once by a waker that does nothing, then awaited, as by a task that took it over: done at
/// the delay if the hedge's timer wakes the later waker.
async fn waker_changed<C: Contender>() -> String {
    let trial = trial::<C, _>(|number| async move {
        if number == 0 {
            sleep(ms(800)).await;
        }
        Ok(number)
    });
    let call = async {
        let mut call = Box::pin(trial.contender.call(0));
        let first = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(first.is_pending(), "nothing answers at the first poll");
        match timeout(ms(300), call).await {
            Ok(outcome) => shown(&outcome),
            Err(_) => "nothing".to_owned(),
        }
    };
    trial.observe_as(call).await.to_string()
}

/// A delay of one second passes at once if the contender's clock is tokio's.
async fn time_paused<C: Contender>() -> String {
    let contender = C::build(HedgeWins::new(1), ms(1000));
    let (wall, paused) = (Instant::now(), time::Instant::now());
    let outcome = match timeout(ms(30_000), contender.call(0)).await {
        Ok(outcome) => shown(&outcome),
        Err(_) => "nothing".to_owned(),
    };
    format!("{outcome} {} ms, wall {} ms", paused.elapsed().as_millis(), wall.elapsed().as_millis())
}
