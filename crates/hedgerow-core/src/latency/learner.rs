//! The learned policy: when to hedge and when not to, from what calls turned out to take.

mod successor;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::buckets::Bucket;
use super::curve::Curve;
use super::estimate::Estimate;
use super::learning::{Explanation, Learning, Record, Rule};
use super::parent::{Parent, Scope};
use super::percentile::Percentile;
use super::plan::Plan;
use super::prediction::Prediction;
use super::recorder::Recorder;
use super::rounds::Rounds;
use super::signs::{self, Signs};
use super::single_r::Reissue;
use crate::gate::Gate;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::time::Moment;

/// How often what was learned is looked at anew.
const TICK: Duration = Duration::from_millis(50);
/// How many attempts beyond a quantile must have been seen before it is trusted.
const BEYOND: f64 = 10.0;
/// Old attempts are not forgotten below this many.
const LEAST: f64 = 1_000.0;
/// A learner with a parent looks less often while less than [`signs::ENOUGH`] comes between two
/// looks, but at least once in so many ticks.
const PATIENCE: f64 = 16.0;
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
///
/// # Parents
///
/// A learner may be the child of another one: that of a key among all calls, or of a server among
/// the calls of a key. All that a child is told its parent is told too, so that the parent knows
/// every call, and every refusal. A child is *young* until it has seen ten calls beyond the
/// percentile of its rule (1,000 calls for the 99th; more are never asked for, because no more are
/// kept): until then its parent decides. From then on it decides by itself, as far as its
/// [`Scope`] says.
pub struct Learner {
    learning: Learning,
    pub(super) parent: Option<Parent>,
    recorder: Recorder,
    plan: AtomicU64,
    slow: AtomicBool,
    median: AtomicU64,
    /// The share of hedges that win, as the bits of a double.
    wins: AtomicU64,
    state: Rounds<State>,
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
        Self::with(learning, None, plan.pack())
    }

    /// Knows nothing yet, and follows `parent` until it does; learns as its parent does.
    pub fn child_of(parent: &Arc<Self>, scope: Scope) -> Self {
        let learning = parent.learning;
        Self::with(learning, Some(Parent { learner: Arc::clone(parent), scope }), Plan::FOLLOWS)
    }

    fn with(learning: Learning, parent: Option<Parent>, plan: u64) -> Self {
        Self {
            learning,
            parent,
            recorder: Recorder::default(),
            plan: AtomicU64::new(plan),
            slow: AtomicBool::new(false),
            median: AtomicU64::new(u64::MAX),
            wins: AtomicU64::new(1.0_f64.to_bits()),
            state: Rounds::new(State { estimate: Estimate::new(), signs: Signs::default() }, TICK),
        }
    }

    /// What it was made with.
    pub fn learning(&self) -> Learning {
        self.learning
    }

    /// What is in force: decided by itself, or by its parent while it is young, within the bounds
    /// of what it was made with.
    #[inline]
    pub fn plan(&self) -> Plan {
        self.decided().within(self.learning.min, self.learning.max)
    }

    /// The same before it is bounded: what the latencies call for.
    #[inline]
    pub fn decided(&self) -> Plan {
        let own = self.plan.load(Ordering::Relaxed);
        match &self.parent {
            None => Plan::unpack(own),
            Some(parent) => parent.plan(own),
        }
    }

    /// Whether it has seen too little to decide by itself, so that its parent decides. Never without
    /// a parent, and never again once it is grown.
    pub fn is_young(&self) -> bool {
        self.plan.load(Ordering::Relaxed) == Plan::FOLLOWS
    }

    /// The one that this one follows, if it is young.
    fn followed(&self) -> Option<&Self> {
        let parent = self.parent.as_ref().filter(|_| self.is_young())?;
        Some(&parent.learner)
    }

    /// A number for one call's chances: evenly spread, and the same sequence in every run in which
    /// calls are made in the same order on one thread, whatever their keys.
    pub fn draw(&self) -> u64 {
        if let Some(parent) = &self.parent {
            return parent.learner.draw();
        }
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
        (won, delay)
    }

    /// The same delay, asked where nothing is to be counted.
    pub(crate) fn planned(&self, draw: u64) -> Option<Duration> {
        let plan = self.plan();
        if chance(draw) < plan.probability { plan.delay } else { plan.backstop }
    }

    /// Whether this call won the coin.
    pub fn won_coin(&self, draw: u64) -> bool {
        chance(draw) < self.decided().probability
    }

    /// Why a call with this draw that is still pending at its delay is not to be hedged; `None` if
    /// nothing speaks against it.
    pub fn gate(&self, draw: u64) -> Option<Gate> {
        if self.is_slow() {
            return Some(Gate::Slow);
        }
        let probing = chance(mix(draw)) < PROBE;
        (self.win_rate() < WINS && !probing).then_some(Gate::Wins)
    }

    /// Whether nearly all calls are slow just now: the backend is, not one attempt.
    fn is_slow(&self) -> bool {
        match &self.parent {
            Some(parent) if parent.tells_slowness(self.is_young()) => parent.learner.is_slow(),
            _ => self.slow.load(Ordering::Relaxed),
        }
    }

    /// Counts a hedge that was not started.
    pub(crate) fn refused(&self, gate: Gate) {
        if let Some(index) = Gate::ALL.iter().position(|each| *each == gate) {
            self.recorder.refused(index);
        }
        if let Some(parent) = &self.parent {
            parent.learner.refused(gate);
        }
    }

    /// What it knows and has decided, and why it did not hedge.
    ///
    /// The plan, the slowness and the win rate are those in force, the parent's for one that is
    /// young; the median and the refusals are its own.
    pub fn explain(&self) -> Explanation {
        let median = self.median().map(Bucket::at);
        let refused = Gate::ALL.into_iter().enumerate();
        Explanation {
            young: self.is_young(),
            plan: self.plan(),
            median: median.map(|median| Duration::from_nanos(median.upper())),
            slow: self.is_slow(),
            win_rate: self.win_rate(),
            prediction: self.predict(),
            refused: refused
                .map(|(index, gate)| (gate, self.recorder.refusals(index)))
                .filter(|(_, count)| *count > 0)
                .collect(),
        }
    }

    /// What the plan is to bring for the percentile that it is made for; for p99 where the delay is
    /// a percentile itself. By its own curve: nothing while it is young.
    fn predict(&self) -> Option<Prediction> {
        let state = self.state.between();
        let (curve, weight) = (state.estimate.curve(), state.estimate.weight());
        let percentile = match self.learning.rule {
            Rule::Target(target) => target,
            Rule::Percentile(_) => Percentile::P99,
        };
        let plan = self.plan();
        let known = weight * (1.0 - percentile.share()) >= BEYOND;
        known.then(|| Prediction::of(curve, &plan, percentile, self.learning.load)).flatten()
    }

    /// The share of hedges that win: an average of the latest hundred or so; that of its parent
    /// while it is young.
    pub fn win_rate(&self) -> f64 {
        match self.followed() {
            Some(parent) => parent.win_rate(),
            None => f64::from_bits(self.wins.load(Ordering::Relaxed)),
        }
    }

    /// The bucket that half of its calls stay under, by index, once it is known.
    fn median(&self) -> Option<usize> {
        let median = usize::try_from(self.median.load(Ordering::Relaxed)).ok()?;
        (median < super::BUCKETS).then_some(median)
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
        if let Some(parent) = &self.parent {
            parent.learner.record(record);
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
        if let Some(parent) = &self.parent {
            parent.learner.hedged(hedge_won);
        }
    }

    /// Looks at what came, if it is time to and nobody else does; so does its parent.
    #[inline]
    pub fn tick(&self, now: Moment) {
        if let Some(parent) = &self.parent {
            parent.learner.tick(now);
        }
        if self.state.is_due(now) {
            self.look(now);
        }
    }

    #[cold]
    fn look(&self, now: Moment) {
        let Some(mut state) = self.state.begin(now) else { return };
        let median = self.median();
        let half_life = self.learning.half_life;
        let fresh = state.estimate.advance(&self.recorder, now, half_life, LEAST, median);
        self.state.put_off(now.after(self.pause(fresh.attempts)));
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
        if let Some(plan) = self.decide(curve, state.estimate.weight()) {
            self.plan.store(plan.pack(), Ordering::Relaxed);
        }
    }

    /// How long until the next look, after one that found so many fresh attempts.
    ///
    /// There may be hundreds of keys with a call now and then: it is not worth a look for each.
    fn pause(&self, fresh: f64) -> Duration {
        match self.parent {
            None => TICK,
            Some(_) => TICK.mul_f64((signs::ENOUGH / fresh.max(1.0)).clamp(1.0, PATIENCE)),
        }
    }

    /// How many attempts it must know to decide by itself while a parent does it for it.
    fn grown_at(&self) -> f64 {
        let (Rule::Percentile(percentile) | Rule::Target(percentile)) = self.learning.rule;
        (BEYOND / (1.0 - percentile.share())).min(LEAST)
    }

    /// What the curve calls for; `None` if there is too little evidence to change anything.
    fn decide(&self, curve: &Curve, weight: f64) -> Option<Plan> {
        if self.is_young() && weight < self.grown_at() {
            return None;
        }
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
                    .then(|| Reissue::best(curve, target.share(), load))
                    .flatten();
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
