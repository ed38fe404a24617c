//! PR-34, 76 and 77: calls on many threads. Nothing here depends on how long anything takes.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use hedgerow::{
    Attempt, CancellationToken, Decision, Delay, Discarded, End, Event, EventKind, Exhausted,
    FailureStart, Hedge, Losers, ManualClock, Observer, Panics,
};
use tokio::sync::Barrier;
use tokio::task::yield_now;

use crate::support::{Answer, lock, ms};

/// What was told of one call.
#[derive(Clone, Default, Debug)]
struct Tally {
    started: usize,
    ended: Vec<(u8, End)>,
    decided: usize,
    over: Vec<Decision>,
}

impl Tally {
    fn add(&mut self, event: &Event) {
        match event.kind {
            EventKind::Started { .. } => self.started += 1,
            EventKind::Ended { end, .. } => self.ended.push((event.attempt.unwrap(), end)),
            EventKind::Decided => self.decided += 1,
            EventKind::Over { how } => self.over.push(how),
            _ => {}
        }
    }

    fn ended(&self, how: End) -> usize {
        self.ended.iter().filter(|(_, end)| *end == how).count()
    }

    /// Each started attempt ends once, one decision at most, and the end of the call fits them.
    fn check(&self) {
        assert!(self.started <= 4, "{self:?}");
        let mut ended: Vec<_> = self.ended.iter().map(|(attempt, _)| *attempt).collect();
        ended.sort_unstable();
        assert!(ended.into_iter().eq(0..u8::try_from(self.started).unwrap()), "{self:?}");
        assert!(self.decided <= 1, "{self:?}");
        assert_eq!(self.ended(End::Won), self.decided, "{self:?}");
        match self.over[..] {
            [Decision::Accepted(_)] => assert_eq!(self.decided, 1, "{self:?}"),
            [Decision::Exhausted(_)] => {
                let failed = self.ended(End::Failed) + self.ended(End::Panicked);
                assert_eq!(failed, self.started, "{self:?}");
            }
            [Decision::Aborted] => assert_eq!(self.ended(End::Panicked), 1, "{self:?}"),
            [Decision::Cancelled] => {}
            _ => panic!("the call is over once: {self:?}"),
        }
    }

    /// Whether a panic reached the caller.
    fn panicked(&self) -> bool {
        match self.over[..] {
            [Decision::Aborted] => true,
            [Decision::Exhausted(attempt)] => self.ended.contains(&(attempt, End::Panicked)),
            _ => false,
        }
    }
}

/// Keeps a tally of each call.
#[derive(Default)]
struct Ledger(Mutex<HashMap<u64, Tally>>);

impl Observer for Ledger {
    fn event(&self, event: &Event) {
        lock(&self.0).entry(event.call).or_default().add(event);
    }
}

/// A small generator of numbers that look random.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }
}

/// Goes up while it lives.
struct Gauge(Arc<AtomicI64>);

impl Gauge {
    fn up(gauge: &Arc<AtomicI64>) -> Self {
        gauge.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(gauge))
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits until nothing counted by the gauge lives any more.
async fn drained(gauge: &AtomicI64) {
    let empty = async {
        while gauge.load(Ordering::SeqCst) != 0 {
            yield_now().await;
        }
    };
    let limit = std::time::Duration::from_secs(30);
    tokio::time::timeout(limit, empty).await.expect("something never ends");
}

#[derive(Clone, Copy, PartialEq)]
enum Does {
    Succeed,
    Fail,
    Panic,
    Never,
}

/// One attempt: gives way so many times, then does it.
async fn scripted(gauge: Gauge, yields: u64, does: Does) -> Result<u8, u16> {
    let _gauge = gauge;
    for _ in 0..yields {
        yield_now().await;
    }
    match does {
        Does::Succeed => Ok(1),
        Does::Fail => Err(503),
        // Without a message on the terminal.
        Does::Panic => std::panic::resume_unwind(Box::new("boom")),
        Does::Never => std::future::pending().await,
    }
}

fn policy(draw: &mut Draw) -> Hedge {
    let delays = [Delay::Immediately, Delay::OnFailure];
    let joins = Losers::Join { grace: Some(ms(0)) };
    Hedge::default()
        .delay(vec![draw.pick(&delays), draw.pick(&delays), draw.pick(&delays)])
        .max_hedges(u32::try_from(draw.below(4)).unwrap())
        .failure_start(draw.pick(&[FailureStart::Launch, FailureStart::LaunchWhenIdle]))
        .exhausted(draw.pick(&[Exhausted::Primary, Exhausted::First, Exhausted::Last]))
        .panics(draw.pick(&[Panics::Propagate, Panics::AsFailure]))
        .losers(draw.pick(&[Losers::Drop, joins, Losers::Detach]))
}

/// Polls a call so many times and drops it, if it has not ended by then. Says whether it ended.
async fn patience(call: impl Future, mut polls: u64) -> bool {
    let mut call = pin!(call);
    poll_fn(|cx| {
        if polls == 0 {
            return Poll::Ready(false);
        }
        polls -= 1;
        cx.waker().wake_by_ref();
        call.as_mut().poll(cx).map(|_| true)
    })
    .await
}

/// One random call: how it is made, and what its attempts do.
async fn random_call(seed: u64, ledger: Arc<Ledger>, alive: Arc<AtomicI64>) {
    let mut draw = Draw(seed);
    draw.below(2); // seeds that are close together draw alike at first
    draw.below(2);
    let hedge = policy(&mut draw).observer(ledger);
    let detach = hedge.policy().losers == Losers::Detach;
    let does = [Does::Succeed, Does::Fail, Does::Fail, Does::Panic, Does::Never];
    let does = if detach { &does[..4] } else { &does };
    let script: Vec<_> = (0..4).map(|_| (draw.below(6), draw.pick(does))).collect();
    let polls = draw.below(24);
    let spawned = detach || draw.below(2) == 0;
    // The rules live as long as anything of the call does.
    let held = Gauge::up(&alive);
    let work = move |attempt: Attempt| {
        let (yields, does) = script[usize::from(attempt.hedge_number())];
        scripted(Gauge::up(&alive), yields, does)
    };
    let call = hedge
        .call(work)
        .on_discard(move |_: Discarded<u8, u16>| assert!(held.0.load(Ordering::SeqCst) > 0));
    if spawned {
        patience(call.spawned().into_future(), polls).await;
    } else {
        patience(call.into_future(), polls).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pr_34_every_started_attempt_ends_exactly_once() {
    const CALLS: u64 = 10_000;
    let (ledger, alive) = (Arc::<Ledger>::default(), Arc::<AtomicI64>::default());
    let calls: Vec<_> = (0..CALLS)
        .map(|seed| tokio::spawn(random_call(seed, Arc::clone(&ledger), Arc::clone(&alive))))
        .collect();
    let mut panics = 0;
    for call in calls {
        panics += usize::from(call.await.is_err());
    }
    drained(&alive).await;
    let tallies = lock(&ledger.0);
    assert_eq!(tallies.len() as u64, CALLS, "each call was told of");
    tallies.values().for_each(Tally::check);
    let told = tallies.values().filter(|tally| tally.panicked()).count();
    assert_eq!(panics, told, "the panics that reached a caller");
    for how in [End::Won, End::Failed, End::Panicked, End::Cancelled, End::Discarded] {
        let occurs = tallies.values().map(|tally| tally.ended(how)).sum::<usize>();
        assert!(occurs > 100, "{how:?} occurs {occurs} times");
    }
}

/// Runs a call so many times on each of four tasks.
async fn on_four_tasks<F>(times: usize, call: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let calls: Vec<_> = (0..times).map(|_| call()).collect();
            tokio::spawn(async {
                for call in calls {
                    call.await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// The two attempts of a call are released together; one result comes back.
async fn two_at_once(hedge: Hedge, spawned: bool, discards: Arc<AtomicUsize>) {
    let told = Arc::<Ledger>::default();
    let hedge = hedge.observer(Arc::clone(&told) as Arc<_>);
    let (barrier, release) = (Arc::new(Barrier::new(3)), CancellationToken::new());
    let released = release.clone();
    let both_wait = Arc::clone(&barrier);
    let work = move |attempt: Attempt| {
        let (barrier, released) = (Arc::clone(&barrier), released.clone());
        async move {
            // A task of its own each, or both in one: then somebody else lets go of both.
            barrier.wait().await;
            if !spawned {
                released.cancelled().await;
            }
            Ok::<_, u16>(attempt.hedge_number())
        }
    };
    tokio::spawn(async move {
        both_wait.wait().await;
        release.cancel();
    });
    let call = hedge.call(work).on_discard(move |lost: Discarded<u8, u16>| {
        assert_eq!(lost.outcome, Ok(lost.hedge_number), "its own");
        discards.fetch_add(1, Ordering::Relaxed);
    });
    let answer = match spawned {
        true => call.spawned().await,
        false => call.await,
    };
    let winner = answer.unwrap();
    let tallies = lock(&told.0);
    let [tally] = tallies.values().collect::<Vec<_>>()[..] else { panic!("one call") };
    assert_eq!(tally.over, [Decision::Accepted(winner)]);
    assert_eq!((tally.started, tally.decided), (2, 1));
    assert_eq!(tally.ended(End::Won), 1);
    let lost = tally.ended(End::Cancelled) + tally.ended(End::Discarded);
    assert_eq!(lost, 1, "the other lost, once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pr_76_two_attempts_that_end_together_give_one_result() {
    let hedge = Hedge::default().delay(Delay::Immediately);
    let joins = Losers::Join { grace: None };
    for (losers, spawned, times) in
        [(Losers::Drop, false, 5_000), (Losers::Drop, true, 12_500), (joins, true, 7_500)]
    {
        let discards = Arc::<AtomicUsize>::default();
        let hedge = hedge.clone().losers(losers);
        on_four_tasks(times, || two_at_once(hedge.clone(), spawned, Arc::clone(&discards))).await;
        let discards = discards.load(Ordering::Relaxed);
        if losers == joins {
            assert_eq!(discards, 4 * times, "every loser ended, and was discarded once");
        } else {
            assert!(discards <= 4 * times);
        }
    }
}

/// What a hedge that takes 5 ms to set up came to.
#[derive(Default)]
struct Setup {
    bodies: AtomicUsize,
    alive: Arc<AtomicI64>,
}

/// The primary answers after `primary` ms; the hedge is due at 100 and takes 5 to set up.
async fn while_setting_up(clock: ManualClock, primary: u64, setup: Arc<Setup>) -> Answer {
    let hedge = Hedge::after(ms(100)).clock(Arc::new(clock.clone()));
    let (clock, hook) = (&clock, clock.clone());
    let setup = &setup;
    let work = async |attempt: Attempt| {
        let _alive = Gauge::up(&setup.alive);
        if attempt.hedge_number() == 0 {
            clock.sleep(ms(primary)).await;
            return Ok("a");
        }
        setup.bodies.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    };
    let call = hedge.call(work).on_hedge_async(|_| {
        let (alive, sleep) = (Gauge::up(&setup.alive), hook.sleep(ms(5)));
        async move {
            let _alive = alive;
            sleep.await;
        }
    });
    call.await
}

#[test]
fn pr_77_a_hedge_that_is_being_set_up_when_the_answer_comes() {
    for primary in 99..=106 {
        let (clock, setup) = (ManualClock::new(), Arc::<Setup>::default());
        let call = while_setting_up(clock.clone(), primary, Arc::clone(&setup));
        let mut call = Box::pin(call);
        let mut elapsed = 0;
        while crate::support::poll_once(call.as_mut()).is_pending() {
            assert!(elapsed < primary, "the answer is there");
            clock.advance(ms(1));
            elapsed += 1;
        }
        assert_eq!(elapsed, primary);
        let bodies = setup.bodies.load(Ordering::SeqCst);
        assert_eq!(bodies, usize::from(primary > 105), "{primary}");
        assert_eq!(setup.alive.load(Ordering::SeqCst), 0, "{primary}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pr_77_the_same_while_time_goes_on_in_another_thread() {
    for round in 0..10_000 {
        let primary = 99 + Draw(round).below(8);
        let (clock, setup) = (ManualClock::new(), Arc::<Setup>::default());
        let call = while_setting_up(clock.clone(), primary, Arc::clone(&setup));
        let call = tokio::spawn(call);
        clock.advance(ms(95));
        while !call.is_finished() {
            clock.advance(ms(1));
            yield_now().await;
        }
        assert_eq!(call.await.unwrap(), Ok("a"));
        assert_eq!(setup.alive.load(Ordering::SeqCst), 0);
        assert!(setup.bodies.load(Ordering::SeqCst) <= 1);
    }
}
