//! What hedging does to the tail and to the load, in real time under load that does not wait.

mod backend;
mod load;

use std::sync::Arc;
use std::time::Duration;

use backend::Backend;
use load::Load;

use crate::adapters;
use crate::contender::{Call, Contender, Visitor};
use crate::machine;
use crate::table;

/// When the hedge is due, or at first due for adaptive contenders.
const DELAY: Duration = Duration::from_millis(10);
/// Servers of the limited backend: good for about 2,150 requests a second.
const SERVERS: usize = 20;

/// A run: its phases follow one another on one backend and one contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    /// An unlimited backend at a steady rate: how much of the tail is cut?
    Tail,
    /// A limited backend and a load that rises and falls: does the contender's own load break it?
    Limited,
    /// An unlimited backend that is slow for a while: does the contender adapt?
    Shift,
}

struct Phase {
    title: &'static str,
    rate: u32,
    slow: bool,
}

const fn phase(title: &'static str, rate: u32) -> Phase {
    Phase { title, rate, slow: false }
}

impl Run {
    /// Runs every wanted contender for `seconds` a phase and prints a table as it goes.
    pub fn run(self, seconds: f64) {
        let heads = [
            "contender",
            "phase",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            "p99.9 ms",
            "extra load %",
            "answered %",
        ];
        table::print(&heads, []);
        adapters::visit(&mut Printing { run: self, seconds });
    }

    fn phases(self) -> Vec<Phase> {
        match self {
            Self::Tail => vec![phase("2000/s", 2000)],
            Self::Limited => vec![
                phase("800/s", 800),
                phase("1200/s", 1200),
                phase("1600/s", 1600),
                phase("1900/s", 1900),
                phase("1200/s again", 1200),
                phase("800/s again", 800),
            ],
            Self::Shift => vec![
                phase("normal", 1000),
                Phase { slow: true, ..phase("3x slower", 1000) },
                phase("normal again", 1000),
            ],
        }
    }

    fn backend(self, requests: usize) -> Backend {
        match self {
            Self::Limited => Backend::limited(requests, SERVERS),
            Self::Tail | Self::Shift => Backend::unlimited(requests),
        }
    }

    /// How long a phase waits for its last answers: short where the backlog is the point.
    fn grace(self) -> Duration {
        match self {
            Self::Limited => Duration::from_millis(500),
            Self::Tail | Self::Shift => Duration::from_secs(2),
        }
    }

    /// Runs `C` through all phases: one line of the table each.
    fn observe<C: Contender>(self, seconds: f64) -> Vec<Vec<String>> {
        let phases = self.phases();
        let requests: Vec<u64> = phases.iter().map(|phase| requests(phase.rate, seconds)).collect();
        let all = usize::try_from(requests.iter().sum::<u64>()).expect("memory has room for them");
        let backend = self.backend(all);
        machine::two_workers().block_on(async {
            let contender = Arc::new(C::build(backend.operation(), DELAY));
            let mut first = 0;
            let mut rows = Vec::new();
            for (phase, requests) in phases.iter().zip(requests) {
                backend.set_slow(phase.slow);
                let load = Load { first, rate: phase.rate, requests, grace: self.grace() };
                let mut row = vec![C::NAME.to_owned(), phase.title.to_owned()];
                row.extend(figures(&backend, load, &contender).await);
                rows.push(row);
                first += requests;
            }
            rows
        })
    }
}

/// Requests of a phase of `seconds` at `rate`.
fn requests(rate: u32, seconds: f64) -> u64 {
    let requests = Duration::from_secs_f64(seconds * f64::from(rate)).as_secs();
    requests.max(1)
}

/// Percentiles, extra load and share of answered requests under `load`.
async fn figures<C: Call>(backend: &Backend, load: Load, contender: &Arc<C>) -> Vec<String> {
    let before = backend.attempts();
    let latencies = load.send(contender).await;
    let requests = load.requests as f64;
    let attempts = (backend.attempts() - before) as f64;
    [500, 950, 990, 999]
        .into_iter()
        .map(|permille| {
            percentile(&latencies, permille).map_or("-".to_owned(), |ms| format!("{ms:.1}"))
        })
        .chain([
            format!("{:.1}", (attempts / requests - 1.0) * 100.0),
            format!("{:.1}", latencies.len() as f64 / requests * 100.0),
        ])
        .collect()
}

fn percentile(sorted: &[f64], permille: usize) -> Option<f64> {
    sorted.get(sorted.len() * permille / 1000).copied()
}

struct Printing {
    run: Run,
    seconds: f64,
}

impl Visitor for Printing {
    fn visit<C: Contender>(&mut self) {
        if C::OPEN_LOOP {
            for row in self.run.observe::<C>(self.seconds) {
                table::print_row(&row);
            }
        }
    }
}
