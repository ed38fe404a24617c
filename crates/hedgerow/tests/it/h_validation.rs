//! H46: impossible numbers are refused where they are written, by the name of the option.

use std::panic::catch_unwind;

use hedgerow::{Delay, Hedge, Losers, hedged};
use hedgerow_core::{InvalidOption, MaxHedges};

use crate::support::{Answer, Notes, err, ms, ok, panic_text, work};

/// What a setter says when it refuses.
fn refusal<R>(set: impl FnOnce() -> R + std::panic::UnwindSafe) -> String {
    match catch_unwind(set) {
        Ok(_) => "nothing was refused".to_owned(),
        Err(panic) => panic_text(panic.as_ref()),
    }
}

#[test]
fn h46_setters_refuse_impossible_numbers() {
    let said = [
        refusal(|| Hedge::structured(ms(50), 0)),
        refusal(|| Hedge::structured(ms(50), 12)),
        refusal(|| Hedge::default().max_hedges(11)),
        refusal(|| hedged(async |_| Answer::Ok("a")).max_hedges(11)),
        refusal(|| Hedge::default().max_extra_load(-0.05)),
        refusal(|| Hedge::default().max_extra_load(f64::NAN)),
        refusal(|| Hedge::default().max_extra_load(5.0)),
    ];
    let expected = [
        "total_attempts = 0: the primary counts too; use 1 for no hedging",
        "total_attempts = 12: use 1 to 11",
        "max_hedges = 11: at most 10 hedges may start; use 0 to 10",
        "max_hedges = 11: at most 10 hedges may start; use 0 to 10",
        r#"max_extra_load = -0.05: use more than 0 and at most 1, such as 0.05 or "5%""#,
        r#"max_extra_load = NaN: use more than 0 and at most 1, such as 0.05 or "5%""#,
        r#"max_extra_load = 5: use more than 0 and at most 1, such as 0.05 or "5%""#,
    ];
    assert_eq!(said, expected);
}

#[test]
fn h46_counts_are_refused_as_errors_that_name_the_option() {
    let refused = |result: Result<MaxHedges, InvalidOption>| result.unwrap_err();
    let error = refused(MaxHedges::new(11));
    assert_eq!((error.option(), error.value()), ("max_hedges", "11"));
    let error = refused(MaxHedges::from_total(0));
    assert_eq!((error.option(), error.value()), ("total_attempts", "0"));
    assert_eq!(MaxHedges::from_total(1), MaxHedges::new(0));
    assert_eq!(MaxHedges::from_total(11), MaxHedges::new(10));
}

#[test]
fn h46_a_negative_number_spells_a_delay_and_is_never_a_duration() {
    assert_eq!(Delay::from_signed_millis(-1), Delay::OnFailure);
    assert_eq!(Delay::from_signed_millis(i64::MIN), Delay::OnFailure);
    assert_eq!(Delay::from_signed_millis(0), Delay::Immediately);
    assert_eq!(Delay::from_signed_millis(50), Delay::After(ms(50)));
}

#[tokio::test(start_paused = true)]
async fn a14_no_hedges_is_a_plain_call() {
    for (script, expected) in [(err(100, "p"), Err("p")), (ok(5_000, "a"), Ok("a"))] {
        for hedge in crate::support::both(Hedge::after(ms(50)).max_hedges(0)) {
            let notes = Notes::new();
            let call = hedge.call(work(&notes, [script, ok(0, "b")]));
            assert_eq!(call.await, expected);
            assert_eq!(notes.count("A1"), 0);
        }
    }
}

#[test]
fn a_policy_shows_every_option() {
    let hedge = Hedge::structured(ms(50), 3).losers(Losers::Join { grace: Some(ms(10)) });
    let shown = format!("{hedge:?}");
    for part in [
        "schedule: Every(After(50ms))",
        "max_hedges: 2",
        "failure_start: LaunchWhenIdle",
        "exhausted: First",
        "losers: Join { grace: Some(10ms) }",
        "rejected_hedge: Hedge",
        "hedge_rejections: true",
        "panics: Propagate",
        "budget: None",
        "observed: false",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}
