//! What a blocking call can say, and that no runtime is needed for any of it.

use std::sync::{Arc, Mutex};

use hedgerow::{
    Attempt, AttemptCounter, CancellationToken, Cancelled, Delay, Failure, Gate, Hedge, Judged,
    ManualClock, NextAction, NoAction, NoHook, Properties, Rules,
};

use crate::support::{Answer, lock, ms};

fn on_failure(hedges: u32) -> Hedge {
    Hedge::default().delay(Delay::OnFailure).max_hedges(hedges)
}

/// Fails with its number.
#[expect(clippy::needless_pass_by_value, reason = "as work is called")]
fn fails(attempt: Attempt) -> Result<u8, u8> {
    Err(attempt.hedge_number())
}

#[test]
fn the_real_clock_hedges_a_primary_that_waits_for_its_hedge() {
    let met = std::sync::Barrier::new(2);
    let hedge = Hedge::after(ms(1));
    let answer = hedge.blocking().call(move |_| {
        met.wait(); // the primary cannot end before its hedge has started
        Answer::Ok("both")
    });
    assert_eq!(answer, Ok("both"));
}

#[test]
fn setters_say_what_they_say_of_a_call_that_is_awaited() {
    let hedge = on_failure(3);
    let prepare = || hedge.blocking().prepare(fails);
    let chosen = |failures: &[Failure<u8, u8>]| failures[2].hedge_number();
    assert_eq!(prepare().exhausted(chosen).run(), Err(2));
    assert_eq!(prepare().handle(|outcome| *outcome == Err(0)).run(), Err(1));
    assert_eq!(prepare().rejection(|error| *error == 0).run(), Err(0), "it is not handled");
    assert_eq!(prepare().idempotent(false).run(), Err(0));
    let (alone, met) = (on_failure(1), std::sync::Barrier::new(2));
    let both = alone.blocking().prepare(move |_| Ok::<_, u8>(met.wait().is_leader()));
    assert!(both.delay_with(|_| Delay::Immediately).run().is_ok(), "they run side by side");
    let other = prepare().next_action(|next| {
        let number = next.hedge_number();
        Ok(if number == 1 { NextAction::Repeat } else { NextAction::Run(move || Ok(number)) })
    });
    assert_eq!(other.run(), Ok(2));
    let none = |_: &hedgerow::NextHedge<'_>| Ok(NextAction::<fn() -> Result<u8, u8>, _, _>::Stop);
    let stopped = prepare().next_action(none).settle();
    assert_eq!(stopped.not_hedged().map(|(gate, _)| gate), Some(Gate::Stopped));
}

#[test]
fn a_cancelled_call_has_the_callers_error() {
    #[derive(Debug, PartialEq)]
    struct Gone;
    impl From<Cancelled> for Gone {
        fn from(_: Cancelled) -> Self {
            Self
        }
    }
    let token = CancellationToken::new();
    token.cancel();
    let call = on_failure(1).blocking().prepare(|_| Ok::<u8, Gone>(1)).cancel_on(&token).run();
    assert_eq!(call, Err(Gone));
}

#[test]
fn properties_numbers_and_the_deadline_reach_the_attempts() {
    let (properties, counter) = (Properties::new(), AttemptCounter::new());
    let clock = ManualClock::new();
    let due = hedgerow::Clock::now(&clock) + ms(80);
    let hedge = on_failure(1).clock(Arc::new(clock));
    properties.insert(7_u32);
    counter.next();
    let work = move |attempt: Attempt| {
        assert_eq!(attempt.properties().get::<u32>(), Some(7));
        assert_eq!(attempt.number(), u32::from(attempt.hedge_number()) + 1);
        assert_eq!(attempt.deadline(), Some(due));
        attempt.properties().insert(attempt.hedge_number());
        if attempt.hedge_number() == 0 { Err("down") } else { Ok(()) }
    };
    let call = hedge.blocking().prepare(work);
    let call = call.properties(&properties).counter(&counter).deadline(ms(80));
    assert_eq!(call.run(), Ok(()));
    assert_eq!(properties.get::<u8>(), Some(1), "the winner's");
}

#[test]
fn rules_of_ones_own_serve_both_fronts() {
    struct Even;
    impl Rules<u8, u8> for Even {
        type Action = NoAction<u8, u8>;
        type Hook = NoHook;

        fn handle(&mut self, judged: Judged<'_, u8, u8>) -> bool {
            matches!(judged.outcome(), Err(number) if number % 2 == 0)
        }
    }
    assert_eq!(on_failure(3).blocking().prepare(fails).rules(Even).run(), Err(1));
}

/// A hook, and an action, that are futures: each is polled where it belongs, without a runtime.
#[test]
fn futures_of_rules_are_driven_without_a_runtime() {
    type Boxed<V> = std::pin::Pin<Box<dyn Future<Output = V> + Send>>;
    struct Futures(Arc<Mutex<Vec<&'static str>>>);
    impl Rules<u8, u8> for Futures {
        type Action = Boxed<Result<u8, u8>>;
        type Hook = Boxed<()>;

        fn on_hedge(&mut self, _: &hedgerow::NextHedge<'_>) -> Option<Self::Hook> {
            let told = Arc::clone(&self.0);
            let (sender, receiver) = tokio::sync::oneshot::channel();
            std::thread::spawn(move || sender.send(()));
            Some(Box::pin(async move {
                receiver.await.unwrap();
                lock(&told).push("hook");
            }))
        }

        fn next_action(
            &mut self,
            _: &hedgerow::NextHedge<'_>,
        ) -> Result<NextAction<Self::Action, u8, u8>, u8> {
            let told = Arc::clone(&self.0);
            Ok(NextAction::Run(Box::pin(async move {
                lock(&told).push("action");
                Ok(9)
            })))
        }
    }
    let told = Arc::default();
    let call = on_failure(1).blocking().prepare(fails).rules(Futures(Arc::clone(&told))).run();
    assert_eq!(call, Ok(9));
    assert_eq!(*lock(&told), ["hook", "action"]);
}

#[test]
fn a_learned_policy_learns_from_blocking_calls() {
    let clock = ManualClock::new();
    let hedge = Hedge::adaptive().clock(Arc::new(clock.clone()));
    for _ in 0..150 {
        let clock = clock.clone();
        let answer = hedge.blocking().call(move |_| {
            clock.advance(ms(10)); // it takes so long
            Answer::Ok("a")
        });
        assert_eq!(answer, Ok("a"));
    }
    let median = hedge.explain().unwrap().median.expect("it has seen enough");
    assert!(ms(9) < median && median < ms(11), "{median:?}");
}
