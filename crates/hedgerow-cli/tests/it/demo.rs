//! `hedgerow demo` as people run it: what it refuses, and the shape of what it prints. Nothing here asserts a latency.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn demo(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hedgerow"));
    command.arg("demo").args(args).stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    demo(args).output().expect("the program is built before its tests")
}

#[test]
fn bad_input_is_refused_with_the_option_and_status_2() {
    let table: &[&[&str]] = &[
        &["--rate", "0"],
        &["--seconds", "-1"],
        &["--seconds", "NaN"],
        &["--seconds", "1e99"],
        &["--delay", "20"],
        &["--max-hedges", "11"],
        &["--upstreams", "0"],
        &["--url", "https://127.0.0.1/"],
        &["--url", "127.0.0.1:80"],
    ];
    for args in table {
        let output = run(args);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(args[0]) && message.contains(args[1]), "{args:?}: {message}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn a_bare_delay_is_refused_with_a_hint() {
    let message = String::from_utf8(run(&["--delay", "20"]).stderr).unwrap();
    assert!(message.contains("needs a unit"), "{message}");
}

#[test]
fn a_server_that_is_not_there_is_named_with_status_1() {
    // Nobody listens on port 1, and no other test is given it by the system.
    let url = "http://127.0.0.1:1/";
    let output = run(&["--url", url]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains(url), "{message}");
}

#[test]
fn json_has_the_promised_fields_and_nothing_else() {
    let output = run(&["--seconds", "0.5", "--rate", "100", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "no progress bar without a terminal");

    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let common = ["requests", "errors", "p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms"];
    let fields = |phase: &str| json[phase].as_object().unwrap();
    assert_eq!(json.as_object().unwrap().len(), 2);
    assert_eq!((fields("direct").len(), fields("hedged").len()), (common.len(), common.len() + 2));
    for name in common {
        assert!(fields("direct")[name].is_number() && fields("hedged")[name].is_number(), "{name}");
    }
    for name in ["extra_load", "hedges_won"] {
        assert!(fields("hedged")[name].is_number(), "{name}");
    }
    assert_eq!(fields("direct")["requests"], 50);
}

#[test]
fn a_reader_who_leaves_early_is_no_failure() {
    let mut child =
        demo(&["--seconds", "0.1"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_host_without_an_address_is_named_with_status_1() {
    let output = run(&["--url", "http://no-such-host.invalid/"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.starts_with("error: no address for the host no-such-host.invalid: "),
        "{message}"
    );
}

#[test]
fn help_shows_examples() {
    let output = run(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("hedgerow demo --url http://"));
}

/// Limits and signals.
#[cfg(unix)]
mod unix {
    use std::io::{BufRead, BufReader, Write};
    use std::net::{TcpListener, TcpStream};
    use std::process::Child;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::{Sender, channel};
    use std::thread;

    use super::*;

    /// Runs a command in a shell that may have only so many files open.
    fn with_files(files: u32, args: &str) -> Output {
        let script = format!("ulimit -n {files} && exec \"$0\" demo {args}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_hedgerow")]).stdin(Stdio::null());
        shell.output().expect("there is a shell")
    }

    #[test]
    fn too_few_files_are_said_to_be_that() {
        for files in [5, 10, 25] {
            let output = with_files(files, "--seconds 0.1 --max-hedges 10");
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{message}");
            let start = format!("error: only {files} files may be open at once; allow ");
            assert!(message.starts_with(&start), "{message}");
        }
    }

    #[test]
    fn few_files_are_enough_for_fewer_calls_at_once() {
        let output = with_files(100, "--seconds 0.5 --rate 200 --max-hedges 10 --delay 0ms --json");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&json["direct"]["errors"], &json["hedged"]["errors"]), (&0.into(), &0.into()));
    }

    fn press_ctrl_c(child: &Child) {
        let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(kill.expect("there is a kill").success());
    }

    #[test]
    fn ctrl_c_ends_the_wait_for_a_server_that_does_not_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let child =
            demo(&["--url", &url]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let connection = listener.accept().unwrap();
        press_ctrl_c(&child);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        assert!(String::from_utf8_lossy(&output.stderr).contains("nothing to compare"));
        drop(connection);
    }

    /// Answers every request until the first hedge, that one too, and no other after it. Tells of each
    /// hedge.
    fn fall_silent(connection: &TcpStream, hedges: &AtomicU32, tell: &Sender<()>) {
        let mut lines = BufReader::new(connection).lines();
        let (mut answer, mut is_hedge) = (connection, false);
        while let Some(Ok(line)) = lines.next() {
            is_hedge |= line.starts_with("hedgerow-attempt:") && !line.ends_with(" 0");
            if !line.is_empty() {
                continue;
            }
            let seen = hedges.fetch_add(u32::from(is_hedge), Ordering::SeqCst);
            let answers = seen == 0;
            if is_hedge {
                let _: Result<(), _> = tell.send(());
            }
            is_hedge = false;
            if answers && answer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").is_err() {
                return;
            }
        }
    }

    #[test]
    fn what_waits_when_ctrl_c_comes_is_part_of_the_figures() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (tell, told) = channel();
        thread::spawn(move || {
            let hedges = Arc::new(AtomicU32::new(0));
            for connection in listener.incoming() {
                let (hedges, tell) = (Arc::clone(&hedges), tell.clone());
                thread::spawn(move || fall_silent(&connection.unwrap(), &hedges, &tell));
            }
        });
        let child = demo(&["--url", &url, "--seconds", "0.1", "--delay", "0ms", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        for _ in 0..10 {
            told.recv().unwrap();
        }
        press_ctrl_c(&child);
        let output = child.wait_with_output().unwrap();
        let notes = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{notes}");
        assert!(notes.contains("note: stopped early: 50 direct calls stand against "), "{notes}");
        assert!(notes.contains(" of which still waited for an answer"), "{notes}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(json["hedged"]["requests"].as_u64() >= Some(20), "{json}");
        assert_eq!(
            (&json["hedged"]["errors"], &json["hedged"]["extra_load"]),
            (&0.into(), &1.0.into())
        );
    }
}
