use std::time::Duration;

use hedgerow_core::Delay;
use hedgerow_core::latency::{Learning, MaxKeys, Percentile, Rule};

use super::*;

fn read(json: &str) -> Result<HedgeConfig, serde_json::Error> {
    serde_json::from_str(json)
}

/// The policy of a configuration, as text that shows every option.
fn policy(json: &str) -> String {
    let hedge = read(json).unwrap().hedge();
    format!("{:?}", hedge.policy())
}

fn same(json: &str, hedge: &Hedge) {
    assert_eq!(policy(json), format!("{:?}", hedge.policy()), "{json}");
}

fn one(key: &str, value: &str) -> String {
    format!(r#"{{"{key}":{value}}}"#)
}

/// What is said about a configuration: one mistake a line, without the place in the JSON text.
fn mistakes(json: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(json).unwrap();
    let error = HedgeConfig::try_from(&value).unwrap_err();
    assert!(read(json).unwrap_err().to_string().starts_with(&error.to_string()));
    error.to_string().lines().map(str::to_owned).collect()
}

fn refused(json: &str, start: &str, hint: &str) {
    let mistakes = mistakes(json);
    let [mistake] = mistakes.as_slice() else {
        panic!("{json} has one mistake: {mistakes:?}");
    };
    assert!(mistake.starts_with(start) && mistake.contains(hint), "{json}: {mistake}");
}

const MS_50: Duration = Duration::from_millis(50);

#[test]
fn nothing_given_is_the_default() {
    same("{}", &Hedge::default());
    assert_eq!(read("{}").unwrap(), HedgeConfig::default());
}

#[test]
fn pr_91_every_documented_delay_and_number_is_accepted() {
    let base = Hedge::default;
    for (value, delay) in [
        (r#""50ms""#, Delay::After(MS_50)),
        (r#""0.05s""#, Delay::After(MS_50)),
        (r#""immediately""#, Delay::Immediately),
        (r#""on-failure""#, Delay::OnFailure),
    ] {
        same(&one("delay", value), &base().delay(delay));
    }
    same(
        r#"{"delay":["50ms","on-failure"]}"#,
        &base().delay([Delay::After(MS_50), Delay::OnFailure]),
    );
    for count in 0..=10 {
        let hedge = base().max_hedges(count);
        same(&one("max_hedges", &count.to_string()), &hedge);
    }
    for ratio in [r#""5%""#, "0.05", r#""0.05""#] {
        same(&one("max_extra_load", ratio), &base().max_extra_load(0.05));
    }
    same(&one("max_extra_load", "1"), &base().max_extra_load(1.0));
}

#[test]
fn pr_91_every_documented_word_is_accepted() {
    use {Exhausted as E, FailureStart as F, RejectedHedge as R};

    let base = Hedge::default;
    let join = |grace| base().losers(Losers::Join { grace });
    for (key, value, hedge) in [
        ("failure_start", r#""launch""#, base()),
        ("failure_start", r#""launch-when-idle""#, base().failure_start(F::LaunchWhenIdle)),
        ("failure_start", r#""wait""#, base().failure_start(F::Wait)),
        ("exhausted", r#""primary""#, base()),
        ("exhausted", r#""first""#, base().exhausted(E::First)),
        ("exhausted", r#""last""#, base().exhausted(E::Last)),
        ("losers", r#""drop""#, base()),
        ("losers", r#""join""#, join(None)),
        ("losers", r#"{"join":"50ms"}"#, join(Some(MS_50))),
        ("losers", r#""detach""#, base().losers(Losers::Detach)),
        ("rejected_hedge", r#""stop""#, base()),
        ("rejected_hedge", r#""decide""#, base().rejected_hedge(R::Decide)),
        ("rejected_hedge", r#""hedge""#, base().rejected_hedge(R::Hedge)),
        ("hedge_rejections", "true", base().hedge_rejections(true)),
        ("hedge_rejections", "false", base()),
        ("panics", r#""propagate""#, base()),
        ("panics", r#""as-failure""#, base().panics(Panics::AsFailure)),
        ("dry_run", "true", base().dry_run(true)),
        ("dry_run", "false", base()),
    ] {
        same(&one(key, value), &hedge);
    }
}

#[test]
fn pr_91_unknown_keys_are_refused_with_the_nearest() {
    for (key, nearest) in [
        ("dealy", "delay"),
        ("hedge_dealy", "delay"),
        ("hedge-delay", "delay"),
        ("Delay", "delay"),
        ("max_hedge", "max_hedges"),
        ("maxHedges", "max_hedges"),
        ("max-hedges", "max_hedges"),
        ("max_hedged_attempts", "max_hedges"),
        ("loosers", "losers"),
        ("panic", "panics"),
        ("on_exhausted", "exhausted"),
        ("hedge_rejection", "hedge_rejections"),
        ("max_load", "max_extra_load"),
        ("dryrun", "dry_run"),
        ("hedge-dry-run", "dry_run"),
    ] {
        refused(
            &format!(r#"{{"{key}":"50ms"}}"#),
            &format!(r#"{key} = "50ms": unknown key; "#),
            &format!("did you mean {nearest}?"),
        );
    }
    refused(r#"{"colour":1}"#, "colour = 1: unknown key; ", "use delay, max_hedges, failure_start");
}

#[test]
fn k19_and_k20_a_span_is_one_of_three() {
    use crate::span::SpanMode;

    let span = |json: &str| read(json).unwrap().hedge().span_mode();
    assert_eq!(span("{}"), SpanMode::IfParent);
    assert_eq!(span(r#"{"span":"if-parent"}"#), SpanMode::IfParent);
    assert_eq!(span(r#"{"span":"always"}"#), SpanMode::Always);
    assert_eq!(span(r#"{"span":"never"}"#), SpanMode::Never);
    refused(r#"{"span":"allways"}"#, r#"span = "allways": "#, "did you mean always?");
}

#[test]
fn an_adaptive_delay_is_learned_as_told() {
    let learning = |json: &str| read(json).unwrap().hedge().learner().unwrap().learning();
    assert_eq!(learning(r#"{"delay":"adaptive"}"#), Learning::default());
    let told = learning(
        r#"{"delay":{"percentile":95,"min":"2ms","max":"1s","initial":"100ms","half_life":"5s",
            "max_keys":1000},
            "max_extra_load":"2%"}"#,
    );
    let ms = Duration::from_millis;
    let wanted = Learning {
        rule: Rule::Percentile(Percentile::P95),
        load: 0.02,
        half_life: ms(5_000),
        min: ms(2),
        max: ms(1_000),
        initial: Some(ms(100)),
        max_keys: MaxKeys::new(1_000).unwrap(),
    };
    assert_eq!(told, wanted);
    for (json, place, hint) in [
        (r#"{"delay":{"percentile":0.95}}"#, "delay.percentile = 0.95: ", "write 95"),
        (
            r#"{"delay":{"target":99,"percentile":95}}"#,
            "delay.percentile = 95: ",
            "either a target or a percentile",
        ),
        (r#"{"delay":{"percentil":95}}"#, "delay.percentil = 95: ", "percentile"),
        (r#"{"delay":{"min":"2s","max":"1s"}}"#, r#"delay.max = "1s": "#, "less than min"),
        (r#"{"delay":{"half_life":"0s"}}"#, r#"delay.half_life = "0s": "#, "more than zero"),
        (r#"{"delay":{"max_keys":0}}"#, "delay.max_keys = 0: ", "use 1 to 10000"),
        (r#"{"delay":{"max_keys":20000}}"#, "delay.max_keys = 20000: ", "use 1 to 10000"),
        (r#"{"delay":{"max_keys":"many"}}"#, r#"delay.max_keys = "many": "#, "number"),
        (r#"{"delay":["adaptive"]}"#, r#"delay[0] = "adaptive": "#, "whole delay"),
    ] {
        refused(json, place, hint);
    }
}

#[test]
fn an_adaptive_delay_survives_a_round_trip() {
    for json in [
        r#"{"delay":"adaptive"}"#,
        r#"{"delay":{"percentile":99.9,"max":"1s"},"max_extra_load":0.1}"#,
        r#"{"delay":{"target":99.9}}"#,
        r#"{"delay":{"max_keys":10}}"#,
    ] {
        let config = read(json).unwrap();
        let written = serde_json::to_string(&config).unwrap();
        assert_eq!(read(&written).unwrap(), config, "{written}");
    }
}

#[test]
fn pr_92_durations_carry_units() {
    for (text, hint) in [
        ("100", "needs a unit"),
        ("1.5", "needs a unit"),
        (r#""100""#, "needs a unit"),
        (r#""0""#, "needs a unit"),
        (r#""-5ms""#, "negative"),
        (r#""5 parsecs""#, "use ns, us, ms, s, m or h"),
        (r#""imediately""#, "did you mean immediately?"),
        (r#""on_failure""#, "did you mean on-failure?"),
        (r#""soon""#, r#"such as "50ms", immediately, on-failure or adaptive"#),
        ("true", "such as"),
        ("null", "such as"),
        ("[]", "at least one"),
    ] {
        let start = format!("delay = {text}: ");
        refused(&format!(r#"{{"delay":{text}}}"#), &start, hint);
    }
    refused(r#"{"losers":{"join":50}}"#, "losers.join = 50: ", "needs a unit");
}

#[test]
fn other_values_are_refused_with_the_remedy() {
    for (key, value, hint) in [
        ("max_hedges", "11", "at most 10 hedges may start"),
        ("max_hedges", "99999999999", "at most 10"),
        ("max_hedges", "-1", "whole number from 0 to 10"),
        ("max_hedges", "1.5", "whole number from 0 to 10"),
        ("max_hedges", r#""2""#, "whole number from 0 to 10"),
        ("failure_start", r#""launch_when_idle""#, "did you mean launch-when-idle?"),
        ("failure_start", r#""never""#, "use launch, launch-when-idle or wait"),
        ("exhausted", r#""frist""#, "did you mean first?"),
        ("losers", r#""cancel""#, "use drop, join or detach"),
        ("losers", "3", "use drop, join or detach"),
        ("rejected_hedge", "false", "use stop, decide or hedge"),
        ("hedge_rejections", r#""true""#, "without quotes"),
        ("panics", r#""as_failure""#, "did you mean as-failure?"),
        ("max_extra_load", r#""five""#, "not a ratio"),
        ("max_extra_load", "-0.1", "at most 1"),
        ("max_extra_load", "5", "at most 1"),
        ("max_extra_load", "0", "more than 0"),
        ("max_extra_load", "[0.1]", "not a ratio"),
        ("dry_run", r#""true""#, "without quotes"),
        ("dry_run", "1", "write true or false"),
    ] {
        let start = format!("{key} = {value}: ");
        refused(&format!(r#"{{"{key}":{value}}}"#), &start, hint);
    }
    refused(r#"{"losers":{}}"#, "losers.join: missing", "such as");
    refused(r#"{"delay":"1s","delay":"2s"}"#, r#"delay = "2s": "#, "given twice");
    refused("[1]", "[1]: ", "keys and their values");
}

#[test]
fn h46_all_mistakes_are_told_at_once() {
    let mistakes = mistakes(
        r#"{"max_hedges":11,"delay":["50ms",100,"soon"],"losers":{"join":5,"drop":true},
            "dealy":1,"wait":2}"#,
    );
    let starts = [
        "delay[1] = 100: ",
        r#"delay[2] = "soon": "#,
        "max_hedges = 11: ",
        "losers.join = 5: ",
        "losers.drop = true: unknown key",
        "dealy = 1: unknown key",
        "wait = 2: unknown key",
    ];
    assert_eq!(mistakes.len(), starts.len(), "{mistakes:#?}");
    for (mistake, start) in mistakes.iter().zip(starts) {
        assert!(mistake.starts_with(start), "{mistake} / {start}");
    }
}

#[test]
fn long_and_unprintable_text_is_cut_and_escaped() {
    let long = "x".repeat(10_000_000);
    let odd = r#"{"losers":"\u0000\u001b[2J","a\nb":1}"#;
    for delay in [long.clone(), format!("5{long}"), "5".repeat(10_000_000)] {
        let json = format!(r#"{{"{long}":"{long}","delay":"{delay}","max_extra_load":"{delay}"}}"#);
        let mistakes = mistakes(&json);
        assert_eq!(mistakes.len(), 3);
        assert!(mistakes.iter().all(|mistake| mistake.len() < 400));
    }
    let odd = mistakes(odd);
    assert!(odd[0].starts_with(r#"losers = "\0\u{1b}[2J": "#), "{odd:?}");
    assert!(odd[1].starts_with(r#""a\nb" = 1: "#), "{odd:?}");
}

#[test]
fn a_date_is_shown_as_it_was_written() {
    for (date, shown) in [
        ("2026-01-01", "2026-01-01"),
        ("07:32:00.5", "07:32:00.5"),
        ("2026-01-01T07:32:00", "2026-01-01T07:32:00"),
        ("2026-01-01T07:32:00Z", "2026-01-01T07:32:00Z"),
        ("2026-01-01 07:32:00+01:00", "2026-01-01T07:32:00+01:00"),
    ] {
        let value: Value = toml::from_str(&format!("delay = {date}\nx = [{date}]")).unwrap();
        let error = HedgeConfig::try_from(&value).unwrap_err().to_string();
        let told: Vec<_> = error.lines().collect();
        assert!(told[0].starts_with(&format!("delay = {shown}: not a duration; ")), "{error}");
        assert!(told[1].starts_with(&format!("x = [{shown}]: unknown key; ")), "{error}");
    }
    // Nobody else writes dates so, but can.
    let odd =
        r#"{"delay":{"$__toml_private_datetime":"\u001b\n"},"x":{"$__toml_private_datetime":5}}"#;
    let odd = mistakes(odd);
    assert!(odd[0].starts_with(r"delay = \u{1b}\n: "), "{odd:?}");
    assert!(odd[1].starts_with(r#"x = {"$__toml_private_datetime": 5}: "#), "{odd:?}");
}

#[test]
fn many_unknown_keys_are_counted_not_listed() {
    let keys: Vec<_> = (0..5_000).map(|key| format!(r#""k{key}":0"#)).collect();
    let mistakes = mistakes(&format!("{{{}}}", keys.join(",")));
    assert_eq!(mistakes.len(), 11);
    assert!(mistakes[10].starts_with("4990 more keys: "), "{}", mistakes[10]);
}

#[test]
fn mistakes_past_the_first_are_counted_and_not_kept() {
    let many = |entry: &str, count| vec![entry; count].join(",");
    for (json, kept, untold) in [
        (format!(r#"{{"delay":[{}]}}"#, many("7", 20)), 20, 0),
        (format!(r#"{{"delay":[{}]}}"#, many("7", 21)), 20, 1),
        (format!(r#"{{"delay":[{},"1s"],"colour":1}}"#, many("7", 300_000)), 20, 299_981),
        (format!("{{{}}}", many(r#""hedge":1"#, 100_000)), 20, 99_980),
    ] {
        let value: Value = serde_json::from_str(&json).unwrap();
        let error = HedgeConfig::try_from(&value).unwrap_err();
        assert_eq!((error.mistakes().len(), error.untold()), (kept, untold));
        assert_eq!(error.to_string().lines().count(), kept + usize::from(untold > 0));
        let end = match untold {
            0 => "delay[19] = 7: a duration needs a unit".to_owned(),
            1 => "\nand 1 more mistake".to_owned(),
            more => format!("\nand {more} more mistakes"),
        };
        assert!(error.to_string().contains(&end), "{error}");
        let within = error.within("policy");
        assert_eq!(within.untold(), untold);
        assert!(within.mistakes().iter().all(|mistake| mistake.option().starts_with("policy.")));
    }
}

#[test]
fn what_is_written_means_the_same() {
    for json in [
        "{}",
        r#"{"delay":"1.5ms","max_hedges":0,"losers":"detach"}"#,
        r#"{"delay":["100ms","immediately","on-failure"],"losers":"join"}"#,
        r#"{"delay":"0ms","failure_start":"wait","exhausted":"last","losers":{"join":"2m"}}"#,
        r#"{"delay":"999999999999h","losers":{"join":"999999999999h"}}"#,
        r#"{"rejected_hedge":"decide","hedge_rejections":true,"panics":"as-failure"}"#,
        r#"{"max_hedges":10,"max_extra_load":"2.5%"}"#,
        r#"{"delay":"adaptive","dry_run":true}"#,
        r#"{"dry_run":false}"#,
        r#"{"span":"always"}"#,
    ] {
        let config = read(json).unwrap();
        let written = serde_json::to_string(&config).unwrap();
        assert_eq!(read(&written).unwrap(), config, "{json} became {written}");
        let written = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<HedgeConfig>(&written).unwrap(), config, "{written}");
        let written = serde_norway::to_string(&config).unwrap();
        let again: HedgeConfig = serde_norway::from_str(&written).unwrap();
        assert_eq!(again, config, "{written}");
    }
    let json = r#"{"delay":"50ms","max_hedges":2,"losers":{"join":"50ms"},"max_extra_load":0.05}"#;
    assert_eq!(serde_json::to_string(&read(json).unwrap()).unwrap(), json);
}

#[test]
fn an_adaptive_policy_keeps_quiet_after_a_pushback() {
    let remembers = |json| read(json).unwrap().hedge().policy().quiet.is_some();
    assert!(remembers(r#"{"delay":"adaptive"}"#) && remembers(r#"{"delay":{"percentile":95}}"#));
    assert!(!remembers("{}"));
}

#[test]
fn a_budget_is_made_with_the_policy_and_shared_by_its_clones() {
    let config = read(r#"{"max_extra_load":1}"#).unwrap();
    let (one, other) = (config.hedge(), Hedge::from(&config));
    let copy = one.clone();
    let take = |hedge: &Hedge| hedge.policy().budget.as_ref().unwrap().try_take();
    one.policy().completed();
    assert!(!take(&other));
    assert!(take(&copy));
    assert!(!take(&one));
}
