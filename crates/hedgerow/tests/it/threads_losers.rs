//! Losers on threads: told, waited for, let go. The rows H that concern them.

use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;

use hedgerow::{
    Attempt, CancellationToken, Decision, Delay, Discarded, EventKind, Hedge, Losers, ManualClock,
};

use crate::doors::{Crew, Door, caught, signal};
use crate::support::{Answer, Events, lock, ms};

type Kept = Arc<Mutex<Vec<(u8, Answer)>>>;

fn keeper(kept: &Kept) -> impl FnMut(Discarded<&'static str, &'static str>) + use<> {
    let kept = Arc::clone(kept);
    move |lost| lock(&kept).push((lost.hedge_number, lost.outcome))
}

fn at_once(losers: Losers) -> Hedge {
    Hedge::default().delay(Delay::Immediately).losers(losers).max_abandoned(usize::MAX)
}

/// The primary waits at a door and says whether it was told to stop; the hedge answers as soon as
/// the primary is there, since one that has not begun by then would never begin.
fn slow_primary(door: &Door) -> impl Fn(Attempt) -> Answer + use<> {
    let (door, begun) = (door.clone(), Door::default());
    move |attempt| {
        if attempt.hedge_number() > 0 {
            begun.pass();
            return Ok("quick");
        }
        begun.open();
        door.pass();
        Ok(if attempt.is_cancelled() { "told" } else { "untold" })
    }
}

#[test]
fn losers_that_would_be_dropped_are_told_and_let_go() {
    let (door, crew, kept) = (Door::default(), Crew::default(), Kept::default());
    let hedge = at_once(Losers::Drop);
    let call = hedge.blocking().on(crew.shared()).prepare(slow_primary(&door));
    assert_eq!(call.on_discard(keeper(&kept)).run(), Ok("quick"));
    assert_eq!(hedge.abandoned(), Some(1));
    door.open();
    crew.join();
    assert_eq!(hedge.abandoned(), Some(0));
    assert_eq!(*lock(&kept), [(0, Ok("told"))]);
}

#[test]
fn losers_that_are_joined_and_listen_have_ended_when_the_call_returns() {
    let (crew, kept) = (Crew::default(), Kept::default());
    let hedge = at_once(Losers::Join { grace: None });
    let call = hedge.blocking().on(crew.shared()).prepare(|attempt: Attempt| {
        while attempt.hedge_number() == 0 && !attempt.is_cancelled() {
            thread::yield_now();
        }
        Ok(["told", "quick"][usize::from(attempt.hedge_number())])
    });
    assert_eq!(call.on_discard(keeper(&kept)).run(), Ok("quick"));
    assert_eq!(hedge.abandoned(), Some(0));
    assert_eq!(*lock(&kept), [(0, Ok("told"))], "before the result");
    assert_eq!(crew.join(), 2);
}

#[test]
fn h41_a_grace_bounds_the_wait_and_then_the_loser_is_let_go() {
    let (door, crew, clock) = (Door::default(), Crew::default(), ManualClock::new());
    let (observer, told) = signal(|kind| matches!(kind, EventKind::ToldToStop));
    let hedge = at_once(Losers::Join { grace: Some(ms(20)) });
    let hedge = hedge.clock(Arc::new(clock.clone())).observer(observer);
    let call = hedge.blocking().on(crew.shared()).prepare(slow_primary(&door));
    thread::scope(|scope| {
        let caller = scope.spawn(|| call.settle());
        told.recv().unwrap();
        clock.advance(ms(20));
        let report = caller.join().unwrap();
        assert_eq!(report.winner(), Some(1));
        assert_eq!(report.over_at(), ms(20).into());
    });
    assert_eq!(hedge.abandoned(), Some(1));
    door.open();
    crew.join();
    assert_eq!(hedge.abandoned(), Some(0));
}

#[test]
fn h40_a_caller_who_cancels_while_joining_has_the_outcome_at_once() {
    let (door, crew, token) = (Door::default(), Crew::default(), CancellationToken::new());
    let (observer, told) = signal(|kind| matches!(kind, EventKind::ToldToStop));
    let hedge = at_once(Losers::Join { grace: None }).observer(observer);
    let call = hedge.blocking().on(crew.shared()).prepare(slow_primary(&door));
    let call = call.cancel_on_or(&token, || "cancelled");
    thread::scope(|scope| {
        let caller = scope.spawn(|| call.run());
        told.recv().unwrap();
        token.cancel();
        assert_eq!(caller.join().unwrap(), Ok("quick"));
    });
    door.open();
    crew.join();
}

#[test]
fn h42_a_detached_loser_ends_and_is_discarded_once() {
    let (door, crew, kept) = (Door::default(), Crew::default(), Kept::default());
    let (clock, events) = (ManualClock::new(), Events::default());
    let hedge = at_once(Losers::Detach).clock(Arc::new(clock.clone())).observer(events.observer());
    let call = hedge.blocking().on(crew.shared()).prepare(slow_primary(&door));
    assert_eq!(call.on_discard(keeper(&kept)).run(), Ok("quick"));
    assert_eq!((lock(&kept).len(), hedge.abandoned()), (0, Some(1)));
    clock.advance(ms(500));
    door.open();
    crew.join();
    assert_eq!((lock(&kept).as_slice(), hedge.abandoned()), (&[(0, Ok("untold"))][..], Some(0)));
    let expected = [
        "start(0)@0",
        "hedge(1,delay)@0",
        "end(1,won,0)@0",
        "win(1)@0",
        "over(accepted)@0",
        "end(0,discarded,500)@500",
    ];
    assert_eq!(events.text(), expected);
}

#[test]
fn h43_detaching_needs_nothing_more_on_threads() {
    let answer = Hedge::default().losers(Losers::Detach).blocking().call(|_| Answer::Ok("a"));
    assert_eq!(answer, Ok("a"));
}

#[test]
fn h44_a_caller_who_cancels_leaves_detached_attempts_running_and_tells_the_others() {
    for (losers, left) in [(Losers::Detach, "untold"), (Losers::Drop, "told")] {
        let (door, crew, kept) = (Door::default(), Crew::default(), Kept::default());
        let (token, hedge) = (CancellationToken::new(), at_once(losers).max_hedges(0));
        let (started, start) = mpsc::channel();
        let script = slow_primary(&door);
        let call = hedge
            .blocking()
            .on(crew.shared())
            .prepare(move |attempt| {
                started.send(()).unwrap();
                script(attempt)
            })
            .on_discard(keeper(&kept))
            .cancel_on_or(&token, || "cancelled");
        thread::scope(|scope| {
            let caller = scope.spawn(|| call.settle());
            start.recv().unwrap();
            token.cancel();
            let report = caller.join().unwrap();
            assert_eq!(report.decision(), Decision::Cancelled);
            assert!(report.result().is_none());
        });
        assert_eq!(hedge.abandoned(), Some(1));
        door.open();
        crew.join();
        assert_eq!((lock(&kept).as_slice(), hedge.abandoned()), (&[(0, Ok(left))][..], Some(0)));
    }
}

#[test]
fn h44_a_call_that_is_cancelled_before_it_starts_runs_nothing() {
    let (crew, token) = (Crew::default(), CancellationToken::new());
    token.cancel();
    let hedge = Hedge::default();
    let call = hedge.blocking().on(crew.shared()).prepare(|_| Answer::Ok("a"));
    assert_eq!(call.cancel_on_or(&token, || "cancelled").run(), Err("cancelled"));
    assert_eq!(crew.join(), 0);
}

#[test]
fn h45_handled_values_are_discarded_once_each_before_the_result() {
    let kept = Kept::default();
    let hedge = Hedge::default().delay(Delay::OnFailure).max_hedges(2);
    let answer = hedge
        .blocking()
        .prepare(|attempt| Ok(["bad 0", "bad 1", "good"][usize::from(attempt.hedge_number())]))
        .handle(crate::support::transient)
        .on_discard(keeper(&kept))
        .run();
    assert_eq!(answer, Ok("good"));
    assert_eq!(*lock(&kept), [(0, Ok("bad 0")), (1, Ok("bad 1"))]);
}

#[test]
fn h47_h48_calls_on_many_threads_share_a_policy_and_number_their_own_attempts() {
    let (hedge, start) = (Hedge::default().delay(Delay::OnFailure).max_hedges(2), Barrier::new(8));
    let call = |id: usize| {
        let work = move |attempt: Attempt| match attempt.hedge_number() {
            2 => Ok((id, attempt.number())),
            number => Err(number),
        };
        let judged = Arc::new(Mutex::new(Vec::<u8>::new()));
        let seen = Arc::clone(&judged);
        let call = hedge.blocking().prepare(work).handle(move |outcome| {
            lock(&seen).extend(outcome.as_ref().err());
            outcome.is_err()
        });
        assert_eq!(call.run(), Ok((id, 2)));
        assert_eq!(*lock(&judged), [0, 1]);
    };
    thread::scope(|scope| {
        for caller in 0..8 {
            let (start, call) = (&start, &call);
            scope.spawn(move || {
                start.wait();
                (0..125).for_each(|number| call(caller * 125 + number));
            });
        }
    });
}

#[test]
fn h02_an_attempts_panic_reaches_the_caller_and_the_others_are_told() {
    let (door, crew, kept) = (Door::default(), Crew::default(), Kept::default());
    let (hedge, script) = (at_once(Losers::Join { grace: None }), slow_primary(&door));
    let text = caught(|| {
        let work = move |attempt: Attempt| {
            let hedges = attempt.hedge_number() > 0;
            let answer = script(attempt);
            if hedges { std::panic::resume_unwind(Box::new("boom")) } else { answer }
        };
        let call = hedge.blocking().on(crew.shared()).prepare(work);
        call.on_discard(keeper(&kept)).run()
    });
    assert_eq!(text, Err("boom".to_owned()));
    assert_eq!(hedge.abandoned(), Some(1), "nobody waits for it");
    door.open();
    crew.join();
    assert_eq!((lock(&kept).as_slice(), hedge.abandoned()), (&[(0, Ok("told"))][..], Some(0)));
}

#[test]
fn h03_a_panic_can_be_a_failure() {
    let hedge = Hedge::default().delay(Delay::OnFailure).panics(hedgerow::Panics::AsFailure);
    let call = hedge.blocking().prepare(|attempt: Attempt| match attempt.hedge_number() {
        0 => std::panic::resume_unwind(Box::new("boom")),
        _ => Answer::Ok("b"),
    });
    let report = call.settle();
    assert_eq!(report.winner(), Some(1));
    assert_eq!(report.failures().len(), 1);
    assert!(report.failures()[0].outcome().is_none(), "it panicked");
}

#[test]
fn h05_a_predicate_panics_and_every_attempt_is_told() {
    for (losers, left, end) in
        [(Losers::Drop, "told", "cancelled"), (Losers::Detach, "untold", "discarded")]
    {
        let (door, crew, kept) = (Door::default(), Crew::default(), Kept::default());
        let events = Events::default();
        let hedge = at_once(losers).observer(events.observer());
        let text = caught(|| {
            let call = hedge.blocking().on(crew.shared()).prepare(slow_primary(&door));
            let call = call.handle(|_| std::panic::resume_unwind(Box::new("predicate")));
            call.on_discard(keeper(&kept)).run()
        });
        assert_eq!(text, Err("predicate".to_owned()));
        door.open();
        crew.join();
        assert_eq!(*lock(&kept), [(0, Ok(left))]);
        for attempt in [0, 1] {
            assert_eq!(events.count(&format!("end({attempt},{end}")), 1);
        }
        assert_eq!(events.count("end("), 2);
    }
}
