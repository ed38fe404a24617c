//! What `hedgerow replay` makes of good input.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use hedgerow::HedgeConfig;
use serde_json::{Value, json};

use crate::run::{Ran, TABLE, abandoned, file, hedgerow, program, replay};

fn one(line: &str) -> Value {
    let ran = replay(line);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{line}");
    let [result] = ran.json().try_into().expect("one line in, one line out");
    result
}

/// The line of the table that has this id.
fn scenario(id: &str) -> &'static str {
    let start = format!(r#"{{"id": "{id}","#);
    let line = TABLE.lines().find(|line| line.starts_with(&start));
    line.expect("the table has the scenario")
}

#[test]
fn s1_to_s72_are_met_on_every_front() {
    let run = |front| hedgerow(&["replay", "--json", "--front", front], TABLE);
    let fronts = ["async", "engine", "stream", "blocking"].map(run);
    for ran in &fronts {
        assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
        let results = ran.json();
        assert_eq!(results.len(), 72);
        for (number, result) in (1..).zip(&results) {
            assert_eq!(result["id"], format!("S{number}"));
            assert_eq!(result["met"], true, "{result}");
        }
    }
    assert!(fronts.iter().all(|ran| ran.out == fronts[0].out));
}

#[test]
fn s8_the_output_is_the_documented_one() {
    let line = r#"{"id":"S8","starts":[[0,0],[1,50],[2,60]],"events":["hedge(1)@50","hedge(2)@60","win(2)@80"],"returned":{"outcome":"ok","value":"c","attempt":2,"at":80},"cancelled":[[0,80]],"suppressed":[1],"met":true}"#;
    assert_eq!(replay(scenario("S8")).out, format!("{line}\n"));
}

#[test]
fn g1_attempts_push_back() {
    for (pushback, starts, events) in [
        (r#""stop""#, json!([[0, 0]]), json!(["denied(1)@10", "exhausted@10"])),
        (r#""70ms""#, json!([[0, 0], [1, 80]]), json!(["hedge(1)@80", "win(1)@85"])),
    ] {
        for front in ["async", "engine"] {
            let line = format!(
                r#"{{"policy":{{"delay":"50ms"}},"attempts":[
                {{"after":"10ms","outcome":"error","pushback":{pushback}}},
                {{"after":"5ms","outcome":"ok"}}]}}"#
            );
            let ran = hedgerow(&["replay", "--json", "--front", front], line.replace('\n', ""));
            assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
            assert_eq!((&ran.json()[0]["starts"], &ran.json()[0]["events"]), (&starts, &events));
        }
    }
    let dry = one(
        r#"{"policy":{"delay":"50ms","dry_run":true},"attempts":[{"after":"90ms","outcome":"ok"}]}"#,
    );
    assert_eq!(dry["events"], json!(["denied(1)@50", "win(0)@90"]));
}

#[test]
fn what_is_absent_is_left_out() {
    let cancelled = one(r#"{"id":"a","attempts":[],"cancel_at":"5ms"}"#);
    assert_eq!(cancelled["returned"], json!({"outcome": "cancelled", "at": 5}));
    assert_eq!(cancelled.get("met"), None);
    let hangs = one(r#"{"id":"a","policy":{"max_hedges":0},"attempts":[]}"#);
    assert_eq!(hangs["returned"], json!({"outcome": "hangs", "at": null}));
}

#[test]
fn milliseconds_are_whole_where_they_are() {
    let result = one(
        r#"{"policy":{"delay":"1.5ms"},"attempts":[{"after":"1h","outcome":"ok"},{"after":"1.25ms","outcome":"ok"}]}"#,
    );
    assert_eq!(result["starts"].to_string(), "[[0,0],[1,1.5]]");
    assert_eq!(result["events"], json!(["hedge(1)@1.5", "win(1)@2.75"]));
    let whole = one(r#"{"attempts":[{"after":"0.05s","outcome":"ok"}]}"#);
    assert_eq!(whole["returned"]["at"].to_string(), "50");
}

#[test]
fn huge_and_zero_durations_are_played() {
    let zero = one(r#"{"policy":{"delay":"0ms"},"attempts":[{"after":"0ms","outcome":"ok"}]}"#);
    assert_eq!(zero["events"], json!(["win(0)@0"]));
    for front in ["async", "engine", "stream", "blocking"] {
        let huge = r#"{"policy":{"delay":"500000h","max_hedges":10},"attempts":[{"after":"99999999999999h","outcome":"ok"}]}"#;
        let ran = hedgerow(&["replay", "--json", "--front", front], huge);
        assert_eq!(ran.status, Some(0), "{}", ran.err);
        assert_eq!(ran.json()[0]["returned"]["outcome"], "hangs");
        assert_eq!(ran.json()[0]["starts"][1], json!([1, 1_800_000_000_000_u64]));
    }
}

/// What comes out may be fed back as what is expected, whatever the times.
#[test]
fn what_comes_out_is_what_may_be_expected() {
    for (delay, after) in [
        ("1.5ms", "2.25ms"),
        ("4294967296.123457s", "1ns"),
        ("18446744073.709551613s", "1ns"),
        ("9007199254.740993001s", "333.333333s"),
        ("123456789.123456789s", "0.000001s"),
    ] {
        let script = format!(
            r#""policy":{{"delay":"{delay}","losers":"join"}},"attempts":[{{"outcome":"never"}},{{"after":"{after}","outcome":"ok"}}]"#
        );
        let mut expect = one(&format!("{{{script}}}"));
        expect.as_object_mut().unwrap().remove("id");
        let again = one(&format!(r#"{{{script},"expect":{expect}}}"#));
        assert_eq!(again["met"], true, "{again}");
    }
    let exact = replay(
        r#"{"policy":{"delay":"18446744073.709551613s"},"attempts":[{"outcome":"never"},{"after":"1ns","outcome":"ok"}]}"#,
    );
    let start = r#"[1,18446744073709.551613]],"events":["hedge(1)@18446744073709.551613","#;
    assert!(exact.out.contains(start), "{}", exact.out);
}

/// Somebody who sends one line and waits for its result gets it.
#[test]
fn results_reach_a_pipe_one_by_one() {
    let mut child = program(&["replay", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for id in ["a", "b"] {
        writeln!(stdin, r#"{{"id":"{id}","attempts":[],"cancel_at":"1ms"}}"#).unwrap();
        let mut result = String::new();
        stdout.read_line(&mut result).unwrap();
        assert!(result.starts_with(&format!(r#"{{"id":"{id}","#)), "{result}");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn long_scripts_and_long_lines_are_played() {
    let attempt = r#"{"after":"1ms","outcome":"error","value":"x"}"#;
    let script = vec![attempt; 1_000].join(",");
    let title = "x".repeat(4_000_000);
    let line =
        format!(r#"{{"title":"{title}","policy":{{"max_hedges":10}},"attempts":[{script}]}}"#);
    let result = one(&line);
    assert_eq!(result["events"][10], "exhausted@11");
    let drawn = hedgerow(&["replay"], &line);
    assert_eq!(drawn.status, Some(0));
    assert!(drawn.out.len() < 5_000, "the title is cut");
}

#[test]
fn expectations_are_compared_by_number_and_only_where_they_say_something() {
    let attempts = r#""attempts":[{"after":"50ms","outcome":"ok","value":"a"}]"#;
    for expect in [
        "{}",
        r#"{"starts":[[0,0.0]]}"#,
        r#"{"events":["win(0)@50.0"]}"#,
        r#"{"returned":{"at":50.0}}"#,
        r#"{"returned":{"value":"a","attempt":0}}"#,
        r#"{"cancelled":[],"suppressed":[]}"#,
    ] {
        let result = one(&format!(r#"{{{attempts},"expect":{expect}}}"#));
        assert_eq!(result["met"], true, "{expect}");
    }
    for expect in [
        r#"{"starts":[]}"#,
        r#"{"events":["win(0)@50.001"]}"#,
        r#"{"returned":{"at":null}}"#,
        r#"{"returned":{"value":null}}"#,
        r#"{"returned":{"outcome":"error"}}"#,
        r#"{"suppressed":[0]}"#,
    ] {
        let ran = replay(&format!(r#"{{{attempts},"expect":{expect}}}"#));
        assert_eq!(ran.status, Some(1), "{expect}");
        assert_eq!(ran.json()[0]["met"], false, "{expect}");
        assert_eq!(ran.err, "1 of 1 expectations were not met\n");
    }
}

#[test]
fn an_expectation_that_is_not_met_shows_the_difference() {
    let altered = TABLE.replace(
        r#"[1, 50], [2, 60]], "returned": {"outcome": "ok", "value": "c", "attempt": 2, "at": 80}"#,
        r#"[1, 50], [2, 61]], "returned": {"outcome": "ok", "value": "c", "attempt": 2, "at": 81}"#,
    );
    assert_ne!(altered, TABLE);
    let Ran { status, out, err } = hedgerow(&["replay"], &altered);
    assert_eq!(status, Some(1));
    assert_eq!(err, "1 of 72 expectations were not met\n");
    let start = out.find("S8: ").unwrap();
    let end = out.find("S9: ").unwrap();
    let expected = "\
S8: hedge fails while primary runs: early start
             0                           50   60         80 ms
primary @0   ├───────────────────────────────────────────┤  told to stop at 80
hedge 1 @50                              ├────×             failed at 60
hedge 2 @60                                   ├──────────●  won at 80
returned ok \"c\" from hedge 2 at 80 ms
cancelled at 80 ms: primary
suppressed failures: hedge 1
NOT AS EXPECTED
  starts
    expected [[0,0],[1,50],[2,61]]
    got      [[0,0],[1,50],[2,60]]
  returned.at
    expected 81
    got      80

";
    assert_eq!(&out[start..end], expected);
}

#[test]
fn files_and_standard_input_are_read_in_order() {
    let line = |id| format!("\u{feff}{{\"id\":\"{id}\",\"attempts\":[]}}\r\n\r\n  \n");
    let first = file("order-first.jsonl", line("1"));
    let third = file("order-third.jsonl", line("3").trim_end());
    let (first, third) = (first.to_str().unwrap(), third.to_str().unwrap());
    let ran = hedgerow(&["replay", "--json", first, "-", third], line("2"));
    let ids: Vec<_> = ran.json().iter().map(|result| result["id"].clone()).collect();
    assert_eq!(ids, ["1", "2", "3"]);
    assert_eq!(ran.status, Some(0));
}

#[test]
fn a_scenario_without_id_is_called_by_its_place() {
    let ran = replay("\n{\"attempts\":[]}\n");
    assert_eq!(ran.json()[0]["id"], "stdin:2");
}

#[test]
fn no_input_is_no_failure() {
    let ran = replay("");
    assert_eq!((ran.status, ran.out.as_str()), (Some(0), ""));
}

#[test]
fn a_reader_who_leaves_early_is_no_failure() {
    let path = file("pipe.jsonl", TABLE.repeat(50));
    let ran = abandoned(&["replay", path.to_str().unwrap()]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn pr_91_every_documented_key_is_accepted() {
    let help = hedgerow(&["replay", "--help"], "").out;
    for key in HedgeConfig::KEYS {
        assert!(help.contains(key), "the help names {key}");
    }
    one(
        r#"{"id":"x","title":"x","group":"x","policy":{"delay":["50ms","immediately","on-failure"],
        "max_hedges":2,"failure_start":"launch-when-idle","exhausted":"last","losers":{"join":"50ms"},
        "rejected_hedge":"decide","hedge_rejections":true,"panics":"as-failure",
        "max_extra_load":"5%","span":"never"},"tokens":1,"idempotent":true,"cancel_at":"1s","attempts":[
        {"after":"1ms","outcome":"error","value":"x","cleanup":"1ms"},{"outcome":"never"},
        {"after":"1ms","outcome":"bad"},{"after":"1ms","outcome":"fatal"},
        {"after":"1ms","outcome":"rejected"},{"after":"1ms","outcome":"panic"}],
        "expect":{"returned":{"outcome":"cancelled"}}}"#
            .replace('\n', " ")
            .as_str(),
    );
}
