//! `hedgerow tune`: from latencies that people have to what they should set, or why they should
//! not.
//!
//! Logs are read line by line into counts, so that one of any length takes little memory; what to
//! do with the counts is decided in `hedgerow_sim::tune`.

mod args;
mod bad;
mod error;
mod export;
mod format;
mod gather;
mod input;
mod json;
mod progress;
mod report;
mod tables;
mod text;
mod value;

use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::thread;

use hedgerow::ExtraLoad;
use hedgerow_sim::tune::{Advice, Backend, Question, curves, tune_watched};

pub(crate) use args::TuneArgs;
pub(crate) use error::Error;

use crate::page::Target;
use crate::{output, progress as simulation};
use bad::{BadLines, Why};
use format::{Format, Found, Lines};
use gather::{Calls, Gathered, OTHERS};
use input::Input;
use progress::Progress;

/// The extra load that is recommended where none is asked for.
const USUAL_LOAD: f64 = 0.05;

/// Reads the logs and writes the advice.
pub(crate) fn run(args: &TuneArgs) -> Result<ExitCode, crate::error::Error> {
    let (format, backend) = (Format::new(args)?, backend(args)?);
    let target = args.report.as_deref().map(|page| Target::new(page, &args.logs)).transpose()?;
    let pair_delay = args.pair.as_ref().map(|_| args.pair_delay);
    let gathered = Gathered::new(args.unit.or(format.unit()), pair_delay, args.seed);
    let mut reading = Reading { format: &format, gathered, failed: 0 };
    if args.logs.is_empty() && io::stdin().is_terminal() {
        output::complain("reading latencies from the terminal: one a line, Ctrl-D to end");
    }
    for path in input::paths(&args.logs) {
        reading.read(input::open(&path)?)?;
    }
    let (gathered, notes) = (&reading.gathered, reading.notes());
    let question = Question {
        target: args.target,
        max_extra_load: args.max_extra_load,
        backend,
        due: args.due.is_some(),
        seed: args.seed,
    };
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let ask = |calls: &Calls, progress: &hedgerow_sim::Progress| {
        tune_watched(&calls.latencies, calls.pairs.as_ref(), &question, threads, progress)
    };
    if args.key.is_some() {
        let keys = gathered.by_key();
        let mut progress = Progress::new("tuning", Some(keys.len() as u64));
        let advised = keys.into_iter().map(|(key, calls)| {
            progress.advance(1);
            (key, ask(calls, &hedgerow_sim::Progress::default()))
        });
        let keys: Vec<(String, Advice)> = advised.collect();
        drop(progress);
        output::written(write_keyed(args, &keys, &notes))?;
        return Ok(ExitCode::SUCCESS);
    }
    let advice =
        simulation::watched(question.simulated_calls(), |progress| ask(gathered.all(), progress));
    if let Some(target) = target {
        let curves = curves(&gathered.all().latencies, &question, &advice);
        target.write(&report::page(&advice, &curves, &notes))?;
    }
    output::written(write(args, &advice, &notes))?;
    Ok(ExitCode::SUCCESS)
}

/// The servers on which the advice is tried. Of many keys each gets a short trial.
fn backend(args: &TuneArgs) -> Result<Option<Backend>, Error> {
    let Some(load) = args.load else { return Ok(None) };
    let servers = args.servers.unwrap_or(Backend::SERVERS);
    let workers = args.workers.unwrap_or(Backend::WORKERS);
    let backend = Backend::new(load, servers, workers).map_err(Error::Number)?;
    Ok(Some(if args.key.is_some() { backend.brief() } else { backend }))
}

/// Writes the advice for each key.
fn write_keyed(args: &TuneArgs, keys: &[(String, Advice)], notes: &[String]) -> io::Result<()> {
    let mut out = output::stdout();
    let write = if args.json { json::write_keyed } else { text::write_keyed };
    write(&mut out, keys, notes)?;
    out.flush()
}

/// Writes the advice in the form that was asked for.
fn write(args: &TuneArgs, advice: &Advice, notes: &[String]) -> io::Result<()> {
    let mut out = output::stdout();
    match args.export {
        Some(export) => {
            let load = args.max_extra_load.map_or(USUAL_LOAD, ExtraLoad::get);
            let snippet = export::snippet(export, advice, load);
            for note in &snippet.notes {
                output::complain(&format!("note: {note}"));
            }
            out.write_all(snippet.text.as_bytes())?;
        }
        None if args.json => json::write(&mut out, advice, notes)?,
        None => text::write(&mut out, advice, notes)?,
    }
    out.flush()
}

/// All logs, one after the other.
struct Reading<'a> {
    format: &'a Format,
    gathered: Gathered,
    /// Calls that failed or were sent more than once.
    failed: u64,
}

/// What became of the lines of one log.
#[derive(Default)]
struct Tally {
    good: u64,
    failed: u64,
    bad: BadLines,
    /// The first field that was missed, and the nearest that was there.
    missing: Option<(String, Option<String>)>,
}

impl Tally {
    fn count(&mut self, line: u64, taken: Result<(), Why>) {
        match taken {
            Ok(()) => self.good += 1,
            Err(why) => self.bad.add(line, why),
        }
    }
}

impl Reading<'_> {
    /// Reads a log to its end.
    fn read(&mut self, input: Input) -> Result<(), Error> {
        let (name, head) = (input.name.clone(), input.head.clone());
        let mut tally = Tally::default();
        match self.format {
            Format::Plain => self.read_plain(input, &mut tally)?,
            Format::Lines(format) => self.read_lines(format, input, &mut tally)?,
            Format::Csv(csv) => csv.read(input, &mut |line, values| {
                let taken = values.and_then(|values| self.gathered.take(&values));
                tally.count(line, taken);
            })?,
        }
        self.failed += tally.failed;
        if tally.good + tally.failed == 0
            && let Some((field, near)) = tally.missing
        {
            return Err(Error::Missing { input: name, kind: "field", name: field, near });
        }
        tally.bad.tell(&name);
        if tally.bad.are_too_many(tally.good + tally.failed) {
            return Err(Error::TooManyBad { input: name, hint: self.hint(&head) });
        }
        match (tally.good, tally.failed) {
            (0, 0) if head.trim_ascii().is_empty() => {
                Err(Error::Empty { input: name, what: "there is nothing in it" })
            }
            (0, 0) => Err(Error::Empty { input: name, what: "there is a header and no latency" }),
            (0, _) => Err(Error::Empty { input: name, what: "every call in it failed" }),
            _ => Ok(()),
        }
    }

    fn read_plain(&mut self, mut input: Input, tally: &mut Tally) -> Result<(), Error> {
        let each = |number, line: Option<&[u8]>| match line {
            Some(line) => match self.gathered.take_plain(line) {
                Ok(()) => tally.good += 1,
                Err(_) if line.trim_ascii().is_empty() => {}
                Err(why) => tally.bad.add(number, why),
            },
            None => tally.bad.add(number, Why::TooLong),
        };
        let read = input::lines(&mut input.reader, each);
        read.map_err(|error| Error::Read { input: input.name, error })
    }

    fn read_lines(
        &mut self,
        format: &Lines,
        mut input: Input,
        tally: &mut Tally,
    ) -> Result<(), Error> {
        let each = |number, line: Option<&[u8]>| {
            let Some(line) = line else { return tally.bad.add(number, Why::TooLong) };
            if line.trim_ascii().is_empty() {
                return;
            }
            match format.find(line) {
                Ok(Found::Values(values)) => tally.count(number, self.gathered.take(&values)),
                Ok(Found::Failed) => tally.failed += 1,
                Err(why) => {
                    if why == Why::NoField && tally.missing.is_none() {
                        tally.missing = format.missing(line);
                    }
                    tally.bad.add(number, why);
                }
            }
        };
        let read = input::lines(&mut input.reader, each);
        read.map_err(|error| Error::Read { input: input.name, error })
    }

    /// What a log without latencies may be.
    fn hint(&self, head: &[u8]) -> &'static str {
        if matches!(self.format, Format::Plain) { format::hint(head) } else { "" }
    }

    /// What is to be known about the reading.
    fn notes(&self) -> Vec<String> {
        let Self { gathered, failed, .. } = self;
        let mut notes = Vec::new();
        if *failed > 0 {
            notes.push(format!(
                "{failed} calls are not counted: they failed, were given up, or were sent more \
                 than once"
            ));
        }
        if gathered.own_units > 0 && gathered.bare > 0 {
            notes.push(format!(
                "units are mixed: {} values have their own, {} are taken to be as --unit says",
                gathered.own_units, gathered.bare
            ));
        }
        if gathered.has_others() {
            notes
                .push(format!("there are more than 1,000 keys; the rest are together in {OTHERS}"));
        }
        notes
    }
}
