//! One pipeline in several places: what it has it shares, and what it does is done as each place says.

use std::future::{IntoFuture, pending, ready};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use hedgerow::pipeline::{
    BoxPipeline, BreakerState, CircuitBreaker, PerTarget, Pipeline, PipelineError, Retry,
};
use hedgerow::registry::{PipelinesConfig, Registry};
use hedgerow::{Event, Hedge, ManualClock, Observer, StrategyEvent, StrategyEventKind};

use crate::support::{Counting, ms, poll_once};

/// Counts what it is told.
#[derive(Debug, Default)]
struct Told {
    timeouts: AtomicU32,
    events: AtomicU32,
}

impl Observer for Told {
    fn event(&self, _: &Event) {
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    fn strategy(&self, event: &StrategyEvent<'_>) {
        if matches!(event.kind, StrategyEventKind::TimedOut { .. }) {
            self.timeouts.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Work that never ends is given up after 10 ms of this clock, and this observer is told.
macro_rules! gives_up_here {
    ($case:literal, $builder:ident => $built:expr) => {{
        let (clock, told) = (ManualClock::new(), Arc::new(Told::default()));
        let $builder = Pipeline::builder().clock(Arc::new(clock.clone())).observer(told.clone());
        let pipeline = $built.build().unwrap();
        let mut run = Box::pin(pipeline.execute(|_| pending::<Result<u32, ()>>()).into_future());
        assert!(poll_once(run.as_mut()).is_pending());
        clock.advance(ms(10));
        assert!(poll_once(run.as_mut()).is_ready(), "{}: another clock", $case);
        assert_eq!(told.timeouts.load(Ordering::Relaxed), 1, $case);
    }};
}

#[test]
fn each_place_has_the_clock_and_the_observer_of_the_whole() {
    let inner = Pipeline::builder().timeout(ms(10)).build().unwrap();
    gives_up_here!("kept elsewhere", builder => builder.pipeline(inner.clone()));
    gives_up_here!("twice in one", builder => builder.pipeline(inner.clone()).pipeline(inner.clone()));
    let equal = PerTarget::new([("a", inner.clone()), ("b", inner.clone())]);
    gives_up_here!("equal targets", builder => builder.with(equal.clone()));
    gives_up_here!("targets kept elsewhere", builder => builder.with(equal.clone()));
    let config = r#"{ "p": { "strategies": ["timeout"], "timeout": "10ms" } }"#;
    let registry = Registry::new(&serde_json::from_str::<PipelinesConfig>(config).unwrap());
    gives_up_here!("live", builder => builder.with(registry.live("p").unwrap()));
    let live = registry.live("p").unwrap();
    registry.set(&serde_json::from_str(&config.replace("10ms", "5ms")).unwrap());
    gives_up_here!("live, changed", builder => builder.with(live));
}

/// On threads limits pass by the ring, also in places that others have, too: of tokio's runtime, which
/// nobody drives meanwhile, nothing is needed.
#[tokio::test]
async fn on_threads_each_place_waits_by_the_ring() {
    let inner = Pipeline::builder().timeout(ms(1)).build().unwrap();
    let config = r#"{ "p": { "strategies": ["timeout"], "timeout": "1ms" } }"#;
    let registry = Registry::new(&serde_json::from_str::<PipelinesConfig>(config).unwrap());
    let nested = Pipeline::builder().pipeline(inner.clone()).build_blocking().unwrap();
    let equal = PerTarget::new([("a", inner.clone()), ("b", inner)]);
    let equal = Pipeline::builder().with(equal).build_blocking().unwrap();
    let live = Pipeline::builder().with(registry.live("p").unwrap()).build_blocking().unwrap();
    macro_rules! gives_up {
        ($pipeline:expr) => {{
            let work = |attempt: hedgerow::Attempt| {
                while !attempt.is_cancelled() {
                    std::thread::yield_now();
                }
                Err::<u32, _>("told to stop")
            };
            assert!(matches!($pipeline.execute(work), Err(PipelineError::TimedOut(_))));
        }};
    }
    gives_up!(nested);
    gives_up!(equal);
    gives_up!(live);
}

#[test]
fn all_places_share_the_state() {
    let breaker = CircuitBreaker::consecutive(1);
    let control = breaker.control();
    let inner = Pipeline::builder().circuit_breaker(breaker).build().unwrap();
    let one = Pipeline::builder().pipeline(inner.clone()).build().unwrap();
    let other = Pipeline::builder().pipeline(inner.clone()).build().unwrap();
    let failed =
        futures_executor::block_on(one.execute(|_| ready(Err::<u32, _>("x"))).into_future());
    assert!(failed.is_err());
    assert_eq!(control.state(), BreakerState::Open);
    for pipeline in [&other, &one] {
        let refused = pipeline.execute(|_| ready(Ok::<u32, &str>(1))).into_future();
        assert!(futures_executor::block_on(refused).unwrap_err().rejected().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn pr_68_each_place_pays_if_nobody_around_it_does() {
    let paid = Arc::new(Counting::default());
    let inner =
        Pipeline::builder().hedge(Hedge::after(ms(5)).budget(paid.clone())).build().unwrap();
    let around = Pipeline::builder()
        .retry(Retry::immediately().budget(paid.clone()))
        .pipeline(inner.clone())
        .build()
        .unwrap();
    assert_eq!(around.execute(|_| ready(Ok::<u32, ()>(1))).await, Ok(1));
    assert_eq!(paid.paid(), 1, "by the retry");
    assert_eq!(inner.execute(|_| ready(Ok::<u32, ()>(1))).await, Ok(1));
    assert_eq!(paid.paid(), 1, "by the hedge, where it is alone");
}

#[tokio::test(start_paused = true)]
async fn however_deep_it_is_nested_a_hedge_tells_its_events_once() {
    let told = Arc::new(Told::default());
    let own =
        Pipeline::builder().observer(told.clone()).hedge(Hedge::after(ms(5))).build().unwrap();
    assert_eq!(own.execute(|_| ready(Ok::<u32, ()>(1))).await, Ok(1));
    let alone = told.events.swap(0, Ordering::Relaxed);
    assert!(alone > 0);
    let nested = Pipeline::builder().pipeline(own).build().unwrap();
    let nested = Pipeline::builder().pipeline(nested).build().unwrap();
    assert_eq!(nested.execute(|_| ready(Ok::<u32, ()>(1))).await, Ok(1));
    assert_eq!(told.events.swap(0, Ordering::Relaxed), alone);
}

/// Executes a pipeline, once it is known which, when it is dropped.
#[derive(Debug, Default)]
struct RunsWhenDropped(Arc<OnceLock<BoxPipeline<u32, String>>>, Arc<AtomicU32>);

impl Observer for RunsWhenDropped {
    fn event(&self, _: &Event) {}
}

impl Drop for RunsWhenDropped {
    fn drop(&mut self) {
        if let Some(pipeline) = self.0.get() {
            let mut run = Box::pin(pipeline.execute(|_| ready(Ok(2))).into_future());
            assert_eq!(poll_once(run.as_mut()), Poll::Ready(Ok(2)));
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn what_is_dropped_while_a_live_pipeline_changes_may_use_it() {
    let config = r#"{ "p": { "strategies": ["circuit-breaker", "timeout"], "timeout": "10ms" } }"#;
    let registry = Registry::new(&serde_json::from_str::<PipelinesConfig>(config).unwrap());
    let build = |observer: Arc<dyn Observer>| {
        let builder = Pipeline::builder().observer(observer);
        builder.with(registry.live("p").unwrap()).build().unwrap().boxed()
    };
    let kept = build(Arc::new(Told::default()));
    let dropped = RunsWhenDropped::default();
    let (slot, ran) = (Arc::clone(&dropped.0), Arc::clone(&dropped.1));
    assert!(slot.set(kept.clone()).is_ok());
    // The breaker remembers the latest that it was built into.
    drop(build(Arc::new(dropped)));
    assert_eq!(ran.load(Ordering::Relaxed), 0, "it is remembered");
    registry.set(&serde_json::from_str(&config.replace("10ms", "20ms")).unwrap());
    let run = kept.execute(|_| ready(Ok(1))).into_future();
    assert_eq!(futures_executor::block_on(run), Ok(1));
    assert_eq!(ran.load(Ordering::Relaxed), 1, "it was dropped, and could run");
}
