//! `hedgerow tune`: every format, every kind of bad input, and what it says.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use hedgerow::HedgeConfig;
use serde_json::Value;

use crate::run::{Ran, file, hedgerow, program, ran};

/// Latencies of about 5 ms, 80 ms more for one in forty: made without chance.
fn latencies(count: u32) -> impl Iterator<Item = f64> {
    (0..count).map(|call| {
        let body = 3.0 + f64::from(call * 7_919 % 4_001) / 1_000.0;
        if call % 40 == 7 { body + 80.0 } else { body }
    })
}

/// A line for each of them.
fn lines(count: u32, line: impl Fn(f64) -> String) -> String {
    latencies(count).fold(String::new(), |mut all, ms| {
        writeln!(all, "{}", line(ms)).expect("a string grows");
        all
    })
}

fn plain(count: u32) -> String {
    lines(count, |ms| format!("{ms:.3}"))
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).expect("a vector grows");
    encoder.finish().expect("a vector grows")
}

#[track_caller]
fn tune(args: &[&str], input: impl AsRef<[u8]> + Send) -> Ran {
    let args: Vec<_> = ["tune"].iter().chain(args).copied().collect();
    hedgerow(&args, input)
}

/// The advice as JSON.
#[track_caller]
fn advice(args: &[&str], input: impl AsRef<[u8]> + Send) -> Value {
    let ran = tune(&[args, &["--json"]].concat(), input);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    ran.json().remove(0)
}

/// Refuses the input with status 2 and says this.
#[track_caller]
fn refused(args: &[&str], input: impl AsRef<[u8]> + Send, hint: &str) {
    let ran = tune(args, input);
    assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""), "{}", ran.err);
    assert!(ran.err.contains(hint), "{hint}: {}", ran.err);
}

#[test]
fn the_json_has_its_shape() {
    let said = advice(&["--unit", "ms"], plain(20_000));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let parts = ["intervals", "predicted", "reason", "recommendation", "warnings", "without"];
    assert_eq!(keys(&said), parts);
    let quantiles = ["p50_ms", "p90_ms", "p95_ms", "p999_ms", "p99_ms"];
    for part in [&said["without"], &said["predicted"], &said["intervals"]["without"]] {
        assert_eq!(keys(part), quantiles);
    }
    let recommendation = &said["recommendation"];
    assert_eq!(keys(recommendation), ["delay_ms", "extra_load", "hedge", "probability"]);
    assert_eq!(recommendation["hedge"], true);
    assert!(recommendation["extra_load"].as_f64().unwrap() <= 0.05);
    assert!(said["predicted"]["p99_ms"].as_f64().unwrap() < 20.0, "{said}");
    assert!(said["without"]["p99_ms"].as_f64().unwrap() > 80.0, "{said}");
    assert_eq!((&said["reason"], said["warnings"].as_array().unwrap().len()), (&Value::Null, 3));
}

#[test]
fn every_format_gives_the_same_advice() {
    let (count, unit) = (5_000, ["--unit", "ms"]);
    let expected = advice(&unit, plain(count));
    let zipped = file("tune.gz", gzip(&plain(count)));
    assert_eq!(advice(&["--unit", "ms", zipped.to_str().unwrap()], ""), expected);
    let own = |ms: f64| if ms < 5.0 { format!("{:.0}us", ms * 1e3) } else { format!("{ms:.3} ms") };
    assert_eq!(advice(&[], lines(count, own)), expected);
    for (args, line) in [
        (
            &["--column", "took", "--unit", "ms"][..],
            (|ms| format!("1,{ms:.3},x")) as fn(f64) -> String,
        ),
        (&["--field", "http.took"], |ms| format!(r#"{{"http":{{"took":"{ms:.3}ms"}}}}"#)),
        (&["--field", "took", "--unit", "us"], |ms| format!(r#"{{"took":{:.0}}}"#, ms * 1e3)),
        (&["--pattern", r"took (\d+)us"], |ms| format!("GET / took {:.0}us", ms * 1e3)),
        (&["--format", "nginx"], |ms| {
            format!(r#"::1 - - [x] "GET / HTTP/1.1" 200 5 "-" "UA" {:.6}"#, ms / 1e3)
        }),
    ] {
        let header =
            if args[0] == "--column" { "id;took;x\n".replace(';', ",") } else { String::new() };
        let us = if args[0] == "--pattern" { &["--unit", "us"][..] } else { &[] };
        assert_eq!(
            advice(&[args, us].concat(), header + &lines(count, line)),
            expected,
            "{args:?}"
        );
    }
    let by_number = lines(count, |ms| format!("a;{ms:.3}"));
    assert_eq!(advice(&["--column", "2", "--unit", "ms"], by_number), expected);
    let envoy = lines(count, |ms| format!(r#"[x] "GET / HTTP/1.1" 200 - 0 5 {ms:.0} 1 "-""#));
    assert_eq!(advice(&["--format", "envoy"], envoy)["recommendation"]["hedge"], true);
}

#[test]
fn keys_are_tuned_apart_and_are_bounded() {
    let mut rows = "route,ms\n".to_owned();
    for (call, ms) in latencies(4_000).enumerate() {
        writeln!(rows, "{},{ms}", if call % 4 == 0 { "/a" } else { "/b" }).unwrap();
    }
    let said = advice(&["--column", "ms", "--key", "route", "--unit", "ms"], rows);
    assert_eq!(said["keys"]["/b"]["recommendation"]["hedge"], true, "{said}");
    assert_eq!(said["keys"].as_object().unwrap().len(), 2);
    let many = (0..1_200).fold(String::new(), |all, key| all + &format!("k{key},5\n"));
    let said = advice(&["--column", "2", "--key", "1", "--unit", "ms"], &many);
    assert_eq!(said["keys"].as_object().unwrap().len(), 1_001);
    assert!(said["keys"]["(others)"]["reason"].as_str().unwrap().contains("200"), "{said}");
    let text = tune(&["--column", "2", "--key", "1", "--unit", "ms"], many).out;
    assert_eq!(text.matches("more than 1,000 keys").count(), 1);
    assert_eq!(text.matches("single latencies").count(), 1);
}

#[test]
fn pr_88_below_one_millisecond() {
    for scale in [1.0, 300.0] {
        let uniform = (0..10_000).fold(String::new(), |all, call| {
            all + &format!("{:.6}\n", (0.2 + f64::from(call) * 2e-5) * scale)
        });
        let said = advice(&["--unit", "ms"], uniform);
        for (name, wanted) in [("p50_ms", 0.30), ("p95_ms", 0.39)] {
            let value = said["without"][name].as_f64().unwrap();
            assert!((value / scale / wanted - 1.0).abs() < 0.005, "{said}");
        }
    }
}

/// A server that freezes from second 2 to 8 and then answers everything at once; the client waits
/// for each answer before it sends the next request.
#[test]
fn pr_89_counted_from_when_the_call_was_due() {
    let mut rows = "due,start,took\n".to_owned();
    for call in 0..5_000 {
        let due = f64::from(call) / 500.0;
        let stuck = (2.0..8.0).contains(&due);
        let (start, took) = match call {
            1_000 => (due, 6.0),
            _ if stuck => (8.0, 0.001),
            _ => (due, 0.001),
        };
        writeln!(rows, "{due:.3},{start:.3},{took}").unwrap();
    }
    let args = ["--column", "took", "--unit", "s"];
    let without = advice(&args, &rows);
    assert!(without["without"]["p90_ms"].as_f64().unwrap() < 2.0, "{without}");
    assert!(without["warnings"].to_string().contains("without due times"), "{without}");
    let due = advice(&[&args[..], &["--due", "due", "--start", "start"]].concat(), &rows);
    for (name, wanted) in [("p50_ms", 1_000.0), ("p90_ms", 5_000.0), ("p99_ms", 5_900.0)] {
        let value = due["without"][name].as_f64().unwrap();
        assert!((value / wanted - 1.0).abs() < 0.02, "{name}: {value}");
    }
    assert!(!due["warnings"].to_string().contains("without due times"), "{due}");
}

#[test]
fn do_not_hedge_is_an_answer() {
    let reason = |args: &[&str], input: &str| {
        let said = advice(args, input);
        assert_eq!(said["recommendation"]["hedge"], false);
        assert_eq!(said["predicted"], said["without"]);
        said["reason"].as_str().unwrap().to_owned()
    };
    assert!(reason(&["--unit", "ms"], &plain(500)).contains("too few samples: 500"));
    assert!(reason(&["--unit", "ms"], "5\n").contains("at least 1000"));
    assert!(reason(&["--unit", "ms"], &"5\n".repeat(2_000)).contains("no tail"));
    let alike = lines(8_000, |ms| format!("{ms},{ms}"));
    let pairs = ["--column", "1", "--pair", "2", "--unit", "ms"];
    assert!(reason(&pairs, &alike).contains("a second copy is slow as well: it would win 0 of"));
    let independent = lines(10_000, |ms| format!("{ms},5"));
    let said = advice(&[&pairs[..], &["--pair-delay", "1ms"]].concat(), independent);
    assert_eq!(said["recommendation"]["hedge"], true, "{said}");
    let text = tune(&["--unit", "ms"], plain(500)).out;
    assert!(text.starts_with("Do not hedge, because too few samples"), "{text}");
}

/// The latencies of [`plain`] are half work and half stalls: at 50 % busy there is room.
#[test]
fn the_load_is_checked_by_simulation() {
    let fixed = ["--unit", "ms", "--max-extra-load", "5%"];
    let at = |args: &[&str]| advice(&[&fixed, args].concat(), plain(20_000));
    let free = at(&["--load", "50%"]);
    let simulated = &free["simulated"];
    assert_eq!(
        (&simulated["verdict"], &free["recommendation"]["hedge"]),
        (&"hedge".into(), &true.into())
    );
    assert_eq!((&simulated["servers"], &simulated["workers"]), (&1.into(), &16.into()));
    let figure = |policy: &str, key: &str| simulated[policy][key].as_f64().unwrap();
    for policy in ["with", "adaptive"] {
        assert!(figure(policy, "p99_ms") < 0.5 * figure("without", "p99_ms"), "{simulated}");
        let extra = figure(policy, "extra_load");
        assert!(extra > 0.01 && extra <= 0.0502, "{simulated}");
        assert!((figure(policy, "utilisation") / (0.5 * (1.0 + extra)) - 1.0).abs() < 1e-3);
    }
    assert!((figure("without", "p50_ms") / free["without"]["p50_ms"].as_f64().unwrap()) < 1.1);
    let full = at(&["--load", "98%"]);
    assert_eq!(
        (&full["simulated"]["verdict"], &full["recommendation"]["hedge"]),
        (&"do not hedge".into(), &false.into())
    );
    assert!(full["reason"].as_str().unwrap().contains("the load is too high: simulated at 98.0 %"));
    assert_eq!(full["predicted"], full["without"]);
    let other = at(&["--load", "50%", "--servers", "4", "--workers", "2", "--seed", "2"]);
    assert_eq!(other["simulated"]["servers"], 4);
    assert_ne!(other["simulated"]["without"], simulated["without"]);
}

#[test]
fn the_load_is_checked_for_each_key_and_shown_as_text() {
    let rows = lines(4_000, |ms| format!("a,{ms}")) + &"b,5\n".repeat(2_000);
    let args = ["--column", "2", "--key", "1", "--unit", "ms", "--load", "60%"];
    let said = advice(&args, &rows);
    assert_eq!(said["keys"]["a"]["simulated"]["adaptive"], Value::Null);
    assert_eq!(said["keys"]["b"].get("simulated"), None, "there is nothing to try");
    let text = tune(&args, rows).out;
    assert!(text.contains("Simulated: 1 server with 16 workers, 60.0 % busy"), "{text}");
    for (args, hint) in [
        (&["--workers", "4"][..], "--load"),
        (&["--load", "50%", "--workers", "0"], "--workers = 0: use 1 to 1000"),
        (&["--load", "50%", "--servers", "100"], "--workers = 16: use 1 to 10 on each of 100"),
        (&["--load", "100%"], "less than 100%"),
    ] {
        refused(args, "", hint);
    }
}

#[test]
fn pr_83_latencies_above_ten_seconds() {
    let log = "1s\n".repeat(900) + &"15s\n".repeat(90) + &"2m\n".repeat(10);
    let quantiles = |log: &str| advice(&[], log)["without"].clone();
    let near = |said: &Value, name: &str, wanted: f64| {
        let value = said[name].as_f64().unwrap();
        assert!((value / wanted - 1.0).abs() < 0.005, "{name}: {value}");
    };
    for log in [log.clone(), log + "6h\n"] {
        let said = quantiles(&log);
        near(&said, "p50_ms", 1_000.0);
        near(&said, "p95_ms", 15_000.0);
        near(&said, "p999_ms", 120_000.0);
    }
}

/// Failed calls are told apart where the log says which they are; elsewhere the help says so.
#[test]
fn pr_86_quick_failures_do_not_pull_the_delay_down() {
    let line = |status: u32, ms: f64| {
        format!("::1 - - [x] \"GET / HTTP/1.1\" {status} 5 \"-\" \"UA\" {:.6}\n", ms / 1e3)
    };
    let good = latencies(10_000).map(|ms| line(200, ms + 95.0)).collect::<String>();
    let expected = advice(&["--format", "nginx"], &good);
    assert!(expected["without"]["p50_ms"].as_f64().unwrap() > 95.0, "{expected}");
    for status in [503, 429, 499] {
        let failed = line(status, 1.0).repeat(10_000);
        let said = advice(&["--format", "nginx"], failed + &good);
        for part in ["without", "recommendation", "predicted"] {
            assert_eq!(said[part], expected[part], "{status}");
        }
        assert!(said["warnings"].to_string().contains("10000 calls are not counted"), "{said}");
    }
    assert!(tune(&["--help"], "").out.contains("a quick failure would pull the delay down"));
}

#[test]
fn bad_input_is_refused_with_the_remedy() {
    let ms = &["--unit", "ms"][..];
    let csv = "id,duration\n1,5\n";
    for (args, input, hint) in [
        (ms, "", "there is nothing in it"),
        (ms, "\n\n", "there is nothing in it"),
        (&[], "5\n", "--unit"),
        (ms, "NaN\n", "stdin:1: not a finite number"),
        (ms, "inf\n5\n-1\n", "stdin:3: a negative latency"),
        (ms, "1e9\n1e9\n5\n", "longer than a day; check the unit"),
        (ms, "5 parsecs\n", "an unknown unit"),
        (ms, csv, "name the column with --column"),
        (ms, "{\"a\":1}\n", "name the field with --field"),
        (ms, "::1 - - [x] \"GET / HTTP/1.1\" 200 5 0.1\n", "--format nginx"),
        (ms, "a\0b", "binary data"),
        (ms, "\u{28}", "not a number"),
        (&["--column", "duraton"], csv, r#"no column "duraton"; did you mean "duration"?"#),
        (&["--column", "3"], csv, "no column 3; the first row has 2"),
        (&["--column", "2", "--unit", "ms"], "a,b\n", "a header and no latency"),
        (&["--column", "b", "--unit", "ms"], "a,b\n1\n2\n3,4\n", "stdin:2: too few columns"),
        (&["--field", "http.tok"], "{\"http\":{\"took\":1}}", r#"did you mean "http.took"?"#),
        (&["--field", "a", "--unit", "ms"], "{\"a\":[]}\n{", "stdin:2: not a JSON object"),
        (&["--format", "envoy"], "5\n", "not Envoy's default format"),
        (
            &["--format", "nginx"],
            "::1 - - [x] \"GET / HTTP/1.1\" 503 5 0.1\n",
            "every call in it failed",
        ),
        (&["--pattern", "took=.*"], "", "parentheses"),
        (&["--pattern", "took=(.*"], "", "unclosed group"),
        (&["--key", "route"], "", "say which log it is"),
        (&["--pair", "b"], "", "say which log it is"),
        (&["--format", "nginx", "--key", "paht"], "", r#"did you mean "path"?"#),
        (&["--target", "0.99"], "", "write p99"),
        (&["--target", "0.95"], "", "write p95"),
        (&["--max-extra-load", "5"], "", "at most 1"),
        (&["--pair-delay", "100"], "", "unit"),
        (&["--column", "a", "--field", "b"], "", "cannot be used with"),
        (&["no-such-file"], "", "check the name"),
    ] {
        refused(args, input, hint);
    }
    let whole = gzip(&plain(20_000));
    refused(ms, &whole[..whole.len() / 2], "the gzip data is cut off");
    refused(ms, b"\x28\xb5\x2f\xfd123", "unpack it first");
    refused(ms, "7".repeat(3 << 20), "a line of more than 1 MiB");
    let open = format!("a,b\n1,\"{}", "2,3\n".repeat(1 << 19));
    refused(&["--column", "a", "--unit", "ms"], open, "is a quote left open?");
}

#[test]
fn a_few_bad_lines_are_skipped_and_told() {
    let input = format!("latency\n{}oops\nNaN\n", plain(2_000));
    let ran = tune(&["--unit", "ms"], input);
    assert_eq!(ran.status, Some(0));
    let told = "stdin:1: not a number\nstdin:2002: not a number\nstdin:2003: not a finite number\n\
                stdin: 3 lines were skipped\n";
    assert_eq!(ran.err, told);
    let mixed = tune(&["--unit", "ms"], plain(2_000) + "5000us\n").out;
    assert!(mixed.contains("units are mixed: 1 values have their own, 2000 are"), "{mixed}");
}

#[test]
fn exports_can_be_pasted() {
    let export = |to: &str, input: &str| {
        let ran = tune(&["--unit", "ms", "--export", to], input);
        assert_eq!(ran.status, Some(0), "{}", ran.err);
        ran.out
    };
    // The lines of this TOML are those of a JSON object, but for the signs.
    let parse = |toml: &str| {
        let pairs = toml.lines().filter_map(|line| line.split_once(" = "));
        let pairs: Vec<_> = pairs.map(|(key, value)| format!("\"{key}\":{value}")).collect();
        serde_json::from_str::<HedgeConfig>(&format!("{{{}}}", pairs.join(","))).unwrap()
    };
    let (good, none) = (plain(20_000), plain(10));
    let hedge = parse(&export("hedgerow", &good)).hedge();
    assert!(hedge.policy().budget.is_some());
    assert_eq!(hedge.policy().max_hedges.get(), 1);
    assert_eq!(parse(&export("hedgerow", &none)).hedge().policy().max_hedges.get(), 0);
    let grpc: Value = serde_json::from_str(&export("grpc", &good)).unwrap();
    let policy = &grpc["methodConfig"][0]["hedgingPolicy"];
    let delay = policy["hedgingDelay"].as_str().unwrap();
    let seconds: f64 = delay.strip_suffix('s').unwrap().parse().unwrap();
    assert!((0.001..0.1).contains(&seconds), "{delay}");
    assert_eq!(
        serde_json::from_str::<Value>(&export("grpc", &none)).unwrap(),
        serde_json::json!({})
    );
    for (to, word) in [
        ("envoy", "hedge_on_per_try_timeout: true"),
        ("finagle", ".idempotent(maxExtraLoad = 0.05)"),
        ("cassandra", "WITH speculative_retry = '"),
    ] {
        let text = export(to, &good);
        assert!(text.contains(word), "{text}");
        assert!(export(to, &none).contains("do not hedge: too few samples"));
    }
}

#[test]
fn a_reader_who_leaves_is_no_failure() {
    let path = file("tune-closed.txt", plain(2_000));
    let mut command = program(&["tune", "--unit", "ms", path.to_str().unwrap()]);
    let pipe = std::process::Stdio::piped;
    let mut child = command.stdout(pipe()).stderr(pipe()).spawn().unwrap();
    drop(child.stdout.take());
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
}
