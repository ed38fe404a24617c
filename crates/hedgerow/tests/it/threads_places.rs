//! Where the attempts of blocking calls run, and what happens when there is no room.

use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use hedgerow::{
    Attempt, Delay, Gate, Hedge, Job, Losers, NextAction, Panics, Seat, Threads, hedged,
};

use crate::doors::{Crew, Door, caught};
use crate::ledger::Gauge;
use crate::support::{Answer, Events};

/// Has threads for these attempts only.
#[derive(Debug)]
struct Only(&'static [u8], Crew);

impl Threads for Only {
    fn reserve(&self, hedge: u8) -> io::Result<Seat> {
        if self.0.contains(&hedge) {
            self.1.reserve(hedge)
        } else {
            Err(io::Error::from(io::ErrorKind::WouldBlock))
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as work is called")]
fn fails_first(attempt: Attempt) -> Answer {
    if attempt.hedge_number() == 0 { Err("down") } else { Ok("up") }
}

#[test]
fn a_hedge_without_a_thread_does_not_start_and_costs_nothing() {
    let (events, crew) = (Events::default(), Crew::default());
    let budget = Arc::new(hedgerow::testing::Tokens::new(1));
    let hedge = Hedge::default().delay(Delay::OnFailure).max_hedges(3).observer(events.observer());
    let hedge = hedge.budget(budget.clone());
    let call = hedge.blocking().on(Arc::new(Only(&[0], crew))).prepare(fails_first);
    let call = call.on_hedge(|_| panic!("no hedge starts"));
    let report = call.settle();
    assert_eq!(report.result(), Some(&Err("down")));
    assert_eq!(report.not_hedged().map(|(gate, _)| gate), Some(Gate::NoThread));
    assert_eq!(report.attempts_started(), 1);
    assert_eq!(events.count("denied(1,no-thread)"), 1);
    assert_eq!(budget.left(), 1);
}

#[test]
fn a_primary_without_a_thread_runs_on_its_callers() {
    let place = Arc::new(Only(&[1], Crew::default()));
    let hedge = Hedge::default().delay(Delay::OnFailure);
    let caller = thread::current().id();
    let answer = hedge.blocking().on(place.clone()).call(move |attempt| {
        assert_eq!(thread::current().id() == caller, attempt.hedge_number() == 0);
        fails_first(attempt)
    });
    assert_eq!(answer, Ok("up"));
    let panics = caught(|| {
        let work = |_| -> Answer { std::panic::resume_unwind(Box::new("boom")) };
        hedge.blocking().on(place.clone()).call(work)
    });
    assert_eq!(panics, Err("boom".to_owned()));
    let hedge = hedge.panics(Panics::AsFailure);
    let answer = hedge.blocking().on(place).call(|attempt: Attempt| match attempt.number() {
        0 => std::panic::resume_unwind(Box::new("boom")),
        _ => Answer::Ok("up"),
    });
    assert_eq!(answer, Ok("up"));
}

/// Counts the seats that are there.
#[derive(Debug, Default)]
struct Counted(Arc<AtomicI64>);

impl Threads for Counted {
    fn reserve(&self, hedge: u8) -> io::Result<Seat> {
        let (seat, held) = (Crew::default().reserve(hedge)?, Gauge::up(&self.0));
        Ok(Box::new(move |job: Job| {
            drop(held);
            seat(job);
        }))
    }
}

#[test]
fn a_seat_that_is_not_used_goes_with_the_call() {
    for stops in [true, false] {
        let (door, place) = (Door::default(), Arc::new(Counted::default()));
        let seats = Arc::clone(&place.0);
        let hedge = Hedge::default().delay(Delay::Immediately).losers(Losers::Detach);
        let waits = door.clone();
        let call = hedge.blocking().on(place).prepare(move |_| -> Answer {
            waits.pass();
            Ok("late")
        });
        // The primary outlives the call, in which its hedge had no use for a thread.
        let caught = caught(|| {
            let next =
                move |_: &hedgerow::NextHedge<'_>| -> Result<NextAction<fn() -> Answer, _, _>, _> {
                    if stops {
                        Err("no other action")
                    } else {
                        Ok(NextAction::Answer(Ok("answer")))
                    }
                };
            call.next_action(next).run()
        });
        assert!(caught.is_ok());
        assert_eq!(seats.load(Ordering::SeqCst), 0);
        door.open();
    }
}

#[test]
fn a_place_that_drops_its_job_is_a_panic_of_the_attempt() {
    #[derive(Debug)]
    struct Closed;
    impl Threads for Closed {
        fn reserve(&self, _hedge: u8) -> io::Result<Seat> {
            Ok(Box::new(drop))
        }
    }
    let hedge = Hedge::default().max_hedges(0);
    let place: Arc<dyn Threads> = Arc::new(Closed);
    let text = caught(|| hedge.blocking().on(place).call(|_| Answer::Ok("a"))).unwrap_err();
    assert!(text.contains("what runs it has shut down"), "{text}");
}

#[test]
fn a_pool_runs_attempts_one_after_the_other_and_skips_those_nobody_waits_for() {
    #[derive(Debug)]
    struct Worker(mpsc::Sender<Job>);
    impl Threads for Worker {
        fn reserve(&self, _hedge: u8) -> io::Result<Seat> {
            let queue = self.0.clone();
            Ok(Box::new(move |job| queue.send(job).unwrap()))
        }
    }
    let (sender, jobs) = mpsc::channel::<Job>();
    let (ran, runs) = mpsc::channel();
    let hedge = Hedge::default().delay(Delay::Immediately).max_hedges(2);
    let place: Arc<dyn Threads> = Arc::new(Worker(sender));
    let (queued, over) = (Door::default(), Door::default());
    let (start, rest) = (queued.clone(), over.clone());
    let worker = thread::spawn(move || {
        start.pass();
        let mut jobs = jobs.into_iter();
        jobs.next().unwrap()();
        rest.pass();
        jobs.map(|job| job()).count()
    });
    let call = hedge.blocking().on(place).prepare(move |attempt: Attempt| {
        ran.send(attempt.hedge_number()).unwrap();
        Answer::Ok("first")
    });
    // The delay of the second hedge is asked for when the first is in the queue.
    let call = call.delay_with(move |next| {
        if next.hedge_number() == 2 {
            queued.open();
        }
        Delay::Immediately
    });
    assert_eq!(call.run(), Ok("first"));
    over.open();
    assert!(worker.join().unwrap() >= 1, "a hedge was in the queue");
    assert_eq!(runs.into_iter().collect::<Vec<_>>(), [0], "and did not run");
}

#[test]
fn a_bound_on_what_is_abandoned_refuses_hedges_until_something_ends() {
    let (door, crew, events) = (Door::default(), Crew::default(), Events::default());
    let hedge = Hedge::abandoning().delay(Delay::Immediately).max_abandoned(1);
    let hedge = hedge.observer(events.observer());
    let call = || {
        let waits = door.clone();
        hedge.blocking().on(crew.shared()).prepare(move |attempt| {
            if attempt.hedge_number() == 0 {
                waits.pass();
            }
            Ok::<_, &str>(attempt.hedge_number())
        })
    };
    assert_eq!(call().run(), Ok(1));
    assert_eq!(hedge.clone().abandoned(), Some(1), "clones count together");
    let refused = hedge.blocking().prepare(fails_first).settle();
    assert_eq!(refused.result(), Some(&Err("down")));
    assert_eq!(refused.not_hedged().map(|(gate, _)| gate), Some(Gate::Abandoned));
    assert_eq!(events.count("denied(1,abandoned)"), 1);
    door.open();
    crew.join();
    assert_eq!(hedge.abandoned(), Some(0));
    assert_eq!(hedge.blocking().call(fails_first), Ok("up"));
}

#[test]
fn without_a_bound_nothing_is_counted_and_a_bound_of_0_hedges_nothing() {
    assert_eq!(Hedge::abandoning().abandoned(), None);
    let hedge = Hedge::default().max_abandoned(0);
    assert_eq!(hedge.blocking().call(fails_first), Err("down"));
    assert_eq!(hedge.abandoned(), Some(0));
}

#[tokio::test(start_paused = true)]
async fn detached_tasks_are_counted_and_bounded_too() {
    let sleep = |millis| tokio::time::sleep(crate::support::ms(millis));
    let call = hedged(move |attempt: Attempt| async move {
        sleep([500, 20][usize::from(attempt.hedge_number())]).await;
        Ok::<_, &str>(attempt.hedge_number())
    });
    let hedge = Hedge::after(crate::support::ms(50)).losers(Losers::Detach).max_abandoned(1);
    let kept = hedge.clone();
    let call = call.policy(|_| hedge);
    assert_eq!(call.clone().spawned().await, Ok(1));
    assert_eq!(kept.abandoned(), Some(1));
    let report = call.clone().spawned().settle().await;
    assert_eq!(report.winner(), Some(0));
    assert_eq!(report.not_hedged().map(|(gate, _)| gate), Some(Gate::Abandoned));
    assert_eq!(kept.abandoned(), Some(0));
    assert_eq!(call.spawned().await, Ok(1));
}
