//! What a policy does, in sentences.

use std::time::Duration;

use hedgerow::config::Value;
use hedgerow::latency::{Learning, Rule};
use hedgerow::text::format_duration;
use hedgerow::{
    Delay, Exhausted, FailureStart, HedgeConfig, Losers, Panics, Policy, RejectedHedge, Schedule,
};

/// Says what calls under this policy can expect.
pub(super) fn meaning(config: &HedgeConfig) -> Vec<String> {
    let hedge = config.hedge();
    let policy = hedge.policy();
    let learning = policy.learner.as_ref().map(|learner| learner.learning());
    if policy.max_hedges.get() == 0 {
        return vec![
            "Nothing is hedged: each call has its primary and no other attempt.".to_owned(),
        ];
    }
    let mut said = vec![when(policy, learning)];
    if policy.dry_run {
        said.push(
            "It is a dry run: all of this is decided and counted, and no hedge is sent.".into(),
        );
    }
    said.extend(learning.map(|learning| evidence(&learning)));
    said.push(load(config, policy));
    said.push(failure(policy).to_owned());
    said.push(exhausted(policy).to_owned());
    said.push(losers(policy));
    said.extend(rejections(policy));
    if policy.panics == Panics::AsFailure {
        said.push("A panic of an attempt is a failure: another attempt may answer.".to_owned());
    }
    said
}

fn when(policy: &Policy, learning: Option<Learning>) -> String {
    let most = policy.max_hedges.get();
    let more = match most {
        1 => "one more attempt".to_owned(),
        most => format!("up to {most} more attempts, one after the other"),
    };
    if let Some(learning) = learning {
        let rule = match learning.rule {
            Rule::Target(target) => format!("the time and the chance that make {target} lowest"),
            Rule::Percentile(percentile) => format!("{percentile} of the latest calls"),
        };
        return format!("A call that is still pending is hedged with {more}, at {rule}.");
    }
    match &policy.schedule {
        Schedule::Every(Delay::After(delay)) => {
            format!("Without an answer after {}, {more} may start.", format_duration(*delay))
        }
        Schedule::Every(Delay::Immediately) => {
            format!("Every call starts with all its attempts at once: the primary and {more}.")
        }
        Schedule::Every(Delay::OnFailure) => {
            format!("Slow calls are left alone; a call that fails gets {more}.")
        }
        Schedule::Steps(steps) => {
            let steps: Vec<_> = steps.iter().map(ToString::to_string).collect();
            format!(
                "Up to {most} more attempts may start, with these delays: {}.",
                steps.join(", ")
            )
        }
    }
}

fn evidence(learning: &Learning) -> String {
    let start = match learning.initial {
        Some(initial) => {
            format!("Until calls have been seen the delay is {}", format_duration(initial))
        }
        None => "Nothing is hedged before enough calls have been seen".to_owned(),
    };
    let (min, half_life) = (format_duration(learning.min), format_duration(learning.half_life));
    let most = match learning.max {
        Duration::MAX => String::new(),
        max => format!(" and at most {}", format_duration(max)),
    };
    format!("{start}; the delay is at least {min}{most}, and a call counts half after {half_life}.")
}

/// A ratio, as it is said.
pub(super) fn percent(ratio: f64) -> String {
    format!("{} %", (ratio * 1e6).round() / 1e4)
}

fn load(config: &HedgeConfig, policy: &Policy) -> String {
    let settings = config.settings();
    let bound = settings.iter().find(|setting| setting.key == "max_extra_load");
    match bound.map(|bound| &bound.value) {
        Some(Value::Float(ratio)) => {
            format!(
                "Extra load is at most {} of completed calls, of which 20 hedges can be \
                 saved up; when that is spent, running attempts go on alone.",
                percent(*ratio)
            )
        }
        _ => format!(
            "Nothing bounds the extra load: when everything is slow, every call is sent {} times. \
             Set max_extra_load.",
            policy.max_hedges.get() + 1
        ),
    }
}

fn failure(policy: &Policy) -> &'static str {
    match policy.failure_start {
        FailureStart::Launch => "A failure starts the next attempt at once.",
        FailureStart::LaunchWhenIdle => {
            "A failure starts the next attempt at once if no other attempt runs."
        }
        FailureStart::Wait => "A failure starts nothing; only the delay does.",
    }
}

fn exhausted(policy: &Policy) -> &'static str {
    match policy.exhausted {
        Exhausted::Primary => "If every attempt fails, the primary's failure is returned.",
        Exhausted::First => "If every attempt fails, the first failure is returned.",
        Exhausted::Last => "If every attempt fails, the last failure is returned.",
    }
}

fn losers(policy: &Policy) -> String {
    match policy.losers {
        Losers::Drop => "Losers are dropped before the answer is returned.".to_owned(),
        Losers::Join { grace: None } => {
            "Losers are told to stop and waited for, however long that takes.".to_owned()
        }
        Losers::Join { grace: Some(grace) } => {
            format!("Losers are told to stop and waited for, at most {}.", format_duration(grace))
        }
        Losers::Detach => "Losers run on in the background; calls must be spawned.".to_owned(),
    }
}

fn rejections(policy: &Policy) -> Option<String> {
    let said = match (policy.rejected_hedge, policy.hedge_rejections) {
        (RejectedHedge::Stop, false) => return None,
        (RejectedHedge::Stop, true) => {
            "A rejected primary is hedged; a rejected hedge ends hedging."
        }
        (RejectedHedge::Decide, _) => "A rejected hedge is judged like any other outcome.",
        (RejectedHedge::Hedge, _) => "A rejected hedge is followed by the next attempt.",
    };
    Some(said.to_owned())
}
