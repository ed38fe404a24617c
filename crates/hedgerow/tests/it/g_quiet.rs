//! G5, G6: a target asks for quiet, and later calls of the policy keep it.

use std::sync::Arc;
use std::time::Duration;

use hedgerow::latency::Learning;
use hedgerow::{Delay, Gate, Hedge, ManualClock, Moment, Policy, Pushback, Quiet, Schedule};
use hedgerow_core::{Call, Step, Terms, Verdict};
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::time::sleep;

use crate::g_pushback::asks;
use crate::support::{Answer, Events, Notes, err, ms, never, ok, work};

/// A call whose primary answers after 100 ms, or fails at once: what was told of its hedge.
async fn hedged(hedge: &Hedge, fails: bool) -> String {
    let (notes, events) = (Notes::new(), Events::default());
    let hedge = hedge.clone().observer(events.observer());
    let primary = if fails { err(0, "p") } else { ok(100, "a") };
    let _ = hedge.call(work(&notes, [primary, ok(0, "b")])).pushback(asks).await;
    let lines = events.text().into_iter();
    let mut of_hedge = lines.filter(|line| line.starts_with("hedge") || line.starts_with("denied"));
    of_hedge.next().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn g05_later_calls_keep_quiet_and_then_hedge_again() {
    let hedge = Hedge::after(ms(10)).quiet_after_pushback(true);
    let copy = hedge.clone();
    assert_eq!(hedged(&hedge, false).await, "hedge(1,delay)@10");
    let notes = Notes::new();
    let answer = hedge.call(work(&notes, [ok(5, "wait 500")])).pushback(asks).await;
    assert_eq!(answer, Ok("wait 500"), "it asks with an answer, off the race");
    // Quiet until 505.
    assert_eq!(hedged(&hedge, false).await, "denied(1,pushback)@10");
    assert_eq!(hedged(&copy, true).await, "denied(1,pushback)@0");
    assert_eq!(notes.at(), 105);
    sleep(ms(389)).await;
    assert_eq!(hedged(&copy, true).await, "denied(1,pushback)@0", "at 494");
    assert_eq!(hedged(&hedge, false).await, "denied(1,pushback)@10", "at 504");
    assert_eq!(hedged(&hedge, true).await, "hedge(1,failure)@0", "over");
    assert_eq!(hedged(&copy, false).await, "hedge(1,delay)@10");
}

/// Its time counts from before the policy's quiet was first asked for.
#[tokio::test(start_paused = true)]
async fn g05_a_call_that_is_older_than_all_quiet_asks_for_no_more() {
    let hedge = Hedge::after(ms(900)).quiet_after_pushback(true);
    let notes = Notes::new();
    let old = async { hedge.call(work(&notes, [err(500, "wait 100")])).pushback(asks).await };
    let young = async {
        sleep(ms(450)).await;
        let call = hedge.call(work(&notes, [ok(0, "wait 1")])).pushback(asks);
        assert_eq!(call.await, Ok("wait 1"));
        sleep(ms(149)).await;
        assert_eq!(hedged(&hedge, true).await, "denied(1,pushback)@0", "at 599");
        sleep(ms(1)).await;
        assert_eq!(hedged(&hedge, true).await, "hedge(1,failure)@0", "at 600");
    };
    let _ = tokio::time::timeout(ms(600), async { tokio::join!(old, young) }).await;
    assert_eq!(notes.at(), 600);
    assert_eq!(notes.count("A1 starts"), 1, "of the young one's test alone");
}

#[tokio::test(start_paused = true)]
async fn g05_its_end_is_not_part_of_the_quiet() {
    let hedge = Hedge::after(ms(10)).quiet_after_pushback(true);
    let notes = Notes::new();
    let call = hedge.call(work(&notes, [ok(0, "wait 60")])).pushback(asks);
    assert_eq!(call.await, Ok("wait 60"), "asked at the first poll");
    sleep(ms(50)).await;
    assert_eq!(hedged(&hedge, false).await, "hedge(1,delay)@10", "due at 60");
}

/// Whoever pushes back: a primary on the fast path, one that failed, a hedge, a winner.
#[tokio::test(start_paused = true)]
async fn g05_any_attempt_may_ask_for_it() {
    for script in [
        [ok(0, "stop"), never()],
        [ok(5, "stop"), never()],
        [err(0, "stop"), never()],
        [err(5, "stop"), never()],
        [never(), ok(5, "stop")],
        [ok(90, "a"), err(5, "stop")],
    ] {
        for watched in [false, true] {
            let hedge = Hedge::after(ms(10)).quiet_after_pushback(true);
            let notes = Notes::new();
            let call = hedge.call(work(&notes, script)).pushback(asks);
            if watched {
                call.settle().await;
            } else {
                let _ = call.await;
            }
            assert_eq!(hedged(&hedge, true).await, "denied(1,pushback)@0");
            sleep(Quiet::AFTER_STOP).await;
            assert_eq!(hedged(&hedge, true).await, "hedge(1,failure)@0");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g05_without_the_option_a_pushback_counts_for_its_own_call() {
    let hedge = Hedge::after(ms(10));
    let notes = Notes::new();
    let _ = hedge.call(work(&notes, [err(5, "stop")])).pushback(asks).await;
    assert_eq!(hedged(&hedge, true).await, "hedge(1,failure)@0");
}

#[test]
fn g05_who_keeps_quiet() {
    let remembers = |hedge: &Hedge| hedge.policy().quiet.is_some();
    assert!(!remembers(&Hedge::default()));
    assert!(remembers(&Hedge::adaptive()));
    assert!(remembers(&Hedge::after(ms(1)).learning(Learning::default())));
    let deaf = Hedge::adaptive().quiet_after_pushback(false);
    assert!(!remembers(&deaf));
    assert!(!remembers(&deaf.max_extra_load(0.01)), "what was said stands");
    let hedge = Hedge::adaptive();
    let same = hedge.clone().max_extra_load(0.01).max_hedges(2);
    let quiet = |hedge: &Hedge| hedge.policy().quiet.clone().unwrap();
    assert!(Arc::ptr_eq(&quiet(&hedge), &quiet(&same)), "clones share it");
}

/// The race begins when the call is first polled, however long ago it was made.
#[tokio::test(start_paused = true)]
async fn g05_time_counts_from_the_first_poll() {
    let hedge = Hedge::after(ms(10)).quiet_after_pushback(true);
    let notes = Notes::new();
    let _ = hedge.call(work(&notes, [ok(0, "wait 0")])).pushback(asks).await;
    let late = hedge.call(work(&notes, [err(5, "wait 100")])).pushback(asks).deadline(ms(50));
    let late = late.into_future();
    sleep(ms(1_000)).await;
    assert_eq!(late.await, Err("wait 100"));
    sleep(ms(94)).await;
    assert_eq!(hedged(&hedge, true).await, "denied(1,pushback)@0", "at 1,099");
    sleep(ms(6)).await;
    assert_eq!(hedged(&hedge, true).await, "hedge(1,failure)@0", "at 1,105");
}

#[tokio::test]
async fn g05_on_a_clock_of_its_own() {
    let clock = ManualClock::new();
    let hedge = Hedge::default().delay(Delay::OnFailure).quiet_after_pushback(true);
    let hedge = hedge.clock(Arc::new(clock.clone()));
    let fails = || {
        let mut first = true;
        hedge
            .call(move |_| {
                let answer: Answer = if std::mem::take(&mut first) { Err("p") } else { Ok("b") };
                async move { answer }
            })
            .pushback(asks)
    };
    assert_eq!(fails().await, Ok("b"));
    let notes = Notes::on(&clock);
    let asked = hedge.call(|_| async { Answer::Ok("wait 50") }).pushback(asks).await;
    assert_eq!(asked, Ok("wait 50"));
    clock.advance(ms(49));
    assert_eq!(fails().await, Err("p"));
    clock.advance(ms(1));
    assert_eq!((fails().await, notes.at()), (Ok("b"), 50));
}

/// One call of a mix.
#[derive(Clone, Debug)]
struct Mixed {
    /// After how long it begins, in milliseconds, from the begin of the one before.
    after: u64,
    /// Its primary fails then, or stays pending.
    fails: Option<u64>,
    /// What the primary asks for when it ends, failed or cut short by nobody.
    asks: Option<Pushback>,
    /// Whether that is an answer instead of a failure.
    answers: bool,
}

fn mixed() -> impl Strategy<Value = Mixed> {
    let asks = prop_oneof![
        6 => Just(None),
        1 => Just(Some(Pushback::Stop)),
        2 => (0_u64..300).prop_map(|wait| Some(Pushback::For(ms(wait)))),
    ];
    let fails = prop::option::of(0_u64..60);
    (0_u64..200, fails, asks, any::<bool>()).prop_map(|(after, fails, asks, answers)| Mixed {
        after,
        fails,
        asks,
        answers,
    })
}

/// What the call did: when its hedge started, counted as the policy counts, or which gate refused
/// it at which moment.
type Told = Result<u64, (Gate, u64)>;

/// Plays a call to the start of its hedge, or to its end if there is none. Notes until when its
/// target asked for quiet.
fn play(policy: &Policy, begun: u64, mixed: &Mixed, asked: &mut Vec<u64>) -> Option<Told> {
    let mut call = Call::new(policy, Terms { log: true, ..Terms::default() });
    call.begun_at(Moment::from_millis(begun));
    let mut now = Moment::ZERO;
    loop {
        match call.step(policy, now) {
            Step::AskDelay { hedge } => call.delay(policy.delay(hedge, 0)),
            Step::Start { attempt: 0, .. } => call.started(policy, now),
            Step::Start { .. } => return Some(Ok(begun + millis(now))),
            Step::Release => {}
            Step::Finish(_) => return refused(&call, begun),
            Step::Wait { until } => {
                let ends = mixed.fails.map_or(Moment::NEVER, Moment::from_millis);
                if !call.is_running(0) || until < ends {
                    now = until;
                } else if ends.is_never() {
                    return refused(&call, begun);
                } else {
                    now = ends;
                    let verdict = if mixed.answers { Verdict::ACCEPTED } else { Verdict::HANDLED };
                    let verdict = mixed.asks.map_or(verdict, |asks| verdict.pushed_back(asks));
                    asked.extend(mixed.asks.map(|asks| begun + millis(now) + length(asks)));
                    call.finished(policy, 0, verdict, now);
                }
            }
        }
    }
}

fn refused(call: &Call, begun: u64) -> Option<Told> {
    call.closed().map(|(gate, at)| Err((gate, begun + millis(at))))
}

/// How long it is quiet for others.
fn length(pushback: Pushback) -> u64 {
    match pushback {
        Pushback::Stop => 1_000,
        Pushback::For(wait) => u64::try_from(wait.as_millis()).unwrap(),
    }
}

fn millis(at: Moment) -> u64 {
    at.as_nanos() / 1_000_000
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Calls of two clones, one after the other. Each is played to its end before the next begins to
    /// be played, so that what an earlier one asked for later than a hedge of the next is known to
    /// that hedge, too: the quiet does not tell when it was asked for.
    #[test]
    fn g05_while_it_is_quiet_no_hedge_starts_and_afterwards_they_do(
        calls in vec(mixed(), 1..20), delay in 1_u64..80,
    ) {
        let policy = Policy {
            schedule: Schedule::Every(Delay::After(ms(delay))),
            quiet: Some(Arc::default()),
            ..Policy::default()
        };
        let clones = [policy.clone(), policy.clone()];
        let (mut begun, mut asked) = (0, vec![]);
        for (number, mixed) in calls.iter().enumerate() {
            begun += mixed.after;
            let before: u64 = asked.iter().copied().max().unwrap_or(0);
            let told = play(&clones[number % 2], begun, mixed, &mut asked);
            let until: u64 = asked.iter().copied().max().unwrap_or(0);
            prop_assert_eq!(policy.quiet.as_ref().unwrap().until(), Moment::from_millis(until));
            let fails = mixed.fails.filter(|_| !mixed.answers);
            let (own, due) = match (mixed.fails, fails) {
                // The delay comes first, or the answer before it.
                (Some(at), _) if at > delay => (None, Some(begun + delay)),
                (Some(_), None) => (None, None),
                (Some(at), Some(_)) => (mixed.asks, Some(begun + at)),
                (None, _) => (None, Some(begun + delay)),
            };
            let expected = match (due, own) {
                (None, _) => None,
                (Some(due), Some(Pushback::Stop)) => Some(Err((Gate::Pushback, due))),
                (Some(due), own) => {
                    // It waits for its own quiet; that of others refuses it.
                    let start = due + own.map_or(0, length);
                    Some(if start < before { Err((Gate::Pushback, start)) } else { Ok(start) })
                }
            };
            prop_assert_eq!(told, expected, "call {} of {:?}", number, mixed);
        }
    }
}

#[test]
fn g06_a_stop_is_a_second_and_nothing_is_for_ever() {
    assert_eq!((Quiet::AFTER_STOP, Quiet::LONGEST), (ms(1_000), ms(600_000)));
    let policy = Policy { quiet: Some(Arc::default()), ..Policy::default() };
    let until = || policy.quiet.as_ref().unwrap().until();
    policy.pushed_back(Pushback::Stop, Moment::from_millis(500));
    assert_eq!(until(), Moment::from_millis(1_500));
    policy.pushed_back(Pushback::For(ms(200)), Moment::from_millis(600));
    assert_eq!(until(), Moment::from_millis(1_500), "the later end stands");
    policy.pushed_back(Pushback::For(Duration::MAX), Moment::from_millis(600));
    assert_eq!(until(), Moment::from_millis(600_600));
}
