//! The cache.

use std::cell::Cell;
use std::future::{IntoFuture, Ready, ready};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hedgerow::pipeline::{
    Cache, ConcurrencyLimiter, Context, CustomStrategy, Next, Pipeline, PipelineError,
    PipelineResult,
};
use hedgerow::testing::ManualExecutor;
use hedgerow::{CancellationToken, Hedge, ManualClock, Properties, StrategyEventKind};

use crate::p_told::{Told, refusal};
use crate::stage::{self, Came, Stage};
use crate::support::{Answer, act, ms, never, ok, poll_once};

/// Counts how often the work runs.
#[derive(Default)]
struct Runs(Cell<u32>);

impl Runs {
    /// Succeeds with its number: 1, 2, 3.
    fn next(&self) -> Ready<Result<u32, &'static str>> {
        self.0.set(self.0.get() + 1);
        ready(Ok(self.0.get()))
    }

    /// Comes to this.
    fn comes_to(&self, outcome: Result<u32, &'static str>) -> Ready<Result<u32, &'static str>> {
        self.0.set(self.0.get() + 1);
        ready(outcome)
    }
}

fn clock() -> (Arc<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    (Arc::new(clock.clone()), clock)
}

fn results(told: &Told) -> Vec<&'static str> {
    let result = |kind| match kind {
        StrategyEventKind::Cache { result } => result,
        other => panic!("{other:?}"),
    };
    told.kinds().into_iter().map(result).collect()
}

#[tokio::test]
async fn a_good_value_answers_until_its_time_is_over() {
    let ((time, clock), told, runs) = (clock(), Told::by("cache"), Runs::default());
    let builder = Pipeline::builder().clock(time).observer(told.observer());
    let pipeline = builder.cache(Cache::single().ttl(ms(100))).build().unwrap();
    let ask = async || pipeline.execute(|_| runs.next()).await;
    assert_eq!((ask().await, ask().await), (Ok(1), Ok(1)));
    clock.advance(ms(99));
    assert_eq!(ask().await, Ok(1));
    clock.advance(ms(1));
    assert_eq!((ask().await, ask().await), (Ok(2), Ok(2)));
    assert_eq!(results(&told), ["miss", "hit", "hit", "miss", "hit"]);
}

#[tokio::test]
async fn a_value_is_as_old_as_the_end_of_its_work() {
    let ((time, clock), runs) = (clock(), Runs::default());
    let cache = Cache::single().ttl(ms(100));
    let pipeline = Pipeline::builder().clock(time).cache(cache).build().unwrap();
    let slow = pipeline.execute(|_| async {
        clock.advance(ms(500)); // it takes that long
        runs.next().await
    });
    assert_eq!(slow.await, Ok(1));
    clock.advance(ms(99));
    assert_eq!(pipeline.execute(|_| runs.next()).await, Ok(1));
}

#[tokio::test]
async fn without_a_time_a_value_is_good_for_ever() {
    let ((time, clock), runs) = (clock(), Runs::default());
    let pipeline = Pipeline::builder().clock(time).cache(Cache::single()).build().unwrap();
    for _ in 0..3 {
        assert_eq!(pipeline.execute(|_| runs.next()).await, Ok(1));
        clock.advance(Duration::MAX);
    }
}

#[tokio::test]
async fn only_good_values_are_kept() {
    let runs = Runs::default();
    let handle =
        |outcome: &PipelineResult<u32, &str>| !matches!(outcome, Ok(value) if *value < 500);
    let by_cache = Pipeline::builder().cache(Cache::single().handle(handle)).build().unwrap();
    for outcome in [Err("down"), Ok(503)] {
        let answer = by_cache.execute(|_| runs.comes_to(outcome)).await;
        assert_eq!(answer, outcome.map_err(PipelineError::Failed));
    }
    assert_eq!(by_cache.execute(|_| runs.comes_to(Ok(200))).await, Ok(200));
    assert_eq!(by_cache.execute(|_| runs.comes_to(Ok(201))).await, Ok(200));
    assert_eq!(runs.0.get(), 3);

    let inherited = Pipeline::builder().cache(Cache::single()).build().unwrap();
    let ask = |outcome| inherited.execute(move |_| async move { outcome }).handle(handle);
    assert_eq!(ask(Ok(503)).await, Ok(503));
    assert_eq!(ask(Ok(200)).await, Ok(200), "what the execution handles is not kept");
    assert_eq!(ask(Ok(503)).await, Ok(200));
}

#[tokio::test]
async fn a_stale_value_answers_for_a_failure() {
    let ((time, clock), told, runs) = (clock(), Told::by("cache"), Runs::default());
    let cache = Cache::single().ttl(ms(100)).serve_stale(ms(50));
    let builder = Pipeline::builder().clock(time).observer(told.observer());
    let pipeline = builder.cache(cache).build().unwrap();
    let ask = async |outcome| pipeline.execute(|_| runs.comes_to(outcome)).await;
    assert_eq!(ask(Ok(1)).await, Ok(1));
    clock.advance(ms(100));
    assert_eq!(ask(Err("down")).await, Ok(1));
    clock.advance(ms(49));
    assert_eq!(ask(Err("down")).await, Ok(1));
    assert_eq!(runs.0.get(), 3, "the work was tried each time");
    clock.advance(ms(1));
    assert_eq!(ask(Err("down")).await, Err(PipelineError::Failed("down")), "too old");
    assert_eq!(ask(Ok(2)).await, Ok(2));
    let expected = ["miss", "miss", "stale", "miss", "stale", "miss", "miss"];
    assert_eq!(results(&told), expected);
}

#[tokio::test]
async fn by_default_nothing_stale_is_served() {
    let ((time, clock), runs) = (clock(), Runs::default());
    let cache = Cache::single().ttl(ms(100));
    let pipeline = Pipeline::builder().clock(time).cache(cache).build().unwrap();
    let ask = async |outcome| pipeline.execute(|_| runs.comes_to(outcome)).await;
    assert_eq!(ask(Ok(1)).await, Ok(1));
    clock.advance(ms(100));
    assert_eq!(ask(Err("down")).await, Err(PipelineError::Failed("down")));
}

#[tokio::test]
async fn stale_for_ever_and_rejections() {
    let ((time, clock), limiter) = (clock(), ConcurrencyLimiter::new(1));
    for served in [false, true] {
        let cache = Cache::single().ttl(ms(100)).serve_stale(Duration::MAX).handle(
            move |outcome: &PipelineResult<&str, &str>| match outcome {
                Err(PipelineError::Rejected(_)) => served,
                other => other.is_err(),
            },
        );
        let builder = Pipeline::builder().clock(Arc::clone(&time) as Arc<_>);
        let pipeline = builder.cache(cache).concurrency_limiter(limiter.clone()).build().unwrap();
        assert_eq!(pipeline.execute(|_| act(ok(0, "a"))).await, Ok("a"));
        clock.advance(Duration::MAX);
        let failed = pipeline.execute(|_| async { Answer::Err("down") }).await;
        assert_eq!(failed, Ok("a"));
        let mut holder = pin!(pipeline.execute(|_| act(never())).into_future());
        assert!(poll_once(holder.as_mut()).is_pending());
        let rejected = pipeline.execute(|_| act(ok(0, "b"))).await;
        if served {
            assert_eq!(rejected, Ok("a"));
        } else {
            assert_eq!(refusal(&rejected), "all slots taken");
        }
    }
}

/// Ends as if the caller had cancelled.
#[derive(Debug)]
struct Cancels;

impl<N: Next> CustomStrategy<N> for &Cancels {
    type Run = Ready<PipelineResult<N::Value, N::Error>>;

    fn run(self, _: N, _: Context) -> Self::Run {
        ready(Err(PipelineError::Cancelled))
    }
}

#[tokio::test]
async fn nothing_is_served_to_a_caller_who_cancelled() {
    let ((time, clock), told) = (clock(), Told::by("cache"));
    let cache = Cache::single().ttl(ms(100)).serve_stale(Duration::MAX);
    let cache = cache.handle(|outcome: &PipelineResult<_, &str>| outcome.is_err());
    let builder = || Pipeline::builder().clock(Arc::clone(&time) as _).observer(told.observer());
    let good = builder().cache(cache.clone()).build().unwrap();
    assert_eq!(good.execute(|_| act(ok(0, "a"))).await, Ok("a"));
    clock.advance(ms(100));
    let cancels = builder().cache(cache).strategy("cancels", Cancels).build().unwrap();
    let cancelled = cancels.execute(|_| act(ok(0, "b"))).await;
    assert_eq!(cancelled, Err(PipelineError::Cancelled));
    assert_eq!(good.execute(|_| async { Answer::Err("down") }).await, Ok("a"), "it is kept");
    assert_eq!(results(&told), ["miss", "miss", "miss", "stale"]);
}

#[tokio::test]
async fn what_another_execution_kept_meanwhile_answers_for_a_failure() {
    let ((time, _clock), told) = (clock(), Told::by("cache"));
    let cache = Cache::single().ttl(ms(100)).serve_stale(ms(1));
    let builder = Pipeline::builder().clock(time).observer(told.observer());
    let pipeline = builder.cache(cache).build().unwrap();
    let outer = pipeline.execute(|_| async {
        assert_eq!(pipeline.execute(|_| act(ok(0, "a"))).await, Ok("a"));
        Answer::Err("down")
    });
    assert_eq!(outer.await, Ok("a"));
    assert_eq!(results(&told), ["miss", "miss", "hit"]);
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct User(u32);

/// What this user is told.
macro_rules! ask {
    ($pipeline:expr, $user:expr, $value:expr) => {{
        let properties = Properties::new();
        if let Some(user) = $user {
            properties.insert(User(user));
        }
        $pipeline.execute(|_| async { Ok::<u32, &str>($value) }).properties(&properties).await
    }};
}

fn user(cx: &Context) -> Option<User> {
    cx.attempt().properties().get()
}

#[tokio::test]
async fn each_key_has_a_value_of_its_own() {
    let cache = Cache::keyed(100, user).ttl(ms(60_000));
    let (control, told) = (cache.control(), Told::by("cache"));
    let pipeline = Pipeline::builder().observer(told.observer()).cache(cache).build().unwrap();
    assert_eq!(ask!(pipeline, Some(1), 10), Ok(10));
    assert_eq!(ask!(pipeline, Some(2), 20), Ok(20));
    assert_eq!(ask!(pipeline, Some(1), 11), Ok(10));
    assert_eq!(ask!(pipeline, None, 30), Ok(30));
    assert_eq!(ask!(pipeline, None, 31), Ok(31), "without a key it goes past the cache");
    assert_eq!(results(&told), ["miss", "miss", "hit"]);
    assert_eq!(control.entries(), 2);
    control.invalidate_key(&User(1));
    assert_eq!((ask!(pipeline, Some(1), 12), ask!(pipeline, Some(2), 22)), (Ok(12), Ok(20)));
    control.invalidate();
    assert_eq!(control.entries(), 0);
    assert_eq!((ask!(pipeline, Some(1), 13), ask!(pipeline, Some(2), 23)), (Ok(13), Ok(23)));
}

#[tokio::test]
async fn the_operation_can_be_the_key() {
    let cache = Cache::keyed(8, |cx: &Context| cx.attempt().operation().map(str::to_owned));
    let pipeline = Pipeline::builder().cache(cache).build().unwrap();
    for (operation, value, expected) in [("a", 1, 1), ("b", 2, 2), ("a", 3, 1)] {
        let answer = pipeline.execute(|_| async { Ok::<u32, &str>(value) }).operation(operation);
        assert_eq!(answer.await, Ok(expected));
    }
}

#[tokio::test]
async fn the_number_of_keys_is_bounded() {
    let cache = Cache::keyed(64, user);
    let control = cache.control();
    let pipeline = Pipeline::builder().cache(cache).build().unwrap();
    for key in 0..1_000 {
        assert_eq!(ask!(pipeline, Some(key), key), Ok(key));
        assert!(control.entries() <= 64, "{}", control.entries());
    }
    assert!(control.entries() >= 32, "{}", control.entries());
    let one = Cache::keyed(1, user);
    let pipeline = Pipeline::builder().cache(one).build().unwrap();
    assert_eq!((ask!(pipeline, Some(1), 1), ask!(pipeline, Some(1), 2)), (Ok(1), Ok(1)));
}

/// It may have been read before what made somebody drop it.
#[tokio::test]
async fn a_value_on_its_way_when_something_is_dropped_is_not_kept() {
    let single = Cache::single();
    let control = single.control();
    let pipeline = Pipeline::builder().cache(single).build().unwrap();
    let old = pipeline.execute(|_| async {
        control.invalidate();
        Ok::<u32, &str>(1)
    });
    assert_eq!(old.await, Ok(1));
    assert_eq!(pipeline.execute(|_| async { Ok::<u32, &str>(2) }).await, Ok(2));
    assert_eq!(control.entries(), 1);

    let keyed = Cache::keyed(8, |_: &Context| Some(7));
    let control = keyed.control();
    let pipeline = Pipeline::builder().cache(keyed).build().unwrap();
    let old = pipeline.execute(|_| async {
        control.invalidate_key(&7);
        Ok::<u32, &str>(1)
    });
    assert_eq!(old.await, Ok(1));
    assert_eq!(control.entries(), 0);
    assert_eq!(pipeline.execute(|_| async { Ok::<u32, &str>(2) }).await, Ok(2));
}

/// Nor does a value that was dropped while the work ran answer for its failure.
#[tokio::test]
async fn a_dropped_value_is_not_served_stale() {
    let (time, clock) = clock();
    let cache = Cache::single().ttl(ms(1)).serve_stale(Duration::MAX);
    let control = cache.control();
    let pipeline = Pipeline::builder().clock(time).cache(cache).build().unwrap();
    assert_eq!(pipeline.execute(|_| act(ok(0, "a"))).await, Ok("a"));
    clock.advance(ms(1));
    let failed = pipeline.execute(|_| async {
        control.invalidate();
        Answer::Err("down")
    });
    assert_eq!(failed.await, Err(PipelineError::Failed("down")));
}

#[tokio::test(start_paused = true)]
async fn around_a_hedge_a_hit_saves_all_of_it() {
    let hedge = Hedge::after(ms(10));
    let pipeline = Pipeline::builder().cache(Cache::single()).hedge(hedge).build().unwrap();
    let started = AtomicU32::new(0);
    for _ in 0..3 {
        let answer = pipeline.execute(|attempt| {
            started.fetch_add(1, Ordering::Relaxed);
            act(if attempt.number() == 0 { never() } else { ok(5, "hedge") })
        });
        assert_eq!(answer.await, Ok("hedge"));
    }
    assert_eq!(started.into_inner(), 2);
}

/// A value that looks at its cache while it is cloned and dropped: none of that is under a lock.
#[tokio::test]
async fn values_may_use_the_cache_when_they_are_cloned_and_dropped() {
    struct Value(hedgerow::pipeline::CacheControl<Value>);
    impl Clone for Value {
        fn clone(&self) -> Self {
            assert!(self.0.entries() <= 1);
            Self(self.0.clone())
        }
    }
    impl Drop for Value {
        fn drop(&mut self) {
            self.0.entries();
        }
    }
    let cache = Cache::single();
    let control = cache.control();
    let pipeline = Pipeline::builder().cache(cache).build().unwrap();
    for _ in 0..2 {
        let answer = pipeline.execute(|_| async { Ok::<_, &str>(Value(control.clone())) }).await;
        assert!(answer.is_ok());
    }
    assert_eq!(control.entries(), 1);
    control.invalidate();
    assert_eq!(control.entries(), 0);
}

#[test]
fn a_run_that_is_dropped_keeps_nothing() {
    let run = |(): &(), polls, late| {
        let (time, clock) = clock();
        let cache = Cache::single();
        let control = cache.control();
        let pipeline = Pipeline::builder().clock(time).cache(cache).build().unwrap();
        let call = {
            let clock = clock.clone();
            async move {
                let call = pipeline.execute(|_| {
                    let sleep = clock.sleep(ms(5));
                    async move {
                        sleep.await;
                        Answer::Ok("a")
                    }
                });
                call.await
            }
        };
        let (executor, cancel) = (ManualExecutor::new(), CancellationToken::new());
        let mut stage = Stage { clock, executor, cancel, cancel_in: None };
        (stage.drive(call, polls, late), control.entries())
    };
    let ended = |came: &Came<_>| !matches!(came, Came::Dropped);
    stage::every_point(
        &(),
        run,
        |(), (came, entries)| assert_eq!(*entries, usize::from(ended(came))),
        |(came, _)| !ended(came),
    );
}

#[test]
fn impossible_caches_are_refused() {
    let cache = Cache::<u32, _, _>::keyed(0, user).ttl(Duration::ZERO);
    let mistakes = Pipeline::builder().cache(cache).build().unwrap_err();
    let options: Vec<_> = mistakes.mistakes().iter().map(|it| it.option().to_owned()).collect();
    assert_eq!(options, ["cache.max_entries", "cache.ttl"]);
    let cache = Cache::<u32, _, _>::keyed(usize::MAX, user).ttl(ms(10)).serve_stale(Duration::MAX);
    let text = Pipeline::builder().cache(cache).build().unwrap().to_string();
    assert!(text.contains("good for 10ms, stale for ever"), "{text}");
}
