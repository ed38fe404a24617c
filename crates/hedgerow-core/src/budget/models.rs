//! The budget's guarantee, in every order of what several threads do.

#![allow(clippy::unwrap_used, reason = "a model that cannot go on has failed")]

use std::sync::{Arc, Mutex};

use super::{Budget, ExtraLoad, RatioBudget};
use crate::sharded::models::{Part, at_once, in_every_order};

/// A budget that the checker watches, and what it has been asked and has granted.
struct Watched {
    budget: RatioBudget,
    ratio: u64,
    cap: u64,
    /// The checker does not see this lock, and so cannot be kept from an order by it.
    account: Mutex<Account>,
}

#[derive(Default)]
struct Account {
    /// Completed calls that may have been paid in.
    completions: u64,
    /// Hedges taken and not given back.
    taken: u64,
}

impl Watched {
    fn new(ratio: u32, cap: u32) -> Arc<Self> {
        let budget = RatioBudget::with_cap(ExtraLoad::new(ratio.into()).unwrap(), cap);
        let (ratio, cap) = (ratio.into(), cap.into());
        Arc::new(Self { budget, ratio, cap, account: Mutex::default() })
    }

    fn deposit(&self) {
        self.account.lock().unwrap().completions += 1;
        self.budget.deposit();
    }

    /// What was granted is noted before anybody else goes on.
    fn note(&self, granted: bool) -> bool {
        let mut account = self.account.lock().unwrap();
        account.taken += u64::from(granted);
        let paid_in = self.ratio * account.completions;
        assert!(account.taken <= paid_in, "{} of {paid_in}", account.taken);
        granted
    }

    fn take(&self) -> bool {
        self.note(self.budget.try_take())
    }

    fn take_spare(&self) -> bool {
        self.note(self.budget.try_take_spare())
    }

    fn give_back(&self) {
        self.account.lock().unwrap().taken -= 1;
        self.budget.give_back();
    }

    fn available(&self) -> u64 {
        let available = self.budget.available();
        assert!(available <= self.cap, "{available}");
        available
    }

    fn taken(&self) -> u64 {
        self.account.lock().unwrap().taken
    }

    /// What is left, to the last hedge.
    fn empty(&self) -> u64 {
        (0..=2 * self.cap).take_while(|_| self.take()).count() as u64
    }
}

fn part(budget: &Arc<Watched>, part: impl FnOnce(&Watched) + Send + 'static) -> Part {
    let budget = Arc::clone(budget);
    Box::new(move || part(&budget))
}

#[test]
fn takers_and_payers_never_exceed_what_was_paid_in() {
    in_every_order(5, || {
        let budget = Watched::new(1, 4);
        at_once([
            part(&budget, |budget| {
                budget.deposit();
                budget.take();
                budget.take();
            }),
            part(&budget, |budget| {
                budget.deposit();
                budget.take();
                budget.deposit();
                budget.take();
            }),
        ]);
        let taken = budget.taken();
        assert_eq!(budget.available(), 3 - taken, "nothing is lost");
        assert_eq!(budget.empty(), 3 - taken);
    });
}

#[test]
fn what_is_given_back_is_there_again() {
    in_every_order(5, || {
        let budget = Watched::new(2, 4);
        let take_and_give_back = |budget: &Watched| {
            budget.deposit();
            if budget.take() {
                budget.give_back();
            }
        };
        at_once([part(&budget, take_and_give_back), part(&budget, take_and_give_back)]);
        assert_eq!(budget.taken(), 0);
        assert_eq!(budget.empty(), 4);
    });
}

#[test]
fn nobody_ever_sees_more_than_the_cap() {
    in_every_order(5, || {
        let budget = Watched::new(3, 2);
        at_once([
            part(&budget, |budget| {
                budget.deposit();
                budget.available();
            }),
            part(&budget, |budget| {
                budget.deposit();
                if budget.take() {
                    budget.give_back();
                }
                budget.available();
            }),
        ]);
        assert_eq!(budget.empty(), 2, "what did not fit is gone");
        at_once([part(&budget, Watched::deposit)]);
        assert_eq!(budget.empty(), 2, "the next window: one completion, and nothing saved up");
    });
}

#[test]
fn spare_hedges_leave_half_to_the_others() {
    in_every_order(5, || {
        let budget = Watched::new(3, 4);
        at_once([part(&budget, Watched::deposit)]);
        at_once([
            part(&budget, |budget| {
                budget.take_spare();
            }),
            part(&budget, |budget| {
                budget.take_spare();
            }),
        ]);
        assert_eq!((budget.taken(), budget.empty()), (1, 2));
    });
}

#[test]
fn three_threads_share_one_budget() {
    in_every_order(3, || {
        let budget = Watched::new(1, 4);
        at_once([
            part(&budget, Watched::deposit),
            part(&budget, Watched::deposit),
            part(&budget, |budget| {
                budget.take();
            }),
        ]);
        assert_eq!(budget.available(), 2 - budget.taken());
    });
}
