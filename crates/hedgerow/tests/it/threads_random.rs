//! Random blocking calls that are cancelled, panic and let go of attempts: nothing is left of any.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use hedgerow::{Attempt, CancellationToken, Discarded, End, Hedge, Losers};

use crate::doors::{Crew, caught};
use crate::ledger::{Draw, Gauge, Ledger, Tally};
use crate::support::{lock, ms};

#[derive(Clone, Copy, PartialEq)]
enum Does {
    Succeed,
    Fail,
    Panic,
    /// Waits until it is told to stop.
    Wait,
    /// Cancels the call it belongs to, and succeeds.
    Cancel,
}

fn policy(draw: &mut Draw) -> Hedge {
    let losers = [
        Losers::Drop,
        Losers::Detach,
        Losers::Join { grace: None },
        Losers::Join { grace: Some(ms(0)) },
    ];
    draw.policy(&losers).max_abandoned(usize::try_from(draw.below(3)).unwrap())
}

/// One attempt: gives way so many times, then does it. Panics leave no message on the terminal.
fn act(attempt: &Attempt, token: &CancellationToken, yields: u64, does: Does) -> Result<u8, u16> {
    (0..yields).for_each(|_| thread::yield_now());
    match does {
        Does::Succeed => {}
        Does::Fail => return Err(503),
        Does::Panic => std::panic::resume_unwind(Box::new("boom")),
        Does::Cancel => token.cancel(),
        Does::Wait => {
            while !attempt.is_cancelled() {
                thread::yield_now();
            }
        }
    }
    Ok(1)
}

/// Makes one random call and waits for its threads. Says how many there were, and whether a panic
/// of an attempt reached the caller.
fn random_call(seed: u64, ledger: &Arc<Ledger>, alive: &Arc<AtomicI64>) -> (usize, bool) {
    let mut draw = Draw(seed);
    draw.below(2); // seeds that are close together draw alike at first
    draw.below(2);
    let rules_panic = draw.below(8) == 0;
    let hedge = policy(&mut draw);
    let hedge = if rules_panic { hedge } else { hedge.observer(ledger.clone()) };
    // A primary that only waits is never answered where nothing starts beside it.
    let waits = hedge.policy().losers != Losers::Detach;
    let does = [Does::Succeed, Does::Fail, Does::Fail, Does::Panic, Does::Cancel, Does::Wait];
    let does = if waits { &does[..] } else { &does[..5] };
    let script: Vec<_> = (0..4).map(|_| (draw.below(4), draw.pick(does))).collect();
    let needs_help = script.iter().any(|(_, does)| *does == Does::Wait);
    let (crew, token) = (Crew::default(), CancellationToken::new());
    if draw.below(16) == 0 {
        token.cancel();
    }
    let patience = draw.below(6);
    let (held, shared, cancels) = (Gauge::up(alive), Arc::clone(alive), token.clone());
    let call = hedge
        .blocking()
        .on(crew.shared())
        .prepare(move |attempt| {
            let _alive = Gauge::up(&shared);
            let (yields, does) = script[usize::from(attempt.hedge_number())];
            act(&attempt, &cancels, yields, does)
        })
        .cancel_on_or(&token, || 499)
        .handle(move |outcome| {
            if rules_panic {
                std::panic::resume_unwind(Box::new("rules"));
            }
            outcome.is_err()
        })
        .on_discard(move |_: Discarded<u8, u16>| assert!(held.0.load(Ordering::SeqCst) > 0));
    let result = thread::scope(|scope| {
        if needs_help {
            let token = &token;
            scope.spawn(move || {
                (0..patience).for_each(|_| thread::yield_now());
                token.cancel();
            });
        }
        caught(|| call.run())
    });
    let threads = crew.join();
    assert_eq!(hedge.abandoned(), Some(0), "call {seed}");
    (threads, result.is_err() && !rules_panic)
}

#[test]
fn pr_34_ten_thousand_blocking_calls_leave_nothing_behind() {
    const CALLS: u64 = 10_000;
    const CALLERS: u64 = 4;
    let (ledger, alive) = (Arc::<Ledger>::default(), Arc::<AtomicI64>::default());
    let (panics, threads) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let start = Barrier::new(usize::try_from(CALLERS).unwrap());
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (ledger, alive) = (&ledger, &alive);
            let (panics, threads, start) = (&panics, &threads, &start);
            scope.spawn(move || {
                start.wait();
                for seed in (caller..CALLS).step_by(usize::try_from(CALLERS).unwrap()) {
                    let (count, panicked) = random_call(seed, ledger, alive);
                    threads.fetch_add(count, Ordering::SeqCst);
                    panics.fetch_add(usize::from(panicked), Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(alive.load(Ordering::SeqCst), 0, "neither work nor rules are left");
    let tallies = lock(&ledger.0);
    tallies.values().for_each(Tally::check);
    let told = tallies.values().filter(|tally| tally.panicked()).count();
    assert_eq!(panics.load(Ordering::SeqCst), told, "the panics that reached a caller");
    let started: usize = tallies.values().map(|tally| tally.started).sum();
    assert!(threads.load(Ordering::SeqCst) >= started, "each attempt had a thread");
    for how in [End::Won, End::Failed, End::Panicked, End::Cancelled, End::Discarded] {
        let occurs = tallies.values().map(|tally| tally.ended(how)).sum::<usize>();
        assert!(occurs > 100, "{how:?} occurs {occurs} times");
    }
}
