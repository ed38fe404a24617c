//! How often attempts are polled: never after they ended, and at most once each time the call is.

use std::cell::Cell;
use std::future::{Future, IntoFuture, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use hedgerow::{Attempt, Delay, Hedge, Losers};

use crate::support::{Act, Answer, Notes, Scripted, act, both, err, ms, never, ok, transient};

/// Counts how often a call is polled, for the attempts inside it to see.
#[derive(Clone, Default)]
pub(crate) struct Turns(Rc<Cell<usize>>);

impl Turns {
    /// Awaits a call, counting its polls.
    pub(crate) async fn drive<F: IntoFuture>(&self, call: F) -> F::Output {
        let mut call = pin!(call.into_future());
        poll_fn(|cx| {
            self.0.set(self.0.get() + 1);
            call.as_mut().poll(cx)
        })
        .await
    }

    /// How often the call was polled.
    pub(crate) fn count(&self) -> usize {
        self.0.get()
    }
}

/// An attempt that panics if it is polled twice in one turn, or after it ended.
pub(crate) struct Strict {
    work: Scripted,
    turns: Turns,
    latest: usize,
    over: bool,
}

impl Strict {
    pub(crate) fn new(work: impl Future<Output = Answer> + Send + 'static, turns: &Turns) -> Self {
        Self { work: Box::pin(work), turns: turns.clone(), latest: 0, over: false }
    }
}

impl Future for Strict {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        assert!(!self.over, "polled after it ended");
        let turn = self.turns.count();
        assert_ne!(self.latest, turn, "polled twice in one turn");
        self.latest = turn;
        let polled = self.work.as_mut().poll(cx);
        self.over = polled.is_ready();
        polled
    }
}

/// Policies whose calls take every path: fast, watched, with and without a timer, joining.
fn policies() -> Vec<Hedge> {
    let delays = [Delay::Immediately, Delay::After(ms(10)), Delay::After(ms(25)), Delay::OnFailure];
    let joins = Losers::Join { grace: Some(ms(15)) };
    delays
        .into_iter()
        .map(|delay| Hedge::default().delay(delay).max_hedges(3))
        .flat_map(|hedge| [hedge.clone(), hedge.losers(joins)])
        .flat_map(both)
        .collect()
}

/// How an attempt of the next test may end.
const ENDS: [Act; 6] =
    [never(), ok(0, "v"), ok(10, "v"), err(0, "e"), err(10, "e"), err(20, "fatal")];

#[tokio::test(start_paused = true)]
async fn an_attempt_is_polled_once_a_turn_and_never_after_it_ended() {
    for hedge in policies() {
        for code in 0..ENDS.len().pow(3) {
            let turns = Turns::default();
            let end = |attempt: u32| match attempt {
                3.. => ok(30, "last"),
                _ => ENDS[code / ENDS.len().pow(attempt) % ENDS.len()],
            };
            let work = |attempt: Attempt| Strict::new(act(end(attempt.number())), &turns);
            let call = hedge.call(work).handle(transient);
            let answer = tokio::time::timeout(ms(1_000), turns.drive(call)).await;
            let fails = |act: &Act| matches!(act, Act::Return(_, Err("e")));
            let decides = (0..4).map(end).find(|act| !fails(act));
            let waits = hedge.policy().schedule.delay(1) == Delay::OnFailure;
            let hangs = waits && matches!(decides, Some(Act::Never));
            assert_eq!(answer.is_err(), hangs, "{hedge:?} {code}");
            assert!(turns.count() <= 16, "it does not spin: {hedge:?} {code}");
        }
    }
}

/// Ready the second time it is polled, and wakes itself in between, like a busy stream.
async fn yields(times: usize) {
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_wakes_itself_is_polled_once_a_wake() {
    for hedge in both(Hedge::after(ms(50)).delay(Delay::Immediately)) {
        let turns = Turns::default();
        let work = |attempt: Attempt| {
            let times = 40 + 10 * usize::from(attempt.hedge_number());
            let work = async move {
                yields(times).await;
                Answer::Ok("a")
            };
            Strict::new(work, &turns)
        };
        assert_eq!(turns.drive(hedge.call(work)).await, Ok("a"));
        assert_eq!(turns.count(), 41);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_polls_a_call_that_waits() {
    for hedge in both(Hedge::after(ms(50))) {
        let (notes, turns) = (Notes::new(), Turns::default());
        let work = |_| Strict::new(act(ok(10_000, "a")), &turns);
        assert_eq!(turns.drive(hedge.call(work)).await, Ok("a"));
        assert_eq!(notes.at(), 10_000);
        assert_eq!(turns.count(), 3, "the start, the hedge, the answer");
    }
}
