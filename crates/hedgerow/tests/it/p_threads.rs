//! M17: pipelines of work that blocks, on threads.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hedgerow::pipeline::{Outcome, Pipeline, PipelineError};
use hedgerow::{Attempt, CancellationToken, Delay, Hedge, ManualClock, Seat, Threads};

use crate::doors::{Crew, Door, caught};
use crate::support::{lock, ms};

fn at_once(hedges: u32) -> Hedge {
    Hedge::abandoning().delay(Delay::Immediately).max_hedges(hedges)
}

#[test]
fn m17_a_hedge_sits_in_a_wrap_at_any_depth_and_abandons_its_losers() {
    let (crew, door) = (Crew::default(), Door::default());
    let pipeline = Pipeline::builder()
        .timeout(ms(86_400_000))
        .hedge(at_once(1))
        .timeout(ms(86_400_000))
        .build_blocking()
        .unwrap()
        .on(crew.shared());
    let ended = Arc::new(Mutex::new(Vec::new()));
    let (late, waits) = (Arc::clone(&ended), door.clone());
    let answer = pipeline.execute(move |attempt: Attempt| {
        if attempt.number() == 0 {
            waits.pass();
            lock(&late).push(attempt.is_cancelled());
            return Err("too late");
        }
        Ok(attempt.number())
    });
    assert_eq!(answer, Ok(1));
    assert!(lock(&ended).is_empty(), "the loser still runs");
    door.open();
    assert_eq!(crew.join(), 2);
    assert_eq!(*lock(&ended), [false], "M7: it was never told to stop");
}

#[test]
fn m08_the_latest_failure_is_returned_unchanged() {
    let pipeline = Pipeline::builder()
        .hedge(Hedge::abandoning().delay(Delay::OnFailure).max_hedges(2))
        .build_blocking()
        .unwrap();
    let error = pipeline.execute(|attempt| Err::<u8, _>(attempt.number()));
    assert_eq!(error, Err(PipelineError::Failed(2)));
}

#[test]
fn what_a_timeout_gives_up_on_is_told_and_let_go() {
    let (crew, door, clock) = (Crew::default(), Door::default(), ManualClock::new());
    let builder = Pipeline::builder().clock(Arc::new(clock.clone()));
    let pipeline = builder.timeout(ms(1)).build_blocking().unwrap().on(crew.shared());
    let (told, waits) = (Arc::new(Mutex::new(None)), door.clone());
    let seen = Arc::clone(&told);
    let outcome = pipeline
        .prepare(move |attempt: Attempt| {
            while !attempt.is_cancelled() {
                clock.advance(ms(1)); // time stands until the attempt has begun
                std::thread::yield_now();
            }
            waits.pass();
            *lock(&seen) = Some(attempt.is_cancelled());
            Ok::<_, String>(())
        })
        .settle();
    match outcome {
        Outcome::Success(()) => panic!("nobody opened the door"),
        Outcome::Failed(error) => panic!("{error}"),
        Outcome::Rejected(rejected) => panic!("{rejected}"),
        Outcome::TimedOut(timed_out) => assert_eq!(timed_out.limit(), ms(1)),
    }
    assert_eq!(*lock(&told), None, "it still runs");
    door.open();
    assert_eq!(crew.join(), 1);
    assert_eq!(*lock(&told), Some(true));
}

#[test]
fn a_cancelled_execution_lets_its_attempts_go() {
    let (crew, door, token) = (Crew::default(), Door::default(), CancellationToken::new());
    let pipeline = Pipeline::builder().hedge(at_once(1)).build_blocking().unwrap();
    let pipeline = pipeline.on(crew.shared());
    let (cancel, waits) = (token.clone(), door.clone());
    let work = move |attempt: Attempt| {
        if attempt.number() == 1 {
            cancel.cancel();
        }
        waits.pass();
        Ok::<_, String>(())
    };
    assert_eq!(pipeline.prepare(work).cancel_on(&token).run(), Err(PipelineError::Cancelled));
    door.open();
    assert_eq!(crew.join(), 2);
}

/// More often than a task of tokio's may wait before it lets others run.
#[tokio::test]
async fn a_task_may_block_as_often_as_it_likes() {
    let pipeline = Pipeline::builder().build_blocking().unwrap();
    for round in 0..300 {
        assert_eq!(pipeline.execute(move |_| Ok::<_, String>(round)), Ok(round));
    }
    let hedge = Hedge::default();
    for round in 0..300 {
        assert_eq!(hedge.blocking().call(move |_| Ok::<_, String>(round)), Ok(round));
    }
}

#[test]
fn a_panic_reaches_the_caller() {
    let pipeline = Pipeline::builder().timeout(ms(86_400_000)).build_blocking().unwrap();
    let work = |_: Attempt| -> Result<u8, String> { std::panic::panic_any("boom") };
    assert_eq!(caught(|| pipeline.execute(work)), Err("boom".to_owned()));
    assert_eq!(pipeline.execute(|_| Ok::<_, String>(1)), Ok(1), "it works on");
}

/// One thread, and no more.
#[derive(Debug, Default)]
struct OnlyOne(AtomicUsize, Crew);

impl Threads for OnlyOne {
    fn reserve(&self, hedge: u8) -> io::Result<Seat> {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => self.1.reserve(hedge),
            _ => Err(io::Error::other("no more threads")),
        }
    }
}

#[test]
fn a_hedge_without_a_thread_is_rejected_and_a_primary_runs_on_the_callers() {
    let threads = Arc::new(OnlyOne::default());
    let pipeline = Pipeline::builder()
        .hedge(Hedge::default().delay(Delay::Immediately))
        .build_blocking()
        .unwrap()
        .on(threads.clone());
    let (caller, door) = (std::thread::current().id(), Door::default());
    let waits = door.clone();
    // The primary is let out by the one that comes for the hedge, in vain.
    let opens = Hedge::default().delay(Delay::Immediately);
    let opened = Pipeline::builder()
        .with(hedgerow::pipeline::Hedging::new(opens).on_hedge(move |_| door.open()))
        .build_blocking()
        .unwrap()
        .on(threads.clone());
    let first = opened.execute(move |_| {
        waits.pass();
        Ok::<_, String>(std::thread::current().id())
    });
    assert_ne!(first, Ok(caller));
    assert_eq!(threads.0.load(Ordering::SeqCst), 2, "the hedge asked, and was refused");
    let second = pipeline.execute(|_| Ok::<_, String>(std::thread::current().id()));
    assert_eq!(second, Ok(caller));
    assert_eq!(threads.1.join(), 1);
}

#[test]
fn a_rejection_for_want_of_a_thread_can_be_the_outcome() {
    let pipeline = Pipeline::builder()
        .hedge(Hedge::abandoning().delay(Delay::OnFailure))
        .build_blocking()
        .unwrap()
        .on(Arc::new(OnlyOne::default()));
    match pipeline.prepare(|_| Err::<u8, _>("x")).settle() {
        Outcome::Success(_) => panic!("nothing succeeds"),
        Outcome::Failed(error) => panic!("the latest failure is the hedge's: {error}"),
        Outcome::Rejected(rejected) => assert_eq!(rejected.to_string(), "work: no thread"),
    }
}

#[test]
fn attempts_that_run_on_are_counted_and_bounded() {
    let (crew, door) = (Crew::default(), Door::default());
    let hedge = at_once(1).max_abandoned(1);
    let pipeline = Pipeline::builder().hedge(hedge.clone()).build_blocking().unwrap();
    let pipeline = pipeline.on(crew.shared());
    let run = |waits: Door| {
        pipeline.execute(move |attempt: Attempt| {
            if attempt.number() == 0 {
                waits.pass();
            }
            Ok::<_, String>(attempt.number())
        })
    };
    assert_eq!(run(door.clone()), Ok(1));
    assert_eq!(hedge.abandoned(), Some(1));
    door.open();
    assert_eq!(crew.join(), 2);
    assert_eq!(hedge.abandoned(), Some(0));
}
