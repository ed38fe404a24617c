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
mod files;
mod json;
mod load;
mod names;
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
    process,
    sync::Arc,
    time::Duration,
};

use hedgerow::Hedge;
use hyper::Uri;
use tokio::{runtime, signal::ctrl_c, sync::oneshot};

pub(crate) use self::{args::DemoArgs, error::Error};
use self::{
    client::Client,
    files::Need,
    load::Phase,
    names::Addresses,
    progress::Progress,
    report::{Comparison, Setting},
    server::Servers,
    stats::Summary,
};

/// Runs the demonstration and prints its result.
pub(crate) fn run(args: &DemoArgs) -> Result<(), Error> {
    let own = args.own_servers()?;
    let need = Need {
        listeners: if own.is_some() { 0 } else { args.upstreams.into() },
        requests_per_call: 1 + usize::from(args.max_hedges),
    };
    let calls_in_flight = need.calls_in_flight()?;
    // One thread is enough for what is mostly waiting, and cannot fail to start.
    let runtime =
        runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    let outcome = runtime.block_on(demonstrate(args, own, calls_in_flight));
    // Nothing that is left is worth waiting for.
    runtime.shutdown_background();
    outcome
}

async fn demonstrate(
    args: &DemoArgs,
    own: Option<Vec<Uri>>,
    calls_in_flight: usize,
) -> Result<(), Error> {
    let mut stop = pin!(interrupt());
    let schedule = pace::poisson(args.rate, args.seconds, args.seed);
    let progress = Progress::new(schedule.len() * 2, args.seconds * 2);
    progress.stage("checking");
    let stage = tokio::select! {
        stage = Stage::prepare(args, own, schedule, calls_in_flight) => stage?,
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
    let setting = Setting {
        args,
        interrupted: hedged.interrupted,
        calls_in_flight,
        last_failure: hedged.last_failure().or_else(|| direct.last_failure()),
    };
    print(&render(&setting, &comparison)?)
}

/// What both phases share: the schedule, the servers and the client that knows them.
struct Stage {
    schedule: Vec<Duration>,
    client: Arc<Client>,
    /// The same number in both phases, and small enough for every one of them to hedge to the full.
    calls_in_flight: usize,
    /// Held for its lifetime only: the embedded servers stop when this is dropped.
    _servers: Option<Servers>,
}

impl Stage {
    /// Starts the embedded servers, or makes sure that the person's own ones answer before any load
    /// is sent to them.
    async fn prepare(
        args: &DemoArgs,
        own: Option<Vec<Uri>>,
        schedule: Vec<Duration>,
        calls_in_flight: usize,
    ) -> Result<Self, Error> {
        let (targets, servers) = if let Some(urls) = own {
            (urls, None)
        } else {
            let servers = Servers::start(args.upstreams, args.seed).await?;
            (servers.urls().to_vec(), Some(servers))
        };
        let addresses = Addresses::of(&targets).await?;
        let client = Client::new(targets, addresses);
        client.check().await?;
        Ok(Self { schedule, client: Arc::new(client), calls_in_flight, _servers: servers })
    }

    /// Sends the whole schedule once, direct or hedged.
    async fn phase(
        &self,
        hedge: Option<Hedge>,
        progress: &Progress,
        stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Phase, Error> {
        progress.stage(if hedge.is_some() { "hedged" } else { "direct" });
        let call = |number, deadline, sent| {
            let (client, hedge) = (Arc::clone(&self.client), hedge.clone());
            async move {
                match hedge {
                    None => client.direct(number, deadline, &sent).await,
                    Some(hedge) => client.hedged(&hedge, number, deadline, &sent).await,
                }
            }
        };
        let departures = pace::departures(&self.schedule).map_err(Error::Pace)?;
        let ended = || progress.count_one();
        Ok(load::drive(departures, self.calls_in_flight, call, ended, stop).await)
    }
}

/// Resolves when the person presses Ctrl-C, and never where that cannot be listened for. Somebody
/// who presses it again means it.
fn interrupt() -> impl Future<Output = ()> {
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(async move {
        if ctrl_c().await.is_err() || stop.send(()).is_err() {
            return;
        }
        if ctrl_c().await.is_ok() {
            process::exit(Error::Interrupted.exit_code().into());
        }
    });
    async {
        if stopped.await.is_err() {
            pending::<()>().await;
        }
    }
}

/// Two phases as figures, unless there is nothing to compare.
fn compare(direct: &Phase, hedged: &Phase) -> Result<Comparison, Error> {
    let figures = |phase: &Phase| {
        let summary = Summary::of(&phase.records)?;
        (summary.unanswered < summary.calls).then_some(summary)
    };
    let (Some(before), Some(after)) = (figures(direct), figures(hedged)) else {
        return Err(Error::Interrupted);
    };
    if before.answered_well() + after.answered_well() == 0 {
        return Err(Error::AllFailed {
            calls: before.errors + after.errors,
            why: hedged.last_failure().unwrap_or_default(),
        });
    }
    Ok(Comparison { direct: before, hedged: after })
}

/// The text for standard output; what does not belong into the JSON is said on standard error.
fn render(setting: &Setting<'_>, comparison: &Comparison) -> Result<String, Error> {
    if setting.args.json {
        for note in report::warnings(setting, comparison) {
            // Nobody is left to tell when standard error is closed.
            let _ = writeln!(io::stderr(), "note: {note}");
        }
        return json::line(comparison);
    }
    let paint = plot::Paint::for_stdout();
    Ok(report::text(setting, comparison, paint))
}

/// Writes to standard output; a reader that has seen enough and closed the pipe is no failure.
fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}
