//! Counters, histograms and gauges through the `metrics` facade.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::metrics::{
    Counter, Gauge, Histogram, Label, SharedString, Unit, counter, describe_counter,
    describe_gauge, describe_histogram, gauge, histogram,
};
use hedgerow_core::latency::Learner;
use hedgerow_core::{Budget, Decision, End, Event, EventKind, Gate, Moment, Observer, Origin};

use crate::hedge::Hedge;

/// Records what the calls of a policy do, through the recorder that the program installed.
///
/// | metric | kind, unit | labels beside `policy` | what |
/// |---|---|---|---|
/// | `hedgerow.calls` | counter | `result`: `accepted`, `exhausted`, `cancelled`, `aborted` | calls that are over |
/// | `hedgerow.attempts` | counter | `role`: `primary`, `hedge`; `outcome`: `won`, `failed`, `rejected`, `panicked`, `cancelled`, `discarded` | attempts that have ended, each once |
/// | `hedgerow.hedges` | counter | `origin`: `delay`, `failure` | hedges that started |
/// | `hedgerow.hedges.won` | counter | | hedges that answered their call |
/// | `hedgerow.hedges.denied` | counter | `gate`: the name of a [`Gate`] | hedges that were due and did not start |
/// | `hedgerow.call.duration` | histogram, s | `result` | from the start of a call to its end |
/// | `hedgerow.attempt.duration` | histogram, s | `role`, `outcome` | how long an attempt ran |
/// | `hedgerow.attempts.running` | gauge | | attempts that have started and not ended, of calls that went beyond their primary |
/// | `hedgerow.delay` | gauge, s | | the learned delay, if the policy learns; 0 while nothing is known |
/// | `hedgerow.probability` | gauge | | the share of calls pending at the delay that are hedged, if the policy learns |
/// | `hedgerow.budget.available` | gauge | | hedges that the budget would grant now, if there is one |
///
/// The extra load is `hedgerow.hedges` over `hedgerow.calls`. An error rate of a target counts
/// `failed` over `failed + won + discarded`: attempts that finished. Cancelled ones never finished
/// and belong into neither.
///
/// A call that never goes beyond its primary costs a few additions and reads the clock only if it
/// was pending: its durations count from its first poll, and are nothing if it ended there. The
/// gauges are brought up to date by the calls that do go beyond.
///
/// Labels have few values whatever happens: the name of the policy, and words from the table.
///
/// Handles are taken from the recorder when this is made, so install the recorder first.
///
/// ```
/// use hedgerow::Hedge;
/// use hedgerow::telemetry::Metrics;
///
/// let hedge = Hedge::adaptive().max_extra_load(0.05);
/// let metrics = Metrics::new("search", &hedge);
/// let hedge = hedge.observer(std::sync::Arc::new(metrics));
/// ```
pub struct Metrics {
    calls: [Counter; RESULTS.len()],
    call_durations: [Histogram; RESULTS.len()],
    attempts: [[Counter; End::ALL.len()]; ROLES.len()],
    attempt_durations: [[Histogram; End::ALL.len()]; ROLES.len()],
    hedges: [Counter; 2],
    won: Counter,
    denied: [Counter; Gate::ALL.len()],
    running: Gauge,
    state: State,
}

/// The gauges of what a policy has learned and saved up, as far as it does either.
struct State {
    learned: Option<Learned>,
    saved: Option<(Arc<dyn Budget>, Gauge)>,
}

struct Learned {
    learner: Arc<Learner>,
    delay: Gauge,
    probability: Gauge,
}

const RESULTS: [&str; 4] = ["accepted", "exhausted", "cancelled", "aborted"];
const ROLES: [&str; 2] = ["primary", "hedge"];

impl Metrics {
    /// Metrics of a policy, under a name that tells it from the program's other policies.
    ///
    /// The gauges tell of the budget and the learner that `hedge` has now.
    pub fn new(policy: impl Into<SharedString>, hedge: &Hedge) -> Self {
        let policy = policy.into();
        let state = State::new(&policy, hedge);
        Self::with(&policy, state)
    }

    /// The same without the gauges of what a policy has learned and saved up: for policies that are
    /// not known yet.
    pub(super) fn stateless(policy: impl Into<SharedString>) -> Self {
        Self::with(&policy.into(), State { learned: None, saved: None })
    }

    fn with(policy: &SharedString, state: State) -> Self {
        describe();
        let ended = |role: &'static str, end: End| {
            let labels = [("role", role), ("outcome", end.name())];
            labels
                .map(|(key, value)| Label::new(key, value))
                .into_iter()
                .chain([named(policy)])
                .collect::<Vec<_>>()
        };
        let over = |result: &'static str| vec![named(policy), Label::new("result", result)];
        let hedges = |origin: Origin| vec![named(policy), Label::new("origin", origin.name())];
        let denied = |gate: Gate| vec![named(policy), Label::new("gate", gate.name())];
        Self {
            calls: RESULTS.map(|result| counter!("hedgerow.calls", over(result))),
            call_durations: RESULTS
                .map(|result| histogram!("hedgerow.call.duration", over(result))),
            attempts: ROLES
                .map(|role| End::ALL.map(|end| counter!("hedgerow.attempts", ended(role, end)))),
            attempt_durations: ROLES.map(|role| {
                End::ALL.map(|end| histogram!("hedgerow.attempt.duration", ended(role, end)))
            }),
            hedges: [Origin::Delay, Origin::Failure]
                .map(|origin| counter!("hedgerow.hedges", hedges(origin))),
            won: counter!("hedgerow.hedges.won", vec![named(policy)]),
            denied: Gate::ALL.map(|gate| counter!("hedgerow.hedges.denied", denied(gate))),
            running: gauge!("hedgerow.attempts.running", vec![named(policy)]),
            state,
        }
    }

    fn started(&self, origin: Origin) {
        self.running.increment(1.0);
        match origin {
            Origin::Primary => {}
            Origin::Delay => self.hedges[0].increment(1),
            Origin::Failure => self.hedges[1].increment(1),
        }
    }

    fn ended(&self, attempt: Option<u8>, end: End, seconds: f64) {
        self.running.decrement(1.0);
        let role = usize::from(attempt != Some(0));
        self.attempts[role][place(end)].increment(1);
        self.attempt_durations[role][place(end)].record(seconds);
    }

    fn over(&self, how: Decision, seconds: f64) {
        let result = match how {
            Decision::Accepted(_) => 0,
            Decision::Exhausted(_) => 1,
            Decision::Cancelled => 2,
            Decision::Aborted => 3,
        };
        self.calls[result].increment(1);
        self.call_durations[result].record(seconds);
    }
}

impl Observer for Metrics {
    fn event(&self, event: &Event) {
        match event.kind {
            EventKind::Started { origin } => self.started(origin),
            EventKind::Ended { end, ran } => self.ended(event.attempt, end, ran.as_secs_f64()),
            EventKind::Denied { gate } => {
                if let Some(index) = Gate::ALL.iter().position(|each| *each == gate) {
                    self.denied[index].increment(1);
                }
            }
            EventKind::Decided if event.attempt != Some(0) => self.won.increment(1),
            EventKind::Over { how } => {
                self.over(how, event.at.since(Moment::ZERO).as_secs_f64());
                self.state.publish();
            }
            _ => {}
        }
    }

    fn wants_all(&self) -> bool {
        false
    }

    fn alone(&self, end: End, took: Duration) {
        let (result, outcome, seconds) = (alone(end), place(end), took.as_secs_f64());
        self.calls[result].increment(1);
        self.call_durations[result].record(seconds);
        self.attempts[0][outcome].increment(1);
        self.attempt_durations[0][outcome].record(seconds);
    }
}

/// The place in [`RESULTS`] of a call whose primary ended so, and was all there was.
fn alone(end: End) -> usize {
    match end {
        End::Won => 0,
        End::Panicked => 3,
        _ => 2,
    }
}

/// The place in [`End::ALL`].
fn place(end: End) -> usize {
    End::ALL.iter().position(|each| *each == end).unwrap_or(0)
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl State {
    fn new(policy: &SharedString, hedge: &Hedge) -> Self {
        let labels = || vec![named(policy)];
        let learned = hedge.policy().learner.clone().map(|learner| Learned {
            learner,
            delay: gauge!("hedgerow.delay", labels()),
            probability: gauge!("hedgerow.probability", labels()),
        });
        let available = || gauge!("hedgerow.budget.available", labels());
        let saved = hedge.policy().budget.clone().map(|budget| (budget, available()));
        Self { learned, saved }
    }

    fn publish(&self) {
        if let Some(Learned { learner, delay, probability }) = &self.learned {
            let plan = learner.plan();
            if let Some(planned) = plan.delay {
                delay.set(planned.as_secs_f64());
            }
            probability.set(plan.probability);
        }
        if let Some((budget, available)) = &self.saved
            && let Some(level) = budget.level()
        {
            available.set(level);
        }
    }
}

fn named(policy: &SharedString) -> Label {
    Label::new("policy", policy.clone())
}

/// Units and descriptions, for recorders that show them.
fn describe() {
    describe_counter!("hedgerow.calls", Unit::Count, "calls that are over, by result");
    describe_counter!("hedgerow.attempts", Unit::Count, "attempts that have ended, by outcome");
    describe_counter!("hedgerow.hedges", Unit::Count, "hedges that started, by origin");
    describe_counter!("hedgerow.hedges.won", Unit::Count, "hedges that answered their call");
    describe_counter!("hedgerow.hedges.denied", Unit::Count, "hedges that did not start, by gate");
    describe_histogram!("hedgerow.call.duration", Unit::Seconds, "how long calls took, by result");
    describe_histogram!("hedgerow.attempt.duration", Unit::Seconds, "how long attempts ran");
    describe_gauge!("hedgerow.attempts.running", Unit::Count, "attempts that have not ended");
    describe_gauge!("hedgerow.delay", Unit::Seconds, "the learned delay");
    describe_gauge!("hedgerow.probability", "the share of calls pending at the delay to hedge");
    describe_gauge!("hedgerow.budget.available", Unit::Count, "hedges that the budget grants now");
}
