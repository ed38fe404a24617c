//! The rules E1 to E14 and G1 to G3, G7, G9 written down a second time, as naively as possible, and compared with the
//! engine on random scenarios. It shares no code with the engine: it keeps every attempt in a list
//! and goes through time instant by instant.

use std::time::Duration;

use hedgerow::testing::{Front, ReturnedKind, Scenario, Scripted, TimelineEvent};
use hedgerow::{Delay, Exhausted, FailureStart, Losers, Moment, Panics, Pushback, RejectedHedge};
use proptest::prelude::*;

use crate::properties::scenario;

/// What the model says of a scenario, in words that can be compared.
#[derive(Debug, PartialEq, Default)]
struct Story {
    starts: Vec<(u8, Moment)>,
    events: Vec<String>,
    returned: Option<(ReturnedKind, Option<u8>, Moment)>,
    cancelled: Vec<(u8, Moment)>,
    suppressed: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Running { ends: Moment },
    Over,
}

struct Model<'a> {
    scenario: &'a Scenario,
    now: Moment,
    attempts: Vec<State>,
    failed: Vec<u8>,
    due: Moment,
    starts_owed: u8,
    launching: bool,
    /// Launching ended, and the hedge that this cost will be told of when it is wanted.
    telling: bool,
    quiet_until: Moment,
    tokens: Option<u32>,
    story: Story,
}

/// How a step of the race ended it.
enum Ended {
    Accepted(u8),
    Exhausted(u8),
    Cancelled,
    Panicked(u8),
}

fn text(at: Moment) -> String {
    at.as_millis_f64().to_string()
}

impl Model<'_> {
    fn outcome(&self, attempt: u8) -> (Duration, Scripted, Duration) {
        match self.scenario.scripts().get(usize::from(attempt)) {
            Some(script) if script.outcome != Scripted::Never => {
                (script.after, script.outcome, script.cleanup)
            }
            Some(script) => (Duration::MAX, Scripted::Never, script.cleanup),
            None => (Duration::MAX, Scripted::Never, Duration::ZERO),
        }
    }

    fn idle(&self) -> bool {
        !self.attempts.iter().any(|state| *state != State::Over)
    }

    fn more(&self) -> bool {
        let most = 1 + usize::from(self.scenario.hedge().policy().max_hedges.get());
        self.attempts.len() < most
    }

    fn left(&self) -> bool {
        self.launching && self.more()
    }

    /// Nothing more starts, for this reason; a hedge that would have is to be told of, or not.
    fn stop(&mut self, told: bool) {
        if self.launching {
            (self.launching, self.telling) = (false, told);
        }
    }

    fn deny(&mut self) {
        let next = self.attempts.len();
        self.story.events.push(format!("denied({next})@{}", text(self.now)));
        (self.launching, self.telling) = (false, false);
    }

    /// Whether a failure, or the delay, wants a hedge now.
    fn wanted(&self) -> (bool, bool) {
        let by_failure = self.starts_owed > 0 && (!self.when_idle() || self.idle());
        (by_failure, self.due <= self.now && !self.due.is_never())
    }

    fn when_idle(&self) -> bool {
        !self.scenario.is_idempotent()
            || self.scenario.hedge().policy().failure_start == FailureStart::LaunchWhenIdle
    }

    /// Starts the next attempt now, polls it once, and says how that ended the race if it did.
    fn start(&mut self) -> Option<Ended> {
        let number = u8::try_from(self.attempts.len()).unwrap();
        if number > 0 {
            self.story.events.push(format!("hedge({number})@{}", text(self.now)));
        }
        self.story.starts.push((number, self.now));
        let ends = self.now.after(self.outcome(number).0);
        self.attempts.push(State::Running { ends });
        let next = number + 1;
        self.due = match self.scenario.hedge().policy().schedule.delay(next) {
            _ if !self.left() || !self.scenario.is_idempotent() => Moment::NEVER,
            Delay::After(delay) => self.now.after(delay),
            Delay::Immediately => self.now,
            Delay::OnFailure => Moment::NEVER,
        };
        let ended = if ends <= self.now { self.finish(number) } else { None };
        if !self.launching {
            // Nobody asked for the delay any more.
            self.due = Moment::NEVER;
        }
        ended
    }

    /// An attempt that ran has ended by itself.
    fn finish(&mut self, number: u8) -> Option<Ended> {
        let policy = self.scenario.hedge().policy().clone();
        self.attempts[usize::from(number)] = State::Over;
        let (_, outcome, _) = self.outcome(number);
        let handled = match outcome {
            Scripted::Panic if policy.panics == Panics::Propagate => {
                return Some(Ended::Panicked(number));
            }
            Scripted::Ok | Scripted::Fatal | Scripted::Never => false,
            Scripted::Error | Scripted::Bad | Scripted::Panic => true,
            Scripted::Rejected if number > 0 && policy.rejected_hedge != RejectedHedge::Decide => {
                true
            }
            Scripted::Rejected => policy.hedge_rejections,
        };
        if !handled {
            return Some(Ended::Accepted(number));
        }
        self.failed.push(number);
        let rejected = outcome == Scripted::Rejected;
        if rejected && number > 0 && policy.rejected_hedge == RejectedHedge::Stop {
            self.stop(true);
        }
        if !self.scenario.is_idempotent() && !rejected {
            self.stop(false);
        }
        let script = self.scenario.scripts().get(usize::from(number));
        match script.and_then(|script| script.pushback).filter(|_| outcome != Scripted::Panic) {
            Some(Pushback::Stop) => self.stop(true),
            Some(Pushback::For(quiet)) if quiet.as_secs_f64() > 600.0 => self.stop(true),
            Some(Pushback::For(quiet)) => {
                self.quiet_until = self.quiet_until.max(self.now.after(quiet));
            }
            _ => {}
        }
        if policy.failure_start != FailureStart::Wait {
            self.starts_owed += 1;
        }
        None
    }

    /// Takes a token, or ends launching.
    fn granted(&mut self) -> bool {
        let granted = match &mut self.tokens {
            None => true,
            Some(0) => false,
            Some(tokens) => {
                *tokens -= 1;
                true
            }
        };
        let starts = granted && !self.scenario.hedge().policy().dry_run;
        if !starts {
            self.deny();
        }
        starts
    }

    /// Everything at this instant, in the order of E3 and E4.
    fn instant(&mut self, cancelled: bool) -> Option<Ended> {
        for number in 0..u8::try_from(self.attempts.len()).unwrap() {
            let state = self.attempts[usize::from(number)];
            if matches!(state, State::Running { ends } if ends <= self.now && !ends.is_never())
                && let Some(ended) = self.finish(number)
            {
                return Some(ended);
            }
        }
        if cancelled {
            return Some(Ended::Cancelled);
        }
        if self.attempts.is_empty()
            && let Some(ended) = self.start()
        {
            return Some(ended);
        }
        while self.left() {
            let (by_failure, by_delay) = self.wanted();
            if !(by_failure || by_delay) {
                break;
            }
            if self.now < self.quiet_until {
                break;
            }
            if !self.granted() {
                break;
            }
            if self.when_idle() {
                self.starts_owed = 0;
            } else if by_failure {
                self.starts_owed -= 1;
            }
            if let Some(ended) = self.start() {
                return Some(ended);
            }
        }
        if self.telling && self.more() && self.wanted() != (false, false) {
            self.deny();
        }
        let timer = self.left() && !self.next_start().is_never();
        if self.idle() && !timer {
            let once = !self.scenario.is_idempotent();
            let ran = |number: &&u8| once && self.outcome(**number).1 != Scripted::Rejected;
            let ran = self.failed.iter().find(ran);
            let chosen = match self.scenario.hedge().policy().exhausted {
                _ if ran.is_some() => *ran.unwrap(),
                Exhausted::Primary => 0,
                Exhausted::First => self.failed[0],
                Exhausted::Last => *self.failed.last().unwrap(),
            };
            self.story.events.push(format!("exhausted@{}", text(self.now)));
            return Some(Ended::Exhausted(chosen));
        }
        None
    }

    /// When the next hedge may start, if no other failure comes.
    fn next_start(&self) -> Moment {
        match self.wanted() {
            (false, false) => self.due,
            _ => self.quiet_until,
        }
    }

    /// The next instant at which anything can happen.
    fn next(&self, cancel: Moment) -> Option<Moment> {
        let ends = self.attempts.iter().filter_map(|state| match state {
            State::Running { ends } => Some(*ends),
            State::Over => None,
        });
        let due = match (self.left(), self.telling && self.more()) {
            (true, _) => self.next_start(),
            (false, true) => self.due,
            (false, false) => Moment::NEVER,
        };
        let next = ends.chain([due, cancel]).min()?;
        (!next.is_never()).then_some(next)
    }
}

fn tell(scenario: &Scenario) -> Story {
    let mut model = Model {
        scenario,
        now: Moment::ZERO,
        attempts: vec![],
        failed: vec![],
        due: Moment::NEVER,
        starts_owed: 0,
        launching: true,
        telling: false,
        quiet_until: Moment::ZERO,
        tokens: scenario.granted(),
        story: Story::default(),
    };
    let mut cancel = scenario.cancelled_at().map_or(Moment::NEVER, Moment::from);
    let ended = loop {
        if let Some(ended) = model.instant(cancel <= model.now) {
            break ended;
        }
        let Some(next) = model.next(cancel) else {
            model.story.suppressed = model.failed;
            return model.story;
        };
        model.now = next;
    };
    if cancel <= model.now {
        cancel = Moment::NEVER;
        if !matches!(ended, Ended::Cancelled) {
            // It came in the instant of the decision: nobody is waited for.
            cancel = model.now;
        }
    }
    end(model, &ended, cancel)
}

/// Deals with the losers, and says what is returned when.
fn end(mut model: Model<'_>, ended: &Ended, cancel: Moment) -> Story {
    let decided = model.now;
    let losers = model.scenario.hedge().policy().losers;
    let mut until = decided;
    for number in 0..u8::try_from(model.attempts.len()).unwrap() {
        let State::Running { ends } = model.attempts[usize::from(number)] else {
            continue;
        };
        if losers != Losers::Detach {
            model.story.cancelled.push((number, decided));
            until = until.max(ends.min(decided.after(model.outcome(number).2)));
        }
    }
    let over = match losers {
        Losers::Join { grace } if !matches!(ended, Ended::Panicked(_)) => {
            let grace = grace.map_or(Moment::NEVER, |grace| decided.after(grace));
            until.min(grace).min(cancel)
        }
        _ => decided,
    };
    let returned = match ended {
        Ended::Panicked(number) => (ReturnedKind::Panic, Some(*number)),
        Ended::Cancelled => (ReturnedKind::Cancelled, None),
        Ended::Accepted(number) => {
            model.story.events.push(format!("win({number})@{}", text(decided)));
            (ReturnedKind::Outcome(model.outcome(*number).1), Some(*number))
        }
        Ended::Exhausted(number) => match model.outcome(*number).1 {
            Scripted::Panic => (ReturnedKind::Panic, Some(*number)),
            outcome => (ReturnedKind::Outcome(outcome), Some(*number)),
        },
    };
    model.story.returned = Some((returned.0, returned.1, over));
    model.story.suppressed = model.failed;
    model.story.suppressed.retain(|number| Some(*number) != returned.1);
    model.story
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_engine_does_what_the_rules_say(scenario in scenario()) {
        let told = tell(&scenario);
        let timeline = scenario.run(Front::Engine);
        let returned = timeline.returned;
        let engine = Story {
            starts: timeline.starts.clone(),
            events: timeline.events.iter().map(TimelineEvent::text).collect(),
            returned: returned.at.map(|at| (returned.kind, returned.attempt, at)),
            cancelled: timeline.cancelled.clone(),
            suppressed: timeline.suppressed.clone(),
        };
        prop_assert_eq!(told, engine);
    }
}
