//! The circuit breaker in a pipeline: what counts, what is refused, what comes too late.

use std::future::{Future, IntoFuture, pending};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::thread;

use hedgerow::pipeline::{
    BoxPipeline, BreakerControl, BreakerState, CircuitBreaker, Pipeline, PipelineError, Rejected,
};
use hedgerow::{Attempt, Clock, Delay, Hedge, ManualClock};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::p_events::Lines;
use crate::support::{Answer, Notes, act, caught, err, lock, ms, never, ok, poll_once};

/// Opens for a second when half of at least ten calls failed.
fn breaker() -> CircuitBreaker {
    CircuitBreaker::default().failure_ratio(0.5).min_throughput(10).open_for(ms(1_000))
}

fn open(control: &BreakerControl) {
    assert_eq!(control.state(), BreakerState::Closed);
}

/// Why it was refused.
fn reason<T: std::fmt::Debug, E: std::fmt::Debug>(
    outcome: Result<T, PipelineError<E>>,
) -> &'static str {
    match outcome {
        Err(PipelineError::Rejected(rejected)) => rejected.reason(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn h23_an_open_breaker_inside_a_hedge() {
    let build = |hedge: Hedge| {
        let breaker = breaker();
        let control = breaker.control();
        let hedge = hedge.delay(Delay::OnFailure);
        let pipeline = Pipeline::builder().hedge(hedge).circuit_breaker(breaker).build().unwrap();
        control.isolate();
        pipeline
    };
    let lines = Lines::default();
    let ran = AtomicUsize::new(0);
    let work = |_: Attempt| {
        ran.fetch_add(1, Ordering::Relaxed);
        act(ok(0, "a"))
    };
    let by_default = build(Hedge::default());
    assert_eq!(reason(by_default.execute(work).await), "isolated");
    let hedged = {
        let breaker = breaker();
        let control = breaker.control();
        let hedge = Hedge::default().delay(Delay::OnFailure).hedge_rejections(true);
        let hedge = hedge.rejected_hedge(hedgerow::RejectedHedge::Hedge);
        let pipeline = Pipeline::builder()
            .observer(lines.observer())
            .hedge(hedge)
            .circuit_breaker(breaker)
            .build()
            .unwrap();
        control.isolate();
        pipeline
    };
    assert_eq!(reason(hedged.execute(work).await), "isolated");
    let rejections = lines.with("Rejected");
    let attempts: Vec<_> = rejections.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(attempts, ["circuit-breaker[0]", "circuit-breaker[1]"], "A1 was tried, too");
    assert_eq!(ran.into_inner(), 0, "PR-65: nobody asked what is inside");
}

#[tokio::test(start_paused = true)]
async fn h25_a_breaker_outside_a_hedge_counts_executions() {
    let breaker = CircuitBreaker::consecutive(2);
    let control = breaker.control();
    let pipeline =
        Pipeline::builder().circuit_breaker(breaker).hedge(Hedge::after(ms(10))).build().unwrap();
    let failing = |_: Attempt| act(err(20, "x"));
    assert!(pipeline.execute(failing).await.is_err());
    open(&control);
    let saved =
        |attempt: Attempt| act(if attempt.number() == 0 { err(5, "x") } else { ok(5, "b") });
    assert_eq!(pipeline.execute(saved).await, Ok("b"), "one failed attempt, and a success");
    assert!(pipeline.execute(failing).await.is_err());
    open(&control);
    assert!(pipeline.execute(failing).await.is_err());
    assert_eq!(control.state(), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn pr_64_the_breaker_does_not_learn_from_cancelled_work() {
    let breaker = breaker();
    let control = breaker.control();
    let hedge = Hedge::after(ms(10));
    let pipeline = Pipeline::builder().hedge(hedge).circuit_breaker(breaker).build().unwrap();
    for _ in 0..200 {
        let loses =
            |attempt: Attempt| act(if attempt.number() == 0 { never() } else { ok(5, "b") });
        assert_eq!(pipeline.execute(loses).await, Ok("b"));
    }
    for _ in 0..200 {
        let mut dropped = Box::pin(pipeline.execute(|_| act(never())).into_future());
        assert!(poll_once(dropped.as_mut()).is_pending());
    }
    open(&control);
    sleep(ms(60_000)).await;
    for number in 0..10 {
        open(&control);
        let failed = pipeline.execute(|_| act(err(0, "x"))).idempotent(false).await;
        assert!(failed.is_err(), "{number}");
    }
    assert_eq!(control.state(), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn pr_19_pr_64_a_dropped_probe_gives_no_verdict_and_frees_its_place() {
    let breaker = CircuitBreaker::consecutive(1).open_for(ms(1_000));
    let control = breaker.control();
    let pipeline = Pipeline::builder().circuit_breaker(breaker).build().unwrap();
    assert!(pipeline.execute(|_| act(err(0, "x"))).await.is_err());
    let refused = pipeline.execute(|_| act(ok(0, "a"))).await.unwrap_err();
    let Some(rejected) = refused.rejected() else { panic!("{refused:?}") };
    assert_eq!(rejected.retry_after(), Some(ms(1_000)));
    assert_eq!(rejected.to_string(), "circuit-breaker: circuit open; try again in 1s");
    sleep(ms(1_000)).await;
    let mut probe = Box::pin(pipeline.execute(|_| act(never())).into_future());
    assert!(poll_once(probe.as_mut()).is_pending());
    assert_eq!(reason(pipeline.execute(|_| act(ok(0, "a"))).await), "circuit half-open");
    drop(probe);
    assert_eq!(control.state(), BreakerState::HalfOpen);
    assert_eq!(pipeline.execute(|_| act(ok(0, "a"))).await, Ok("a"));
    open(&control);
}

#[tokio::test(start_paused = true)]
async fn pr_19_a_probe_that_never_ends_does_not_shut_the_breaker_for_ever() {
    let breaker = CircuitBreaker::consecutive(1).open_for(ms(100)).probe_lease(ms(500));
    let control = breaker.control();
    let pipeline = Pipeline::builder().circuit_breaker(breaker).build().unwrap();
    assert!(pipeline.execute(|_| act(err(0, "x"))).await.is_err());
    sleep(ms(100)).await;
    let mut probe = Box::pin(pipeline.execute(|_| act(never())).into_future());
    assert!(poll_once(probe.as_mut()).is_pending());
    let refused = pipeline.execute(|_| act(ok(0, "a"))).await.unwrap_err();
    assert_eq!(refused.rejected().and_then(Rejected::retry_after), Some(ms(500)));
    sleep(ms(500)).await;
    assert_eq!(pipeline.execute(|_| act(ok(0, "a"))).await, Ok("a"));
    open(&control);
    drop(probe);
    open(&control);
}

#[tokio::test(start_paused = true)]
async fn pr_67_late_results_change_nothing() {
    for late in [Ok("late"), Err("late")] {
        let breaker = CircuitBreaker::consecutive(10).open_for(ms(1_000));
        let control = breaker.control();
        let pipeline = Pipeline::builder().circuit_breaker(breaker).build().unwrap();
        let begun = |after| {
            let work = move |_: Attempt| async move {
                sleep(ms(after)).await;
                late
            };
            let mut execution = Box::pin(pipeline.execute(work).into_future());
            assert!(poll_once(execution.as_mut()).is_pending());
            execution
        };
        let (at_900, at_1_010) = (begun(900), begun(1_010));
        for _ in 0..10 {
            assert!(pipeline.execute(|_| act(err(0, "x"))).await.is_err());
        }
        assert_eq!(control.state(), BreakerState::Open);
        assert_eq!(at_900.await.map_err(|error| error.into_failed().unwrap()), late);
        sleep(ms(99)).await;
        assert_eq!(reason(pipeline.execute(|_| act(ok(0, "a"))).await), "circuit open");
        sleep(ms(1)).await;
        let mut probe = Box::pin(pipeline.execute(|_| act(ok(50, "probe"))).into_future());
        assert!(poll_once(probe.as_mut()).is_pending());
        assert_eq!(at_1_010.await.map_err(|error| error.into_failed().unwrap()), late);
        assert_eq!(control.state(), BreakerState::HalfOpen, "only the probe decides");
        assert_eq!(reason(pipeline.execute(|_| act(ok(0, "a"))).await), "circuit half-open");
        assert_eq!(probe.await, Ok("probe"));
        open(&control);
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_counts_as_a_failure_and_frees_the_place() {
    let breaker = CircuitBreaker::consecutive(2).open_for(ms(1_000));
    let control = breaker.control();
    let pipeline = Pipeline::builder().circuit_breaker(breaker).build().unwrap();
    let at_once = |_: Attempt| -> std::future::Ready<Result<u8, u8>> { panic!("in the closure") };
    assert!(caught(pipeline.execute(at_once)).await.is_err());
    open(&control);
    assert!(caught(pipeline.execute(|_| act(crate::support::panics(5, "later")))).await.is_err());
    assert_eq!(control.state(), BreakerState::Open);
    sleep(ms(1_000)).await;
    assert!(caught(pipeline.execute(|_| act(crate::support::panics(5, "probe")))).await.is_err());
    assert_eq!(control.state(), BreakerState::Open, "for one new time");
    sleep(ms(1_000)).await;
    assert_eq!(pipeline.execute(|_| act(ok(0, "a"))).await, Ok("a"));
}

#[tokio::test(start_paused = true)]
async fn changes_are_told_also_those_by_hand() {
    let lines = Lines::default();
    let breaker = CircuitBreaker::consecutive(1).open_for(ms(100));
    let control = breaker.control();
    let pipeline =
        Pipeline::builder().observer(lines.observer()).circuit_breaker(breaker).build().unwrap();
    assert!(pipeline.execute(|_| act(err(0, "x"))).await.is_err());
    sleep(ms(100)).await;
    assert_eq!(pipeline.execute(|_| act(ok(0, "a"))).await, Ok("a"));
    control.isolate();
    control.isolate();
    control.reset();
    let told: Vec<_> = lines.with("Breaker");
    let expected = [
        r#"circuit-breaker[0] Breaker { state: "open", open_for: Some(100ms) }"#,
        r#"circuit-breaker[0] Breaker { state: "half-open", open_for: None }"#,
        r#"circuit-breaker[0] Breaker { state: "closed", open_for: None }"#,
        r#"circuit-breaker[-] Breaker { state: "isolated", open_for: None }"#,
        r#"circuit-breaker[-] Breaker { state: "closed", open_for: None }"#,
    ];
    assert_eq!(told, expected);
}

#[tokio::test(start_paused = true)]
async fn rejections_inside_count_neither_way() {
    let (outer, inner) = (CircuitBreaker::consecutive(1), CircuitBreaker::consecutive(1));
    let (outside, inside) = (outer.control(), inner.control());
    let pipeline =
        Pipeline::builder().circuit_breaker(outer).circuit_breaker(inner).build().unwrap();
    inside.isolate();
    assert_eq!(reason(pipeline.execute(|_| act(ok(0, "a"))).handle(|_| true).await), "isolated");
    open(&outside);
}

#[test]
fn isolated_before_it_is_built() {
    let breaker = CircuitBreaker::default();
    let control = breaker.control();
    control.isolate();
    assert_eq!(control.state(), BreakerState::Isolated);
    let pipeline = Pipeline::builder().circuit_breaker(breaker).build().unwrap();
    let mut execution = Box::pin(pipeline.execute(|_| pending::<Result<u8, u8>>()).into_future());
    assert!(poll_once(execution.as_mut()).is_ready());
    control.reset();
    open(&control);
}

#[tokio::test(start_paused = true)]
async fn whoever_says_how_long_it_stays_open_may_switch_it() {
    let own: Arc<OnceLock<BreakerControl>> = Arc::default();
    let hand = Arc::clone(&own);
    let breaker = CircuitBreaker::consecutive(1).open_for_with(move |times| {
        let control = hand.get().unwrap();
        open(control);
        control.isolate();
        ms(times.into())
    });
    let control = own.get_or_init(|| breaker.control());
    let pipeline = Pipeline::builder().circuit_breaker(breaker).build().unwrap();
    assert!(pipeline.execute(|_| act(err(0, "x"))).await.is_err());
    assert_eq!(control.state(), BreakerState::Isolated);
    sleep(ms(60_000)).await;
    assert_eq!(reason(pipeline.execute(|_| act(ok(0, "a"))).await), "isolated");
}

#[tokio::test(start_paused = true)]
async fn what_is_done_by_hand_is_told_where_it_was_built_in_last() {
    let (first, whole) = (Lines::default(), Lines::default());
    let breaker = CircuitBreaker::consecutive(1);
    let control = breaker.control();
    let observed = |lines: &Lines| Pipeline::builder().observer(lines.observer());
    let _first = observed(&first).circuit_breaker(breaker.clone()).build().unwrap();
    let silent = Pipeline::builder().circuit_breaker(breaker).build().unwrap();
    control.isolate();
    let told = || [&first, &whole].map(|lines| lines.with("Breaker").len());
    assert_eq!(told(), [1, 0], "as long as nobody else asks");
    let _whole = observed(&whole).pipeline(silent).build().unwrap();
    control.reset();
    assert_eq!(told(), [1, 1]);
}

#[test]
fn impossible_settings_are_refused_when_it_is_built() {
    let breaker = CircuitBreaker::default().failure_ratio(2.0).probes(0).or_consecutive(0);
    let breaker = breaker.min_throughput(100_001);
    let error = Pipeline::builder().circuit_breaker(breaker).build().unwrap_err();
    let options: Vec<_> = error.mistakes().iter().map(hedgerow::InvalidOption::option).collect();
    let expected = ["failure_ratio", "min_throughput", "consecutive", "probes"]
        .map(|name| format!("circuit-breaker.{name}"));
    assert_eq!(options, expected);
}

type Boxed = BoxPipeline<&'static str, &'static str>;

/// An execution that was let through, and how it is told to end.
type Probe = (Pin<Box<dyn Future<Output = ()> + Send>>, oneshot::Sender<Answer>);

/// One that is polled once; `None`: it was refused.
fn come(pipeline: &Boxed) -> Option<Probe> {
    let (pipeline, (sender, ends)) = (pipeline.clone(), oneshot::channel());
    let ends = Arc::new(Mutex::new(Some(ends)));
    let mut execution: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
        let work = move |_| {
            let ends = lock(&ends).take().unwrap();
            async move { ends.await.unwrap() }
        };
        drop(pipeline.execute(work).await);
    });
    poll_once(execution.as_mut()).is_pending().then_some((execution, sender))
}

/// A hundred of them at a time, on eight threads.
fn rush(pipeline: &Boxed) -> Vec<Probe> {
    let (barrier, begun) = (Barrier::new(8), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for thread in 0..8 {
            let (barrier, begun) = (&barrier, &begun);
            scope.spawn(move || {
                barrier.wait();
                for _ in (thread..100).step_by(8) {
                    let probe = come(pipeline);
                    lock(begun).extend(probe);
                }
            });
        }
    });
    begun.into_inner().unwrap()
}

#[test]
fn pr_79_half_open_lets_in_exactly_as_many_as_permitted() {
    for outcome in [Ok("a"), Err("x")] {
        let clock = ManualClock::new();
        let breaker = CircuitBreaker::consecutive(1).open_for(ms(1_000)).probes(3);
        let control = breaker.control();
        let pipeline = Pipeline::builder()
            .clock(Arc::new(clock.clone()) as Arc<dyn Clock>)
            .circuit_breaker(breaker)
            .build()
            .unwrap()
            .boxed();
        let failed = pipeline.execute(async |_| Err("x")).into_future();
        assert!(futures_executor::block_on(failed).is_err());
        clock.advance(ms(1_000));
        let mut probes = rush(&pipeline);
        assert_eq!(probes.len(), 3);
        drop(probes.pop()); // makes room for one more, and never for a fourth
        probes.extend(come(&pipeline));
        assert!(come(&pipeline).is_none());
        assert_eq!(probes.len(), 3);
        for (execution, sender) in probes {
            sender.send(outcome).unwrap();
            futures_executor::block_on(execution);
        }
        if outcome.is_ok() {
            assert_eq!(control.state(), BreakerState::Closed);
        } else {
            clock.advance(ms(999));
            assert!(come(&pipeline).is_none(), "one new open time, from the first failure on");
            clock.advance(ms(1));
            assert!(come(&pipeline).is_some());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_is_not_counted_wherever_it_is() {
    let breaker = CircuitBreaker::consecutive(1).probes(2);
    let control = breaker.control();
    let pipeline = Pipeline::builder().circuit_breaker(breaker).build().unwrap();
    let notes = Notes::new();
    for polls in 0..3 {
        let mut execution = Box::pin(pipeline.execute(|_| act(err(10, "x"))).into_future());
        for _ in 0..polls {
            assert!(poll_once(execution.as_mut()).is_pending());
        }
        drop(execution);
        open(&control);
    }
    assert_eq!(notes.at(), 0);
}

/// What goes well is put at the latest tick there, unless time is virtual.
#[tokio::test(start_paused = true)]
async fn on_the_ring_a_breaker_counts_in_tokios_paused_time() {
    let breaker = breaker().min_throughput(2).window(ms(1_000));
    let control = breaker.control();
    let pipeline = Pipeline::builder().ring_timer().circuit_breaker(breaker).build().unwrap();
    let run = async |answer: Result<u32, &'static str>| {
        let _ = pipeline.execute(|_| std::future::ready(answer)).await;
    };
    run(Ok(0)).await;
    sleep(ms(10_000)).await;
    for answer in [Ok(1), Ok(2), Ok(3), Err("a"), Err("b")] {
        run(answer).await;
        assert_eq!(control.state(), BreakerState::Closed, "after {answer:?}");
    }
    run(Err("c")).await;
    assert_eq!(control.state(), BreakerState::Open, "three of six");
}

/// Also where it is not: what goes well is in the window, beside what fails by the exact clock.
#[test]
fn on_the_ring_what_goes_well_counts_with_what_fails() {
    let breaker = breaker().min_throughput(4).window(ms(3_600_000));
    let control = breaker.control();
    let pipeline = Pipeline::builder().ring_timer().circuit_breaker(breaker).build().unwrap();
    let run = |answer: Result<u32, &'static str>| {
        let execution = pipeline.execute(|_| std::future::ready(answer)).into_future();
        assert_eq!(futures_executor::block_on(execution).is_ok(), answer.is_ok());
    };
    for answer in [Ok(1), Err("a"), Ok(2), Ok(3), Err("b")] {
        run(answer);
        assert_eq!(control.state(), BreakerState::Closed, "after {answer:?}");
    }
    run(Err("c"));
    assert_eq!(control.state(), BreakerState::Open, "three of six");
}
