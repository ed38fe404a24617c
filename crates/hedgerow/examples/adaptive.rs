//! The learned policy on a service that stalls now and then, then gets three times slower as a
//! whole, and recovers. In virtual time: a quarter of an hour of calls takes a moment.
//!
//! `cargo run -p hedgerow --example adaptive`

use std::time::Duration;

use hedgerow::{Attempt, Hedge};
use tokio::time::{Instant, sleep};

/// 5 to 10 ms, and 200 ms more for one attempt in fifty; all of it `factor` times as long.
async fn serve(attempt: Attempt, call: u32, factor: u32) -> Result<(), ()> {
    let mixed = (call * 3 + attempt.number() * 7 + 1).wrapping_mul(0x9E37_79B9);
    let stalls = (mixed >> 8).is_multiple_of(50);
    let millis = 5 + (mixed >> 20) % 6 + if stalls { 200 } else { 0 };
    sleep(Duration::from_millis(u64::from(millis * factor))).await;
    Ok(())
}

/// The 99th percentile of ten thousand calls.
async fn p99(hedge: &Hedge, from: u32, factor: u32) -> Duration {
    let mut took = Vec::new();
    for call in from..from + 10_000 {
        let start = Instant::now();
        let answer = hedge.call(|attempt| serve(attempt, call, factor)).await;
        took.push(start.elapsed());
        answer.expect("it never fails");
    }
    took.sort_unstable();
    took[took.len() * 99 / 100]
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let never = Hedge::default().max_hedges(0);
    let hedge = Hedge::adaptive();
    println!("{:<12} {:>10} {:>10}", "", "p99 alone", "p99 hedged");
    for (from, factor, name) in [(0, 1, "usual"), (10_000, 3, "3 x slower"), (20_000, 1, "usual")] {
        let (alone, hedged) = (p99(&never, from, factor).await, p99(&hedge, from, factor).await);
        println!("{name:<12} {alone:>10.1?} {hedged:>10.1?}");
        println!("    {}", hedge.explain().expect("it learns"));
    }
}
