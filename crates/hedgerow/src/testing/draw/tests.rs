use std::time::Duration;

use hedgerow_core::{Delay, Losers, Panics};
use unicode_width::UnicodeWidthStr;

use crate::hedge::Hedge;
use crate::testing::{Front, Scenario, Script, Scripted};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn after(delay: u64, hedges: u32) -> Scenario {
    with(Hedge::after(ms(delay)).max_hedges(hedges))
}

fn with(hedge: Hedge) -> Scenario {
    Scenario::new(hedge)
}

fn ends(millis: u64, outcome: Scripted, value: &str) -> Script {
    Script::new(ms(millis), outcome, Some(value.to_owned()))
}

/// Draws the scenario, the same on both fronts and nowhere too wide.
fn drawn(scenario: &Scenario) -> String {
    let text = scenario.run(Front::Async).to_string();
    assert_eq!(text, scenario.run(Front::Engine).to_string());
    for line in text.lines() {
        assert!(line.width() <= 78, "{line}");
    }
    text
}

#[track_caller]
fn shows(scenario: &Scenario, expected: &str) {
    let drawn = drawn(scenario);
    assert_eq!(drawn, expected.trim_matches('\n'), "\n{drawn}\n");
}

#[test]
fn s8_a_hedge_fails_and_another_wins() {
    let scenario = after(50, 2)
        .attempt(Script::ok(ms(300), "a"))
        .attempt(Script::error(ms(10), "q"))
        .attempt(Script::ok(ms(20), "c"));
    shows(
        &scenario,
        r#"
             0                           50   60         80 ms
primary @0   ├───────────────────────────────────────────┤  told to stop at 80
hedge 1 @50                              ├────×             failed at 60
hedge 2 @60                                   ├──────────●  won at 80
returned ok "c" from hedge 2 at 80 ms
cancelled at 80 ms: primary
suppressed failures: hedge 1
"#,
    );
}

#[test]
fn short_attempts_stay_visible_on_a_long_scale() {
    let scenario = after(50, 2)
        .attempt(Script::ok(ms(60_000), "a"))
        .attempt(Script::error(ms(10), "q"))
        .attempt(ends(5, Scripted::Rejected, "r"));
    shows(
        &scenario,
        r#"
             0                                               60000 ms
primary @0   ├───────────────────────────────────────────────●  won at 60000
hedge 1 @50  ×                                                  failed at 60
hedge 2 @60  ×                                                  rejected at 65
returned ok "a" from primary at 60000 ms
suppressed failures: hedge 1, hedge 2
"#,
    );
}

#[test]
fn s22_everything_in_one_instant_has_marks() {
    let scenario = after(0, 2)
        .attempt(Script::error(ms(0), "p"))
        .attempt(Script::error(ms(0), "q"))
        .attempt(Script::error(ms(0), "r"));
    shows(
        &scenario,
        r#"
            0 ms
primary @0  ×                                                   failed at 0
hedge 1 @0  ×                                                   failed at 0
hedge 2 @0  ×                                                   failed at 0
returned error "p" from primary at 0 ms
suppressed failures: hedge 1, hedge 2
"#,
    );
}

#[test]
fn a_call_that_hangs_has_no_end() {
    shows(
        &with(Hedge::default().delay(Delay::OnFailure)),
        "
            0 ms
primary @0  ├────────────────────────────────────────────────>  never ends
hangs: nothing can end this call
",
    );
    shows(
        &after(50, 2).attempt(Script::error(ms(10), "p")),
        "
             0     10                             60 ms
primary @0   ├─────×                                             failed at 10
hedge 1 @10        ├──────────────────────────────────────────>  never ends
hedge 2 @60                                       ├───────────>  never ends
hangs: nothing can end this call
suppressed failures: primary
",
    );
}

#[test]
fn s46_detached_losers_run_on() {
    let scenario = with(Hedge::after(ms(50)).losers(Losers::Detach))
        .attempt(Script::ok(ms(500), "a"))
        .attempt(Script::ok(ms(20), "b"));
    shows(
        &scenario,
        r#"
             0                         50         70 ms
primary @0   ├────────────────────────────────────────────────>  runs on
hedge 1 @50                            ├──────────●              won at 70
returned ok "b" from hedge 1 at 70 ms
"#,
    );
}

#[test]
fn joined_losers_show_how_long_they_were_waited_for() {
    let grace = Some(ms(40));
    let hedge = Hedge::after(ms(50)).max_hedges(2);
    let scenario = with(hedge.losers(Losers::Join { grace }))
        .attempt(Script::ok(ms(500), "a").cleanup(ms(30)))
        .attempt(Script::ok(ms(500), "b").cleanup(ms(300)))
        .attempt(Script::ok(ms(20), "c"));
    shows(
        &scenario,
        r#"
              0       50      100       160 ms
primary @0    ├───────────────────┤╌╌╌○    told to stop at 120, ended at 150
hedge 1 @50           ├───────────┤╌╌╌╌╌┤  told to stop at 120, dropped at 160
hedge 2 @100                  ├───●        won at 120
returned ok "c" from hedge 2 at 160 ms
cancelled at 120 ms: primary, hedge 1
"#,
    );
}

#[test]
fn s65_a_denied_hedge_names_its_gate() {
    let scenario = after(50, 2)
        .tokens(Some(1))
        .attempt(Script::ok(ms(300), "a"))
        .attempt(Script::ok(ms(400), "b"));
    shows(
        &scenario,
        r#"
             0      50     100                        300 ms
primary @0   ├────────────────────────────────────────●  won at 300
hedge 1 @50         ├─────────────────────────────────┤  told to stop at 300
hedge 2                    #                             denied at 100: budget
returned ok "a" from primary at 300 ms
cancelled at 300 ms: hedge 1
"#,
    );
}

#[test]
fn panics_are_marked_and_odd_values_stay_on_their_line() {
    let long = "a\nb\u{1b}[0m and more than fits into a line of the drawing, really";
    let hedge = Hedge::after(ms(10)).panics(Panics::AsFailure);
    let scenario =
        with(hedge).attempt(Script::ok(ms(300), long)).attempt(ends(100, Scripted::Panic, "x"));
    shows(
        &scenario,
        r#"
             0                110                           300 ms
primary @0   ├──────────────────────────────────────────────●  won at 300
hedge 1 @10    ├──────────────!                                panicked at 110
returned ok "a\nb\u{1b}[0m and more than fits"… from primary at 300 ms
suppressed failures: hedge 1
"#,
    );
}

#[test]
fn the_most_attempts_and_fractions_fit() {
    let scenario = after(10, 10).cancel_at(Some(Duration::from_micros(120_500)));
    let drawn = drawn(&scenario);
    assert!(drawn.contains("\nhedge 10 @100  "), "{drawn}");
    let end = "
returned cancelled at 120.5 ms
cancelled at 120.5 ms: primary, hedge 1, hedge 2, hedge 3, hedge 4, hedge 5,
    hedge 6, hedge 7, hedge 8, hedge 9, hedge 10";
    assert!(drawn.ends_with(end), "{drawn}");
}

#[test]
fn s40_nothing_started() {
    let scenario = after(50, 2).cancel_at(Some(ms(0)));
    shows(&scenario, "no attempt started\nreturned cancelled at 0 ms");
}

#[test]
fn s44_a_loser_that_obeys_at_once_is_only_told_to_stop() {
    let hedge = Hedge::after(ms(50)).losers(Losers::Join { grace: None });
    let scenario = with(hedge).attempt(Script::ok(ms(500), "a")).attempt(Script::ok(ms(20), "b"));
    shows(
        &scenario,
        r#"
             0                              50           70 ms
primary @0   ├───────────────────────────────────────────┤  told to stop at 70
hedge 1 @50                                 ├────────────●  won at 70
returned ok "b" from hedge 1 at 70 ms
cancelled at 70 ms: primary
"#,
    );
}

#[test]
fn what_decides_without_being_good_did_not_win() {
    for (outcome, word) in [(Scripted::Fatal, "fatal"), (Scripted::Rejected, "rejected")] {
        let drawn = drawn(&after(50, 0).attempt(ends(10, outcome, "p")));
        assert!(drawn.contains("●  decided at 10"), "{drawn}");
        assert!(drawn.contains(&format!("returned {word} \"p\" from primary")), "{drawn}");
    }
}

#[test]
fn values_are_measured_in_columns_after_they_are_escaped() {
    let odd = [
        "\u{1b}".repeat(100),
        "\"\\".repeat(100),
        "表示".repeat(100),
        "\u{202e}abc\u{2066}\u{200f}\u{feff}\u{ad}".repeat(20),
        "e\u{301}".repeat(100),
        "👩\u{200d}🚀❤\u{fe0f}".repeat(100),
    ];
    for value in odd {
        let drawn = drawn(&after(50, 0).attempt(Script::ok(ms(10), &value)));
        let invisible = |c: char| "\u{202e}\u{2066}\u{200d}\u{200f}\u{feff}\u{ad}".contains(c);
        assert!(!drawn.contains(invisible), "{drawn}");
        assert!(drawn.ends_with("\"… from primary at 10 ms"), "{drawn}");
    }
    for value in ["it's 表示", "e\u{301}e\u{301}"] {
        let drawn = drawn(&after(50, 0).attempt(Script::ok(ms(10), value)));
        assert!(drawn.contains(&format!("returned ok \"{value}\" from")), "{drawn}");
    }
}

#[test]
fn long_times_take_lines_of_their_own() {
    let long = Duration::from_nanos(u64::MAX / 4 + 1);
    let grace = Some(long);
    let hedge = Hedge::after(long).max_hedges(2).losers(Losers::Join { grace });
    let scenario = with(hedge)
        .attempt(Script::ok(long * 4, "a").cleanup(long * 3))
        .attempt(Script::ok(long * 4, "b").cleanup(ms(1)))
        .attempt(ends(1, Scripted::Fatal, &"c".repeat(40)));
    shows(
        &scenario,
        r#"
                               0                      13835058055283.163712 ms
primary @0                     ├──────────────────────────────┤╌╌╌╌╌╌╌╌╌╌╌╌╌╌┤
    told to stop at 9223372036855.775808, dropped at 13835058055283.163712
hedge 1 @4611686018427.387904                 ├───────────────○
    told to stop at 9223372036855.775808, ended at 9223372036856.775808
hedge 2 @9223372036854.775808                                 ●
    decided at 9223372036855.775808
returned fatal "ccccccccccccccccccc"… from hedge 2 at 13835058055283.163712 ms
cancelled at 9223372036855.775808 ms: primary, hedge 1
"#,
    );
    let scenario = after(50, 10).cancel_at(Some(Duration::from_nanos(u64::MAX - 1)));
    let drawn = drawn(&scenario);
    assert!(drawn.contains("18446744073709.551614"), "{drawn}");
}
