//! `Hedge::abandoning` on threads: the rows M as they are meant.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use hedgerow::testing::{Front, Scenario, Script, Timeline};
use hedgerow::{Attempt, Delay, Discarded, Hedge};

use crate::doors::{Crew, Door, caught};
use crate::support::{Answer, Events, lock, ms};

/// A script under the preset, in virtual time.
fn play<const N: usize>(hedge: Hedge, script: [Script; N]) -> Timeline {
    Scenario::new(hedge).script(script.into()).run(Front::Blocking)
}

fn ok(after: u64, value: &str) -> Script {
    Script::ok(ms(after), value)
}

fn err(after: u64, name: &str) -> Script {
    Script::error(ms(after), name)
}

fn abandoning(hedges: u32) -> Hedge {
    Hedge::abandoning().delay(ms(50)).max_hedges(hedges)
}

/// The second attempt starts beside the first, without any wait.
fn at_once() -> Hedge {
    Hedge::abandoning().delay(Delay::Immediately)
}

#[test]
fn m01_each_attempt_has_a_thread_of_its_own() {
    let (met, seen) = (Barrier::new(2), Arc::new(Mutex::new(vec![])));
    let threads = Arc::clone(&seen);
    let work = move |_: Attempt| {
        let thread = thread::current();
        lock(&threads).push((thread.name().unwrap().to_owned(), thread.id()));
        met.wait(); // each waits for the other: they run side by side
        Ok::<_, &str>(())
    };
    assert_eq!(at_once().blocking().call(work), Ok(()));
    let mut seen = lock(&seen).clone();
    seen.sort_by(|(one, _), (other, _)| one.cmp(other));
    let names: Vec<_> = seen.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["hedgerow-0", "hedgerow-1"]);
    assert!(seen.iter().all(|(_, id)| *id != thread::current().id()));
}

#[test]
fn m01_the_primary_has_one_too_if_nothing_is_hedged() {
    let caller = thread::current().id();
    let other = abandoning(0).blocking().call(|_| Ok::<_, &str>(thread::current().id()));
    assert_ne!(other, Ok(caller));
}

#[test]
fn m02_m03_extra_attempts_start_each_time_the_delay_passes() {
    let script = [ok(1_000, "a"), ok(1_000, "b"), ok(1_000, "c"), ok(10, "d")];
    let timeline = play(abandoning(2), script);
    let events = ["hedge(1)@50", "hedge(2)@100", "win(0)@1000"];
    assert_eq!(timeline.events_text(), events);
}

#[test]
fn m04_a_handled_failure_of_any_attempt_starts_the_next_at_once() {
    let timeline = play(abandoning(3), [ok(500, "a"), err(10, "q"), err(5, "r"), ok(20, "d")]);
    let events = ["hedge(1)@50", "hedge(2)@60", "hedge(3)@65", "win(3)@85"];
    assert_eq!(timeline.events_text(), events);
}

/// The primary waits at a door, the hedge answers with this.
fn beside_a_slow_primary(door: &Door, second: Answer) -> impl Fn(Attempt) -> Answer + use<> {
    let door = door.clone();
    move |attempt| match attempt.hedge_number() {
        0 => {
            door.pass();
            assert!(!attempt.is_cancelled(), "nobody tells it to stop");
            Ok("late")
        }
        _ => second,
    }
}

/// Keeps what is discarded.
fn keeper<T, E>(kept: &Kept<T, E>) -> impl FnMut(Discarded<T, E>) + use<T, E> {
    let kept = Arc::clone(kept);
    move |lost| lock(&kept).push((lost.hedge_number, lost.outcome))
}

type Kept<T, E> = Arc<Mutex<Vec<(u8, Result<T, E>)>>>;

#[test]
fn m05_what_is_not_handled_is_returned_at_once() {
    let (door, crew, kept) = (Door::default(), Crew::default(), Kept::default());
    let answer = at_once()
        .blocking()
        .on(crew.shared())
        .prepare(beside_a_slow_primary(&door, Err("fatal")))
        .handle(crate::support::transient)
        .on_discard(keeper(&kept))
        .run();
    assert_eq!(answer, Err("fatal"));
    assert_eq!(*lock(&kept), []);
    door.open();
    assert_eq!(crew.join(), 2);
    assert_eq!(*lock(&kept), [(0, Ok("late"))], "the primary ran on");
}

#[test]
fn m06_m07_the_first_value_is_returned_and_losers_run_on_untold() {
    let (door, crew, kept) = (Door::default(), Crew::default(), Kept::default());
    let hedge = at_once().max_abandoned(usize::MAX);
    let answer = hedge
        .blocking()
        .on(crew.shared())
        .prepare(beside_a_slow_primary(&door, Ok("quick")))
        .on_discard(keeper(&kept))
        .run();
    assert_eq!((answer, hedge.abandoned()), (Ok("quick"), Some(1)));
    door.open();
    crew.join();
    assert_eq!((lock(&kept).as_slice(), hedge.abandoned()), (&[(0, Ok("late"))][..], Some(0)));
}

#[test]
fn m08_m09_when_all_fail_the_latest_failure_is_returned_as_it_is() {
    let hedge = abandoning(2).delay(ms(500));
    let late = play(hedge, [err(100, "p"), err(300, "q"), err(50, "r")]);
    assert_eq!(late.returned.value.as_deref(), Some("r"));
    let by_completion = play(abandoning(1), [err(300, "p"), err(10, "q")]);
    assert_eq!(by_completion.returned.value.as_deref(), Some("p"));
}

#[test]
fn m10_m11_one_attempt_more_after_two_seconds_is_the_default() {
    let timeline = play(Hedge::abandoning(), [ok(9_000, "a"), err(5_000, "q"), ok(1, "c")]);
    assert_eq!(timeline.events_text(), ["hedge(1)@2000", "win(0)@9000"]);
}

#[test]
fn m12_no_extra_attempts_are_legal() {
    let timeline = play(abandoning(0), [err(100, "p"), ok(1, "b")]);
    assert_eq!(timeline.events_text(), ["exhausted@100"]);
    assert_eq!(timeline.returned.value.as_deref(), Some("p"));
}

#[test]
fn m13_m14_the_hook_runs_before_each_extra_attempt_and_counts_from_1() {
    let notes = Arc::new(Mutex::new(vec![]));
    let (in_work, in_hook) = (Arc::clone(&notes), Arc::clone(&notes));
    let caller = thread::current().id();
    let hedge = Hedge::abandoning().delay(Delay::OnFailure).max_hedges(2);
    let answer = hedge
        .blocking()
        .prepare(move |attempt| {
            lock(&in_work).push(format!("attempt {}", attempt.hedge_number()));
            if attempt.hedge_number() < 2 { Err("down") } else { Ok("up") }
        })
        .on_hedge(move |next| {
            assert_eq!(thread::current().id(), caller);
            lock(&in_hook).push(format!("hook {}", next.hedge_number()));
        })
        .run();
    assert_eq!(answer, Ok("up"));
    assert_eq!(*lock(&notes), ["attempt 0", "hook 1", "attempt 1", "hook 2", "attempt 2"]);
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    Network(u8),
    Bug,
}

#[test]
fn m15_m16_kinds_of_error_are_handled_with_their_own_kinds_or_none_is() {
    let try_with = |fault: Fault, handle: fn(&Result<u8, Fault>) -> bool| {
        let work =
            move |attempt: Attempt| if attempt.hedge_number() == 0 { Err(fault) } else { Ok(1) };
        abandoning(1).blocking().prepare(work).handle(handle).run()
    };
    let network: fn(&Result<u8, Fault>) -> bool = |out| matches!(out, Err(Fault::Network(_)));
    assert_eq!(try_with(Fault::Network(1), network), Ok(1));
    assert_eq!(try_with(Fault::Network(2), network), Ok(1));
    assert_eq!(try_with(Fault::Bug, network), Err(Fault::Bug));
    assert_eq!(try_with(Fault::Bug, |_| false), Err(Fault::Bug));
}

#[test]
fn m18_work_without_a_result_can_only_fail() {
    let work = |attempt: Attempt| if attempt.hedge_number() == 0 { Err("down") } else { Ok(()) };
    assert_eq!(abandoning(1).blocking().call(work), Ok(()));
}

#[test]
fn m20_what_attempts_share_outlives_the_call_and_its_policy() {
    let (door, crew, shared) = (Door::default(), Crew::default(), Arc::new(Mutex::new(0)));
    let work = {
        let (door, shared) = (door.clone(), Arc::clone(&shared));
        move |attempt: Attempt| {
            if attempt.hedge_number() == 0 {
                door.pass();
            }
            *lock(&shared) += 1;
            Ok::<_, &str>(())
        }
    };
    {
        let hedge = at_once();
        assert_eq!(hedge.blocking().on(crew.shared()).call(work), Ok(()));
    }
    assert_eq!(*lock(&shared), 1);
    assert!(Arc::strong_count(&shared) > 1, "the primary still has it");
    door.open();
    crew.join();
    assert_eq!(*lock(&shared), 2);
    assert_eq!(Arc::strong_count(&shared), 1, "and lets go of it at its end");
}

#[test]
fn m21_what_losers_do_after_the_decision_is_ignored() {
    for panics in [false, true] {
        let (door, crew, events) = (Door::default(), Crew::default(), Events::default());
        let (gone, kept) = (door.clone(), Kept::default());
        let answer = at_once()
            .observer(events.observer())
            .blocking()
            .on(crew.shared())
            .prepare(move |attempt| {
                if attempt.hedge_number() == 1 {
                    return Ok("quick");
                }
                gone.pass();
                // Without a message on the terminal.
                if panics { std::panic::resume_unwind(Box::new("late")) } else { Err("late") }
            })
            .on_discard(keeper(&kept))
            .run();
        assert_eq!(answer, Ok("quick"));
        door.open();
        crew.join();
        let discarded: &[_] = if panics { &[] } else { &[(0, Err("late"))] };
        assert_eq!(*lock(&kept), discarded);
        assert_eq!(events.count("end(0,discarded"), 1);
        assert_eq!(events.count("over("), 1);
    }
}

#[test]
fn m22_zero_starts_all_negative_waits_for_a_failure_and_a_hook_panics_in_the_caller() {
    for (millis, start) in [(0, 0), (-1, 100)] {
        let hedge = Hedge::abandoning().delay(Delay::from_signed_millis(millis));
        let timeline = play(hedge, [err(100, "p"), ok(500, "b")]);
        assert_eq!(timeline.starts[1], (1, ms(start).into()));
    }
    let text = caught(|| {
        let hedge = abandoning(1);
        let call = hedge.blocking().prepare(|_| Err::<(), _>("down"));
        call.on_hedge(|_| std::panic::resume_unwind(Box::new("hook"))).run()
    });
    assert_eq!(text, Err("hook".to_owned()));
}
