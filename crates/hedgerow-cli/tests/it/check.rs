//! `hedgerow check`: what configurations mean, and what is wrong with them.

use std::path::Path;

use boon::{Compiler, Schemas};
use serde_json::{Value, json};

use crate::run::{Ran, file, hedgerow, program, ran};

fn check(path: &Path) -> Ran {
    hedgerow(&["check", path.to_str().expect("a plain path")], "")
}

#[track_caller]
fn fine(text: &str) -> Ran {
    let ran = hedgerow(&["check", "-"], text);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{text}");
    ran
}

/// Refuses the text on standard input, with complaints that begin like these.
#[track_caller]
fn refused(text: &str, complaints: &[&str]) {
    let Ran { status, out, err } = hedgerow(&["check", "-"], text);
    assert_eq!((status, out.as_str()), (Some(2), ""), "{text}");
    assert_eq!(err.lines().count(), complaints.len(), "{text}: {err}");
    for (said, complaint) in err.lines().zip(complaints) {
        assert!(said.starts_with(complaint), "{text}:\n{said}\n{complaint}");
    }
}

#[test]
fn the_same_policy_in_three_formats() {
    let toml = "[hedge]\ndelay = \"50ms\"\nmax_hedges = 2\nlosers = { join = \"1s\" }\n";
    let json = r#"{"hedge":{"delay":"50ms","max_hedges":2,"losers":{"join":"1s"}}}"#;
    let yaml = "hedge:\n  delay: 50ms\n  max_hedges: 2\n  losers:\n    join: 1s\n";
    let answers = [("a.toml", toml), ("a.json", json), ("a.yaml", yaml), ("a.yml", yaml)].map(
        |(name, text)| {
            let path = file(&format!("check-{name}"), text);
            let ran = hedgerow(&["check", "--json", path.to_str().unwrap()], "");
            assert_eq!(ran.status, Some(0), "{}", ran.err);
            let mut answer = ran.json().remove(0);
            let value = |key: &str| {
                let settings = answer["settings"].as_array().unwrap().iter();
                settings.clone().find(|row| row["key"] == key).unwrap()["value"].clone()
            };
            assert_eq!(value("losers"), json!({"join": "1s"}));
            assert_eq!(value("max_extra_load"), Value::Null);
            answer["policy"].take();
            answer["settings"].as_array_mut().unwrap().iter_mut().for_each(|row| {
                let source = row["source"].as_str().unwrap();
                row["source"] = json!(source == "default");
            });
            answer
        },
    );
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
}

#[test]
fn pr_91_the_effective_settings_say_where_they_come_from() {
    let path = file("check-sources.toml", "delay = \"50ms\"\nmax_hedges = 3\n");
    let mut command = program(&["check", path.to_str().unwrap()]);
    let command = command.env("HEDGEROW_HEDGE_MAX_HEDGES", "2");
    let Ran { status, out, .. } = ran(command.output().unwrap());
    assert_eq!(status, Some(0));
    let row = |key: &str| {
        let row = out.lines().find(|line| line.trim_start().starts_with(key)).unwrap();
        row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("delay")[1..], ["50ms", path.to_str().unwrap()]);
    assert_eq!(row("max_hedges")[1..], ["2", "environment,", "HEDGEROW_HEDGE_MAX_HEDGES"]);
    assert_eq!(row("exhausted")[1..], ["primary", "default"]);
    assert!(out.contains("Without an answer after 50ms, up to 2 more attempts"), "{out}");
}

#[test]
fn pr_91_an_unknown_variable_is_refused() {
    let path = file("check-env.toml", "dealy = \"50ms\"\n");
    let mut command = program(&["check", path.to_str().unwrap()]);
    let command = command.env("HEDGEROW_HEDGE_DEALY", "1s");
    let Ran { status, err, .. } = ran(command.output().unwrap());
    assert_eq!(status, Some(2));
    assert!(err.contains("check-env.toml: dealy = \"50ms\": unknown key; did you mean delay?"));
    assert!(err.contains("HEDGEROW_HEDGE_DEALY = \"1s\": unknown key; did you mean delay?"));
}

#[test]
fn pr_91_keys_at_the_wrong_place_are_refused() {
    refused(
        "delay = \"50ms\"\n[hedge]\n",
        &[r#"stdin: delay = "50ms": not at the top; it belongs into the table [hedge]"#],
    );
    refused(
        "[hegde]\ndelay = \"50ms\"\n",
        &[r#"stdin: hegde = {"delay": "50ms"}: unknown key; did you mean hedge?"#],
    );
    refused(
        "[hedge]\nhedge_dealy = \"1s\"\nmax_hedges = 11\n",
        &[
            "stdin: hedge.max_hedges = 11: at most 10 hedges may start",
            r#"stdin: hedge.hedge_dealy = "1s": unknown key; did you mean delay?"#,
        ],
    );
}

#[test]
fn a_file_without_a_policy_is_told_where_one_is_looked_for() {
    refused(
        "[search]\nwords = 7\n",
        &["stdin: hedge: missing; write the policy in a table [hedge] or alone in a file, and \
           pipelines in tables [pipelines.NAME]"],
    );
}

#[test]
fn pr_92_durations_need_units() {
    refused("delay = 100", &["stdin: delay = 100: a duration needs a unit"]);
    refused(r#"delay = "100""#, &["stdin: delay = \"100\": a duration needs a unit"]);
    refused(r#"delay = "-5ms""#, &["stdin: delay = \"-5ms\": a duration cannot be negative"]);
    refused(r#"delay = "5 parsecs""#, &["stdin: delay = \"5 parsecs\": unknown unit"]);
    refused(r#"delay = "0""#, &["stdin: delay = \"0\": a duration needs a unit"]);
    assert!(fine(r#"delay = "1m""#).out.contains("60s"));
}

#[test]
fn what_belongs_to_the_program_is_left_alone() {
    let Ran { out, .. } = fine("[server]\nport = 80\n[hedge]\ndelay = \"9ms\"\n[db]\n");
    assert!(out.ends_with("Not looked at: db, server\n"), "{out}");
}

#[test]
fn every_policy_has_its_words() {
    for (text, words) in [
        ("max_hedges = 0", "Nothing is hedged"),
        ("delay = \"immediately\"", "all its attempts at once"),
        ("delay = \"on-failure\"", "Slow calls are left alone"),
        ("delay = [\"1ms\", \"on-failure\"]", "with these delays: 1ms, on-failure"),
        ("delay = \"adaptive\"", "make p99 lowest"),
        ("delay = { percentile = 95, initial = \"9ms\" }", "at p95 of the latest calls"),
        ("delay = \"adaptive\"", "Extra load is at most 5 %"),
        ("max_extra_load = 0.025", "Extra load is at most 2.5 %"),
        ("", "every call is sent 2 times"),
        ("failure_start = \"wait\"", "A failure starts nothing"),
        ("exhausted = \"last\"", "the last failure is returned"),
        ("losers = { join = \"50ms\" }", "at most 50ms"),
        ("losers = \"detach\"", "calls must be spawned"),
        ("rejected_hedge = \"hedge\"", "followed by the next attempt"),
        ("panics = \"as-failure\"", "A panic of an attempt is a failure"),
        ("dry_run = true", "no hedge is sent"),
    ] {
        let Ran { out, .. } = fine(text);
        assert!(out.contains(words), "{text}: {out}");
    }
}

#[test]
fn what_is_no_configuration_is_refused_with_its_place() {
    refused("delay = ", &["stdin:1:9: not TOML: "]);
    refused("{\"delay\": }", &["stdin:1:11: not JSON: "]);
    let yaml = check(&file("check-bad.yaml", "a: [1\nb: 2\n"));
    assert_eq!(yaml.status, Some(2));
    assert!(yaml.err.contains("check-bad.yaml:"), "{}", yaml.err);
    assert!(yaml.err.contains("not YAML"), "{}", yaml.err);
    let missing = hedgerow(&["check", "/nowhere/at/all.toml"], "");
    assert_eq!(missing.status, Some(2));
    assert!(missing.err.starts_with("cannot read /nowhere/at/all.toml: "), "{}", missing.err);
    assert!(missing.err.contains("check the name"), "{}", missing.err);
    let binary = check(&file("check-binary.toml", [0xff, 0xfe, 0x00]));
    assert_eq!(binary.status, Some(2));
    assert!(binary.err.contains("write it in UTF-8"), "{}", binary.err);
    assert_eq!(fine("").status, Some(0), "an empty file is the default policy");
    assert_eq!(check(&file("check-empty.yaml", "# nothing\n")).status, Some(0));
}

#[test]
fn nothing_to_check_is_refused() {
    let Ran { status, err, .. } = hedgerow(&["check"], "");
    assert_eq!(status, Some(2));
    assert!(err.contains("FILE"), "{err}");
}

/// Whether the schema takes a policy.
fn by_schema(schemas: &Schemas, schema: boon::SchemaIndex, policy: &Value) -> bool {
    schemas.validate(policy, schema).is_ok()
}

#[test]
fn the_schema_takes_what_the_program_takes() {
    let schema: Value = serde_json::from_str(&hedgerow(&["check", "--schema"], "").out).unwrap();
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource("hedge.json", schema.clone()).unwrap();
    let index = compiler.compile("hedge.json", &mut schemas).unwrap();
    let good = [
        json!({}),
        json!({"delay": "50ms", "max_hedges": 2}),
        json!({"delay": "adaptive", "max_extra_load": "5%"}),
        json!({"delay": ["1.5s", "immediately", "on-failure"]}),
        json!({"delay": {"percentile": 95, "min": "1ms", "max": "1s", "initial": "100ms"}}),
        json!({"delay": {"target": 99.9, "half_life": "2s"}}),
        json!({"losers": {"join": "50ms"}, "max_extra_load": 0.05}),
        json!({"losers": "detach", "panics": "as-failure", "hedge_rejections": true}),
        json!({"failure_start": "launch-when-idle", "exhausted": "last"}),
        json!({"rejected_hedge": "decide", "delay": "never"}),
        json!({"dry_run": true, "delay": {"max_keys": 10}, "span": "never"}),
    ];
    let bad = [
        json!([]),
        json!({"dealy": "50ms"}),
        json!({"delay": 100}),
        json!({"delay": "100"}),
        json!({"delay": "5 parsecs"}),
        json!({"delay": []}),
        json!({"delay": ["adaptive"]}),
        json!({"delay": {"percentile": 0.95}}),
        json!({"delay": {"percentile": 95, "target": 99}}),
        json!({"max_hedges": 11}),
        json!({"max_hedges": -1}),
        json!({"max_hedges": "2"}),
        json!({"losers": {"join": "50ms", "grace": 1}}),
        json!({"losers": {}}),
        json!({"max_extra_load": 5}),
        json!({"max_extra_load": 0}),
        json!({"delay": {"max_keys": 0}}),
        json!({"dry_run": 1}),
        json!({"span": "sometimes"}),
        json!({"hedge_rejections": "true"}),
        json!({"exhausted": "Primary"}),
    ];
    for (policies, wanted) in [(&good[..], true), (&bad[..], false)] {
        for policy in policies {
            assert_eq!(by_schema(&schemas, index, policy), wanted, "{policy}");
            let text = json!({"hedge": policy}).to_string();
            let status = hedgerow(&["check", "-"], text).status;
            assert_eq!(status == Some(0), wanted, "{policy}");
        }
    }
    // It knows every key, and no other.
    let answer = hedgerow(&["check", "--json", "-"], "").json().remove(0);
    let keys = answer["settings"].as_array().unwrap().iter();
    let keys: Vec<_> = keys.map(|row| row["key"].as_str().unwrap()).collect();
    let known = schema["properties"].as_object().unwrap();
    assert_eq!(known.len(), keys.len());
    assert!(keys.iter().all(|key| known.contains_key(*key)), "{keys:?}");
}

#[test]
fn a_mark_of_the_byte_order_changes_nothing() {
    for (name, text) in
        [("a.toml", "delay = \"5ms\""), ("a.json", r#"{"delay":"5ms"}"#), ("a.yaml", "delay: 5ms")]
    {
        let path = file(&format!("check-mark-{name}"), format!("\u{feff}{text}"));
        let Ran { status, out, err } = check(&path);
        assert_eq!((status, err.as_str()), (Some(0), ""), "{name}");
        assert!(out.contains("delay             5ms"), "{name}: {out}");
    }
    fine("\u{feff}{\"delay\":\"5ms\"}");
}

#[test]
fn brackets_without_end_are_refused_before_they_take_minutes() {
    for (open, close) in [("[", "]"), ("{a: ", "}")] {
        let text = format!("a: {}1{}", open.repeat(200_000), close.repeat(200_000));
        let Ran { status, err, .. } = check(&file("check-brackets.yaml", &text));
        assert_eq!(status, Some(2), "{err}");
        assert!(err.contains("more than 1000 deep"), "{err}");
    }
}

#[test]
fn what_is_beside_the_policy_cannot_move_the_cursor() {
    let Ran { out, .. } = fine("\"\\u001b[31mred\" = 1\n[hedge]\n");
    assert!(out.contains("Not looked at: \\u{1b}[31mred"), "{out}");
}

const PIPELINES: &str = r#"
[pipelines.search]
strategies = ["total", "hedge", "attempt"]
max_extra_load = "7%"
total = { kind = "timeout", limit = "100ms" }
hedge = { delay = "150ms", max_hedges = 2 }
attempt = { kind = "timeout", limit = "50ms" }

[pipelines.plain]
strategies = []

[server]
port = 80
"#;

#[test]
fn pipelines_are_shown_with_what_is_probably_not_meant() {
    let out = fine(PIPELINES).out;
    let search = out.split("\n\n").find(|part| part.contains("1. total")).unwrap();
    let lines: Vec<_> = search.lines().collect();
    assert_eq!(
        lines,
        [
            "  1. total    timeout  100ms",
            "  2. hedge    hedge    150ms, at most 2, within a budget",
            "  3. attempt  timeout  50ms",
            "  The work runs 3 times at most, if everything fails.",
            "  Its hedges and retries share a budget: 7 % of completed executions.",
            "  Probably not meant: hedge never starts a hedge by its delay of 150ms: total gives up \
             after 100ms, and is around it.",
        ]
    );
    assert!(out.contains("[pipelines.plain]: fine\n\n  The work runs once at most."), "{out}");
    assert!(out.ends_with("Not looked at: server\n"), "{out}");
}

#[test]
fn pipelines_as_json_have_no_policy_unless_there_is_one() {
    let json = |text: &str| {
        let ran = hedgerow(&["check", "--json", "-"], text);
        assert_eq!(ran.status, Some(0), "{}", ran.err);
        ran.json().remove(0)
    };
    let checked = json(PIPELINES);
    assert_eq!(checked.get("policy"), None);
    let named = |name: &str| {
        let pipelines = checked["pipelines"].as_array().unwrap().iter();
        pipelines.clone().find(|pipeline| pipeline["pipeline"] == name).unwrap().clone()
    };
    assert_eq!(named("search")["max_attempts"], json!(3));
    assert_eq!(named("search")["max_extra_load"], json!(0.07));
    assert_eq!(named("plain").get("max_extra_load"), None);
    assert_eq!(named("search")["strategies"][0]["kind"], json!("timeout"));
    assert_eq!(named("plain")["strategies"], json!([]));
    let both = json(&format!("[hedge]\nmax_hedges = 3\n{PIPELINES}"));
    assert_eq!(both["policy"], json!("stdin, [hedge]"));
    assert_eq!(both["pipelines"].as_array().unwrap().len(), 2);
}

#[test]
fn more_runs_than_can_be_counted_are_told_in_words() {
    let names: Vec<_> = (0..64).map(|index| format!("r{index}")).collect();
    let tables = names.join(" = { kind = \"retry\" }\n");
    let text =
        format!("[pipelines.deep]\nstrategies = {names:?}\n{tables} = {{ kind = \"retry\" }}\n");
    let out = fine(&text).out;
    let words = "\n  The work runs more often than can be counted, if everything fails.\n";
    assert!(out.contains(words) && !out.contains("18446744073709551615"), "{out}");
    let json = hedgerow(&["check", "--json", "-"], text).json().remove(0);
    assert_eq!(json["pipelines"][0]["max_attempts"], json!(u64::MAX));
}

#[test]
fn mistakes_in_pipelines_are_told_with_their_places() {
    refused(
        "[pipelines.search]\nstrategies = [\"timeout\", \"hegde\"]\ntimeout = \"5\"\n[hedge]\ndealy = 1\n",
        &[
            "stdin: hedge.dealy = 1: unknown key; did you mean delay?",
            "stdin: pipelines.search.timeout = \"5\": a duration needs a unit",
            "stdin: pipelines.search.strategies[1] = \"hegde\": did you mean hedge?",
        ],
    );
}
