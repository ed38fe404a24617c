//! Hedged calls on threads, without a runtime:
//! `cargo run --release -p hedgerow --example threads`.
//!
//! Four threads ask a database whose answers stall now and then: first without hedges, then with a
//! policy that hedges after 10 ms and lets no more than 8 stalled attempts run on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hedgerow::{Attempt, Hedge};

const CALLERS: usize = 4;
const CALLS: usize = 250;

/// Answers in 2 ms, but one query in 50 stalls for 100 ms, or until it is told to stop.
struct Database {
    queries: AtomicUsize,
}

impl Database {
    fn query(&self, attempt: &Attempt) -> Result<usize, String> {
        let number = self.queries.fetch_add(1, Ordering::Relaxed);
        let millis = if number % 50 == 49 { 100 } else { 2 };
        for _ in 0..millis {
            if attempt.is_cancelled() {
                return Err("told to stop".to_owned());
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(number)
    }
}

/// Makes all calls, and returns how long each took, the shortest first.
fn load(hedge: &Hedge, db: &'static Database) -> Vec<Duration> {
    let caller = || {
        let call = |_| {
            let started = Instant::now();
            let row = hedge.blocking().call(|attempt| db.query(&attempt));
            row.expect("this database never fails");
            started.elapsed()
        };
        (0..CALLS).map(call).collect::<Vec<_>>()
    };
    let mut took: Vec<_> = thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(caller)).collect();
        callers.into_iter().flat_map(|caller| caller.join().expect("it does not panic")).collect()
    });
    took.sort_unstable();
    took
}

fn show(name: &str, took: &[Duration], queries: usize) {
    let at = |percent: usize| took[took.len() * percent / 100].as_secs_f64() * 1e3;
    let (p50, p95, p99) = (at(50), at(95), at(99));
    println!("{name:<10} {p50:>8.1} {p95:>8.1} {p99:>8.1} ms {queries:>8} queries");
}

fn main() {
    static DIRECT: Database = Database { queries: AtomicUsize::new(0) };
    static HEDGED: Database = Database { queries: AtomicUsize::new(0) };
    static STALLS: Database = Database { queries: AtomicUsize::new(49) };

    println!("{CALLERS} threads, {CALLS} calls each; one query in 50 stalls for 100 ms\n");
    println!("{:<10} {:>8} {:>8} {:>8}", "", "p50", "p95", "p99");
    let took = load(&Hedge::default().max_hedges(0), &DIRECT);
    show("direct", &took, DIRECT.queries.load(Ordering::Relaxed));
    let hedge = Hedge::after(Duration::from_millis(10)).max_abandoned(8);
    let took = load(&hedge, &HEDGED);
    show("hedged", &took, HEDGED.queries.load(Ordering::Relaxed));

    // One call in full: its primary is the query that stalls.
    let report = hedge.blocking().prepare(|attempt| STALLS.query(&attempt)).settle();
    println!("\none call whose primary stalls:\n{report}");
}
