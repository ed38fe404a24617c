//! The learned policy: when to hedge and when not to, from what calls turned out to take.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::buckets::Bucket;
use super::curve::Curve;
use super::estimate::Estimate;
use super::learning::{Explanation, Learning, Record, Rule};
use super::plan::Plan;
use super::recorder::Recorder;
use super::signs::Signs;
use super::single_r::Reissue;
use crate::gate::Gate;
use crate::sharded::Counter;
use crate::time::Moment;

/// How often what was learned is looked at anew.
const TICK: Duration = Duration::from_millis(50);
/// How many attempts beyond a quantile must have been seen before it is trusted.
const BEYOND: f64 = 10.0;
/// Old attempts are not forgotten below this many.
const LEAST: f64 = 1_000.0;
/// Below this share of hedges that win, hedging does not help.
const WINS: f64 = 0.10;
/// How much one hedge counts in the win rate.
const WIN_WEIGHT: f64 = 1.0 / 64.0;
/// While hedging does not help, one call in so many tries all the same.
const PROBE: f64 = 1.0 / 20.0;

/// Learns when to hedge.
///
/// Recording is a store into memory that the thread owns. Every 50 ms whoever completes a call
/// looks at what came: ages the counts, makes the survival curve, and publishes a [`Plan`] that
/// calls read in one load. Time comes in as a value, counted from whatever moment the owner likes,
/// as long as it is always the same.
pub struct Learner {
    learning: Learning,
    recorder: Recorder,
    plan: AtomicU64,
    slow: AtomicBool,
    median: AtomicU64,
    /// The share of hedges that win, as the bits of a double.
    wins: AtomicU64,
    next_tick: AtomicU64,
    /// How many hedges each gate refused, by its place in [`Gate::ALL`].
    refused: [Counter; Gate::ALL.len()],
    state: Mutex<State>,
}

struct State {
    estimate: Estimate,
    signs: Signs,
}

impl Learner {
    /// Knows nothing yet.
    pub fn new(learning: Learning) -> Self {
        let plan = Plan { delay: learning.initial, probability: 1.0, backstop: None };
        let plan = if learning.initial.is_some() { plan } else { Plan::COLD };
        Self {
            learning,
            recorder: Recorder::default(),
            plan: AtomicU64::new(plan.pack()),
            slow: AtomicBool::new(false),
            median: AtomicU64::new(u64::MAX),
            wins: AtomicU64::new(1.0_f64.to_bits()),
            next_tick: AtomicU64::new(0),
            refused: Default::default(),
            state: Mutex::new(State { estimate: Estimate::new(), signs: Signs::default() }),
        }
    }

    /// What it was made with.
    pub fn learning(&self) -> Learning {
        self.learning
    }

    /// What it has decided.
    #[inline]
    pub fn plan(&self) -> Plan {
        Plan::unpack(self.plan.load(Ordering::Relaxed))
    }

    /// A number for one call's chances: evenly spread, and the same sequence in every run in which
    /// calls are made in the same order on one thread.
    pub fn draw(&self) -> u64 {
        let (shard, count) = self.recorder.draw();
        mix(count.wrapping_add((shard as u64) << 48))
    }

    /// Whether a call with this draw has won the coin, and when it is to be hedged: `None` is
    /// never.
    pub fn delay(&self, draw: u64) -> (bool, Option<Duration>) {
        let plan = self.plan();
        let won = chance(draw) < plan.probability;
        let delay = if won { plan.delay } else { plan.backstop };
        if delay.is_none() {
            self.refused(if plan.delay.is_none() { Gate::Cold } else { Gate::Probability });
        }
        (won, delay.map(|delay| self.clamp(delay)))
    }

    /// Whether this call won the coin.
    pub fn won_coin(&self, draw: u64) -> bool {
        chance(draw) < self.plan().probability
    }

    fn clamp(&self, delay: Duration) -> Duration {
        delay.min(self.learning.max).max(self.learning.min)
    }

    /// Why a call with this draw that is still pending at its delay is not to be hedged; `None` if
    /// nothing speaks against it.
    pub fn gate(&self, draw: u64) -> Option<Gate> {
        if self.slow.load(Ordering::Relaxed) {
            return Some(Gate::Slow);
        }
        let probing = chance(mix(draw)) < PROBE;
        (self.win_rate() < WINS && !probing).then_some(Gate::Wins)
    }

    /// Counts a hedge that was not started.
    pub(crate) fn refused(&self, gate: Gate) {
        if let Some(index) = Gate::ALL.iter().position(|each| *each == gate) {
            self.refused[index].add_one();
        }
    }

    /// What it knows and has decided, and why it did not hedge.
    pub fn explain(&self) -> Explanation {
        let median = usize::try_from(self.median.load(Ordering::Relaxed)).ok();
        let median = median.filter(|median| *median < super::BUCKETS).map(Bucket::at);
        let refused = Gate::ALL.into_iter().zip(&self.refused);
        Explanation {
            plan: self.plan(),
            median: median.map(|median| Duration::from_nanos(median.upper())),
            slow: self.slow.load(Ordering::Relaxed),
            win_rate: self.win_rate(),
            refused: refused
                .map(|(gate, count)| (gate, count.sum()))
                .filter(|(_, count)| *count > 0)
                .collect(),
        }
    }

    /// The share of hedges that win: an average of the latest hundred or so.
    pub fn win_rate(&self) -> f64 {
        f64::from_bits(self.wins.load(Ordering::Relaxed))
    }

    /// A primary has ended.
    #[inline]
    pub fn record(&self, record: Record) {
        match record {
            Record::Finished(latency) => self.recorder.done(Bucket::of(latency)),
            Record::Cut(latency) => self.recorder.cut(Bucket::of(latency)),
            Record::Failed(latency) => {
                let bucket = Bucket::of(latency);
                if bucket.index() as u64 > self.median.load(Ordering::Relaxed) {
                    self.recorder.cut(bucket);
                }
            }
        }
    }

    /// A hedged call is over.
    pub fn hedged(&self, hedge_won: bool) {
        let won = f64::from(u8::from(hedge_won));
        let step = |bits| {
            let rate = f64::from_bits(bits);
            Some((rate + (won - rate) * WIN_WEIGHT).to_bits())
        };
        // It always gives a value, so it always succeeds.
        let _ = self.wins.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
    }

    /// Looks at what came, if it is time to and nobody else does.
    #[inline]
    pub fn tick(&self, now: Moment) {
        if now.as_nanos() >= self.next_tick.load(Ordering::Relaxed) {
            self.look(now);
        }
    }

    #[cold]
    fn look(&self, now: Moment) {
        let Ok(mut state) = self.state.try_lock() else { return };
        let next = now.after(TICK);
        self.next_tick.store(next.as_nanos(), Ordering::Relaxed);
        let median = self.median.load(Ordering::Relaxed);
        let median = usize::try_from(median).ok().filter(|median| *median < super::BUCKETS);
        let totals = self.recorder.totals();
        let half_life = self.learning.half_life;
        let fresh = state.estimate.advance(totals, now, half_life, LEAST, median);
        if median.is_some() {
            let State { estimate, signs } = &mut *state;
            self.slow.store(signs.look(fresh, estimate), Ordering::Relaxed);
        }
        let curve = state.estimate.curve();
        if let Some(median) = curve.exceeded_with(0.5) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "latency")]
            let bucket = Bucket::of_nanos(median as u64);
            self.median.store(bucket.index() as u64, Ordering::Relaxed);
        }
        if let Some(plan) = self.decide(&curve, state.estimate.weight()) {
            self.plan.store(plan.pack(), Ordering::Relaxed);
        }
    }

    /// What the curve calls for; `None` if there is too little evidence to change anything.
    fn decide(&self, curve: &Curve, weight: f64) -> Option<Plan> {
        let load = self.learning.load;
        let certain = |nanos: Option<f64>| Plan {
            delay: nanos.map(nanos_to_duration),
            probability: 1.0,
            backstop: None,
        };
        match self.learning.rule {
            Rule::Percentile(percentile) => {
                let beyond = 1.0 - percentile.share();
                (weight * beyond >= BEYOND).then(|| certain(curve.exceeded_with(beyond)))
            }
            Rule::Target(_) if weight * load < BEYOND => None,
            Rule::Target(target) => {
                let beyond = 1.0 - target.share();
                let solved = (weight * beyond >= BEYOND)
                    .then(|| Reissue::solve(curve, target.share(), load))
                    .flatten()
                    .map(|best| best.surer(curve, target.share(), load));
                Some(match solved {
                    Some(reissue) => Plan {
                        delay: Some(nanos_to_duration(reissue.delay)),
                        probability: reissue.probability,
                        backstop: (reissue.probability < 1.0)
                            .then(|| nanos_to_duration(reissue.reached)),
                    },
                    None => certain(curve.exceeded_with(load)),
                })
            }
        }
    }
}

impl fmt::Debug for Learner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Learner")
            .field("learning", &self.learning)
            .field("plan", &self.plan())
            .field("slow", &self.slow.load(Ordering::Relaxed))
            .field("win_rate", &self.win_rate())
            .finish_non_exhaustive()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a latency")]
fn nanos_to_duration(nanos: f64) -> Duration {
    Duration::from_nanos(nanos.max(0.0) as u64)
}

/// Spreads a counter over all values (the finalizer of a well-known generator).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A draw as a chance from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
fn chance(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1_u64 << 53) as f64
}
