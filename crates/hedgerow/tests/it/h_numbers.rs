//! H19, H20, H47, H48 and H50: which number an attempt has, and how many there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hedgerow::{
    Attempt, AttemptCounter, Delay, Hedge, Judged, NoAction, NoHook, Origin, Rules, hedged,
};
use tokio::time::sleep;

use crate::support::{Answer, Notes, both, err, ms, never, ok, work};

#[tokio::test(start_paused = true)]
async fn h19_numbers_go_on_through_a_retry_around_the_call() {
    let (notes, counter, hedge) = (Notes::new(), AttemptCounter::new(), Hedge::after(ms(10)));
    for try_number in 0..2 {
        let work = async |attempt: Attempt| {
            let (number, hedge) = (attempt.number(), attempt.hedge_number());
            notes.note(format_args!("number {number}, hedge {hedge}"));
            sleep(ms(20)).await;
            Answer::Err("down")
        };
        let call = hedge
            .call(work)
            .counter(&counter)
            .on_hedge(|next| notes.note(format_args!("hook {}", next.hedge_number())));
        assert_eq!(call.await, Err("down"), "try {try_number}");
    }
    let expected = [
        "number 0, hedge 0 @0",
        "hook 1 @10",
        "number 1, hedge 1 @10",
        "number 2, hedge 0 @30",
        "hook 1 @40",
        "number 3, hedge 1 @40",
    ];
    assert_eq!(notes.lines(), expected);
}

#[tokio::test(start_paused = true)]
async fn h20_numbers_are_never_repeated_by_a_retry_inside_an_attempt() {
    let (notes, counter, hedge) = (Notes::new(), AttemptCounter::new(), Hedge::after(ms(10)));
    let work = async |attempt: Attempt| {
        let branch = attempt.hedge_number();
        notes.note(format_args!("branch {branch} runs {}", attempt.number()));
        if branch == 1 {
            sleep(ms(100)).await;
            return Answer::Ok("hedge");
        }
        sleep(ms(20)).await; // and fails
        notes.note(format_args!("branch {branch} runs {}", counter.next()));
        sleep(ms(20)).await;
        Answer::Ok("retried")
    };
    assert_eq!(hedge.call(work).counter(&counter).await, Ok("retried"));
    let expected = ["branch 0 runs 0 @0", "branch 1 runs 1 @10", "branch 0 runs 2 @20"];
    assert_eq!(notes.lines(), expected);
    assert_eq!(counter.next(), 3);
}

#[tokio::test(start_paused = true)]
async fn t21_without_a_counter_the_number_is_the_hedge_number() {
    for hedge in both(Hedge::after(ms(10)).max_hedges(3)) {
        let numbers = std::cell::RefCell::new(vec![]);
        let work = async |attempt: Attempt| {
            let pair = (attempt.number(), attempt.hedge_number());
            numbers.borrow_mut().push(pair);
            sleep(ms(100)).await;
            Answer::Ok("a")
        };
        assert_eq!(hedge.call(work).await, Ok("a"));
        assert_eq!(*numbers.borrow(), [(0, 0), (1, 1), (2, 2), (3, 3)]);
    }
}

/// Handles everything and keeps the numbers of what it judged.
struct Numbers<'a>(&'a mut Vec<u8>);

impl Rules<&'static str, &'static str> for Numbers<'_> {
    type Action = NoAction<&'static str, &'static str>;
    type Hook = NoHook;

    fn handle(&mut self, judged: Judged<'_, &'static str, &'static str>) -> bool {
        self.0.push(judged.hedge_number());
        true
    }
}

#[tokio::test(start_paused = true)]
async fn h47_the_predicate_sees_the_number_of_each_attempt() {
    for hedge in both(Hedge::after(ms(50)).max_hedges(2)) {
        let (notes, mut seen) = (Notes::new(), vec![]);
        let script = [err(10, "p"), ok(10, "bad"), err(10, "r")];
        let call = hedge.call(work(&notes, script)).rules(Numbers(&mut seen));
        assert_eq!(call.await, Err("p"));
        assert_eq!(seen, [0, 1, 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn h48_a_thousand_calls_share_a_policy_and_nothing_else() {
    let hedge = Arc::new(Hedge::after(ms(50)).max_hedges(2));
    let calls: Vec<_> = (0..1_000_u64)
        .map(|call| {
            let hedge = Arc::clone(&hedge);
            tokio::spawn(async move {
                let notes = Notes::new();
                let own = call % 40;
                let script = [never(), err(own, "q"), ok(30, "c")];
                let answer = hedge.call(work(&notes, script)).await;
                (own, answer, notes.lines())
            })
        })
        .collect();
    for call in calls {
        let (own, answer, lines) = call.await.unwrap();
        assert_eq!(answer, Ok("c"));
        let expected = [
            "A0 starts @0".to_owned(),
            "A1 starts @50".to_owned(),
            format!("A1 ends @{}", 50 + own),
            format!("A2 starts @{}", 50 + own),
            format!("A2 ends @{}", 80 + own),
            format!("A0 dropped @{}", 80 + own),
        ];
        assert_eq!(lines, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn h50_no_more_attempts_than_allowed_ever_start() {
    let delays = [Delay::Immediately, Delay::After(ms(10)), Delay::OnFailure];
    for delay in delays {
        for hedges in 0..=10 {
            let started = AtomicUsize::new(0);
            let work = async |_: Attempt| {
                started.fetch_add(1, Ordering::Relaxed);
                sleep(ms(500)).await;
                Answer::Err("down")
            };
            let hedge = Hedge::default().delay(delay).max_hedges(hedges);
            assert_eq!(hedge.call(work).await, Err("down"));
            let started = started.into_inner();
            assert_eq!(started, 1 + hedges as usize, "{delay:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn t52_a_hedge_says_why_it_starts() {
    let origins = std::cell::RefCell::new(vec![]);
    let notes = Notes::new();
    let call = hedged(work(&notes, [never(), err(10, "q"), ok(10, "c")]))
        .after(ms(50))
        .max_hedges(2)
        .on_hedge(|next| origins.borrow_mut().push(next.origin()));
    assert_eq!(call.await, Ok("c"));
    let expected = [Some(Origin::Delay), Some(Origin::Failure)];
    assert_eq!(*origins.borrow(), expected);
}
