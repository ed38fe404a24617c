//! The future of a call: where it can go, what it borrows, how it says that it is over.

use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use hedgerow::{Attempt, Delay, Hedge, ManualClock, hedged};
use tokio::time::{advance, sleep, timeout};

use crate::support::{Answer, Notes, caught, err, ms, never, ok, poll_once, work};

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll_with<F: Future>(future: Pin<&mut F>, count: &Arc<Count>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(count));
    future.poll(&mut Context::from_waker(&waker))
}

/// Awaits in another task; a call that nobody wakes any more fails the test.
async fn elsewhere<F>(call: F) -> F::Output
where
    F: Future<Output: Send> + Send + 'static,
{
    let joined = timeout(ms(10_000), tokio::spawn(call)).await;
    joined.expect("the call was woken").unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_can_move_to_another_task_before_its_hedge_is_due() {
    for policy in crate::support::both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let call = hedged(work(&notes, [never(), ok(20, "b")])).policy(|_| policy);
        let mut call = Box::pin(call.into_future());
        assert!(poll_once(call.as_mut()).is_pending());
        advance(ms(30)).await;
        assert_eq!(elsewhere(call).await, Ok("b"));
        let expected = ["A0 starts @0", "A1 starts @50", "A1 ends @70", "A0 dropped @70"];
        assert_eq!(notes.lines(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_can_move_to_another_task_while_attempts_run() {
    for policy in crate::support::both(Hedge::after(ms(50)).max_hedges(2)) {
        let notes = Notes::new();
        let script = [never(), ok(100, "b"), ok(500, "c")];
        let call = hedged(work(&notes, script)).policy(|_| policy);
        let mut call = Box::pin(call.into_future());
        assert!(poll_once(call.as_mut()).is_pending());
        advance(ms(50)).await;
        assert!(poll_once(call.as_mut()).is_pending());
        assert_eq!(elsewhere(call).await, Ok("b"));
        assert_eq!(notes.count("A2 starts @100"), 1);
        assert_eq!(notes.at(), 150);
    }
}

#[test]
fn a_call_on_a_manual_clock_wakes_whoever_polled_it_last() {
    let clock = ManualClock::new();
    let notes = Notes::on(&clock);
    let hedge = Hedge::after(ms(50)).clock(Arc::new(clock.clone()));
    let sleeps = clock.clone();
    let work = |attempt: Attempt| {
        let wait = sleeps.sleep(ms([500, 20][usize::from(attempt.hedge_number())]));
        notes.clone().attempt(attempt.hedge_number(), async {
            wait.await;
            Answer::Ok("b")
        })
    };
    let mut call = pin!(hedge.call(work).into_future());
    let (first, second) = (Arc::<Count>::default(), Arc::<Count>::default());
    assert!(poll_with(call.as_mut(), &first).is_pending());
    clock.advance(ms(30));
    assert!(poll_with(call.as_mut(), &second).is_pending());
    clock.advance(ms(20));
    assert_eq!(first.0.load(Ordering::SeqCst), 0);
    assert_eq!(second.0.load(Ordering::SeqCst), 1);
    assert!(poll_with(call.as_mut(), &first).is_pending());
    clock.advance(ms(20));
    assert_eq!(first.0.load(Ordering::SeqCst), 1);
    assert_eq!(poll_with(call.as_mut(), &second), Poll::Ready(Ok("b")));
    assert_eq!(notes.count("A1 starts @50"), 1);
    assert_eq!(notes.count("A0 dropped @70"), 1);
    assert_eq!(clock.sleepers(), 0, "its timers went with it");
}

#[test]
fn a_call_and_its_report_can_cross_threads() {
    fn crosses<T: Send>(it: T) -> T {
        it
    }
    let hedge = Hedge::default();
    let call = || hedge.call(async |_| Answer::Ok("a"));
    drop(crosses(call().into_future()));
    drop(crosses(call().settle().into_future()));
    drop(crosses(call().tokens().on_hedge(|_| {}).into_future()));
    drop(crosses(call().spawned().into_future()));
    drop(crosses(call().on_hedge_async(|_| sleep(ms(1))).into_future()));
}

#[tokio::test(start_paused = true)]
async fn work_that_cannot_cross_threads_runs_in_its_callers_task() {
    for hedge in crate::support::both(Hedge::after(ms(50))) {
        let shared = Rc::new(RefCell::new(vec![]));
        let work = |attempt: Attempt| {
            let shared = Rc::clone(&shared);
            async move {
                shared.borrow_mut().push(attempt.hedge_number());
                sleep(ms(70 - 50 * u64::from(attempt.hedge_number()))).await;
                Ok::<_, Rc<str>>(Rc::new(attempt.hedge_number()))
            }
        };
        let answer = hedge.call(work).await;
        assert_eq!(answer.as_deref().ok(), Some(&0), "both end at 70");
        assert_eq!(*shared.borrow(), [0, 1]);
        assert_eq!(Rc::strong_count(&shared), 1, "both attempts are gone");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_borrows_what_its_caller_has() {
    let (url, mut asked) = (String::from("local"), 0);
    let hedge = Hedge::default().delay(Delay::Immediately);
    let answer: Result<&str, &str> = hedge
        .call(|_| {
            asked += 1;
            let url = &url;
            async move {
                sleep(ms(10)).await;
                Ok(url.as_str())
            }
        })
        .await;
    assert_eq!(answer, Ok("local"));
    assert_eq!(asked, 2);
}

const OVER: &str = "`Hedged` polled after completion";

#[tokio::test(start_paused = true)]
async fn a_call_that_is_polled_after_completion_says_so() {
    for hedge in crate::support::both(Hedge::after(ms(50))) {
        for (script, answer) in [
            ([ok(0, "a"), never()], Ok("a")),
            ([ok(10, "a"), never()], Ok("a")),
            ([never(), ok(20, "b")], Ok("b")),
            ([err(10, "p"), err(10, "q")], Err("p")),
        ] {
            let notes = Notes::new();
            let mut call = Box::pin(hedge.call(work(&notes, script)).into_future());
            assert_eq!(call.as_mut().await, answer);
            let lines = notes.lines();
            assert_eq!(caught(call.as_mut()).await, Err(OVER.to_owned()));
            assert_eq!(notes.lines(), lines, "nothing else happens");

            let call = hedge.call(work(&notes, script)).settle();
            let mut call = Box::pin(call.into_future());
            assert_eq!(call.as_mut().await.into_outcome(), Some(answer));
            let again = caught(call.as_mut()).await;
            assert_eq!(again.unwrap_err(), OVER);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_says_what_it_is_doing() {
    let notes = Notes::new();
    let hedge = Hedge::after(ms(50));
    let mut call = Box::pin(hedge.call(work(&notes, [never(), ok(20, "b")])).into_future());
    let mut stages = vec![format!("{call:?}")];
    assert!(poll_once(call.as_mut()).is_pending());
    stages.push(format!("{call:?}"));
    advance(ms(50)).await;
    assert!(poll_once(call.as_mut()).is_pending());
    stages.push(format!("{call:?}"));
    assert_eq!(call.as_mut().await, Ok("b"));
    stages.push(format!("{call:?}"));
    let expected = ["not started", "only the primary runs", "racing", "over"];
    let expected = expected.map(|stage| format!("Hedged {{ stage: {stage:?}, .. }}"));
    assert_eq!(stages, expected);
}
