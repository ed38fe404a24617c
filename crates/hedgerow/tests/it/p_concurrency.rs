//! The concurrency limiter.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::join_all;
use hedgerow::pipeline::{
    ConcurrencyControl, ConcurrencyLimiter, Context, CustomStrategy, End, Next, Pipeline,
    PipelineError, PipelineResult, Then,
};
use hedgerow::testing::ManualExecutor;
use hedgerow::{CancellationToken, ManualClock, StrategyEventKind};
use tokio::time::{Instant, sleep};

use crate::p_told::{Told, refusal};
use crate::stage::{self, Came, Stage};
use crate::support::{Act, Answer, act, err, ms, never, ok, poll_once};

pub(crate) type Limited = Pipeline<Then<ConcurrencyLimiter, End>>;

pub(crate) fn limited(limiter: &ConcurrencyLimiter) -> Limited {
    Pipeline::builder().concurrency_limiter(limiter.clone()).build().unwrap()
}

/// Runs one act.
pub(crate) async fn run(
    pipeline: &Limited,
    what: Act,
) -> Result<&'static str, PipelineError<&'static str>> {
    pipeline.execute(|_| act(what)).await
}

#[tokio::test(start_paused = true)]
async fn without_a_queue_the_rest_is_rejected_at_once() {
    let (limiter, told) = (ConcurrencyLimiter::new(2), Told::by("concurrency-limiter"));
    let (control, start) = (limiter.control(), Instant::now());
    let pipeline =
        Pipeline::builder().observer(told.observer()).concurrency_limiter(limiter).build().unwrap();
    let call = || pipeline.execute(|_| act(ok(30, "a"))).into_future();
    let (mut first, mut second) = (pin!(call()), pin!(call()));
    assert!(poll_once(first.as_mut()).is_pending() && poll_once(second.as_mut()).is_pending());
    assert_eq!((control.in_flight(), control.queued(), control.limit()), (2, 0, 2));
    assert_eq!(refusal(&call().await), "all slots taken");
    assert_eq!(start.elapsed(), ms(0));
    let reason = "all slots taken";
    assert_eq!(told.kinds(), [StrategyEventKind::Rejected { reason, retry_after: None }]);
    assert_eq!(first.await, Ok("a"));
    assert_eq!(control.in_flight(), 1, "the slot is free when the outcome is seen");
    assert_eq!(call().await, Ok("a"));
    assert_eq!(second.await, Ok("a"));
    assert_eq!(control.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_served_in_order_and_nobody_overtakes() {
    let limiter = ConcurrencyLimiter::new(1).max_queue(3);
    let (pipeline, control) = (limited(&limiter), limiter.control());
    let order = std::cell::RefCell::new(vec![]);
    let call = |name, after| {
        let (order, pipeline) = (&order, &pipeline);
        async move {
            sleep(ms(after)).await;
            let outcome = run(pipeline, ok(10, name)).await;
            order.borrow_mut().push((outcome.as_ref().copied().unwrap_or("refused"), after));
            outcome
        }
    };
    // The last comes at the moment at which the first gives its slot back.
    let calls =
        [call("a", 0), call("b", 3), call("c", 2), call("d", 1), call("e", 5), call("f", 10)];
    let outcomes = join_all(calls).await;
    assert_eq!(refusal(&outcomes[4]), "queue full");
    let expected = [("refused", 5), ("a", 0), ("d", 1), ("c", 2), ("b", 3), ("f", 10)];
    assert_eq!(*order.borrow(), expected);
    assert_eq!((control.in_flight(), control.queued()), (0, 0));
}

/// The slot that comes back is the waiter's before it is polled.
#[test]
fn a_slot_that_was_handed_on_is_nobody_elses() {
    let limiter = ConcurrencyLimiter::new(1).max_queue(2);
    let (pipeline, control) = (limited(&limiter), limiter.control());
    let call = |what| Box::pin(run(&pipeline, what));
    let mut holder = call(never());
    assert!(poll_once(holder.as_mut()).is_pending());
    let mut waiter = call(ok(0, "waiter"));
    assert!(poll_once(waiter.as_mut()).is_pending());
    drop(holder);
    assert_eq!((control.in_flight(), control.queued()), (1, 1), "handed on");
    let mut newcomer = call(ok(0, "newcomer"));
    assert!(poll_once(newcomer.as_mut()).is_pending());
    assert_eq!(poll_once(waiter.as_mut()), Poll::Ready(Ok("waiter")));
    assert_eq!(poll_once(newcomer.as_mut()), Poll::Ready(Ok("newcomer")));
}

#[tokio::test(start_paused = true)]
async fn a_slot_of_the_last_moment_is_taken() {
    let limiter = ConcurrencyLimiter::new(1).max_queue(1).max_wait(ms(50));
    let pipeline = limited(&limiter);
    let both = [run(&pipeline, ok(50, "held")), run(&pipeline, ok(0, "waited"))];
    assert_eq!(join_all(both).await, [Ok("held"), Ok("waited")]);
}

#[test]
fn slots_come_back_wherever_it_is_dropped() {
    // Each of three calls runs for 20 ms; the last gives up after 30.
    let calls = |clock: ManualClock, pipeline: Limited| async move {
        let call = || {
            pipeline.execute(|_| {
                let sleep = clock.sleep(ms(20));
                async move {
                    sleep.await;
                    Answer::Ok("a")
                }
            })
        };
        join_all((0..3).map(|_| call().into_future())).await
    };
    let run = |(): &(), polls, late| {
        let clock = ManualClock::new();
        let limiter = ConcurrencyLimiter::new(1).max_queue(2).max_wait(ms(30));
        let control = limiter.control();
        let builder = Pipeline::builder().clock(Arc::new(clock.clone()));
        let pipeline = builder.concurrency_limiter(limiter.clone()).build().unwrap();
        let (executor, cancel) = (ManualExecutor::new(), CancellationToken::new());
        let mut stage = Stage { clock: clock.clone(), executor, cancel, cancel_in: None };
        let came = stage.drive(calls(clock, pipeline), polls, late);
        (came, control)
    };
    let points = stage::every_point(
        &(),
        run,
        |(), (came, control)| {
            assert_eq!((control.in_flight(), control.queued()), (0, 0));
            if let Came::Ended(outcomes) = came {
                assert_eq!(outcomes[..2], [Ok("a"), Ok("a")]);
                assert_eq!(refusal(&outcomes[2]), "waited too long");
            }
        },
        |(came, _)| matches!(came, Came::Dropped),
    );
    assert!(points >= 4, "{points}");
}

#[tokio::test(start_paused = true)]
async fn failures_free_the_slot_and_tell_nothing() {
    let limiter = ConcurrencyLimiter::new(1);
    let pipeline = limited(&limiter);
    for _ in 0..3 {
        assert_eq!(run(&pipeline, err(5, "down")).await, Err(PipelineError::Failed("down")));
    }
    assert_eq!(limiter.control().in_flight(), 0);
}

#[test]
fn impossible_limits_are_refused() {
    let limiter = ConcurrencyLimiter::new(0).max_queue(usize::MAX).max_wait(Duration::ZERO);
    let mistakes = Pipeline::builder().concurrency_limiter(limiter).build().unwrap_err();
    let fields: Vec<_> = mistakes.mistakes().iter().map(|it| it.option().to_owned()).collect();
    assert_eq!(fields, ["concurrency-limiter.limit", "concurrency-limiter.max_wait"]);
    let limiter = ConcurrencyLimiter::new(usize::MAX);
    let mistakes = Pipeline::builder().concurrency_limiter(limiter).build().unwrap_err();
    assert!(mistakes.to_string().contains("is the most"), "{mistakes}");
    let limiter = ConcurrencyLimiter::new(3).max_queue(usize::MAX).max_wait(ms(500));
    let text = limited(&limiter).to_string();
    assert!(text.contains("3 at a time") && text.contains("for 500ms"), "{text}");
}

/// Looks at a limiter as soon as what is inside has an outcome, and while that is still there.
#[derive(Debug)]
struct Looks(ConcurrencyControl);

impl<'p, N> CustomStrategy<N> for &'p Looks
where
    N: Next + 'p,
{
    type Run = Pin<Box<dyn Future<Output = PipelineResult<N::Value, N::Error>> + 'p>>;

    fn run(self, next: N, cx: Context) -> Self::Run {
        Box::pin(async move {
            let mut run = Box::pin(next.run_once(&cx));
            let outcome = run.as_mut().await;
            assert_eq!((self.0.in_flight(), self.0.queued()), (0, 0));
            outcome
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_free_before_the_outcome_is_seen() {
    let limiter = ConcurrencyLimiter::new(1).max_queue(1);
    let looks = Looks(limiter.control());
    let builder = Pipeline::builder().strategy("looks", looks);
    let pipeline = builder.concurrency_limiter(limiter.clone()).build().unwrap();
    assert_eq!(pipeline.execute(|_| act(ok(0, "a"))).await, Ok("a"));
    assert_eq!(pipeline.execute(|_| act(ok(5, "a"))).await, Ok("a"));
    let holder = limited(&limiter);
    let (_, waited) = tokio::join!(
        run(&holder, ok(5, "held")),
        pipeline.execute(|_| act(ok(5, "a"))).into_future()
    );
    assert_eq!(waited, Ok("a"));
}
