//! The retry: which tries follow, when, and what they cost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hedgerow::pipeline::{
    BoxPipeline, Classify, Pipeline, PipelineError, PipelineResult, Rejected, Retry,
};
use hedgerow::testing::Tokens;
use hedgerow::{Attempt, Budget, Hedge};
use tokio::time::sleep;

use crate::p_events::Lines;
use crate::p_told::script;
use crate::support::{Act, Notes, act, caught, err, lock, ms, never, ok, poll_once};

fn every(wait: u64) -> Retry {
    Retry::constant().base(ms(wait))
}

type Boxed = BoxPipeline<&'static str, &'static str>;

/// The numbers of the attempts of an execution that all fail after 20 ms, and the hedges' own.
async fn numbers(pipeline: Boxed) -> Vec<(u32, u8, u64)> {
    let (notes, seen) = (Notes::new(), Mutex::new(Vec::new()));
    let work = |attempt: Attempt| {
        lock(&seen).push((attempt.number(), attempt.hedge_number(), notes.at()));
        act(err(20, "x"))
    };
    let outcome = pipeline.execute(work).await;
    assert_eq!(outcome, Err(PipelineError::Failed("x")));
    lock(&seen).clone()
}

#[tokio::test(start_paused = true)]
async fn h19_numbers_go_on_through_a_retry_around_a_hedge() {
    let retry = every(100).max_retries(1);
    let pipeline = Pipeline::builder().retry(retry).hedge(Hedge::after(ms(10))).build().unwrap();
    let seen = numbers(pipeline.boxed()).await;
    assert_eq!(seen, [(0, 0, 0), (1, 1, 10), (2, 0, 130), (3, 1, 140)]);
}

#[tokio::test(start_paused = true)]
async fn h20_numbers_are_never_repeated_by_a_retry_inside_a_hedge() {
    let retry = every(5).max_retries(1);
    let pipeline = Pipeline::builder().hedge(Hedge::after(ms(10))).retry(retry).build().unwrap();
    let seen = numbers(pipeline.boxed()).await;
    assert_eq!(seen, [(0, 0, 0), (1, 1, 10), (2, 0, 25), (3, 1, 35)]);
}

#[tokio::test(start_paused = true)]
async fn numbers_go_on_through_retries_around_retries_and_timeouts() {
    let pipeline = Pipeline::builder()
        .retry(every(10).max_retries(1))
        .timeout(ms(10_000))
        .retry(every(1).max_retries(1))
        .timeout(ms(5))
        .build()
        .unwrap();
    let notes = Notes::new();
    let outcome = pipeline.execute(script(&notes, [never()])).await;
    assert!(outcome.unwrap_err().timed_out().is_some());
    assert_eq!(notes.count("A"), 8);
    let starts: Vec<_> = notes.lines().into_iter().filter(|line| line.contains("starts")).collect();
    let expected = ["A0 starts @0", "A1 starts @6", "A2 starts @21", "A3 starts @27"];
    assert_eq!(starts, expected);
}

#[tokio::test(start_paused = true)]
async fn pr_68_a_retry_and_a_hedge_multiply_and_a_shared_budget_adds() {
    let around =
        |retry: Retry, hedge: Hedge| Pipeline::builder().retry(retry).hedge(hedge).build().unwrap();
    let run = async |pipeline: Boxed| {
        let notes = Notes::new();
        let outcome = pipeline.execute(script(&notes, [err(10, "x")])).await;
        assert_eq!(outcome, Err(PipelineError::Failed("x")));
        notes.lines().iter().filter(|line| line.contains("starts")).count()
    };
    let retry = every(10).max_retries(2);
    let hedge = Hedge::after(ms(1_000));
    let pipeline = around(retry.clone(), hedge.clone());
    assert_eq!(run(pipeline.boxed()).await, 6);
    assert_eq!(pipeline.max_attempts(), Some(6));
    let inside = Pipeline::builder().hedge(hedge.clone()).retry(retry.clone()).build().unwrap();
    let notes = Notes::new();
    inside.execute(script(&notes, [err(10, "x")])).await.unwrap_err();
    assert_eq!(notes.lines().iter().filter(|line| line.contains("starts")).count(), 6);
    let budget: Arc<dyn Budget> = Arc::new(Tokens::new(2));
    let pipeline = around(retry.budget(budget.clone()), hedge.budget(budget));
    assert_eq!(run(pipeline.boxed()).await, 3);
}

/// Counts what is paid in, taken and given back.
#[derive(Debug, Default)]
struct Account(Mutex<(u32, u32, u32)>);

impl Budget for Account {
    fn deposit(&self) {
        lock(&self.0).0 += 1;
    }

    fn try_take(&self) -> bool {
        lock(&self.0).1 += 1;
        true
    }

    fn give_back(&self) {
        lock(&self.0).2 += 1;
    }
}

#[tokio::test(start_paused = true)]
async fn an_execution_pays_in_once_whoever_shares_the_budget() {
    let account = Arc::new(Account::default());
    let budget: Arc<dyn Budget> = account.clone();
    let retry = every(10).budget(budget.clone());
    let alone = Pipeline::builder().retry(retry.clone()).build().unwrap();
    assert_eq!(alone.execute(script(&Notes::new(), [ok(1, "a")])).await, Ok("a"));
    assert_eq!(*lock(&account.0), (1, 0, 0));
    let shared = Pipeline::builder()
        .retry(retry)
        .hedge(Hedge::after(ms(50)).budget(budget))
        .build()
        .unwrap();
    assert_eq!(shared.execute(script(&Notes::new(), [ok(1, "a")])).await, Ok("a"));
    assert_eq!(*lock(&account.0), (2, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn pr_11_dropped_while_it_waits_everything_is_given_back() {
    let account = Arc::new(Account::default());
    let pipeline = Pipeline::builder().retry(every(1_000).budget(account.clone())).build().unwrap();
    let notes = Notes::new();
    let mut execution = Box::pin(pipeline.execute(script(&notes, [err(0, "x")])).into_future());
    assert!(poll_once(execution.as_mut()).is_pending());
    assert_eq!(*lock(&account.0), (0, 1, 0));
    drop(execution);
    assert_eq!(*lock(&account.0), (0, 1, 1));
    sleep(ms(10_000)).await;
    assert_eq!(notes.lines(), ["A0 starts @0", "A0 ends @0"], "no try follows");
}

#[tokio::test(start_paused = true)]
async fn pr_62_an_outer_limit_stops_everything_inside() {
    let pipeline = Pipeline::builder().timeout(ms(500)).retry(every(10).forever()).build().unwrap();
    let notes = Notes::new();
    let outcome = pipeline.execute(script(&notes, [err(200, "x")])).await;
    assert!(outcome.unwrap_err().timed_out().is_some());
    let expected = [
        "A0 starts @0",
        "A0 ends @200",
        "A1 starts @210",
        "A1 ends @410",
        "A2 starts @420",
        "A2 dropped @500",
    ];
    assert_eq!(notes.lines(), expected);
    sleep(ms(10_000)).await;
    assert_eq!(notes.lines(), expected);
    let hedged = Pipeline::builder()
        .timeout(ms(500))
        .retry(every(10).forever())
        .hedge(Hedge::after(ms(150)))
        .build()
        .unwrap();
    let notes = Notes::new();
    let outcome = hedged.execute(script(&notes, [err(200, "x")])).await;
    assert!(outcome.unwrap_err().timed_out().is_some());
    assert_eq!(notes.at(), 500);
    let lines = notes.lines();
    sleep(ms(10_000)).await;
    assert_eq!(notes.lines(), lines);
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_what_is_around_is_not_begun() {
    let lines = Lines::default();
    let pipeline = Pipeline::builder()
        .observer(lines.observer())
        .timeout(ms(500))
        .retry(every(300))
        .build()
        .unwrap();
    let notes = Notes::new();
    let outcome = pipeline.execute(script(&notes, [err(100, "x")])).await;
    assert_eq!(outcome, Err(PipelineError::Failed("x")), "the work's own error, and not later");
    assert_eq!(notes.at(), 500, "100 + 300 + 100, and another 300 would be too late");
    assert_eq!(lines.with("GaveUp"), [r#"retry[0] GaveUp { reason: "no time left" }"#]);
    let deadline = pipeline.execute(script(&Notes::new(), [err(100, "x")])).deadline(ms(350));
    assert_eq!(deadline.await, Err(PipelineError::Failed("x")));
    assert_eq!(notes.at(), 600);
}

#[tokio::test(start_paused = true)]
async fn pr_23_the_last_outcome_is_returned_and_the_others_are_told() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let hooked = Arc::clone(&told);
    let lines = Lines::default();
    let retry = Retry::exponential()
        .base(ms(10))
        .max_retries(2)
        .on_retry(move |next| lock(&hooked).push((next.retry, next.delay)));
    let pipeline = Pipeline::builder().observer(lines.observer()).retry(retry).build().unwrap();
    let notes = Notes::new();
    let outcome = pipeline.execute(script(&notes, [err(1, "x"), err(1, "y"), err(1, "z")])).await;
    assert_eq!(outcome, Err(PipelineError::Failed("z")));
    assert_eq!(*lock(&told), [(1, ms(10)), (2, ms(20))]);
    assert_eq!(notes.at(), 33);
    let expected = [
        "work[0] started",
        "work[0] ended failed 1",
        "retry[0] Retrying { retry: 1, delay: 10ms }",
        "work[1] started",
        "work[1] ended failed 1",
        "retry[0] Retrying { retry: 2, delay: 20ms }",
        "work[2] started",
        "work[2] ended failed 1",
        r#"retry[0] GaveUp { reason: "no retries left" }"#,
        "pipeline[0] over failed 33",
    ];
    assert_eq!(lines.all(), expected);
}

/// Knows which errors say that nothing started, and for how long to wait.
#[derive(Clone, Copy)]
struct Known;

impl Classify<&'static str, &'static str> for Known {
    fn handle(&self, outcome: &PipelineResult<&'static str, &'static str>) -> bool {
        !matches!(outcome, Ok("good") | Err(PipelineError::Failed("fatal")))
    }

    fn is_rejection(&self, error: &&'static str) -> bool {
        *error == "refused"
    }

    fn retry_after(
        &self,
        outcome: &PipelineResult<&'static str, &'static str>,
    ) -> Option<Duration> {
        match outcome {
            Err(PipelineError::Failed("busy")) => Some(ms(70)),
            Err(PipelineError::Failed("very busy")) => Some(Duration::MAX),
            _ => None,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn t34_t35_t36_work_that_must_not_run_twice_is_repeated_only_if_it_never_started() {
    let pipeline = Pipeline::builder().retry(every(10)).build().unwrap();
    let run = async |acts: [Act; 2]| {
        let notes = Notes::new();
        let execution = pipeline.execute(script(&notes, acts)).idempotent(false);
        (execution.classify(Known).await, notes.count("A1 starts"))
    };
    let failed = run([err(5, "x"), ok(5, "good")]).await;
    assert_eq!(failed, (Err(PipelineError::Failed("x")), 0), "it may have done something");
    assert_eq!(run([err(5, "refused"), ok(5, "good")]).await, (Ok("good"), 1));
    let by_default = pipeline.execute(script(&Notes::new(), [err(5, "x"), ok(5, "good")]));
    assert_eq!(by_default.idempotent(false).await, Err(PipelineError::Failed("x")));
}

#[tokio::test(start_paused = true)]
async fn what_a_target_asks_for_is_waited_for_up_to_the_longest_wait() {
    let retry = every(10).max_delay(ms(100));
    let pipeline = Pipeline::builder().retry(retry).build().unwrap();
    let notes = Notes::new();
    let acts = [err(0, "busy"), err(0, "very busy"), ok(0, "good")];
    assert_eq!(pipeline.execute(script(&notes, acts)).classify(Known).await, Ok("good"));
    assert_eq!(notes.lines()[2], "A1 starts @70");
    assert_eq!(notes.at(), 170);
}

#[tokio::test(start_paused = true)]
async fn a_retrys_own_predicate_is_stronger_than_the_executions() {
    let own = every(10)
        .handle(|outcome: &PipelineResult<&'static str, &'static str>| *outcome == Ok("bad"));
    let pipeline = Pipeline::builder().retry(own).build().unwrap();
    let run = |acts: [Act; 2]| pipeline.execute(script(&Notes::new(), acts)).handle(|_| false);
    assert_eq!(run([ok(0, "bad"), ok(0, "good")]).await, Ok("good"));
    assert_eq!(run([err(0, "x"), ok(0, "good")]).await, Err(PipelineError::Failed("x")));
}

#[tokio::test(start_paused = true)]
async fn without_a_wait_the_next_try_is_part_of_the_same_poll() {
    let pipeline = Pipeline::builder().retry(Retry::immediately()).build().unwrap();
    let work = script(&Notes::new(), [err(0, "x"), err(0, "y"), err(0, "z"), ok(0, "d")]);
    let mut execution = Box::pin(pipeline.execute(work).into_future());
    assert_eq!(poll_once(execution.as_mut()), std::task::Poll::Ready(Ok("d")));
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_ends_it_and_gives_back_what_was_taken() {
    let account = Arc::new(Account::default());
    let retry = every(10).budget(account.clone()).on_retry(|_| std::panic::panic_any("hook"));
    let pipeline = Pipeline::builder().retry(retry).build().unwrap();
    let notes = Notes::new();
    let outcome = caught(pipeline.execute(script(&notes, [err(5, "x")]))).await;
    assert_eq!(outcome, Err("hook".to_owned()));
    assert_eq!(*lock(&account.0), (0, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn delays_may_be_said_one_by_one_and_drawn_by_a_seed() {
    let said = every(10).delay_with(|next| (next.retry == 1).then_some(ms(25)));
    let pipeline = Pipeline::builder().retry(said.max_retries(2)).build().unwrap();
    let notes = Notes::new();
    pipeline.execute(script(&notes, [err(0, "x")])).await.unwrap_err();
    assert_eq!(notes.at(), 35);
    let drawn = async || {
        let waits = Arc::new(Mutex::new(Vec::new()));
        let hooked = Arc::clone(&waits);
        let retry = Retry::decorrelated().base(ms(10)).seed(7).max_retries(20);
        let retry = retry.on_retry(move |next| lock(&hooked).push(next.delay));
        let pipeline = Pipeline::builder().retry(retry).build().unwrap();
        pipeline.execute(|_| async { Err::<u8, _>("x") }).await.unwrap_err();
        lock(&waits).clone()
    };
    let (one, two) = (drawn().await, drawn().await);
    assert_eq!(one, two);
    assert!(one.iter().all(|wait| (ms(10)..=Duration::from_secs(30)).contains(wait)));
    assert!(one.windows(2).any(|pair| pair[0] > pair[1]), "it is by chance: {one:?}");
}

#[test]
fn pr_73_impossible_numbers_are_refused_when_it_is_built() {
    let retry = Retry::exponential().factor(f64::NAN).max_delay(ms(1)).jitter(2.0);
    let error = Pipeline::builder().retry(retry).build().unwrap_err();
    let options: Vec<_> = error.mistakes().iter().map(hedgerow::InvalidOption::option).collect();
    assert_eq!(options, ["retry.factor", "retry.max_delay", "retry.jitter"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_execution_is_never_repeated_whatever_the_predicate_says() {
    let rejected = Rejected::new("x", "no");
    assert_eq!(rejected.to_string(), "x: no");
    let token = hedgerow::CancellationToken::new();
    let pipeline = Pipeline::builder().retry(every(1_000)).build().unwrap();
    let notes = Notes::new();
    let execution =
        pipeline.execute(script(&notes, [err(5, "x")])).handle(|_| true).cancel_on(&token);
    let cancel = async {
        sleep(ms(50)).await;
        token.cancel();
    };
    let (outcome, ()) = tokio::join!(execution.into_future(), cancel);
    assert_eq!((outcome, notes.at()), (Err(PipelineError::Cancelled), 50));
}
