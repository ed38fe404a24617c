//! Panics of the work, of observers and of other code of the caller's that meet: the first reaches
//! the caller, and none ends the program.

use std::future::IntoFuture;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex};

use hedgerow::pipeline::{BreakerState, CircuitBreaker, Pipeline};
use hedgerow::{Event, ManualClock, Observer, StrategyEvent, StrategyEventKind as Kind};

use crate::support::{Answer, act, caught, lock, ms, never, panic_text, panics, poll_once};

/// Panics at some events, with the number of the panic.
#[derive(Clone)]
struct Troubled {
    at: fn(&Kind) -> bool,
    panics: Arc<Mutex<u32>>,
}

impl Troubled {
    fn at(at: fn(&Kind) -> bool) -> Self {
        Self { at, panics: Arc::default() }
    }

    fn observer(&self) -> Arc<dyn Observer> {
        Arc::new(self.clone())
    }

    /// How often it has panicked.
    fn panics(&self) -> u32 {
        *lock(&self.panics)
    }
}

impl Observer for Troubled {
    fn event(&self, _: &Event) {}

    fn strategy(&self, event: &StrategyEvent<'_>) {
        if (self.at)(&event.kind) {
            *lock(&self.panics) += 1;
            let number = self.panics();
            panic!("observer {number}");
        }
    }
}

fn ends(kind: &Kind) -> bool {
    matches!(kind, Kind::AttemptEnded { .. } | Kind::Over { .. })
}

fn of_a_breaker(kind: &Kind) -> bool {
    matches!(kind, Kind::Breaker { .. })
}

/// The text of the panic of a step.
fn panic_of<V>(step: impl FnOnce() -> V) -> Option<String> {
    catch_unwind(AssertUnwindSafe(step)).err().map(|panic| panic_text(panic.as_ref()))
}

/// Polls once, and drops what was polled while its panic is on its way, as runtimes do.
fn unwound<F: IntoFuture>(execution: F) -> Option<String> {
    panic_of(move || poll_once(pin!(execution.into_future())).is_ready())
}

#[test]
fn the_work_panics_and_so_does_whoever_is_told() {
    let troubled = Troubled::at(ends);
    let builder = Pipeline::builder().observer(troubled.observer());
    let pipeline = builder.timeout(ms(1_000)).build().unwrap();
    let text = unwound(pipeline.execute(|_| act(panics(0, "work"))));
    assert_eq!((text.as_deref(), troubled.panics()), (Some("work"), 2));
    let at_once = |_| -> std::future::Ready<Answer> { std::panic::panic_any("in the closure") };
    let text = unwound(pipeline.execute(at_once));
    assert_eq!((text.as_deref(), troubled.panics()), (Some("in the closure"), 4));
}

/// Nobody cancelled it, so nobody is told so.
#[test]
fn an_execution_that_panicked_at_its_start_is_over() {
    let pipeline = Pipeline::builder().build().unwrap();
    let panics = |_| -> std::future::Ready<Answer> { std::panic::panic_any("work") };
    let mut execution = Box::pin(pipeline.execute(panics).tokens().into_future());
    let mut settling = Box::pin(pipeline.execute(panics).tokens().settle());
    for expected in ["work", "`Executing` polled after completion"] {
        let polled = panic_of(|| poll_once(execution.as_mut()).is_ready());
        assert_eq!(polled.as_deref(), Some(expected));
        let settled = panic_of(|| poll_once(settling.as_mut()).is_ready());
        assert_eq!(settled.as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn nobody_has_another_panic_out_of_an_execution_that_panicked() {
    let troubled = Troubled::at(ends);
    let builder = Pipeline::builder().observer(troubled.observer());
    let breaker = CircuitBreaker::consecutive(1).open_for_with(|_| panic!("how long"));
    let pipeline = builder.circuit_breaker(breaker).build().unwrap();
    let mut execution = Box::pin(pipeline.execute(|_| act(panics(0, "work"))).into_future());
    assert_eq!(caught(execution.as_mut()).await, Err("work".to_owned()));
    assert_eq!(panic_of(|| drop(execution)), None, "the caller has had it");
    assert_eq!(troubled.panics(), 2);
}

#[test]
fn an_observer_panics_at_both_ends_of_what_is_dropped() {
    let troubled = Troubled::at(ends);
    let builder = Pipeline::builder().observer(troubled.observer());
    let pipeline = builder.timeout(ms(1_000)).build().unwrap();
    let mut execution = Box::pin(pipeline.execute(|_| act(never())).into_future());
    assert!(poll_once(execution.as_mut()).is_pending());
    let text = panic_of(|| drop(execution));
    assert_eq!((text.as_deref(), troubled.panics()), (Some("observer 1"), 2));
    let text = unwound(pipeline.execute(|_| async { Answer::Ok("a") }));
    assert_eq!((text.as_deref(), troubled.panics()), (Some("observer 3"), 4));
}

#[test]
fn the_work_panics_and_so_does_whoever_says_how_long_the_breaker_stays_open() {
    let breaker = CircuitBreaker::consecutive(1).open_for_with(|_| panic!("how long"));
    let control = breaker.control();
    let pipeline = Pipeline::builder().circuit_breaker(breaker).build().unwrap();
    let text = unwound(pipeline.execute(|_| act(panics(0, "work"))));
    assert_eq!(text.as_deref(), Some("work"));
    assert_eq!(control.state(), BreakerState::Closed, "it could not open");
    let text = unwound(pipeline.execute(|_| async { Answer::Err("x") }));
    assert_eq!(text.as_deref(), Some("how long"), "where that is the first");
}

#[test]
fn a_probe_over_which_an_observer_panics_makes_room_for_another() {
    let (troubled, clock) = (Troubled::at(of_a_breaker), ManualClock::new());
    let breaker = CircuitBreaker::consecutive(1).open_for(ms(1_000));
    let control = breaker.control();
    let builder = Pipeline::builder().clock(Arc::new(clock.clone()));
    let pipeline = builder.observer(troubled.observer()).circuit_breaker(breaker).build().unwrap();
    let text = unwound(pipeline.execute(|_| async { Answer::Err("x") }));
    assert_eq!(text.as_deref(), Some("observer 1"));
    assert_eq!(control.state(), BreakerState::Open);
    clock.advance(ms(1_000));
    let text = unwound(pipeline.execute(|_| async { Answer::Ok("a") }));
    assert_eq!((text.as_deref(), troubled.panics()), (Some("observer 2"), 2));
    assert_eq!(control.state(), BreakerState::HalfOpen, "the work never ran");
    let text = unwound(pipeline.execute(|_| async { Answer::Ok("a") }));
    assert_eq!((text.as_deref(), troubled.panics()), (Some("observer 3"), 3));
    assert_eq!(control.state(), BreakerState::Closed);
}
