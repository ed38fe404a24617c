//! A timeout, a retry, a hedge and a circuit breaker around a service that stalls, fails now and
//! then, is down for a while and recovers. In virtual time: half a minute takes a moment.
//!
//! `cargo run -p hedgerow --example pipeline --features pipeline`

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hedgerow::pipeline::{CircuitBreaker, Outcome, Pipeline, Retry};
use hedgerow::{
    Attempt, Budget, Event, EventKind, ExtraLoad, Hedge, InvalidOption, Observer, Origin,
    RatioBudget, StrategyEvent, StrategyEventKind as Kind,
};
use tokio::time::sleep;

/// 5 to 14 ms; one attempt in thirty stalls, one in forty fails, and all do while it is down.
async fn serve(attempt: Attempt, execution: u32, is_down: bool) -> Result<u32, &'static str> {
    let mixed = (execution * 7 + attempt.number() * 3 + 1).wrapping_mul(0x9E37_79B9);
    let stalls = (mixed >> 8).is_multiple_of(30);
    sleep(Duration::from_millis(if stalls { 800 } else { 5 + u64::from(mixed >> 20) % 10 })).await;
    if is_down || (mixed >> 14).is_multiple_of(40) { Err("503") } else { Ok(attempt.number()) }
}

/// How often each strategy did what.
#[derive(Default)]
struct Counts(Mutex<BTreeMap<String, u32>>);

impl Counts {
    fn add(&self, what: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += 1;
    }
}

impl Observer for Counts {
    fn event(&self, event: &Event) {
        if let EventKind::Started { origin } = event.kind
            && origin != Origin::Primary
        {
            self.add(format!("hedge: started after a {}", origin.name()));
        }
    }

    fn strategy(&self, event: &StrategyEvent<'_>) {
        let what = match event.kind {
            Kind::AttemptEnded { end, .. } => format!("attempt {}", end.name()),
            Kind::Retrying { .. } => "another try".to_owned(),
            Kind::GaveUp { reason } => format!("gave up: {reason}"),
            Kind::TimedOut { .. } => "limit passed".to_owned(),
            Kind::Rejected { reason, .. } => format!("rejected: {reason}"),
            Kind::Breaker { state, .. } => format!("now {state}"),
            _ => return,
        };
        self.add(format!("{}: {what}", event.strategy));
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let counts = Arc::new(Counts::default());
    // Retries and hedges share it: a tenth more attempts than executions, and no more.
    let budget = budget(0.1)?;
    let breaker = CircuitBreaker::default()
        .failure_ratio(0.5)
        .min_throughput(20)
        .window(Duration::from_secs(2))
        .open_for(Duration::from_secs(1));
    let pipeline = Pipeline::builder()
        .name("search")
        .observer(Arc::clone(&counts) as Arc<dyn Observer>)
        .timeout(Duration::from_secs(1))
        .named("total")
        .retry(Retry::exponential().base(Duration::from_millis(50)).budget(Arc::clone(&budget)))
        .hedge(Hedge::after(Duration::from_millis(20)).budget(budget))
        .circuit_breaker(breaker)
        .timeout(Duration::from_millis(500))
        .named("attempt")
        .build()?;
    println!("{pipeline}\n");

    println!("{:<10} {:>8} {:>8} {:>8} {:>10}", "", "answered", "failed", "rejected", "timed out");
    for (phase, name, is_down) in [(0, "usual", false), (1, "down", true), (2, "recovered", false)]
    {
        let (mut answered, mut failed, mut rejected, mut timed_out) = (0, 0, 0, 0);
        for execution in phase * 500..(phase + 1) * 500 {
            match pipeline.execute(|attempt| serve(attempt, execution, is_down)).settle().await {
                Outcome::Success(_) => answered += 1,
                Outcome::Failed(_) => failed += 1,
                Outcome::Rejected(_) => rejected += 1,
                Outcome::TimedOut(_) => timed_out += 1,
            }
            sleep(Duration::from_millis(10)).await;
        }
        println!("{name:<10} {answered:>8} {failed:>8} {rejected:>8} {timed_out:>10}");
    }

    println!();
    for (what, count) in &*counts.0.lock().unwrap_or_else(PoisonError::into_inner) {
        println!("{count:>6}  {what}");
    }
    Ok(())
}

fn budget(ratio: f64) -> Result<Arc<dyn Budget>, InvalidOption> {
    Ok(Arc::new(RatioBudget::new(ExtraLoad::new(ratio)?)))
}
