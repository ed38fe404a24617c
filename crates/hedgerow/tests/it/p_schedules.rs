//! The limiters in every order in which things can happen to three callers: they are polled when
//! they are woken (and once when they are not), their work finishes, they are dropped at any time,
//! timers pass.

use std::cell::{Cell, RefCell};
use std::future::{Future, IntoFuture, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use hedgerow::pipeline::{
    ConcurrencyControl, ConcurrencyLimiter, Pipeline, PipelineResult, RateControl, RateLimiter,
};
use hedgerow::{Clock, ManualClock};

use crate::p_told::refusal;
use crate::support::ms;

const CALLERS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Poll(usize),
    Drop(usize),
    Finish(usize),
    Timer,
}

/// Walks through every sequence of choices.
#[derive(Default)]
struct Choices {
    /// What was chosen, of how many.
    taken: Vec<(usize, usize)>,
    at: usize,
}

impl Choices {
    fn choose<V: Copy>(&mut self, from: &[V]) -> V {
        if self.at == self.taken.len() {
            self.taken.push((0, from.len()));
        }
        let (choice, of) = self.taken[self.at];
        assert_eq!(of, from.len(), "the same choices lead to the same place");
        self.at += 1;
        from[choice]
    }

    /// The next sequence. `false`: there is none.
    fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some((choice, of)) = self.taken.last_mut() {
            *choice += 1;
            if choice < of {
                return true;
            }
            self.taken.pop();
        }
        false
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Work that ends when it is told to.
#[derive(Default)]
struct Work {
    runs: Cell<bool>,
    finished: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Work {
    async fn run(self: Rc<Self>) -> Result<(), &'static str> {
        self.runs.set(true);
        poll_fn(|cx| {
            if self.finished.get() {
                return Poll::Ready(());
            }
            *self.waker.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
        Ok(())
    }

    fn finish(&self) {
        self.finished.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Fresh,
    /// Lined up at this moment.
    Waits(Instant),
    Runs,
    Over,
}

type Outcome = PipelineResult<(), &'static str>;
type Call<'p> = Pin<Box<dyn Future<Output = Outcome> + 'p>>;

struct Caller<'p> {
    future: Option<Call<'p>>,
    work: Rc<Work>,
    woken: Arc<Woken>,
    state: State,
}

impl Caller<'_> {
    fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::Relaxed)
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        self.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&self.woken));
        let polled = self.future.as_mut()?.as_mut().poll(&mut Context::from_waker(&waker));
        self.state = match (&polled, self.state) {
            (Poll::Ready(_), _) => State::Over,
            (Poll::Pending, _) if self.work.runs.get() => State::Runs,
            (Poll::Pending, State::Waits(since)) => State::Waits(since),
            (Poll::Pending, _) => State::Waits(now),
        };
        match polled {
            Poll::Pending => None,
            Poll::Ready(outcome) => {
                self.future = None;
                Some(outcome)
            }
        }
    }
}

/// What a limiter promises.
trait Promise {
    /// What holds after every step.
    fn holds(&self, world: &World<'_>);
    /// Whether the turn of the first who waits has come.
    fn is_next(&self, world: &World<'_>) -> bool;
    /// Somebody was let in.
    fn admitted(&self, world: &World<'_>);
    /// Somebody was refused, who began to wait then.
    fn refused(&self, world: &World<'_>, since: Instant, why: &'static str);
}

struct World<'p> {
    clock: &'p ManualClock,
    callers: Vec<Caller<'p>>,
    /// Who waits, in order.
    line: Vec<usize>,
    spurious: usize,
    trace: Vec<Step>,
}

impl World<'_> {
    fn running(&self) -> usize {
        self.callers.iter().filter(|caller| caller.state == State::Runs).count()
    }

    /// What can happen now.
    fn steps(&self) -> Vec<Step> {
        let mut steps = vec![];
        for (index, caller) in self.callers.iter().enumerate() {
            let is_fresh = caller.state == State::Fresh;
            if caller.state != State::Over {
                if is_fresh || caller.is_woken() || self.spurious > 0 {
                    steps.push(Step::Poll(index));
                }
                steps.push(Step::Drop(index));
            }
            if caller.state == State::Runs && !caller.work.finished.get() {
                steps.push(Step::Finish(index));
            }
            if is_fresh {
                break; // those who have not begun are all alike
            }
        }
        if self.clock.next_deadline().is_some() {
            steps.push(Step::Timer);
        }
        steps
    }

    fn take(&mut self, step: Step, promise: &impl Promise) {
        self.trace.push(step);
        match step {
            Step::Poll(index) => self.poll(index, promise),
            Step::Drop(index) => {
                let caller = &mut self.callers[index];
                (caller.future, caller.state) = (None, State::Over);
            }
            Step::Finish(index) => self.callers[index].work.finish(),
            Step::Timer => self.clock.advance(self.clock.next_deadline().unwrap()),
        }
        self.line.retain(|index| matches!(self.callers[*index].state, State::Waits(_)));
    }

    fn poll(&mut self, index: usize, promise: &impl Promise) {
        let (now, before) = (self.clock.now(), self.callers[index].state);
        if before != State::Fresh && !self.callers[index].is_woken() {
            self.spurious -= 1;
        }
        let first = self.line.first().copied();
        let outcome = self.callers[index].poll(now);
        if before == State::Fresh && matches!(self.callers[index].state, State::Waits(_)) {
            self.line.push(index);
        }
        let since = if let State::Waits(since) = before { since } else { now };
        if let Some(Err(_)) = &outcome {
            let why = refusal(&outcome.unwrap());
            promise.refused(self, since, why);
        } else if before != State::Runs && self.callers[index].work.runs.get() {
            assert!(first.is_none_or(|first| first == index), "overtaken: {:?}", self.trace);
            promise.admitted(self);
        }
    }

    /// Whoever's turn has come knows it, and somebody will wake the others.
    fn check(&self, promise: &impl Promise) {
        promise.holds(self);
        let Some(first) = self.line.first() else { return };
        let first = &self.callers[*first];
        if promise.is_next(self) {
            assert!(first.is_woken(), "forgotten: {:?}", self.trace);
        }
        let stirs =
            self.callers.iter().any(|caller| caller.is_woken() || caller.state == State::Runs);
        let sleeps = self.clock.next_deadline().is_some();
        assert!(stirs || sleeps, "nobody will ever wake them: {:?}", self.trace);
    }
}

/// Every schedule of three callers, one after the other on one limiter. Says how many there are.
/// Each begins a while after the one before, and where nobody runs or waits.
fn every_schedule<'p>(
    clock: &ManualClock,
    promise: &impl Promise,
    works_at_once: bool,
    call: impl Fn(Rc<Work>) -> Call<'p>,
) -> usize {
    let (mut choices, mut count) = (Choices::default(), 0);
    loop {
        let callers = (0..CALLERS).map(|_| {
            let work = Rc::new(Work::default());
            work.finished.set(works_at_once);
            let (future, woken) = (Some(call(Rc::clone(&work))), Arc::default());
            Caller { future, work, woken, state: State::Fresh }
        });
        let (line, trace, spurious) = (vec![], vec![], 1);
        let mut world = World { clock, callers: callers.collect(), line, spurious, trace };
        while world.callers.iter().any(|caller| caller.state != State::Over) {
            let step = choices.choose(&world.steps());
            world.take(step, promise);
            world.check(promise);
        }
        assert_eq!(clock.sleepers(), 0, "timers are left: {:?}", world.trace);
        clock.advance(ms(1_000));
        count += 1;
        if !choices.advance() {
            return count;
        }
    }
}

/// One at a time.
struct OneAtATime {
    control: ConcurrencyControl,
    max_queue: usize,
    max_wait: Duration,
}

impl Promise for OneAtATime {
    fn holds(&self, world: &World<'_>) {
        let (taken, running) = (self.control.in_flight(), world.running());
        assert!(running <= taken && taken <= 1, "{running} of {taken}: {:?}", world.trace);
        assert_eq!(self.control.queued(), world.line.len(), "{:?}", world.trace);
        let handed_on = running == 0 && !world.line.is_empty();
        assert_eq!(taken, usize::from(running == 1 || handed_on), "{:?}", world.trace);
    }

    fn is_next(&self, world: &World<'_>) -> bool {
        world.running() == 0
    }

    fn admitted(&self, world: &World<'_>) {
        assert_eq!(world.running(), 1, "{:?}", world.trace);
    }

    fn refused(&self, world: &World<'_>, since: Instant, why: &'static str) {
        assert_eq!(self.control.in_flight(), 1, "a slot is free: {:?}", world.trace);
        match why {
            "queue full" => assert_eq!(world.line.len(), self.max_queue, "{:?}", world.trace),
            "waited too long" => {
                assert!(world.clock.now() >= since + self.max_wait, "{:?}", world.trace);
            }
            other => panic!("{other}: {:?}", world.trace),
        }
    }
}

#[test]
fn one_slot_in_every_order() {
    for max_queue in [1, 2] {
        let (clock, max_wait) = (ManualClock::new(), ms(50));
        let limiter = ConcurrencyLimiter::new(1).max_queue(max_queue).max_wait(max_wait);
        let promise = OneAtATime { control: limiter.control(), max_queue, max_wait };
        let builder = Pipeline::builder().clock(Arc::new(clock.clone()));
        let pipeline = builder.concurrency_limiter(limiter).build().unwrap();
        let count = every_schedule(&clock, &promise, false, |work| {
            let work = move |_| Rc::clone(&work).run();
            Box::pin(pipeline.execute(work).into_future())
        });
        assert!(count > 1_000, "{count}");
    }
}

/// One each 10 ms.
struct OneEach {
    control: RateControl,
    period: Duration,
    max_wait: Duration,
    /// When the latest was let in.
    latest: Cell<Instant>,
}

impl Promise for OneEach {
    fn holds(&self, world: &World<'_>) {
        assert_eq!(self.control.queued(), world.line.len(), "{:?}", world.trace);
    }

    fn is_next(&self, world: &World<'_>) -> bool {
        world.clock.now() >= self.latest.get() + self.period
    }

    fn admitted(&self, world: &World<'_>) {
        assert!(self.is_next(world), "too early: {:?}", world.trace);
        self.latest.set(world.clock.now());
    }

    fn refused(&self, world: &World<'_>, since: Instant, why: &'static str) {
        let (next, gives_up) = (self.latest.get() + self.period, since + self.max_wait);
        match why {
            // Whoever is first has a permit as soon as there is one.
            "rate exceeded" => assert!(next > gives_up, "in time: {:?}", world.trace),
            "waited too long" => assert!(world.clock.now() >= gives_up, "{:?}", world.trace),
            other => panic!("{other}: {:?}", world.trace),
        }
    }
}

#[test]
fn one_permit_each_10_ms_in_every_order() {
    for max_wait in [ms(15), ms(20), ms(40)] {
        let (clock, period) = (ManualClock::new(), ms(10));
        let limiter = RateLimiter::per(1, period).max_wait(max_wait);
        let (control, latest) = (limiter.control(), Cell::new(clock.now()));
        let promise = OneEach { control, period, max_wait, latest };
        let builder = Pipeline::builder().clock(Arc::new(clock.clone()));
        let pipeline = builder.rate_limiter(limiter).build().unwrap();
        clock.advance(period);
        let count = every_schedule(&clock, &promise, true, |work| {
            let work = move |_| Rc::clone(&work).run();
            Box::pin(pipeline.execute(work).into_future())
        });
        assert!(count > 100, "{count}");
    }
}
