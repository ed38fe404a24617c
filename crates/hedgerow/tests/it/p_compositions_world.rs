//! Executions that run side by side, whose attempts keep account of what becomes of them.

use std::future::{Future, IntoFuture, pending};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use fastrand::Rng;
use hedgerow::pipeline::{Classify, End, Pipeline, PipelineError, Then};
use hedgerow::{Attempt, CancellationToken, Clock, ManualClock};

use crate::p_compositions_plan::{Act, Plan};
use crate::p_compositions_stack::{Failure, Outcome, Stack, Value};
use crate::support::{lock, ms};

/// How an attempt ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum How {
    Ended,
    Dropped,
    Panicked,
}

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) number: u32,
    pub(crate) act: Act,
    pub(crate) at: Instant,
    /// When it ended.
    pub(crate) until: Instant,
    pub(crate) ends: Vec<How>,
    pub(crate) token: Option<CancellationToken>,
}

/// What became of the attempts of one execution.
#[derive(Default, Debug)]
pub(crate) struct Log {
    pub(crate) records: Vec<Record>,
    pub(crate) running: usize,
    pub(crate) most_running: usize,
}

/// How an execution came out.
#[derive(Debug)]
pub(crate) enum Came {
    Dropped,
    Ended(Outcome),
    Panicked,
    /// Nothing could end it.
    Hangs,
}

/// What outcomes mean.
#[derive(Clone)]
struct Meaning {
    handles_rejections: bool,
}

impl Classify<Value, Failure> for Meaning {
    fn handle(&self, outcome: &Outcome) -> bool {
        match outcome {
            Ok(_) | Err(PipelineError::Cancelled | PipelineError::Failed("fatal")) => false,
            Err(PipelineError::Rejected(_) | PipelineError::Failed("busy")) => {
                self.handles_rejections
            }
            Err(_) => true,
        }
    }

    fn is_rejection(&self, error: &Failure) -> bool {
        *error == "busy"
    }
}

/// An attempt that has started.
struct Started {
    clock: ManualClock,
    log: Arc<Mutex<Log>>,
    index: usize,
    ended: bool,
}

impl Started {
    fn end(&mut self) {
        self.ended = true;
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let mut log = lock(&self.log);
        log.running -= 1;
        let record = &mut log.records[self.index];
        record.until = self.clock.now();
        record.ends.push(match self.ended {
            true => How::Ended,
            false if std::thread::panicking() => How::Panicked,
            false => How::Dropped,
        });
    }
}

/// Whether an execution was woken.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

pub(crate) type Built = Pipeline<Then<Stack, End>>;

/// One execution, and its caller.
pub(crate) struct Execution<'p> {
    pub(crate) plan: Plan,
    pub(crate) log: Arc<Mutex<Log>>,
    pub(crate) came: Option<Came>,
    /// Whether its caller's token has fired.
    pub(crate) cancelled: bool,
    /// How often it was polled.
    pub(crate) polls: usize,
    /// When it is polled first; after that, when it was.
    pub(crate) begins: Instant,
    future: Option<Pin<Box<dyn Future<Output = Outcome> + 'p>>>,
    woken: Arc<Woken>,
    cancels: Option<(Instant, CancellationToken)>,
}

impl<'p> Execution<'p> {
    /// `id` is in the values of its attempts.
    pub(crate) fn new(pipeline: &'p Built, clock: &ManualClock, plan: &Plan, id: u32) -> Self {
        let log = Arc::new(Mutex::new(Log::default()));
        let now = clock.now();
        let begins = now + ms(plan.begin_at);
        let work = {
            let (clock, log, acts) = (clock.clone(), Arc::clone(&log), plan.acts.clone());
            move |attempt: Attempt| attempt_of(&clock, &log, &acts, id, &attempt)
        };
        let execution = pipeline.execute(work).idempotent(plan.idempotent);
        let execution = if plan.tokens { execution.tokens() } else { execution };
        let execution = match plan.deadline {
            Some(deadline) => execution.deadline(ms(deadline)),
            None => execution,
        };
        let execution = execution.classify(Meaning { handles_rejections: plan.handles_rejections });
        let token = CancellationToken::new();
        let future: Pin<Box<dyn Future<Output = Outcome> + 'p>> = match plan.cancel_at {
            Some(_) => Box::pin(execution.cancel_on(&token).into_future()),
            None => Box::pin(execution.into_future()),
        };
        Self {
            plan: plan.clone(),
            log,
            came: None,
            cancelled: false,
            polls: 0,
            future: Some(future),
            woken: Arc::new(Woken(AtomicBool::new(true))),
            begins,
            cancels: plan.cancel_at.map(|at| (now + ms(at), token)),
        }
    }

    /// When something happens to it that is not the clock's.
    fn next(&self, now: Instant) -> Option<Duration> {
        self.future.as_ref()?;
        let begins = (self.begins > now).then_some(self.begins);
        let cancels = self.cancels.as_ref().map(|(at, _)| *at);
        begins.into_iter().chain(cancels).map(|at| at.saturating_duration_since(now)).min()
    }

    /// Polls it if that is due. Says whether it did.
    fn go_on(&mut self, now: Instant) -> bool {
        let Some(future) = &mut self.future else { return false };
        if self.cancels.as_ref().is_some_and(|(at, _)| *at <= now)
            && let Some((_, token)) = self.cancels.take()
        {
            token.cancel();
            self.cancelled = true;
        }
        if now < self.begins || !self.woken.0.swap(false, Ordering::AcqRel) {
            return false;
        }
        if self.polls == self.plan.polls {
            self.leave(Came::Dropped);
            return true;
        }
        if self.polls == 0 {
            self.begins = now;
        }
        self.polls += 1;
        let waker = Waker::from(Arc::clone(&self.woken));
        let cx = &mut Context::from_waker(&waker);
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Ready(outcome)) => self.leave(Came::Ended(outcome)),
            Ok(Poll::Pending) if self.polls == self.plan.polls && !self.plan.late => {
                self.leave(Came::Dropped);
            }
            Ok(Poll::Pending) => {}
            Err(_) => self.leave(Came::Panicked),
        }
        true
    }

    /// Whether an attempt runs that never ends.
    fn is_stuck(&self) -> bool {
        let stuck = |record: &Record| record.act == Act::Never && record.ends.is_empty();
        lock(&self.log).records.iter().any(stuck)
    }

    fn leave(&mut self, came: Came) {
        self.future = None;
        self.came = Some(came);
    }
}

/// One attempt of the work.
fn attempt_of(
    clock: &ManualClock,
    log: &Arc<Mutex<Log>>,
    acts: &[Act],
    id: u32,
    attempt: &Attempt,
) -> Pin<Box<dyn Future<Output = Result<Value, Failure>>>> {
    let number = attempt.number();
    let act = acts[number as usize % acts.len()];
    let (at, token) = (clock.now(), attempt.token());
    let mut started = {
        let mut kept = lock(log);
        kept.running += 1;
        kept.most_running = kept.most_running.max(kept.running);
        kept.records.push(Record { number, act, at, until: at, ends: Vec::new(), token });
        Started {
            clock: clock.clone(),
            log: Arc::clone(log),
            index: kept.records.len() - 1,
            ended: false,
        }
    };
    let clock = clock.clone();
    // `resume_unwind` prints nothing.
    let panics = || resume_unwind(Box::new("scripted"));
    if act == Act::PanicsAtOnce {
        panics();
    }
    Box::pin(async move {
        let (after, outcome) = match act {
            Act::Never | Act::PanicsAtOnce => pending().await,
            Act::Good(after) => (after, Ok(1_000 * id + number)),
            Act::Bad(after) => (after, Err("bad")),
            Act::Fatal(after) => (after, Err("fatal")),
            Act::Busy(after) => (after, Err("busy")),
            Act::Panics(after) => (after, Err("panics")),
        };
        if after > 0 {
            clock.sleep(ms(after)).await;
        }
        if outcome == Err("panics") {
            panics();
        }
        started.end(); // the whole of it is in here
        outcome
    })
}

/// Runs executions until each is over, one way or another. `late`: the thread is sometimes busy when
/// something is due.
pub(crate) fn drive(
    executions: &mut [Execution<'_>],
    clock: &ManualClock,
    mut late: Option<&mut Rng>,
) {
    loop {
        let now = clock.now();
        let mut polled = false;
        for execution in &mut *executions {
            polled |= execution.go_on(now);
        }
        if polled {
            continue;
        }
        if executions.iter().all(|execution| execution.future.is_none()) {
            return;
        }
        let others = executions.iter().filter_map(|execution| execution.next(now));
        let Some(step) = clock.next_deadline().into_iter().chain(others).min() else {
            assert!(executions.iter().any(Execution::is_stuck), "a wake was lost");
            for execution in executions.iter_mut().filter(|one| one.future.is_some()) {
                execution.leave(Came::Hangs);
            }
            return;
        };
        let busy = late.as_deref_mut().map_or(0, |rng| rng.u64(..160));
        clock.advance(step + ms(if busy < 40 { busy } else { 0 }));
    }
}
