//! `hedgerow demo`: what hedging does to a tail, seen on real HTTP over real sockets.
//!
//! The same arrival schedule runs twice, first without hedging and then with it. The phases follow
//! each other rather than alternate in slices, because between slices the driver would have to wait
//! for stragglers, and a schedule that waits for the server hides exactly the delays it is meant to
//! show. Fairness comes from elsewhere: each call is due at the same offset in both phases, and the
//! embedded servers draw the same service time for the same call.

mod args;
mod client;
mod draw;
mod error;
mod json;
mod load;
mod pace;
mod plot;
mod progress;
mod report;
mod server;
mod stats;

use std::{
    future::{Future, pending},
    io::{self, Write},
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use hedgerow::Hedge;
use indicatif::ProgressBar;

pub(crate) use self::{args::DemoArgs, error::Error};
use self::{
    client::Client,
    load::Phase,
    report::{Comparison, Setting},
    server::Servers,
    stats::Summary,
};

/// Requests in flight at any moment, primaries and hedges together.
///
/// Well below the 1024 open files that a process usually gets, and a bound on what somebody's own
/// server has to bear.
const IN_FLIGHT: usize = 512;

/// Runs the demonstration and prints its result.
pub(crate) async fn run(args: DemoArgs) -> Result<(), Error> {
    let mut stop = pin!(interrupt());
    let schedule = pace::poisson(args.rate, args.seconds, args.seed);
    let progress = progress::bar(schedule.len() * 2, args.seconds * 2);
    progress.set_message("checking");
    let stage = tokio::select! {
        stage = Stage::prepare(&args, schedule) => stage?,
        () = stop.as_mut() => return Err(Error::Interrupted),
    };

    let direct = stage.phase(None, &progress, stop.as_mut()).await?;
    if direct.interrupted {
        return Err(Error::Interrupted);
    }
    let hedge = Hedge::after(args.delay).max_hedges(u32::from(args.max_hedges));
    let hedged = stage.phase(Some(hedge), &progress, stop.as_mut()).await?;
    // Off the screen before the report.
    drop(progress);

    let comparison = compare(&direct, &hedged)?;
    print(&render(&args, &stage, &comparison, hedged.interrupted)?)
}

/// What both phases share: the schedule, the servers and the client that knows them.
struct Stage {
    schedule: Vec<Duration>,
    client: Arc<Client>,
    calls_in_flight: usize,
    /// Held for its lifetime only: the embedded servers stop when this is dropped.
    _servers: Option<Servers>,
}

impl Stage {
    /// Starts the embedded servers, or makes sure that the person's own ones answer before any load
    /// is sent to them.
    async fn prepare(args: &DemoArgs, schedule: Vec<Duration>) -> Result<Self, Error> {
        let (targets, servers) = if let Some(urls) = args.own_servers()? {
            (urls, None)
        } else {
            let servers = Servers::start(args.upstreams, args.seed).await?;
            (servers.urls().to_vec(), Some(servers))
        };
        let client = Client::new(targets);
        client.check().await?;
        Ok(Self {
            schedule,
            client: Arc::new(client),
            // The same number of calls in both phases, and small enough for every one of them to
            // hedge to the full.
            calls_in_flight: IN_FLIGHT / (1 + usize::from(args.max_hedges)),
            _servers: servers,
        })
    }

    /// Sends the whole schedule once, direct or hedged.
    async fn phase(
        &self,
        hedge: Option<Hedge>,
        progress: &ProgressBar,
        stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Phase, Error> {
        progress.set_message(if hedge.is_some() { "hedged" } else { "direct" });
        let call = |number, deadline| {
            let (client, hedge) = (Arc::clone(&self.client), hedge.clone());
            async move {
                match hedge {
                    None => client.direct(number, deadline).await,
                    Some(hedge) => client.hedged(&hedge, number, deadline).await,
                }
            }
        };
        let departures = pace::departures(&self.schedule).map_err(Error::Pace)?;
        let ended = || progress.inc(1);
        Ok(load::drive(departures, self.calls_in_flight, call, ended, stop).await)
    }
}

/// Resolves when the person presses Ctrl-C, and never where that cannot be listened for.
async fn interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        pending::<()>().await;
    }
}

/// Two phases as figures, unless there is nothing to compare.
fn compare(direct: &Phase, hedged: &Phase) -> Result<Comparison, Error> {
    let (Some(before), Some(after)) = (Summary::of(&direct.records), Summary::of(&hedged.records))
    else {
        return Err(Error::Interrupted);
    };
    if before.errors == before.calls && after.errors == after.calls {
        return Err(Error::AllFailed {
            calls: before.calls + after.calls,
            why: hedged.last_failure().unwrap_or_default(),
        });
    }
    Ok(Comparison { direct: before, hedged: after })
}

/// The text for standard output; what does not belong into the JSON is said on standard error.
fn render(
    args: &DemoArgs,
    stage: &Stage,
    comparison: &Comparison,
    interrupted: bool,
) -> Result<String, Error> {
    if args.json {
        if interrupted {
            // Nobody is left to tell when standard error is closed.
            let _ = writeln!(io::stderr(), "note: {}", report::interruption(comparison));
        }
        return json::line(comparison);
    }
    let setting = Setting { args, interrupted, calls_in_flight: stage.calls_in_flight };
    let paint = plot::Paint::for_stdout();
    Ok(report::text(&setting, comparison, paint))
}

/// Writes to standard output; a reader that has seen enough and closed the pipe is no failure.
fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}
