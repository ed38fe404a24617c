//! Extra load as a fraction of completed calls, exactly.

use std::fmt;

use super::Budget;
use crate::invalid::InvalidOption;
use crate::sharded::Counter;
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// What one hedge costs, in the budget's integer units: one completed call at a ratio of 1.
const HEDGE: u64 = 1_000_000_000;

/// How many hedges may be started for each completed call: a finite ratio of at least 0.
///
/// Held in billionths, so that 0.6 is three in five and not a hair less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtraLoad(u64);

impl ExtraLoad {
    /// # Errors
    ///
    /// Negative, infinite and not-a-number ratios are refused, and so is more than 10 (no policy
    /// starts more than ten hedges a call).
    pub fn new(ratio: f64) -> Result<Self, InvalidOption> {
        if !(0.0..=10.0).contains(&ratio) {
            let remedy = r#"use a ratio from 0 to 10, such as 0.05 or "5%""#;
            return Err(InvalidOption::new("max_extra_load", ratio, remedy));
        }
        Ok(Self(billionths(ratio)))
    }

    /// The same, of more than 0 and at most 1: what a policy's `max_extra_load` may be. There a 5
    /// is far more likely to mean 5 % than five hedges a call.
    ///
    /// # Errors
    ///
    /// Everything else is refused.
    pub fn at_most_one(ratio: f64) -> Result<Self, InvalidOption> {
        match Self::new(ratio) {
            Ok(load) if (1..=HEDGE).contains(&load.0) => Ok(load),
            _ => {
                let remedy = r#"use more than 0 and at most 1, such as 0.05 or "5%""#;
                Err(InvalidOption::new("max_extra_load", ratio, remedy))
            }
        }
    }

    /// The ratio as a number.
    #[expect(clippy::cast_precision_loss, reason = "at most 10 billion: exact in a double")]
    pub fn get(self) -> f64 {
        self.0 as f64 / HEDGE as f64
    }
}

/// Rounds down, but lets 0.6 (a hair below three fifths as a double) be three fifths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the ratio lies between 0 and 10"
)]
fn billionths(ratio: f64) -> u64 {
    (ratio * HEDGE as f64 + 1e-4).floor() as u64
}

impl fmt::Debug for ExtraLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.get())
    }
}

/// A budget funded by completed calls: each pays in `ratio` of a hedge, up to a cap.
///
/// Over any stretch of calls it grants at most `ratio` x completions + cap hedges, exactly
/// (PR-38): all arithmetic is in integers. (A completion on another thread counts from the moment
/// at which it is visible to the one that takes.) It starts empty, so the first hedge is possible after
/// `1 / ratio` completed calls (20 at 5 %); what is saved up lets a service with little traffic
/// hedge in bursts of at most the cap (PR-40). There is no floor per second: a floor would be load
/// without bound on a backend that answers nothing.
///
/// Paying in is a store into a line that the thread owns. Taking out locks: it happens only when a
/// hedge wants to start.
#[derive(Debug)]
pub struct RatioBudget {
    ratio: ExtraLoad,
    cap: u64,
    completions: Counter,
    account: Mutex<Account>,
}

/// What was in the budget when the completions were last counted.
#[derive(Debug, Default)]
struct Account {
    units: u64,
    counted: u64,
}

impl RatioBudget {
    /// How many hedges may be saved up, unless [`with_cap`](RatioBudget::with_cap) says otherwise.
    pub const CAP: u32 = 20;

    /// An empty budget with the default cap.
    pub fn new(ratio: ExtraLoad) -> Self {
        Self::with_cap(ratio, Self::CAP)
    }

    /// An empty budget that saves up at most `cap` hedges.
    pub fn with_cap(ratio: ExtraLoad, cap: u32) -> Self {
        Self {
            ratio,
            cap: u64::from(cap) * HEDGE,
            completions: Counter::default(),
            account: Mutex::default(),
        }
    }

    /// The ratio that it was made with.
    pub fn ratio(&self) -> ExtraLoad {
        self.ratio
    }

    /// How many hedges it would grant now.
    pub fn available(&self) -> u64 {
        self.settled().units / HEDGE
    }

    /// Takes one hedge if that leaves at least so many units.
    fn take_leaving(&self, least: u64) -> bool {
        let mut account = self.settled();
        match account.units.checked_sub(HEDGE) {
            Some(left) if left >= least => {
                account.units = left;
                true
            }
            _ => false,
        }
    }

    /// The account with every completion so far paid in.
    ///
    /// Deriving the balance when it is asked for equals paying in at each completion: a cap only
    /// matters when something is taken out.
    fn settled(&self) -> MutexGuard<'_, Account> {
        // A panic cannot leave the account half written: poisoning carries no news here.
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        let completions = self.completions.sum();
        let earned = completions.saturating_sub(account.counted).saturating_mul(self.ratio.0);
        account.units = account.units.saturating_add(earned).min(self.cap);
        account.counted = completions.max(account.counted);
        account
    }
}

impl Budget for RatioBudget {
    #[inline]
    fn deposit(&self) {
        self.completions.add_one();
    }

    fn try_take(&self) -> bool {
        self.take_leaving(0)
    }

    fn try_take_spare(&self) -> bool {
        self.take_leaving(self.cap / 2)
    }

    fn give_back(&self) {
        let mut account = self.settled();
        account.units = (account.units + HEDGE).min(self.cap);
    }

    #[expect(clippy::cast_precision_loss, reason = "a level for people and gauges")]
    fn level(&self) -> Option<f64> {
        Some(self.settled().units as f64 / HEDGE as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(ratio: f64, cap: u32, completions: u64) -> u64 {
        let budget = RatioBudget::with_cap(ExtraLoad::new(ratio).unwrap(), cap);
        (0..completions).for_each(|_| budget.deposit());
        let mut granted = 0;
        while budget.try_take() {
            granted += 1;
        }
        granted
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "small figures")]
    fn pr_38_fractions_are_exact() {
        let steps = (1..=19).map(|i| f64::from(i) * 0.05);
        for ratio in steps.chain([0.6, 1.0 / 3.0, 1.5]) {
            for completions in [10_u64, 10_000] {
                let most = ratio * completions as f64;
                let granted = granted(ratio, u32::MAX, completions);
                assert!(granted as f64 <= most + 1e-9, "{ratio} of {completions}: {granted}");
                assert!(granted as f64 >= most - 1.0, "{ratio} of {completions}: {granted}");
            }
        }
        assert_eq!(granted(0.6, u32::MAX, 5), 3);
        assert_eq!(granted(0.05, u32::MAX, 20), 1);
        assert_eq!(granted(0.05, u32::MAX, 19), 0);
        assert_eq!(granted(0.0, u32::MAX, 10_000), 0);
    }

    #[test]
    fn pr_38_impossible_ratios_are_refused_by_name() {
        for ratio in [-0.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 11.0] {
            let error = ExtraLoad::new(ratio).unwrap_err();
            assert_eq!(error.option(), "max_extra_load");
            assert_eq!(error.value(), ratio.to_string());
        }
    }

    #[test]
    fn a_policy_takes_no_more_than_one_hedge_a_call() {
        assert_eq!(ExtraLoad::at_most_one(0.05), ExtraLoad::new(0.05));
        assert!(ExtraLoad::at_most_one(1.0).is_ok());
        for ratio in [0.0, 1e-12, 1.01, 5.0, -1.0, f64::NAN] {
            let error = ExtraLoad::at_most_one(ratio).unwrap_err();
            assert!(error.to_string().starts_with("max_extra_load = "), "{error}");
        }
    }

    #[test]
    fn pr_40_little_traffic_can_hedge_and_saves_up_no_more_than_the_cap() {
        let budget = RatioBudget::new(ExtraLoad::new(0.1).unwrap());
        assert!(!budget.try_take(), "it starts empty");
        let mut hedges = 0;
        for _ in 0..100 {
            budget.deposit();
            hedges += u32::from(budget.try_take());
        }
        assert_eq!(hedges, 10);
        (0..1_000_000).for_each(|_| budget.deposit());
        assert_eq!(budget.available(), u64::from(RatioBudget::CAP));
    }

    #[test]
    fn what_was_taken_can_be_given_back_once() {
        let budget = RatioBudget::with_cap(ExtraLoad::new(1.0).unwrap(), 1);
        budget.deposit();
        assert!(budget.try_take());
        budget.give_back();
        assert_eq!(budget.available(), 1);
        budget.give_back();
        assert_eq!(budget.available(), 1, "never above the cap");
    }

    #[test]
    fn a_cap_of_zero_grants_nothing() {
        assert_eq!(granted(1.0, 0, 100), 0);
    }
}
