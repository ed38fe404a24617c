//! What a budget promises over any window, and PR-68: policies and retries that share one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hedgerow::testing::Tokens;
use hedgerow::{Attempt, Budget, ExtraLoad, Hedge, RatioBudget};
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::runtime::Builder;

use crate::support::{Answer, Scripted, act, err, ms, ok};

/// Counts what a call, or a retry of calls, does inside.
#[derive(Clone, Default)]
struct Inner(Arc<AtomicUsize>);

impl Inner {
    fn calls(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Work that fails after 10 ms.
    fn fails(&self) -> impl FnMut(Attempt) -> Scripted + Clone + use<> {
        let inner = self.clone();
        move |_| {
            inner.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(act(err(10, "down")))
        }
    }
}

/// Tries up to `times` times, each time but the first only if the budget has one attempt more.
async fn retry(times: usize, budget: Option<&dyn Budget>, mut work: impl AsyncFnMut() -> Answer) {
    for time in 0..times {
        let granted = time == 0 || budget.is_none_or(Budget::try_take);
        if !granted || work().await.is_ok() {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pr_68_a_retry_around_a_hedge_multiplies() {
    let (inner, hedge) = (Inner::default(), Hedge::after(ms(1_000)));
    retry(3, None, async || hedge.call(inner.fails()).await).await;
    assert_eq!(inner.calls(), 6);
}

#[tokio::test(start_paused = true)]
async fn pr_68_a_hedge_around_a_retry_multiplies() {
    let (inner, hedge) = (Inner::default(), Hedge::after(ms(1_000)));
    let call = hedge.call(async |attempt: Attempt| {
        let mut work = inner.fails();
        retry(3, None, async || work(attempt.clone()).await).await;
        Answer::Err("down")
    });
    assert_eq!(call.await, Err("down"));
    assert_eq!(inner.calls(), 6);
}

#[tokio::test(start_paused = true)]
async fn pr_68_a_retry_and_a_hedge_that_share_a_budget_add_up() {
    let budget = Arc::new(Tokens::new(2));
    let hedge = Hedge::after(ms(1_000)).budget(Arc::clone(&budget) as Arc<_>);
    let inner = Inner::default();
    retry(3, Some(&*budget), async || hedge.call(inner.fails()).await).await;
    assert_eq!(inner.calls(), 3, "one, and the two that the budget grants");
    assert_eq!(budget.left(), 0);
}

/// A ratio in twentieths, and a cap.
type Terms = (u32, u32);

fn terms() -> impl Strategy<Value = Terms> {
    (prop_oneof![3 => 1..20_u32, 1 => 20..60_u32], 0..6_u32)
}

fn budget((twentieths, cap): Terms) -> RatioBudget {
    RatioBudget::with_cap(ExtraLoad::new(f64::from(twentieths) / 20.0).unwrap(), cap)
}

/// What can change how much is left.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Entry {
    Completed,
    Taken,
    GivenBack,
}

/// The most that any stretch of the entries takes beyond what its completed calls pay in, in
/// twentieths of a hedge.
fn most_beyond(entries: &[Entry], (twentieths, _): Terms) -> i64 {
    let (mut most, mut ending_here) = (0, 0);
    for entry in entries {
        let change = match entry {
            Entry::Completed => -i64::from(twentieths),
            Entry::Taken => 20,
            Entry::GivenBack => -20,
        };
        ending_here = i64::max(ending_here + change, 0);
        most = i64::max(most, ending_here);
    }
    most
}

#[derive(Clone, Copy, Debug)]
enum Move {
    Deposit,
    Take,
    TakeSpare,
    GiveBack,
    Look,
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        6 => Just(Move::Deposit),
        4 => Just(Move::Take),
        2 => Just(Move::TakeSpare),
        1 => Just(Move::GiveBack),
        1 => Just(Move::Look),
    ]
}

/// Does one thing, and says what of it counts. `outstanding` is what may be given back.
fn perform(budget: &RatioBudget, step: Move, outstanding: &mut u32) -> Option<Entry> {
    let taken = match step {
        Move::Deposit => {
            budget.deposit();
            return Some(Entry::Completed);
        }
        Move::Take => budget.try_take(),
        Move::TakeSpare => budget.try_take_spare(),
        Move::GiveBack if *outstanding > 0 => {
            *outstanding -= 1;
            budget.give_back();
            return Some(Entry::GivenBack);
        }
        Move::GiveBack | Move::Look => false,
    };
    *outstanding += u32::from(taken);
    taken.then_some(Entry::Taken)
}

/// The budget as it is described: each completed call pays in at once, up to the cap.
fn left_after(entry: Option<Entry>, left: u32, (twentieths, cap): Terms) -> u32 {
    match entry {
        Some(Entry::Completed) => (left + twentieths).min(cap * 20),
        Some(Entry::GivenBack) => (left + 20).min(cap * 20),
        Some(Entry::Taken) => left.checked_sub(20).expect("there was enough"),
        None => left,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn pr_38_over_any_window_no_more_is_granted_than_was_paid_in_and_saved_up(
        terms in terms(),
        moves in vec(any_move(), 0..150),
    ) {
        let budget = budget(terms);
        let (mut entries, mut outstanding, mut left) = (vec![], 0, 0);
        for step in moves {
            let entry = perform(&budget, step, &mut outstanding);
            match step {
                Move::Take => prop_assert_eq!(entry.is_some(), left >= 20),
                Move::TakeSpare => prop_assert_eq!(entry.is_some(), left >= 20 + terms.1 * 10),
                _ => {}
            }
            left = left_after(entry, left, terms);
            if matches!(step, Move::Look) {
                prop_assert_eq!(budget.available(), u64::from(left / 20));
            }
            entries.extend(entry);
        }
        prop_assert!(most_beyond(&entries, terms) <= i64::from(terms.1) * 20, "{:?}", entries);
    }
}

/// A call, of one policy or the other; `retries` are tried if it fails.
#[derive(Clone, Copy, Debug)]
struct Called {
    by_the_other: bool,
    fails: bool,
    retries: usize,
}

fn called() -> impl Strategy<Value = Called> {
    (any::<bool>(), prop::bool::weighted(0.3), 0..3_usize)
        .prop_map(|(by_the_other, fails, retries)| Called { by_the_other, fails, retries })
}

/// Makes these calls, and says what they took and paid in, in order.
async fn make(calls: Vec<Called>, budget: Arc<RatioBudget>) -> Vec<Entry> {
    let shared = Arc::clone(&budget) as Arc<dyn Budget>;
    let hedge = Hedge::after(ms(50)).budget(Arc::clone(&shared));
    let other = Hedge::after(ms(20)).max_hedges(3).budget(shared);
    let mut entries = vec![];
    for Called { by_the_other, fails, retries } in calls {
        let hedge = if by_the_other { other.clone() } else { hedge.clone() };
        for time in 0..=retries {
            if time > 0 && !budget.try_take() {
                break;
            }
            entries.extend((time > 0).then_some(Entry::Taken));
            let answer = if fails { err(10, "down") } else { ok(100, "a") };
            let report = hedge.call(async |_| act(answer).await).settle().await;
            entries.extend(std::iter::repeat_n(Entry::Taken, report.hedges_started()));
            entries.push(Entry::Completed);
            if !fails {
                break;
            }
        }
    }
    entries
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn pr_68_policies_and_retries_together_stay_within_the_budget_they_share(
        terms in terms(),
        calls in vec(called(), 0..60),
    ) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let entries = runtime.unwrap().block_on(make(calls, Arc::new(budget(terms))));
        prop_assert!(most_beyond(&entries, terms) <= i64::from(terms.1) * 20, "{:?}", entries);
    }
}
