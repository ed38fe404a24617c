//! What a scenario's run came to.

use hedgerow_core::{Decision, End, Event, EventKind, Gate, Losers, Moment, Origin};

use super::scenario::{Scenario, Scripted};

/// What happened in a scripted call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Timeline {
    /// Each attempt and when it started.
    pub starts: Vec<(u8, Moment)>,
    /// Hedges, refusals and the decision, in order.
    pub events: Vec<TimelineEvent>,
    /// What the call returned.
    pub returned: Returned,
    /// The attempts that were told to stop, and when.
    pub cancelled: Vec<(u8, Moment)>,
    /// The attempts whose failures are attached to the result, in completion order.
    pub suppressed: Vec<u8>,
    /// When and how each attempt ended, in order; none for one that runs on.
    pub ended: Vec<(u8, Moment, End)>,
}

/// An event of a [`Timeline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimelineEvent {
    /// A hedge started.
    Hedge(u8, Moment),
    /// A hedge was due but did not start.
    Denied(u8, Moment, Gate),
    /// This attempt's outcome was accepted.
    Win(u8, Moment),
    /// Nothing ran and nothing could start.
    Exhausted(Moment),
}

/// What a scripted call returned.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Returned {
    /// How it ended.
    pub kind: ReturnedKind,
    /// The value, or the name of the error, if the script gives one.
    pub value: Option<String>,
    /// Whose outcome it is.
    pub attempt: Option<u8>,
    /// When; `None` if the call hangs.
    pub at: Option<Moment>,
}

/// How a scripted call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnedKind {
    /// With an attempt's outcome.
    Outcome(Scripted),
    /// Its caller cancelled it.
    Cancelled,
    /// With a panic.
    Panic,
    /// Not at all: nothing can end it.
    Hangs,
}

impl ReturnedKind {
    /// The name used in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Outcome(outcome) => outcome.name(),
            Self::Cancelled => "cancelled",
            Self::Panic => "panic",
            Self::Hangs => "hangs",
        }
    }
}

/// Milliseconds as people write them: whole where they are whole, and exact everywhere.
pub(super) fn millis(at: Moment) -> String {
    let (whole, rest) = (at.as_nanos() / 1_000_000, at.as_nanos() % 1_000_000);
    let fraction = format!("{rest:06}");
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{whole}{point}{fraction}")
}

impl TimelineEvent {
    /// What a timeline shows of an event; `None` for those that it does not.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let at = event.at;
        match (event.kind, event.attempt) {
            (EventKind::Started { origin: Origin::Primary }, _) => None,
            (EventKind::Started { .. }, Some(attempt)) => Some(Self::Hedge(attempt, at)),
            (EventKind::Denied { gate }, Some(attempt)) => Some(Self::Denied(attempt, at, gate)),
            (EventKind::Decided, Some(attempt)) => Some(Self::Win(attempt, at)),
            (EventKind::Exhausted, _) => Some(Self::Exhausted(at)),
            _ => None,
        }
    }

    /// As scenario files spell it: `hedge(1)@50`.
    pub fn text(&self) -> String {
        match self {
            Self::Hedge(attempt, at) => format!("hedge({attempt})@{}", millis(*at)),
            Self::Denied(attempt, at, _) => format!("denied({attempt})@{}", millis(*at)),
            Self::Win(attempt, at) => format!("win({attempt})@{}", millis(*at)),
            Self::Exhausted(at) => format!("exhausted@{}", millis(*at)),
        }
    }
}

impl Timeline {
    /// The events as scenario files spell them.
    pub fn events_text(&self) -> Vec<String> {
        self.events.iter().map(TimelineEvent::text).collect()
    }

    /// Reads the timeline out of a call's events.
    pub(super) fn new(scenario: &Scenario, log: &[Event]) -> Self {
        let mut timeline = Self {
            starts: Vec::new(),
            events: Vec::new(),
            returned: Returned { kind: ReturnedKind::Hangs, value: None, attempt: None, at: None },
            cancelled: Vec::new(),
            suppressed: Vec::new(),
            ended: Vec::new(),
        };
        // A detached attempt tells of its own end, at any time; the call has let go of it.
        let detached = scenario.hedge().policy().losers == Losers::Detach;
        for event in log {
            let discarded = matches!(event.kind, EventKind::Ended { end: End::Discarded, .. });
            if !(detached && discarded) {
                timeline.add(event);
            }
        }
        if let Some(over) = log.iter().find(|event| matches!(event.kind, EventKind::Over { .. })) {
            timeline.returned = timeline.returned(scenario, over);
        }
        let returned = timeline.returned.attempt;
        timeline.suppressed.retain(|attempt| Some(*attempt) != returned);
        timeline
    }

    fn add(&mut self, event: &Event) {
        let at = event.at;
        self.events.extend(TimelineEvent::of(event));
        match (event.kind, event.attempt) {
            (EventKind::Started { .. }, Some(attempt)) => self.starts.push((attempt, at)),
            (EventKind::ToldToStop, Some(attempt)) => self.cancelled.push((attempt, at)),
            (EventKind::Ended { end, .. }, Some(attempt)) => {
                self.ended.push((attempt, at, end));
                if matches!(end, End::Failed | End::Rejected | End::Panicked) {
                    self.suppressed.push(attempt);
                }
            }
            _ => {}
        }
    }

    fn returned(&self, scenario: &Scenario, over: &Event) -> Returned {
        let at = Some(over.at);
        let how = match over.kind {
            EventKind::Over { how } => how,
            _ => Decision::Cancelled,
        };
        let attempt = match how {
            Decision::Accepted(attempt) | Decision::Exhausted(attempt) => attempt,
            Decision::Aborted => {
                let culprit = self.ended.iter().find(|(.., end)| *end == End::Panicked);
                let attempt = culprit.map(|(attempt, ..)| *attempt);
                return Returned { kind: ReturnedKind::Panic, value: None, attempt, at };
            }
            Decision::Cancelled => {
                let kind = ReturnedKind::Cancelled;
                return Returned { kind, value: None, attempt: None, at };
            }
        };
        let script = scenario.attempt_script(attempt);
        let kind = match script.outcome {
            Scripted::Panic => ReturnedKind::Panic,
            outcome => ReturnedKind::Outcome(outcome),
        };
        Returned { kind, value: script.value, attempt: Some(attempt), at }
    }
}
