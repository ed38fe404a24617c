//! H49 and PR-08: attempts that hold up the only thread there is.

use std::sync::Arc;
use std::time::Duration;

use hedgerow::{Attempt, Hedge, ManualClock, hedged};

use crate::support::{Answer, Events, Notes, ms, poll_once};

#[test]
fn h49_a_primary_that_blocks_its_first_poll_is_not_hedged() {
    let (clock, events) = (ManualClock::new(), Events::default());
    let hedge = Hedge::after(ms(50)).clock(Arc::new(clock.clone())).observer(events.observer());
    let work = async |attempt: Attempt| {
        assert_eq!(attempt.hedge_number(), 0, "no hedge starts");
        clock.advance(ms(100)); // as a thread that computes
        Answer::Ok("a")
    };
    let notes = Notes::on(&clock);
    let mut call = Box::pin(hedge.call(work).into_future());
    assert_eq!(poll_once(call.as_mut()), std::task::Poll::Ready(Ok("a")));
    assert_eq!(notes.at(), 100);
    assert_eq!(events.count("hedge"), 0);
}

#[test]
fn h49_a_hedge_starts_as_soon_as_the_thread_is_free() {
    let (clock, events) = (ManualClock::new(), Events::default());
    let hedge = Hedge::after(ms(50)).clock(Arc::new(clock.clone())).observer(events.observer());
    let work = async |attempt: Attempt| {
        if attempt.hedge_number() == 0 {
            clock.advance(ms(100));
            std::future::pending::<()>().await;
        }
        Answer::Ok("b")
    };
    let mut call = Box::pin(hedge.call(work).into_future());
    assert_eq!(poll_once(call.as_mut()), std::task::Poll::Ready(Ok("b")));
    assert_eq!(events.count("hedge(1,delay)@100"), 1);
}

/// PR-08 asks for the real clock. Nothing here depends on how long anything takes.
#[tokio::test]
async fn pr_08_one_thread_is_enough_for_work_that_waits() {
    let order = std::cell::RefCell::new(vec![]);
    let call = hedged(async |attempt: Attempt| {
        order.borrow_mut().push(attempt.hedge_number());
        match attempt.hedge_number() {
            0 => tokio::time::sleep(Duration::from_secs(3_600)).await,
            _ => tokio::time::sleep(ms(10)).await,
        }
        Ok::<_, &str>(attempt.hedge_number())
    });
    assert_eq!(call.after(ms(10)).await, Ok(1));
    assert_eq!(*order.borrow(), [0, 1]);
}

#[tokio::test]
async fn pr_08_one_thread_is_enough_for_work_that_blocks() {
    for hedge in crate::support::both(Hedge::after(ms(10))) {
        let order = std::cell::RefCell::new(vec![]);
        let call = hedge.call(async |attempt: Attempt| {
            order.borrow_mut().push(attempt.hedge_number());
            if attempt.hedge_number() == 0 {
                std::thread::sleep(ms(40));
                order.borrow_mut().push(100); // the thread is free
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(ms(10)).await;
            Ok::<_, &str>(attempt.hedge_number())
        });
        assert_eq!(call.await, Ok(1));
        assert_eq!(*order.borrow(), [0, 100, 1]);
    }
}
