//! The pipeline itself: order, numbers, contexts, outcomes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use hedgerow::pipeline::{Hedging, Outcome, Pipeline, PipelineError, RestOfPipeline};
use hedgerow::{
    Attempt, CancellationToken, Delay, FailureStart, Hedge, NextAction, NextHedge, Properties,
};
use tokio::time::{Instant, sleep};

use crate::p_told::script;
use crate::support::{Notes, err, lock, ms, never, ok, poll_once, told};

fn hedge(delay: u64, hedges: u32) -> Hedge {
    Hedge::after(ms(delay)).max_hedges(hedges)
}

#[tokio::test(start_paused = true)]
async fn h21_a_total_timeout_outside_cancels_every_attempt() {
    let pipeline = Pipeline::builder().timeout(ms(120)).hedge(hedge(50, 2)).build().unwrap();
    let notes = Notes::new();
    let outcome = pipeline.execute(script(&notes, [never(), never(), never()])).await;
    let Err(PipelineError::TimedOut(timed_out)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(notes.at(), 120);
    assert_eq!((timed_out.strategy(), timed_out.limit()), ("timeout", ms(120)));
    assert_eq!(timed_out.elapsed(), ms(120));
    assert_eq!(
        notes.lines(),
        [
            "A0 starts @0",
            "A1 starts @50",
            "A2 starts @100",
            "A0 dropped @120",
            "A1 dropped @120",
            "A2 dropped @120"
        ]
    );
    sleep(ms(10_000)).await;
    assert_eq!(notes.lines().len(), 6, "nothing starts afterwards");
}

#[tokio::test(start_paused = true)]
async fn h22_an_attempt_timeout_inside_is_a_failure_that_starts_the_next() {
    let pipeline = Pipeline::builder().hedge(hedge(500, 1)).timeout(ms(100)).build().unwrap();
    let notes = Notes::new();
    assert_eq!(pipeline.execute(script(&notes, [never(), ok(30, "b")])).await, Ok("b"));
    assert_eq!(notes.at(), 130);
    assert_eq!(
        notes.lines(),
        ["A0 starts @0", "A0 dropped @100", "A1 starts @100", "A1 ends @130"]
    );
}

#[tokio::test(start_paused = true)]
async fn pr_26_a_timeout_does_not_hide_the_error_of_the_work() {
    let pipeline = Pipeline::builder().timeout(ms(100)).build().unwrap();
    let run = async |does| pipeline.execute(script(&Notes::new(), [does])).await;
    assert_eq!(run(err(99, "fatal")).await, Err(PipelineError::Failed("fatal")));
    assert_eq!(run(err(50, "deadline")).await, Err(PipelineError::Failed("deadline")));
    let late = run(never()).await.unwrap_err();
    assert_eq!(late.to_string(), "timeout: no answer within 100ms (gave up after 100ms)");
    for _ in 0..1_000 {
        assert_eq!(run(ok(100, "a")).await, Ok("a"), "an answer of that very moment wins");
    }
}

#[tokio::test(start_paused = true)]
async fn t45_timeouts_have_names_and_places() {
    let pipeline = Pipeline::builder()
        .timeout(ms(250))
        .named("total")
        .hedge(hedge(40, 1))
        .timeout(ms(100))
        .named("attempt")
        .build()
        .unwrap();
    let outcome = pipeline.execute(script(&Notes::new(), [never(), never()])).await;
    // The failure of the primary is returned; it timed out by itself.
    let timed_out = outcome.unwrap_err();
    assert_eq!(timed_out.timed_out().unwrap().strategy(), "attempt");
    assert_eq!(
        pipeline.to_string(),
        r#"pipeline: timeout "total" (250ms) > hedge (40ms) > timeout "attempt" (100ms) > work"#
    );
}

#[tokio::test(start_paused = true)]
async fn t49_only_what_can_happen_has_to_be_matched() {
    let token = CancellationToken::new();
    let pipeline = Pipeline::builder().timeout(ms(10)).hedge(hedge(5, 1)).build().unwrap();
    let outcome = pipeline.execute(script(&Notes::new(), [never()])).cancel_on(&token).settle();
    let said = match outcome.await {
        Outcome::Success(value) | Outcome::Failed(value) => value.to_owned(),
        Outcome::TimedOut(timed_out) => timed_out.to_string(),
        Outcome::Cancelled(cancelled) => cancelled.to_string(),
    };
    assert_eq!(said, "timeout: no answer within 10ms (gave up after 10ms)");
    let widened: Outcome<&str, &str> =
        pipeline.execute(script(&Notes::new(), [ok(0, "a")])).settle().await.widen();
    assert!(widened.is_success());
    assert_eq!(widened.into_result(), Ok("a"));
}

#[tokio::test(start_paused = true)]
async fn t18_t51_tokens_fire_for_losers_and_for_those_that_a_timeout_gives_up_on() {
    let notes = Notes::new();
    let pipeline = Pipeline::builder().timeout(ms(100)).hedge(hedge(20, 1)).build().unwrap();
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&tokens);
    let work = move |answers: u32| {
        let kept = Arc::clone(&kept);
        move |attempt: Attempt| {
            lock(&kept).push(attempt.token().unwrap());
            async move {
                if attempt.number() != answers {
                    told(&attempt).await;
                    return Err("told");
                }
                sleep(ms(30)).await;
                Ok("a")
            }
        }
    };
    assert_eq!(pipeline.execute(work(1)).tokens().await, Ok("a"));
    assert_eq!(notes.at(), 50);
    let fired = |from| lock(&tokens)[from..].iter().map(CancellationToken::is_cancelled).collect();
    let now: Vec<_> = fired(0);
    assert_eq!(now, [true, false], "T20: the winner's does not fire");
    let outcome = pipeline.execute(work(9)).tokens().await;
    assert!(outcome.unwrap_err().timed_out().is_some());
    let now: Vec<_> = fired(2);
    assert_eq!(now, [true, true], "T51");
}

#[tokio::test(start_paused = true)]
async fn t19_a_cancelled_execution_drops_everything_at_once() {
    let pipeline = Pipeline::builder().timeout(ms(500)).hedge(hedge(20, 2)).build().unwrap();
    let (notes, token) = (Notes::new(), CancellationToken::new());
    let execution = pipeline.execute(script(&notes, [never(), never(), never()]));
    let execution = execution.cancel_on(&token).into_future();
    let cancel = async {
        sleep(ms(30)).await;
        token.cancel();
    };
    let (outcome, ()) = tokio::join!(execution, cancel);
    assert_eq!(outcome, Err(PipelineError::Cancelled));
    let expected = ["A0 starts @0", "A1 starts @20", "A0 dropped @30", "A1 dropped @30"];
    assert_eq!(notes.lines(), expected);
    let again = pipeline.execute(script(&notes, [ok(0, "a")])).cancel_on(&token).await;
    assert_eq!(again, Err(PipelineError::Cancelled), "E1: nothing starts");
    assert_eq!(notes.lines(), expected);
}

#[tokio::test(start_paused = true)]
async fn s37_an_answer_of_the_moment_of_the_cancellation_wins() {
    let pipeline = Pipeline::builder().timeout(ms(500)).build().unwrap();
    let token = CancellationToken::new();
    let work = |_| async {
        token.cancel();
        Ok::<_, String>("a")
    };
    assert_eq!(pipeline.execute(work).cancel_on(&token).await, Ok("a"));
}

#[tokio::test(start_paused = true)]
async fn t34_work_that_must_not_run_twice_is_not_hedged() {
    let pipeline = Pipeline::builder().hedge(hedge(10, 2)).build().unwrap();
    let notes = Notes::new();
    let outcome = pipeline.execute(script(&notes, [ok(50, "a")])).idempotent(false).await;
    assert_eq!(outcome, Ok("a"));
    let outcome = pipeline.execute(script(&notes, [err(5, "x")])).idempotent(false).await;
    assert_eq!(outcome, Err(PipelineError::Failed("x")), "T36: exactly once");
    assert_eq!(notes.count("A0 starts"), 2);
    assert_eq!(notes.count("A1 starts"), 0);
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct K(u32);

#[tokio::test(start_paused = true)]
async fn t24_pr_29_each_attempt_has_its_own_properties() {
    let pipeline =
        Pipeline::builder().timeout(ms(500)).hedge(hedge(20, 1)).timeout(ms(400)).build().unwrap();
    let properties = Properties::new();
    properties.insert(K(0));
    let read = AtomicU32::new(99);
    let work = |attempt: Attempt| {
        let read = &read;
        async move {
            let own = attempt.properties();
            if attempt.number() == 0 {
                own.insert(K(1));
                return std::future::pending().await;
            }
            read.store(own.get::<K>().unwrap().0, Ordering::Relaxed);
            own.insert(K(2));
            Ok::<_, String>(attempt.operation().unwrap().to_owned())
        }
    };
    let outcome = pipeline.execute(work).properties(&properties).operation("find").await;
    assert_eq!(outcome, Ok("find".to_owned()));
    assert_eq!(read.into_inner(), 0, "what the other wrote does not show");
    assert_eq!(properties.get::<K>(), Some(K(2)), "the winner's writes are merged");
}

#[tokio::test(start_paused = true)]
async fn attempts_can_read_how_long_they_have() {
    let pipeline = Pipeline::builder().timeout(ms(500)).timeout(ms(100)).build().unwrap();
    let start = Instant::now().into_std();
    let work = |attempt: Attempt| async move { Ok::<_, String>(attempt.deadline()) };
    let in_ms = |at: Option<std::time::Instant>| at.map(|at| at - start);
    let plain = pipeline.execute(work).await.unwrap();
    assert_eq!(in_ms(plain), None, "nobody asked for anything");
    let nearest = pipeline.execute(work).tokens().await.unwrap();
    assert_eq!(in_ms(nearest), Some(ms(100)), "the nearest limit");
    let deadline = pipeline.execute(work).deadline(ms(30)).await.unwrap();
    assert_eq!(in_ms(deadline), Some(ms(30)));
}

#[tokio::test(start_paused = true)]
async fn t30_a10_what_a_hedge_does_instead_goes_around_the_strategies_inside() {
    let (notes, hedges) = (Notes::new(), Arc::new(Mutex::new(Vec::new())));
    let numbers = Arc::clone(&hedges);
    let hedging = Hedging::new(hedge(10, 2).failure_start(FailureStart::Wait)).next_action(
        move |next: &NextHedge<'_>, rest: RestOfPipeline<'_, &'static str, &'static str>| {
            lock(&numbers).push(next.hedge_number());
            Ok(match next.hedge_number() {
                // 100 ms would be more than the timeout inside allows.
                1 => NextAction::Run(Box::pin(async {
                    sleep(ms(100)).await;
                    Ok("instead")
                })),
                _ => NextAction::Run(Box::pin(async { rest.await })),
            })
        },
    );
    let pipeline = Pipeline::builder().with(hedging).timeout(ms(50)).build().unwrap();
    let outcome = pipeline.execute(script(&notes, [never()])).await;
    assert_eq!(outcome, Ok("instead"));
    assert_eq!(notes.at(), 110);
    assert_eq!(*lock(&hedges), [1, 2], "T23: the hedge's own numbers, T29: never the primary");
    // T31: the second hedge ran the rest: the timeout inside ended it, as it did the primary.
    assert_eq!(
        notes.lines(),
        ["A0 starts @0", "A2 starts @20", "A0 dropped @50", "A2 dropped @70"]
    );
}

#[tokio::test(start_paused = true)]
async fn t41_an_action_that_fails_ends_the_hedged_call() {
    let notes = Notes::new();
    let hedging = Hedging::new(hedge(10, 2)).next_action(
        |_: &NextHedge<'_>, _: RestOfPipeline<'_, &'static str, &'static str>| {
            Err(PipelineError::Failed("no other region"))
        },
    );
    let pipeline = Pipeline::builder().with(hedging).build().unwrap();
    let outcome = pipeline.execute(script(&notes, [never()])).await;
    assert_eq!(outcome, Err(PipelineError::Failed("no other region")));
    assert_eq!(notes.lines(), ["A0 starts @0", "A0 dropped @10"]);
}

#[tokio::test(start_paused = true)]
async fn t32_t33_delays_and_hooks_see_the_hedges_own_numbers() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let hooked = Arc::clone(&told);
    let hedging = Hedging::new(Hedge::default().max_hedges(2))
        .delay_with(|next| match next.hedge_number() {
            1 => Delay::After(ms(30)),
            _ => Delay::OnFailure,
        })
        .on_hedge(move |next| lock(&hooked).push((next.hedge_number(), next.attempt().number())));
    let pipeline = Pipeline::builder().with(hedging).build().unwrap();
    let notes = Notes::new();
    let outcome = pipeline.execute(script(&notes, [never(), err(20, "x"), ok(5, "c")])).await;
    assert_eq!(outcome, Ok("c"));
    assert_eq!(notes.at(), 55);
    assert_eq!(*lock(&told), [(1, 1), (2, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_hedge_around_a_hedge_never_repeats_a_number() {
    let pipeline = Pipeline::builder().hedge(hedge(100, 1)).hedge(hedge(30, 1)).build().unwrap();
    assert_eq!(pipeline.max_attempts(), Some(4));
    let notes = Notes::new();
    let outcome = pipeline.execute(script(&notes, [never(), never(), never(), ok(5, "d")])).await;
    assert_eq!(outcome, Ok("d"));
    let starts = ["A0 starts @0", "A1 starts @30", "A2 starts @100", "A3 starts @130"];
    assert_eq!(notes.lines()[..4], starts);
    assert_eq!(notes.at(), 135);
}

#[tokio::test(start_paused = true)]
async fn nothing_happens_before_it_is_polled_and_all_is_dropped_with_it() {
    let pipeline = Pipeline::builder().timeout(ms(100)).hedge(hedge(10, 1)).build().unwrap();
    let notes = Notes::new();
    let mut execution = Box::pin(pipeline.execute(script(&notes, [never()])).into_future());
    assert!(notes.lines().is_empty());
    assert!(poll_once(execution.as_mut()).is_pending());
    assert_eq!(notes.lines(), ["A0 starts @0"]);
    drop(execution);
    assert_eq!(notes.lines(), ["A0 starts @0", "A0 dropped @0"]);
}
