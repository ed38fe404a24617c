//! `hedgerow replay`: what a policy does with scripted attempts, in virtual time.
//!
//! Lines are read, played and written one by one, so that input of any length runs in little
//! memory, and a bad line costs no more than itself.

mod args;
mod case;
mod expect;
mod facts;
mod input;
mod text;

use std::io::{self, BufWriter, StdoutLock, Write};
use std::process::ExitCode;

use hedgerow::testing::Front;
use serde::Serialize;

pub(crate) use args::ReplayArgs;

use crate::error::Error;
use crate::output;
use case::{BadLine, Case};
use facts::Facts;
use input::{Input, Line};

/// Plays every scenario of every input and writes what comes out.
pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode, Error> {
    let mut replay = Replay::new(args);
    let inputs = input::inputs(&args.files);
    let outcome = inputs.iter().try_for_each(|input| replay.play_all(input));
    output::written(outcome.and_then(|()| replay.out.flush()))?;
    Ok(replay.tally.conclude())
}

/// What is used from the first line to the last.
struct Replay {
    out: BufWriter<StdoutLock<'static>>,
    /// Somebody may be waiting: results come as they are, not when the buffer is full.
    watched: bool,
    json: bool,
    front: Front,
    tally: Tally,
}

impl Replay {
    fn new(args: &ReplayArgs) -> Self {
        Self {
            out: output::stdout(),
            watched: !output::is_file(),
            json: args.json,
            front: args.front(),
            tally: Tally::default(),
        }
    }

    /// Plays an input. Fails only if nothing can be written any more: an input that cannot be read
    /// is refused, and the others are played all the same.
    fn play_all(&mut self, input: &Input) -> io::Result<()> {
        if let Some(hint) = input.waits_for() {
            self.out.flush()?;
            output::say(&hint)?;
        }
        let mut lines = match input.lines() {
            Ok(lines) => lines,
            Err(error) => return self.refuse(&unreadable(input, &error)),
        };
        loop {
            let (number, line) = match lines.next() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(()),
                Err(error) => return self.refuse(&unreadable(input, &error)),
            };
            let case = match line {
                Line::Bytes(line) => Case::read(line),
                Line::TooLong => Err(BadLine::TooLong),
            };
            match case {
                Ok(None) => {}
                Ok(Some(case)) => self.play(&case, || format!("{input}:{number}"))?,
                Err(bad) => {
                    for complaint in bad.complaints() {
                        self.refuse(&format!("{input}:{number}: {complaint}"))?;
                    }
                }
            }
        }
    }

    /// Plays one scenario. One without an id is called by its place.
    fn play(&mut self, case: &Case, place: impl FnOnce() -> String) -> io::Result<()> {
        let name = case.id.clone().unwrap_or_else(place);
        let timeline = case.scenario.run(self.front);
        let facts = Facts::from(&timeline);
        let expect = case.expect.as_ref();
        let differences = expect.map(|expect| expect.differences(&facts));
        let met = differences.as_ref().map(Vec::is_empty);
        self.tally.count(met);
        if self.json {
            let id = &name;
            serde_json::to_writer(&mut self.out, &Played { id, facts, met })?;
            writeln!(self.out)?;
        } else {
            let differences = differences.as_deref();
            text::write(&mut self.out, &name, case, &timeline, differences)?;
        }
        if self.watched {
            self.out.flush()?;
        }
        Ok(())
    }

    /// Says what is wrong with the input, after all results so far.
    fn refuse(&mut self, complaint: &str) -> io::Result<()> {
        self.tally.refused = true;
        self.out.flush()?;
        output::say(complaint)
    }
}

/// A line of `--json`.
#[derive(Serialize)]
struct Played<'a> {
    id: &'a str,
    #[serde(flatten)]
    facts: Facts<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
}

fn unreadable(input: &Input, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::IsADirectory => "; name the files in it",
        io::ErrorKind::NotFound => "; check the name",
        _ => "",
    };
    format!("cannot read {input}: {error}{remedy}")
}

/// How it went so far.
#[derive(Default)]
struct Tally {
    expected: u64,
    unmet: u64,
    refused: bool,
}

impl Tally {
    fn count(&mut self, met: Option<bool>) {
        self.expected += u64::from(met.is_some());
        self.unmet += u64::from(met == Some(false));
    }

    /// The exit status: bad input counts for more than an expectation that was not met.
    fn conclude(&self) -> ExitCode {
        let Self { expected, unmet, .. } = self;
        if *unmet > 0 {
            output::complain(&format!("{unmet} of {expected} expectations were not met"));
        }
        match (self.refused, *unmet) {
            (true, _) => ExitCode::from(2),
            (false, 0) => ExitCode::SUCCESS,
            (false, _) => ExitCode::from(1),
        }
    }
}
