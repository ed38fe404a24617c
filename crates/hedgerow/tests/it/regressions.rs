//! What once broke, each as small as it can be shown.

use std::cell::RefCell;
use std::fmt;
use std::future::{IntoFuture, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use hedgerow::testing::ManualExecutor;
use hedgerow::{
    Clock, Delay, Discarded, End, Event, EventKind, Gate, Hedge, Losers, ManualClock, Properties,
    RejectedHedge, Spawner, Task,
};

use crate::support::{Events, Notes, caught, lock, ms, never, ok, poll_once, work};

/// A value whose destructor looks at the properties that hold it.
struct Nosy(Properties);

impl Drop for Nosy {
    fn drop(&mut self) {
        self.0.get::<u32>();
    }
}

#[derive(Clone)]
struct Shared(#[expect(dead_code, reason = "only its destructor matters")] Arc<Nosy>);

#[tokio::test(start_paused = true)]
async fn destructors_of_properties_may_use_the_properties() {
    let properties = Properties::new();
    properties.insert(Shared(Arc::new(Nosy(properties.clone()))));
    let work = async |attempt: hedgerow::Attempt| {
        let copy = attempt.properties();
        copy.insert(Shared(Arc::new(Nosy(copy.clone()))));
        Ok::<_, &str>("a")
    };
    assert_eq!(Hedge::default().call(work).properties(&properties).await, Ok("a"));
}

#[tokio::test(start_paused = true)]
async fn a_rejection_while_a_hedge_waits_for_its_hook_declines_that_hedge() {
    let hedge = Hedge::after(ms(50)).max_hedges(3).rejected_hedge(RejectedHedge::Stop);
    let report = hedge
        .call(async |attempt| match attempt.hedge_number() {
            0 => {
                tokio::time::sleep(ms(60)).await;
                Err("failed")
            }
            1 => {
                tokio::time::sleep(ms(30)).await;
                Err::<(), _>("rejected")
            }
            _ => unreachable!("launching has ended"),
        })
        .rejection(|error| *error == "rejected")
        .on_hedge_async(|next| {
            let wait = if next.hedge_number() == 2 { ms(100) } else { ms(0) };
            tokio::time::sleep(wait)
        })
        .settle()
        .await;
    assert_eq!(report.hedges_started(), 1);
    assert_eq!(report.not_hedged().map(|(gate, _)| gate), Some(Gate::Rejected));
}

#[tokio::test(start_paused = true)]
async fn no_hedge_starts_at_the_deadline_even_if_its_hook_ends_later() {
    let hedge = Hedge::after(ms(50));
    let report = hedge
        .call(async |_| {
            tokio::time::sleep(ms(300)).await;
            Ok::<_, ()>("a")
        })
        .deadline(ms(60))
        .on_hedge_async(|_| tokio::time::sleep(ms(100)))
        .settle()
        .await;
    assert_eq!(report.hedges_started(), 0);
    assert_eq!(report.not_hedged().map(|(gate, _)| gate), Some(Gate::Deadline));
}

#[test]
fn an_observer_that_always_panics_aborts_nothing() {
    let hedge = Hedge::after(ms(5)).observer(Arc::new(|_: &Event| panic!("observer")));
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
    let hedge = hedge.clock(clock);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut call = Box::pin(hedge.call(|_| pending::<Result<(), ()>>()).into_future());
        let _ = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }));
    let panic = panicked.expect_err("the observer's panic reaches the caller");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"observer"));
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_while_it_joins_discards_its_winner() {
    let seen = RefCell::new(vec![]);
    let hedge = Hedge::after(ms(50)).losers(Losers::Join { grace: None });
    let call = hedge
        .call(async |attempt| {
            tokio::time::sleep(if attempt.hedge_number() == 0 { ms(500) } else { ms(20) }).await;
            Ok::<_, ()>(attempt.hedge_number())
        })
        .on_discard(|lost: Discarded<u8, ()>| seen.borrow_mut().push(lost.hedge_number));
    let timed = tokio::time::timeout(ms(200), call.into_future()).await;
    assert!(timed.is_err());
    assert_eq!(*seen.borrow(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_delay_function_ends_the_call_for_good() {
    let hedge = Hedge::default();
    let work = async |_| pending::<Result<(), ()>>().await;
    let mut call =
        Box::pin(hedge.call(work).delay_with(|_| -> Delay { panic!("delay") }).into_future());
    for text in ["delay", "`Hedged` polled after completion"] {
        let mut cx = Context::from_waker(Waker::noop());
        let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(&mut cx).is_ready()));
        assert_eq!(polled.expect_err(text).downcast_ref::<&str>(), Some(&text));
    }
}

#[test]
fn a_detached_attempt_whose_task_is_dropped_has_ended() {
    let ends = Arc::new(Mutex::new((0, 0)));
    let seen = Arc::clone(&ends);
    let observer = move |event: &Event| {
        let mut seen = seen.lock().expect("no panic under it");
        match event.kind {
            EventKind::Started { .. } => seen.0 += 1,
            EventKind::Ended { .. } => seen.1 += 1,
            _ => {}
        }
    };
    let hedge = Hedge::abandoning().delay(ms(5)).observer(Arc::new(observer));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime");
    let answer = runtime.block_on(async {
        let work = |attempt: hedgerow::Attempt| async move {
            match attempt.hedge_number() {
                0 => pending().await,
                _ => Ok::<_, ()>(1),
            }
        };
        hedge.call(work).spawned().await
    });
    assert_eq!(answer, Ok(1));
    drop(runtime);
    assert_eq!(*ends.lock().expect("no panic under it"), (2, 2));
}

#[test]
fn a_task_that_runs_its_own_executor_keeps_its_wake() {
    let executor = ManualExecutor::new();
    let own = executor.clone();
    let mut polls = 0;
    executor.spawn(Box::pin(std::future::poll_fn(move |cx| {
        polls += 1;
        if polls == 2 {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        own.run();
        std::task::Poll::Pending
    })));
    executor.run();
    assert_eq!(executor.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_keeps_nothing_from_another_one() {
    for panics_at in ["start", "hedge", "end", "win", "stop", "over", ""] {
        let (events, seen) = (Events::default(), Events::default());
        let own = seen.observer();
        let panicking = move |event: &Event| {
            own.event(event);
            let panics = seen.text().last().is_some_and(|line| line.starts_with(panics_at));
            assert!(!panics, "observer");
        };
        let hedge = Hedge::after(ms(5)).observer(Arc::new(panicking)).observer(events.observer());
        let notes = Notes::new();
        let answer = caught(hedge.call(work(&notes, [never(), ok(20, "b")]))).await;
        assert_eq!(answer, Err("observer".to_owned()), "{panics_at}");
        let started = events.count("start") + events.count("hedge");
        assert_eq!((events.count("end"), events.count("over")), (started, 1), "{panics_at}");
    }
}

/// Keeps tasks for whoever polls or drops them.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Task>>>);

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

impl Spawner for Kept {
    fn spawn(&self, task: Task) {
        lock(&self.0).push(task);
    }
}

#[test]
fn a_detached_attempt_whose_task_never_ran_has_ended_when_that_is_dropped() {
    let (clock, events, kept) = (ManualClock::new(), Events::default(), Kept::default());
    let hedge = Hedge::abandoning().delay(ms(5)).observer(events.observer());
    let hedge = hedge.clock(Arc::new(clock.clone()));
    let call = hedge.call(|_| async { Ok::<_, ()>(1) }).spawned_on(Arc::new(kept.clone()));
    let mut call = Box::pin(call.into_future());
    assert!(poll_once(call.as_mut()).is_pending());
    clock.advance(ms(5));
    assert!(poll_once(call.as_mut()).is_pending());
    let hedges = lock(&kept.0).pop();
    assert!(poll_once(hedges.expect("it has a task").as_mut()).is_ready());
    assert!(poll_once(call.as_mut()).is_ready());
    assert_eq!(events.count("end(0"), 0);
    lock(&kept.0).clear();
    assert_eq!(events.count("end(0,discarded"), 1);
}

#[test]
fn a_panic_after_the_work_is_not_that_of_whatever_runs_the_task() {
    let (clock, kept) = (ManualClock::new(), Kept::default());
    let late = |event: &Event| {
        assert!(!matches!(event.kind, EventKind::Ended { end: End::Discarded, .. }), "observer");
    };
    let hedge = Hedge::abandoning().delay(ms(5)).observer(Arc::new(late));
    let hedge = hedge.clock(Arc::new(clock.clone())).max_abandoned(9);
    let call = hedge.call(|_| async { Ok::<_, ()>(1) }).on_discard(|_| panic!("discard"));
    let mut call = Box::pin(call.spawned_on(Arc::new(kept.clone())).into_future());
    assert!(poll_once(call.as_mut()).is_pending());
    clock.advance(ms(5));
    assert!(poll_once(call.as_mut()).is_pending());
    let [mut primarys, mut hedges] =
        <[Task; 2]>::try_from(lock(&kept.0).split_off(0)).ok().unwrap();
    assert!(poll_once(hedges.as_mut()).is_ready());
    assert!(poll_once(call.as_mut()).is_ready());
    assert_eq!(hedge.abandoned(), Some(1));
    assert!(poll_once(primarys.as_mut()).is_ready());
    assert_eq!(hedge.abandoned(), Some(0));
}

/// What it returned is discarded: nobody will see it.
#[test]
fn a_spawned_attempt_whose_destructor_panics_keeps_its_outcome_from_nobody() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("destructor");
        }
    }
    let (kept, seen) = (Kept::default(), Arc::new(Mutex::new(vec![])));
    let (hedge, discards) = (Hedge::default(), Arc::clone(&seen));
    let work = |_| {
        let panics = Panics;
        std::future::poll_fn(move |_| {
            let _kept = &panics;
            std::task::Poll::Ready(Ok::<_, ()>(7))
        })
    };
    let call = hedge.call(work).on_discard(move |lost| lock(&discards).push(lost.outcome));
    let mut call = Box::pin(call.spawned_on(Arc::new(kept.clone())).into_future());
    assert!(poll_once(call.as_mut()).is_pending());
    let task = lock(&kept.0).pop();
    assert!(poll_once(task.expect("it has one").as_mut()).is_ready());
    let panicked = catch_unwind(AssertUnwindSafe(|| poll_once(call.as_mut()).is_ready()));
    assert_eq!(panicked.expect_err("it panics").downcast_ref(), Some(&"destructor"));
    assert_eq!(*lock(&seen), [Ok(7)]);
}

/// With the panic at its start, and with one over its victory: there is nothing that goes on.
#[test]
fn an_attempt_that_an_observer_panics_over_is_not_let_go() {
    for panics_at in ["start", "win"] {
        let (events, seen) = (Events::default(), Events::default());
        let own = seen.observer();
        let panicking = move |event: &Event| {
            own.event(event);
            assert_eq!(seen.count(panics_at), 0, "observer");
        };
        let hedge = Hedge::abandoning().observer(Arc::new(panicking)).observer(events.observer());
        let kept = Kept::default();
        let call = hedge.call(|_| async { Ok::<_, ()>(1) }).spawned_on(Arc::new(kept.clone()));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut call = Box::pin(call.into_future());
            let _ = poll_once(call.as_mut());
            for mut task in lock(&kept.0).split_off(0) {
                let _ = poll_once(task.as_mut());
            }
            let _ = poll_once(call.as_mut());
        }));
        assert!(panicked.is_err());
        assert_eq!((events.count("end(0"), events.count("over")), (1, 1), "{panics_at}");
    }
}
