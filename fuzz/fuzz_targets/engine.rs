//! Drives the engine with whatever comes, in any order that a driver could meet: attempts that end
//! in any way at any moment, delays and gates of every kind, a clock that stands still or jumps.
//!
//! `cargo +nightly fuzz run engine`

#![no_main]

use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::{
    Call, Delay, End, EventKind, Exhausted, ExtraLoad, FailureStart, Losers, MaxHedges, Moment,
    Panics, Policy, Pushback, RatioBudget, RejectedHedge, Schedule, Step, Terms, Verdict,
};
use libfuzzer_sys::fuzz_target;

/// Reads choices off the input; zeros when it has run out.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn delay(&mut self) -> Delay {
        match self.next() % 5 {
            0 => Delay::Immediately,
            1 => Delay::OnFailure,
            2 => Delay::After(Duration::MAX),
            _ => Delay::After(Duration::from_millis(u64::from(self.next()))),
        }
    }

    fn verdict(&mut self) -> Verdict {
        let verdict = match self.next() % 5 {
            0 | 1 => Verdict::HANDLED,
            2 => Verdict::rejected(self.next() % 2 == 0),
            3 => Verdict::PANICKED,
            _ => Verdict::ACCEPTED,
        };
        match self.next() % 8 {
            0 => verdict.pushed_back(Pushback::Stop),
            1 => verdict.pushed_back(Pushback::For(Duration::MAX)),
            2 => {
                let wait = Duration::from_millis(u64::from(self.next()));
                verdict.pushed_back(Pushback::For(wait))
            }
            _ => verdict,
        }
    }

    fn policy(&mut self) -> Policy {
        let delays = (0..1 + self.next() % 3).map(|_| self.delay()).collect::<Vec<_>>();
        let budget = (self.next() % 3 == 0).then(|| {
            let load = ExtraLoad::new(f64::from(self.next() % 20) / 10.0).expect("from 0 to 2");
            Arc::new(RatioBudget::with_cap(load, u32::from(self.next() % 3))) as Arc<_>
        });
        Policy {
            schedule: Schedule::from(delays),
            max_hedges: MaxHedges::new(u32::from(self.next() % 11)).expect("at most 10"),
            failure_start: [FailureStart::Launch, FailureStart::LaunchWhenIdle, FailureStart::Wait]
                [usize::from(self.next() % 3)],
            exhausted: [Exhausted::Primary, Exhausted::First, Exhausted::Last]
                [usize::from(self.next() % 3)],
            losers: match self.next() % 4 {
                0 => Losers::Detach,
                1 => Losers::Join { grace: None },
                2 => Losers::Join { grace: Some(Duration::from_millis(u64::from(self.next()))) },
                _ => Losers::Drop,
            },
            rejected_hedge: [RejectedHedge::Stop, RejectedHedge::Decide, RejectedHedge::Hedge]
                [usize::from(self.next() % 3)],
            hedge_rejections: self.next() % 2 == 0,
            panics: Panics::AsFailure,
            learner: None,
            budget,
            pays: self.next() % 4 != 0,
            quiet: (self.next() % 2 == 0).then(Arc::default),
            dry_run: self.next() % 8 == 0,
            observer: None,
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let mut choices = Choices(input);
    let policy = choices.policy();
    let deadline = match choices.next() % 4 {
        0 => Moment::from_millis(u64::from(choices.next())),
        _ => Moment::NEVER,
    };
    let terms = Terms { idempotent: choices.next() % 4 != 0, deadline, log: true, draw: 0 };
    let mut call = Call::new(&policy, terms);
    call.begun_at(Moment::from_millis(u64::from(choices.next())));
    let mut now = Moment::ZERO;
    let mut turns = 0;
    loop {
        turns += 1;
        assert!(turns < 10_000, "the engine goes in circles");
        match call.step(&policy, now) {
            Step::AskDelay { .. } => call.delay(choices.delay()),
            Step::Start { attempt, .. } => match choices.next() % 8 {
                0 if attempt > 0 => call.declined(&policy, now),
                // Held back by a hook: it starts, or the engine says otherwise.
                3 if attempt > 0 => {
                    now = now.after(Duration::from_millis(u64::from(choices.next())));
                    if call.still_wanted(&policy, now) {
                        call.started(&policy, now);
                    }
                }
                1 => call.cancel(&policy, now),
                2 => call.abort(&policy, None, now),
                _ => call.started(&policy, now),
            },
            Step::Release => {}
            Step::Finish(_) => break,
            Step::Wait { until } => {
                if choices.0.is_empty() {
                    call.dropped(&policy, now);
                    break;
                }
                let running: Vec<u8> = (0..call.started_attempts())
                    .filter(|attempt| call.is_running(*attempt))
                    .collect();
                match choices.next() % 6 {
                    0 => call.cancel(&policy, now),
                    1 if !until.is_never() => now = now.max(until),
                    2 => now = now.after(Duration::from_millis(u64::from(choices.next()))),
                    _ => {
                        let pick = usize::from(choices.next());
                        if let Some(attempt) = running.get(pick % running.len().max(1)) {
                            let verdict = choices.verdict();
                            call.finished(&policy, *attempt, verdict, now);
                        }
                    }
                }
            }
        }
    }
    check(&policy, &call);
});

/// What must hold whatever happened.
fn check(policy: &Policy, call: &Call) {
    let count = |wanted: &dyn Fn(&EventKind) -> bool| {
        call.log().iter().filter(|event| wanted(&event.kind)).count()
    };
    let started = count(&|kind| matches!(kind, EventKind::Started { .. }));
    let ended = count(&|kind| matches!(kind, EventKind::Ended { .. }));
    let won = count(&|kind| matches!(kind, EventKind::Ended { end: End::Won, .. }));
    assert!(started <= 1 + usize::from(policy.max_hedges.get()), "too many attempts");
    let denied = count(&|kind| matches!(kind, EventKind::Denied { .. }));
    assert!(denied <= 1, "launching ends once");
    assert!(started <= 1 || !policy.dry_run, "a dry run sent a hedge");
    assert!(won <= 1, "two winners");
    assert!(ended <= started, "an attempt ended twice");
    if policy.losers != Losers::Detach {
        assert_eq!(ended, started, "an attempt is not accounted for");
    }
    assert_eq!(count(&|kind| matches!(kind, EventKind::Over { .. })), 1, "over exactly once");
    assert!(call.log().is_sorted_by_key(|event| event.at), "time goes forward");
}
