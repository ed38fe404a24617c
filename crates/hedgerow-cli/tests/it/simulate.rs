//! What `hedgerow simulate` makes of specs, good and bad.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::pages::is_a_page_of_its_own;
use crate::run::{Ran, file, hedgerow, program};

/// A small spec; more may follow.
const SPEC: &str = r#"
title = "small"
runs = 3
[load]
rate = 1000
for = "2s"
[latency]
shape = "lognormal"
mean = "5ms"
sd = "2ms"
stalls = { chance = "5%", factor = 10 }
[[compare]]
name = "10 ms"
delay = "10ms"
[[compare]]
delay = "10ms"
max_extra_load = "5%"
"#;

fn simulate(args: &[&str], spec: &str) -> Ran {
    let args = [&["simulate"], args, &["-"]].concat();
    hedgerow(&args, spec)
}

/// The one object of `--json`.
fn json(args: &[&str], spec: &str) -> Value {
    let ran = simulate(&[&["--json"], args].concat(), spec);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    let mut lines = ran.json();
    assert_eq!(lines.len(), 1);
    lines.remove(0)
}

/// Refuses the spec and says this about it, line by line, and nothing else.
#[track_caller]
fn refused(spec: &str, complaints: &[&str]) {
    let Ran { status, out, err } = simulate(&[], spec);
    assert_eq!((status, out.as_str()), (Some(2), ""), "{spec}: {err}");
    assert_eq!(err.lines().count(), complaints.len(), "{spec}: {err}");
    for (said, complaint) in err.lines().zip(complaints) {
        let expected = format!("stdin{complaint}");
        assert!(said.starts_with(&expected), "{spec}:\n{said}\n{expected}");
    }
}

#[test]
fn a_table_says_what_each_policy_does() {
    let ran = simulate(&[], SPEC);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    let lines: Vec<_> = ran.out.lines().collect();
    assert_eq!(lines[0], "small: 3 runs, seeds from 1; latencies in ms");
    assert!(lines[3].starts_with("  policy "), "{}", ran.out);
    let starts = ["  none  ", "  10 ms  ", r#"  delay = "10ms", max_extra_load = "5%"  "#];
    for (line, start) in lines[4..].iter().zip(starts) {
        assert!(line.starts_with(start), "{}", ran.out);
    }
    assert_eq!(lines.len(), 7, "one step needs no second table: {}", ran.out);
}

#[test]
fn json_has_the_figures() {
    let answer = json(&[], SPEC);
    assert_eq!(answer["runs"], 3);
    let policies = answer["policies"].as_array().unwrap();
    assert_eq!(policies.len(), 3);
    let figure = |policy: usize, key: &str| policies[policy]["total"][key].as_f64().unwrap();
    assert!(figure(0, "hedges").abs() < 1e-9);
    assert!(figure(1, "p99_ms") < 0.4 * figure(0, "p99_ms"));
    assert!((figure(1, "extra_load") - 0.072).abs() < 0.015);
    assert!(figure(2, "extra_load") <= 0.05 + 20.0 / 2_000.0);
    assert!(figure(2, "refused") > 0.0);
    for policy in policies {
        assert_eq!(policy["total"]["completed"], 1.0);
        assert_eq!(policy["total"]["requests"], policies[0]["total"]["requests"]);
        assert_eq!(policy["steps"][0]["step"], "1000/s");
    }
    assert!(policies[1]["total"]["p99_to_none"]["worst"].as_f64().unwrap() < 0.5);
}

#[test]
fn what_is_learned_is_told_and_depends_on_the_estimator() {
    let learned = |estimator: &str| {
        let policy = format!(
            "[[compare]]\nname = \"learned\"\ndelay = {{ percentile = 90 }}\n\
             max_extra_load = \"50%\"\nestimator = \"{estimator}\"\n"
        );
        let answer = json(&[], &format!("{SPEC}{policy}"));
        assert!(answer["policies"][1]["total"].get("learned_ms").is_none(), "10 ms is not learned");
        answer["policies"][3]["total"]["learned_ms"].as_f64().unwrap()
    };
    // The p90 is 8.66 ms; half of those beyond are stalls, which a hedge hides from who looks at
    // winners only.
    let (deployed, biased) = (learned("kaplan-meier"), learned("winners-only"));
    assert!((8.3..9.0).contains(&deployed), "{deployed}");
    assert!(biased < 0.95 * deployed, "{biased}");
}

#[test]
fn a_seed_gives_one_answer_whatever_the_threads() {
    let one = json(&["--threads", "1"], SPEC);
    assert_eq!(one, json(&["--threads", "3"], SPEC));
    assert_eq!(one, json(&["--seed", "1", "--runs", "3"], SPEC));
    assert_ne!(one, json(&["--seed", "2"], SPEC));
    assert_eq!(json(&["--runs", "1"], SPEC)["runs"], 1);
}

#[test]
fn every_shape_can_be_written() {
    let load = "[load]\nrate = 1000\nrequests = 2000\narrivals = \"constant\"\n[latency]\n";
    for (shape, mean) in [
        ("shape = \"constant\"\nvalue = \"3ms\"", 3.0..3.01),
        ("shape = \"exponential\"\nmean = \"3ms\"", 2.7..3.3),
        ("shape = \"lognormal\"\nmedian = \"3ms\"\nsigma = 0.1", 2.95..3.1),
        ("shape = \"pareto\"\nleast = \"2ms\"\nalpha = 3", 2.8..3.2),
        ("shape = \"tail\"\npoints = [[\"2ms\", 1], [\"4ms\", \"10%\"]]\nalpha = 3", 2.6..3.0),
        ("shape = \"samples\"\nvalues = [\"1ms\", \"5ms\"]", 2.8..3.2),
        (
            "shape = \"mixture\"\nparts = [{ weight = 1, shape = \"constant\", value = \"1ms\" }, \
             { weight = 3, shape = \"constant\", value = \"5ms\" }]",
            3.8..4.2,
        ),
        (
            "shape = \"constant\"\nvalue = \"3ms\"\nstalls = { chance = \"50%\", add = \"2ms\" }\n\
             [size]\nshape = \"constant\"\nvalue = 2",
            7.8..8.2,
        ),
    ] {
        let answer = json(&[], &format!("{load}{shape}"));
        let found = answer["policies"][0]["total"]["mean_ms"].as_f64().unwrap();
        assert!(mean.contains(&found), "{shape}: {found}");
    }
}

#[test]
fn samples_come_from_a_file_beside_the_spec() {
    file("samples.txt", "1\n\n5\n");
    let latency = "[latency]\nshape = \"samples\"\nfile = \"samples.txt\"\n";
    let load = "[load]\nrate = 1000\nrequests = 1000\n";
    let with_unit = format!("{load}{latency}unit = \"ms\"");
    let spec = file("samples.toml", with_unit);
    let ran = hedgerow(&["simulate", "--json", spec.to_str().unwrap()], "");
    let mean = ran.json()[0]["policies"][0]["total"]["mean_ms"].as_f64().unwrap();
    assert!((2.7..3.3).contains(&mean), "{mean}");
    let spec = file("unitless.toml", format!("{load}{latency}"));
    let ran = hedgerow(&["simulate", spec.to_str().unwrap()], "");
    assert_eq!(ran.status, Some(2));
    assert!(ran.err.contains("latency.file = \"samples.txt\": line 1: a duration needs a unit"));
}

#[test]
fn servers_steps_and_slow_times_are_obeyed() {
    let answer = json(
        &[],
        r#"
        [load]
        steps = [
            { rate = 500, for = "2s", name = "usual" },
            { rate = 500, for = "2s", name = "slow" },
        ]
        fan_out = 2
        grace = "1s"
        [servers]
        count = 4
        workers = 2
        balancer = "power-of-two"
        on_cancel = "running"
        cancel_latency = "1ms"
        slow = [{ servers = [0, 3], from = "2s", factor = 5 }]
        [latency]
        shape = "exponential"
        mean = "2ms"
        "#,
    );
    let steps = answer["policies"][0]["steps"].as_array().unwrap();
    let p50 = |step: usize| steps[step]["p50_ms"].as_f64().unwrap();
    assert!(p50(1) > 1.3 * p50(0), "{steps:?}");
    assert_eq!(
        (steps[0]["step"].as_str(), steps[1]["step"].as_str()),
        (Some("usual"), Some("slow"))
    );
    let count = |key: &str| steps[0][key].as_u64().unwrap();
    assert_eq!(count("calls"), 2 * count("requests"));
}

#[test]
fn pr_91_unknown_keys_are_refused_with_the_nearest_and_the_place() {
    let load = "[load]\nrate = 1\nfor = \"1s\"\n";
    let latency = "[latency]\nshape = \"constant\"\nvalue = \"1ms\"\n";
    for (spec, complaint) in [
        (format!("sede = 1\n{load}{latency}"), ": sede = 1: unknown key; did you mean seed?"),
        (
            format!("{load}{latency}[servers]\ncuont = 3"),
            ": servers.cuont = 3: unknown key; did you mean count?",
        ),
        (
            format!("{load}{latency}sigma = 1"),
            ": latency.sigma = 1: unknown key; use shape, value or stalls",
        ),
        (
            format!("{load}{latency}[[compare]]\ndealy = \"1ms\""),
            r#": compare[0].dealy = "1ms": unknown key; did you mean delay?"#,
        ),
        (
            format!("{load}{latency}[policy]\nmax_hedges = 11"),
            ": policy.max_hedges = 11: at most 10 hedges may start",
        ),
    ] {
        refused(&spec, &[complaint]);
    }
}

/// A spec whose tables are these, or small ones where they are empty.
fn with(load: &str, latency: &str) -> String {
    let load = if load.is_empty() { "rate = 1\nfor = \"1s\"" } else { load };
    let latency =
        if latency.is_empty() { "shape = \"constant\"\nvalue = \"1ms\"" } else { latency };
    format!("[load]\n{load}\n[latency]\n{latency}")
}

#[test]
fn impossible_loads_are_refused_with_the_remedy() {
    for (load, complaint) in [
        ("rate = 0\nfor = \"1s\"", ": load.rate = 0: use a number above 0"),
        ("rate = 1\nfor = 1", ": load.for = 1: a duration needs a unit"),
        ("rate = 1", ": load.for: missing; write how long"),
        ("rate = 1\nrequests = 0", ": load.requests = 0: write a whole number from 1 to"),
        ("rate = 1\nrequests = 1\nfor = \"1s\"", ": load.for = \"1s\": not beside requests"),
        ("steps = []", ": load.steps = []: give at least one step"),
        ("steps = [{ rate = 1, for = \"1s\" }]\nrate = 1", ": load.rate = 1: not beside steps"),
        (
            "steps = [{ rate = 1, for = \"1s\" }, { rate = \"x\", for = \"1s\" }]",
            ": load.steps[1].rate = \"x\": write a number, without quotes",
        ),
        (
            "steps = [{ rate = 1, for = \"1s\", latency = { shape = \"pareto\", least = \"1ms\" } }]",
            ": load.steps[0].latency.alpha: missing",
        ),
        ("rate = 1\nfor = \"1s\"\nfan_out = 0", ": load.fan_out = 0: write a whole number"),
        (
            "rate = 1\nfor = \"1s\"\narrivals = \"poison\"",
            ": load.arrivals = \"poison\": did you mean poisson?",
        ),
    ] {
        refused(&with(load, ""), &[complaint]);
    }
}

#[test]
fn impossible_latencies_are_refused_with_the_remedy() {
    for (latency, complaint) in [
        ("shape = \"lognormal\"\nmean = \"5ms\"", ": latency.sd: missing"),
        (
            "shape = \"lognormal\"\nmedian = \"5ms\"\nsigma = 1\nmean = \"1ms\"",
            ": latency.mean = \"1ms\": not beside median",
        ),
        ("shape = \"normal\"", ": latency.shape = \"normal\": did you mean lognormal?"),
        ("mean = \"5ms\"", ": latency.shape: missing; use constant"),
        ("shape = \"constant\"\nvalue = 5", ": latency.value = 5: a duration needs a unit"),
        (
            "shape = \"samples\"\nfile = \"no-such-file.txt\"",
            ": latency.file = \"no-such-file.txt\": cannot be read: ",
        ),
        (
            "shape = \"tail\"\npoints = [[\"1ms\", 0.5]]\nalpha = 1",
            ": latency.points = [(1.0, 0.5)]: the first point needs",
        ),
        (
            "shape = \"mixture\"\nparts = [{ shape = \"constant\", value = \"1ms\" }]",
            ": latency.parts[0].weight: missing",
        ),
        (
            "shape = \"constant\"\nvalue = \"1ms\"\nstalls = { chance = 2, factor = 1 }",
            ": latency.stalls.chance = 2: use 0 to 1",
        ),
        (
            "shape = \"constant\"\nvalue = \"1ms\"\nstalls = { chance = 0.1 }",
            ": latency.stalls.factor: missing",
        ),
    ] {
        refused(&with("", latency), &[complaint]);
    }
}

#[test]
fn impossible_servers_and_policies_are_refused_with_the_remedy() {
    for (rest, complaint) in [
        ("[servers]\ncount = 0", ": servers.count = 0: write a whole number from 1 to"),
        (
            "[servers]\nslow = [{ servers = [1], factor = 2 }]",
            ": servers.slow[0].servers = 1: there are 1 servers",
        ),
        (
            "[servers]\nslow = [{ from = \"2s\", to = \"1s\", factor = 2 }]",
            ": servers.slow[0].to = ",
        ),
        (
            "[servers]\ndrift = { period = \"1s\", swing = 1 }",
            ": servers.drift.swing = 1: use a number from 0 up to 1",
        ),
        ("[policy]\nprobability = 2", ": policy.probability = 2: use 0 to 1"),
        (
            "[policy]\nkey = \"server\"\ndelay = \"10ms\"",
            ": policy.key = \"server\": only a policy that learns has keys",
        ),
        (
            "[policy]\nkey = \"sever\"\ndelay = \"adaptive\"",
            ": policy.key = \"sever\": did you mean server?",
        ),
        (
            "[servers]\ncount = 3\n[[compare]]\nkey = \"server\"\ndelay = { max_keys = 2 }",
            ": compare[0].delay.max_keys = 2: there are 3 servers; use at least as many",
        ),
        (
            "[policy]\ndelay = { percentile = 95 }\nestimator = \"winner-only\"",
            ": policy.estimator = \"winner-only\": did you mean winners-only?",
        ),
        (
            "[policy]\nestimator = 5",
            ": policy.estimator = 5: use kaplan-meier, winners-only, cuts-as-complete or callers-time",
        ),
        (
            "[policy]\ndelay = \"adaptive\"\nestimator = \"callers-time\"",
            ": policy.estimator = callers-time: needs a percentile to estimate",
        ),
        ("[size]\nshape = \"constant\"\nvalue = \"1ms\"", ": size.value = \"1ms\": write a number"),
    ] {
        refused(&format!("{}\n{rest}", with("", "")), &[complaint]);
    }
    refused("seed = -1\nruns = 0", &[": seed = -1: ", ": runs = 0: ", ": load: ", ": latency: "]);
}

#[test]
fn what_is_no_toml_says_where() {
    refused("a = \n", &[":1:5: not TOML: "]);
    refused("a = 1\na = 2\n", &[":2:1: not TOML: "]);
    refused("[load\n", &[":1:6: not TOML: "]);
}

#[test]
fn files_that_cannot_be_read_are_named() {
    for (name, remedy) in [("no-such-file.toml", "check the name"), (".", "name a file in it")] {
        let ran = hedgerow(&["simulate", name], "");
        assert_eq!(ran.status, Some(2));
        assert!(ran.err.starts_with(&format!("cannot read {name}: ")), "{}", ran.err);
        assert!(ran.err.trim_end().ends_with(remedy), "{}", ran.err);
    }
    let ran = hedgerow(&["simulate", "-"], b"a = \"\xff\"");
    assert_eq!(ran.status, Some(2));
    assert!(ran.err.starts_with("cannot read stdin: "), "{}", ran.err);
}

/// A reader who has gone is no failure.
#[test]
fn a_closed_pipe_is_no_failure() {
    let spec = file("closed.toml", SPEC);
    let mut child = program(&["simulate", spec.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}

/// The specs that come with the program are well-formed and do what their headers say, as far as a
/// hundredth of them can show.
#[test]
fn the_specs_that_come_along_work() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("specs");
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let small = fs::read_to_string(&path)
            .unwrap()
            .replace("00_000", "_000")
            .replace("rate = 100\n", "rate = 10\n")
            .replace("200s", "5s")
            .replace("240s", "5s")
            .replace("60s", "5s");
        let page = file(&format!("spec-{name}.html"), "");
        let answer = json(&["--runs", "1", "--report", page.to_str().unwrap()], &small);
        let policies = answer["policies"].as_array().unwrap();
        let html = fs::read_to_string(page).unwrap();
        is_a_page_of_its_own(&html);
        for policy in policies {
            assert!(html.contains(policy["name"].as_str().unwrap()), "{name}: {policy}");
        }
        assert!(policies.len() > 1, "{name}");
        let p99 = |policy: &Value| policy["total"]["p99_ms"].as_f64().unwrap();
        if name == "w1" || name == "w2" {
            assert!(p99(&policies[1]) < 0.4 * p99(&policies[0]), "{name}");
        }
        names.push(name);
    }
    names.sort();
    let all = [
        "beyond",
        "brown-out",
        "brown-out-busy",
        "brown-out-over",
        "drift",
        "estimators",
        "estimators-w1",
        "long",
        "more-stalls",
        "overload",
        "ramp",
        "rates",
        "replica",
        "replica-busy",
        "shared",
        "triple",
        "w1",
        "w2",
        "w3",
        "w4",
        "w5",
        "w6",
    ];
    assert_eq!(names, all);
}
