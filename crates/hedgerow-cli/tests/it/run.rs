//! Runs the program and keeps what it said.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;

/// The scenarios that hold every front to the same rules.
pub(crate) const TABLE: &str = include_str!("../data/scenarios.jsonl");

/// How one run of the program went.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The lines of standard output as JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).expect("--json writes JSON");
        self.out.lines().map(parse).collect()
    }
}

pub(crate) fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hedgerow"));
    command.args(args);
    command
}

/// Runs the program with this on standard input.
pub(crate) fn hedgerow(args: &[&str], input: impl AsRef<[u8]> + Send) -> Ran {
    let mut child = program(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program is built before its tests");
    let mut stdin = child.stdin.take().expect("standard input is piped");
    let output = thread::scope(|scope| {
        // A program that refuses its arguments does not read.
        scope.spawn(move || stdin.write_all(input.as_ref()).ok());
        child.wait_with_output()
    });
    ran(output.expect("the program ends"))
}

pub(crate) fn ran(output: Output) -> Ran {
    let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
    Ran { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs the program for a reader who leaves before the first line of output.
pub(crate) fn abandoned(args: &[&str]) -> Ran {
    let mut child = program(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program is built before its tests");
    drop(child.stdout.take());
    ran(child.wait_with_output().expect("the program ends by itself"))
}

/// `hedgerow replay --json` with these lines.
pub(crate) fn replay(lines: &str) -> Ran {
    hedgerow(&["replay", "--json"], lines)
}

/// A file of this test run. Each test uses a name of its own.
pub(crate) fn file(name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).expect("the target directory can be written");
    path
}
