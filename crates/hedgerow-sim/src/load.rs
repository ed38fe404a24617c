//! When requests arrive.

use std::time::Duration;

use fastrand::Rng;
use hedgerow_core::InvalidOption;

use crate::distribution::{Distribution, positive};
use crate::random::{ARRIVALS, above_zero, stream};
use crate::servers::nanos;

/// No request arrives later: some 146 years, so that sums stay in range.
const LAST: u64 = 1 << 62;

/// How arrivals are spread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Arrivals {
    /// Independently of each other, as from many clients.
    #[default]
    Poisson,
    /// One after each other at equal distances.
    Constant,
}

/// A stretch of time or of requests with one rate.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    name: String,
    /// Nanoseconds between requests, on average.
    gap: f64,
    length: Length,
    latency: Option<Distribution>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Length {
    Time(u64),
    Requests(u64),
}

impl Step {
    /// This many requests a second for this long.
    ///
    /// # Errors
    ///
    /// Refuses a rate that is not positive, and no time at all.
    pub fn lasting(rate: f64, time: Duration) -> Result<Self, InvalidOption> {
        if time.is_zero() {
            return Err(InvalidOption::new("for", "0s", "use more than no time"));
        }
        Self::new(rate, Length::Time(nanos(time)))
    }

    /// This many requests a second until there were `requests`.
    ///
    /// # Errors
    ///
    /// Refuses a rate that is not positive, and no requests at all.
    pub fn counting(rate: f64, requests: u64) -> Result<Self, InvalidOption> {
        if requests == 0 {
            return Err(InvalidOption::new("requests", requests, "use at least 1"));
        }
        Self::new(rate, Length::Requests(requests))
    }

    fn new(rate: f64, length: Length) -> Result<Self, InvalidOption> {
        Ok(Self { name: format!("{rate}/s"), gap: gap(rate)?, length, latency: None })
    }

    /// Gives the requests of this step another latency than the work's.
    #[must_use]
    pub fn latency(mut self, latency: Distribution) -> Self {
        self.latency = Some(latency);
        self
    }

    /// Calls the step something else than its rate.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many requests are to be expected.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a figure for a progress bar"
    )]
    fn expected(&self) -> u64 {
        match self.length {
            Length::Time(time) => (time as f64 / self.gap) as u64,
            Length::Requests(requests) => requests,
        }
    }
}

fn gap(rate: f64) -> Result<f64, InvalidOption> {
    let rate = positive("rate", rate)?;
    if (1e-6..=1e9).contains(&rate) {
        return Ok(1e9 / rate);
    }
    Err(InvalidOption::new("rate", rate, "use 1e-6 to 1e9 requests a second"))
}

/// The load of a model: steps, one after the other. Open loop: nothing waits for an answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Load {
    arrivals: Arrivals,
    steps: Vec<Step>,
    fan_out: u32,
    grace: u64,
}

impl Load {
    /// The most calls of a request.
    pub const MOST_FAN_OUT: u32 = 10_000;

    /// These steps.
    ///
    /// # Errors
    ///
    /// Refuses an empty list.
    pub fn new(arrivals: Arrivals, steps: impl Into<Vec<Step>>) -> Result<Self, InvalidOption> {
        let steps = steps.into();
        if steps.is_empty() {
            return Err(InvalidOption::new("steps", "[]", "give at least one step"));
        }
        Ok(Self { arrivals, steps, fan_out: 1, grace: nanos(Duration::from_millis(500)) })
    }

    /// Makes every request as many calls, each hedged by itself; the slowest one counts.
    ///
    /// # Errors
    ///
    /// Refuses 0 and more than [`MOST_FAN_OUT`](Load::MOST_FAN_OUT).
    pub fn fan_out(mut self, calls: u32) -> Result<Self, InvalidOption> {
        if !(1..=Self::MOST_FAN_OUT).contains(&calls) {
            let remedy = format!("use 1 to {}", Self::MOST_FAN_OUT);
            return Err(InvalidOption::new("fan_out", calls, remedy));
        }
        self.fan_out = calls;
        Ok(self)
    }

    /// How long after the end of its step a request still counts as completed in it; half a second
    /// unless said otherwise. Nothing is lost: a request that takes longer counts as late.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = nanos(grace);
        self
    }

    /// The steps.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// About how many requests a run has.
    pub fn expected_requests(&self) -> u64 {
        self.steps.iter().map(Step::expected).fold(0, u64::saturating_add)
    }

    pub(crate) fn calls_per_request(&self) -> u32 {
        self.fan_out
    }

    /// The latency of attempts in this step, if it is not the work's.
    pub(crate) fn latency(&self, step: usize) -> Option<&Distribution> {
        self.steps.get(step)?.latency.as_ref()
    }

    pub(crate) fn requests(&self, seed: u64) -> Requests<'_> {
        let mut requests = Requests {
            load: self,
            rng: stream(seed, ARRIVALS),
            now: 0.0,
            step: 0,
            left: 0,
            end: f64::INFINITY,
        };
        requests.enter(0);
        requests
    }
}

/// A request that arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Arrival {
    /// When, in nanoseconds from the start of the run.
    pub(crate) at: u64,
    /// In which step.
    pub(crate) step: usize,
    /// When it is late; never in a step that counts requests.
    pub(crate) late: u64,
}

/// The requests of a run, in the order of their arrival.
#[derive(Debug)]
pub(crate) struct Requests<'a> {
    load: &'a Load,
    rng: Rng,
    now: f64,
    step: usize,
    left: u64,
    end: f64,
}

impl Requests<'_> {
    #[expect(clippy::cast_precision_loss, reason = "a time of at most 146 years")]
    fn enter(&mut self, step: usize) {
        self.step = step;
        (self.left, self.end) = match self.load.steps.get(step).map(|step| step.length) {
            Some(Length::Time(time)) => (u64::MAX, self.now + time as f64),
            Some(Length::Requests(requests)) => (requests, f64::INFINITY),
            None => (0, self.now),
        };
    }
}

impl Iterator for Requests<'_> {
    type Item = Arrival;

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    fn next(&mut self) -> Option<Arrival> {
        loop {
            let step = self.load.steps.get(self.step)?;
            let gap = match self.load.arrivals {
                Arrivals::Poisson => -above_zero(&mut self.rng).ln() * step.gap,
                Arrivals::Constant => step.gap,
            };
            let at = self.now + gap;
            if self.left > 0 && at < self.end {
                self.left -= 1;
                self.now = at;
                let late = (self.end as u64).saturating_add(self.load.grace);
                let at = (at as u64).min(LAST);
                return Some(Arrival { at, step: self.step, late });
            }
            // Arrivals have no memory: the next step begins where this one ends.
            if self.end.is_finite() {
                self.now = self.end;
            }
            self.enter(self.step + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(arrivals: Arrivals) -> Load {
        let steps = [
            Step::lasting(1_000.0, Duration::from_secs(10)).unwrap(),
            Step::counting(100.0, 500).unwrap(),
            Step::lasting(2_000.0, Duration::from_secs(10)).unwrap(),
        ];
        Load::new(arrivals, steps).unwrap()
    }

    #[test]
    fn steps_follow_each_other() {
        for arrivals in [Arrivals::Poisson, Arrivals::Constant] {
            let load = load(arrivals);
            let all: Vec<_> = load.requests(1).collect();
            assert!(all.windows(2).all(|pair| pair[0].at <= pair[1].at));
            let count = |step| all.iter().filter(|arrival| arrival.step == step).count();
            assert!(count(0).abs_diff(10_000) < 400, "{}", count(0));
            assert_eq!(count(1), 500);
            assert!(count(2).abs_diff(20_000) < 600, "{}", count(2));
            assert_eq!(load.expected_requests(), 30_500);
            assert_eq!(all[0].late, 10_500_000_000);
            let endless = all.iter().filter(|arrival| arrival.late == u64::MAX).count();
            assert_eq!(endless, 500, "a step without an end has no late ones");
        }
    }

    #[test]
    fn impossible_loads_are_refused_by_name() {
        let second = Duration::from_secs(1);
        for (error, option) in [
            (Step::lasting(0.0, second).unwrap_err(), "rate"),
            (Step::lasting(1e10, second).unwrap_err(), "rate"),
            (Step::lasting(1.0, Duration::ZERO).unwrap_err(), "for"),
            (Step::counting(1.0, 0).unwrap_err(), "requests"),
            (Load::new(Arrivals::Poisson, []).unwrap_err(), "steps"),
            (load(Arrivals::Poisson).fan_out(0).unwrap_err(), "fan_out"),
        ] {
            assert_eq!(error.option(), option);
        }
    }
}
