//! Every kind of bad input to `hedgerow replay`: each is refused with its place and the remedy, the
//! others run all the same, and the exit status is 2.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::iter;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::run::{Ran, file, hedgerow, program, ran, replay};

/// A line that is fine, whatever stands around it.
const GOOD: &str = r#"{"id":"good","attempts":[{"after":"30ms","outcome":"ok"}]}"#;

/// Refuses the line, says this about it and nothing else, and plays the next line.
#[track_caller]
fn refused(line: &str, complaints: &[&str]) {
    let Ran { status, out, err } = replay(&format!("\n{line}\n{GOOD}\n"));
    assert_eq!(status, Some(2), "{line}: {err}");
    assert!(out.contains(r#""id":"good""#), "{line}: {out}");
    assert_eq!(err.lines().count(), complaints.len(), "{line}: {err}");
    for (said, complaint) in err.lines().zip(complaints) {
        let expected = format!("stdin:2: {complaint}");
        assert!(said.starts_with(&expected), "{line}:\n{said}\n{expected}");
    }
}

#[test]
fn a_pushback_is_a_stop_or_a_duration() {
    for (pushback, hint) in [
        (r#""soon""#, r#"write stop, or a duration such as "50ms""#),
        ("50", "needs a unit"),
        (r#""-1ms""#, "negative"),
        ("null", "such as"),
    ] {
        let line = format!(r#"{{"attempts":[{{"outcome":"never","pushback":{pushback}}}]}}"#);
        refused(&line, &[&format!("attempts[0].pushback = {pushback}: ")]);
        assert!(replay(&line).err.contains(hint), "{pushback}");
    }
}

#[test]
fn pr_91_unknown_keys_are_refused_with_the_nearest_and_the_place() {
    for (line, complaint) in [
        (r#"{"attempts":[],"expcet":{}}"#, "expcet = {}: unknown key; did you mean expect?"),
        (r#"{"attempts":[],"tokenz":1}"#, "tokenz = 1: unknown key; did you mean tokens?"),
        (
            r#"{"attempts":[],"policy":{"hedge_dealy":"1s"}}"#,
            r#"policy.hedge_dealy = "1s": unknown key; did you mean delay?"#,
        ),
        (
            r#"{"attempts":[{"outcome":"never","cleenup":"1s"}]}"#,
            r#"attempts[0].cleenup = "1s": unknown key; did you mean cleanup?"#,
        ),
        (
            r#"{"attempts":[],"expect":{"start":[]}}"#,
            "expect.start = []: unknown key; did you mean starts?",
        ),
        (
            r#"{"attempts":[],"expect":{"returned":{"who":1}}}"#,
            "expect.returned.who = 1: unknown key; use outcome, value, attempt or at",
        ),
    ] {
        refused(line, &[complaint]);
    }
    refused(
        r#"{"attempts":[],"policy":{"losers":{"jion":"1s"}}}"#,
        &[
            "policy.losers.join: missing; ",
            r#"policy.losers.jion = "1s": unknown key; did you mean join?"#,
        ],
    );
}

#[test]
fn pr_91_keys_in_the_wrong_place_are_sent_to_the_right_one() {
    refused(
        r#"{"attempts":[],"delay":"1s"}"#,
        &[r#"delay = "1s": an option of the policy; move it into policy"#],
    );
    for key in ["tokens", "idempotent", "cancel_at"] {
        let complaint = format!("policy.{key} = 1: not an option of the policy; write it beside");
        refused(&format!(r#"{{"attempts":[],"policy":{{"{key}":1}}}}"#), &[&complaint]);
    }
}

#[test]
fn pr_92_durations_carry_units() {
    for (text, hint) in [
        ("100", "a duration needs a unit; write a number with a unit, such as"),
        (r#""100""#, "a duration needs a unit"),
        (r#""0""#, "a duration needs a unit"),
        (r#""-5ms""#, "a duration cannot be negative"),
        (r#""5 parsecs""#, r#"unknown unit "parsecs"; use ns, us, ms, s, m or h"#),
        (r#""ten""#, "not a duration; write a number with a unit"),
        ("null", "not a duration"),
        ("{}", "not a duration"),
    ] {
        refused(
            &format!(r#"{{"attempts":[{{"outcome":"never"}},{{"after":{text},"outcome":"ok"}}]}}"#),
            &[&format!("attempts[1].after = {text}: {hint}")],
        );
        refused(
            &format!(r#"{{"attempts":[],"cancel_at":{text}}}"#),
            &[&format!("cancel_at = {text}: {hint}")],
        );
    }
    for text in [r#""100ms""#, r#""1.5s""#, r#""1m""#, r#""0ms""#] {
        let line = format!(
            r#"{{"policy":{{"delay":{text}}},"attempts":[{{"after":{text},"outcome":"ok"}}],"cancel_at":{text}}}"#
        );
        assert_eq!(replay(&line).status, Some(0), "{text}");
    }
}

#[test]
fn values_of_the_wrong_kind_are_refused_with_the_remedy() {
    for (line, complaint) in [
        (r#"{"attempts":[],"id":3}"#, "id = 3: write a text in quotes"),
        (r#"{"attempts":[],"tokens":-1}"#, "tokens = -1: write a whole number from 0"),
        (r#"{"attempts":[],"tokens":1.5}"#, "tokens = 1.5: write a whole number from 0"),
        (r#"{"attempts":[],"idempotent":"no"}"#, r#"idempotent = "no": write true or false"#),
        (r#"{"attempts":[],"policy":[]}"#, "policy = []: write keys and their values"),
        (r#"{"attempts":{}}"#, "attempts = {}: write a list in brackets"),
        (
            r#"{"attempts":[7]}"#,
            r#"attempts[0] = 7: write what it does, such as {"after": "50ms", "outcome": "ok"}"#,
        ),
        (
            r#"{"attempts":[{"after":"1s"}]}"#,
            "attempts[0].outcome: missing; use one of ok, error, bad",
        ),
        (
            r#"{"attempts":[{"outcome":"ok"}]}"#,
            "attempts[0].after: missing; write how long the attempt runs",
        ),
        (
            r#"{"attempts":[{"after":"1s","outcome":"okay"}]}"#,
            r#"attempts[0].outcome = "okay": did you mean ok?"#,
        ),
        (r#"{"id":"x"}"#, "attempts: missing; write a list"),
        (r#"{"attempts":[],"attempts":[]}"#, "attempts = []: given twice"),
    ] {
        refused(line, &[complaint]);
    }
}

#[test]
fn expectations_of_the_wrong_shape_are_refused_with_the_remedy() {
    for (line, complaint) in [
        (
            r#"{"attempts":[],"expect":{"starts":[[0]]}}"#,
            "expect.starts[0] = [0]: write [attempt, milliseconds]",
        ),
        (
            r#"{"attempts":[],"expect":{"starts":[[0,"0ms"]]}}"#,
            r#"expect.starts[0] = "0ms": write a number of milliseconds"#,
        ),
        (
            r#"{"attempts":[],"expect":{"events":["hedge[1]@50"]}}"#,
            r#"expect.events[0] = "hedge[1]@50": write hedge(1)@50"#,
        ),
        (
            r#"{"attempts":[],"expect":{"returned":{"at":-1}}}"#,
            "expect.returned.at = -1: write a number of milliseconds",
        ),
        (
            r#"{"attempts":[],"expect":{"suppressed":[11]}}"#,
            "expect.suppressed[0] = 11: write a whole number from 0 to 10",
        ),
    ] {
        refused(line, &[complaint]);
    }
}

#[test]
fn h46_all_mistakes_of_a_line_are_told_at_once() {
    refused(
        r#"{"policy":{"max_hedges":11,"delay":100},"attempts":[{"after":"ten","outcome":"ok"}],"tokens":-1}"#,
        &[
            "policy.delay = 100: ",
            "policy.max_hedges = 11: at most 10 hedges may start",
            "tokens = -1: ",
            r#"attempts[0].after = "ten": "#,
        ],
    );
}

#[test]
fn what_is_no_json_says_where() {
    for (line, complaint) in [
        (r#"{"attempts": [}"#, "not JSON at column 15: expected value"),
        (r#"{"attempts": "#, "not JSON at column 1"),
        ("nonsense", "not JSON at column 2: expected"),
        (r#"{"attempts":[]} x"#, "not JSON at column 17: trailing characters"),
        ("{\"id\":\"\0\"}", "not JSON at column 8: control character"),
        ("[1]", "[1]: write one object"),
        ("7", "7: write one object"),
        (r#"{"attempts":[],"tokens":1e999}"#, "not JSON at column "),
    ] {
        refused(line, &[complaint]);
    }
    let deep = "[".repeat(1_000_000);
    refused(&deep, &["not JSON at column 128: recursion limit exceeded"]);
    let line = [&b"{\"id\":\"\xff\"}\n"[..], GOOD.as_bytes()].concat();
    let ran = hedgerow(&["replay", "--json"], line);
    assert_eq!(ran.err, "stdin:1: not text at byte 8; write JSON in UTF-8\n");
    assert_eq!((ran.status, ran.json().len()), (Some(2), 1));
}

#[test]
fn complaints_stay_short_whatever_the_line() {
    let long = "x".repeat(2_000_000);
    let many = vec!["7"; 1_000_000].join(",");
    for line in [
        format!(r#"{{"{long}":"{long}","attempts":[]}}"#),
        format!(r#"{{"attempts":[{{"after":"{long}","outcome":"{long}"}}]}}"#),
        format!(r#"{{"attempts":[{many}]}}"#),
        format!(r#"{{"attempts":[],"policy":{{"delay":[{many}]}}}}"#),
        format!(r#"{{"attempts":[],"expect":{{"starts":[{many}],"suppressed":[{many}]}}}}"#),
        format!("{long}{long}{long}"),
        long,
    ] {
        let ran = replay(&line);
        assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""));
        assert!(ran.err.len() < 4_000, "{}", &ran.err[..4_000]);
    }
}

#[test]
fn a_line_of_mistakes_ends_with_their_number() {
    let ran = replay(&format!(r#"{{"attempts":[{}]}}"#, vec!["7"; 1_000_000].join(",")));
    assert_eq!(ran.err.lines().count(), 21);
    assert!(ran.err.ends_with("\nstdin:1: and 999980 more mistakes\n"), "{}", ran.err);
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_next_is_played() {
    let long = " ".repeat(4 * 1024 * 1024);
    refused(&format!("{long}[]"), &["longer than 4 MiB; write one scenario a line"]);
}

/// Refusals go on until nobody reads them.
#[test]
fn a_reader_of_complaints_who_leaves_ends_the_run() {
    let mut child = program(&["replay"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    let mut stdin = child.stdin.take().unwrap();
    let endless = iter::repeat_n("bad\n", 1_000_000).try_for_each(|line| {
        // Fails once the program has ended.
        stdin.write_all(line.as_bytes())
    });
    drop(stdin);
    assert!(endless.is_err());
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""));
}

#[test]
#[cfg(unix)]
fn a_named_pipe_without_a_writer_is_said_to_be_waited_for() {
    let path = file("waiting.fifo", "");
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let name = path.to_str().unwrap();
    let mut child = program(&["replay", "--json", name])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut hint = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut hint).unwrap();
    assert_eq!(hint, format!("{name} is a named pipe: waiting for somebody to write to it\n"));
    fs::write(&path, GOOD).unwrap();
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!((ran.status, ran.json().len()), (Some(0), 1));
    fs::remove_file(path).unwrap();
}

#[test]
fn files_that_cannot_be_read_are_named_and_the_others_played() {
    let good = file("readable.jsonl", GOOD);
    let good = good.to_str().unwrap();
    let folder = Path::new(good).parent().unwrap().to_str().unwrap();
    let missing = format!("{folder}/no-such-file.jsonl");
    for (bad, remedy) in [(folder, "name the files in it"), (&missing, "check the name")] {
        let ran = hedgerow(&["replay", "--json", bad, good], "");
        assert_eq!((ran.status, ran.json().len()), (Some(2), 1));
        let start = format!("cannot read {bad}: ");
        assert!(ran.err.starts_with(&start), "{}", ran.err);
        assert!(ran.err.trim_end().ends_with(remedy), "{}", ran.err);
    }
}

#[test]
#[cfg(unix)]
fn a_file_that_may_not_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt;

    let secret = file("secret.jsonl", GOOD);
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    // The superuser may read everything, which leaves nothing to see.
    if File::open(&secret).is_err() {
        let ran = hedgerow(&["replay", secret.to_str().unwrap()], "");
        assert_eq!(ran.status, Some(2));
        assert!(ran.err.contains("secret.jsonl: Permission denied"), "{}", ran.err);
    }
    fs::remove_file(secret).unwrap();
}

#[test]
fn bad_input_counts_for_more_than_an_expectation_that_was_not_met() {
    let unmet = r#"{"attempts":[],"cancel_at":"1ms","expect":{"suppressed":[0]}}"#;
    assert_eq!(replay(&format!("{unmet}\n")).status, Some(1));
    assert_eq!(replay(&format!("{unmet}\nnonsense\n{GOOD}")).status, Some(2));
}

#[test]
fn a_mark_of_the_byte_order_is_no_mistake() {
    let Ran { status, err, .. } = replay(&format!("\u{feff}{GOOD}\n"));
    assert_eq!((status, err.as_str()), (Some(0), ""));
}
