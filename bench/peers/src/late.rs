//! How late hedges start, on a machine that has little to do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use counts::operation::HedgeWins;
use tokio::runtime::Runtime;
use tokio::time::sleep;

use crate::adapters;
use crate::contender::{Call, Contender, Visitor};
use crate::machine;
use crate::table;

/// In no order, as delays that are learned go up and down.
const DELAYS: [u64; 6] = [35, 10, 60, 23, 47, 12];
/// Calls with each delay.
const CALLS: u64 = 34;
/// Calls arrive over so many milliseconds.
const ARRIVALS: u64 = 40;

/// Prints a table.
pub fn run() {
    let heads = ["contender", "ms late ct, median", "most", "ms late mt, median", "most", "early"];
    let mut lateness = Lateness { rows: Vec::new() };
    adapters::visit(&mut lateness);
    table::print(&heads, lateness.rows);
}

struct Lateness {
    rows: Vec<Vec<String>>,
}

impl Visitor for Lateness {
    fn visit<C: Contender>(&mut self) {
        if C::KIND.hedges() && C::FIXED_DELAY {
            let [current, multi] =
                [machine::current_thread(), machine::two_workers()].map(|on| late::<C>(&on));
            let early = current.iter().chain(&multi).filter(|late| **late < 0.0).count();
            let figures = [&current, &multi]
                .into_iter()
                .flat_map(|late| [late[late.len() / 2], late[late.len() - 1]])
                .map(|late| format!("{late:.2}"));
            let row = [C::NAME.to_owned()].into_iter().chain(figures).chain([early.to_string()]);
            self.rows.push(row.collect());
        }
    }
}

/// By how many milliseconds each call was later than its delay, sorted.
fn late<C: Contender>(runtime: &Runtime) -> Vec<f64> {
    let tasks: Vec<_> = DELAYS
        .into_iter()
        .flat_map(|delay| {
            let delay = Duration::from_millis(delay);
            let operation = HedgeWins::new(usize::try_from(CALLS).expect("few"));
            let _entered = runtime.enter();
            let contender = Arc::new(C::build(operation, delay));
            (0..CALLS).map(move |request| {
                let contender = Arc::clone(&contender);
                runtime.spawn(async move {
                    // Calls do not come all at once, or what is late would be the processor.
                    sleep(Duration::from_millis(request * 7 % ARRIVALS)).await;
                    let start = Instant::now();
                    // The hedge answers as soon as it starts.
                    drop(contender.call(request).await);
                    (start.elapsed().as_secs_f64() - delay.as_secs_f64()) * 1e3
                })
            })
        })
        .collect();
    let mut late: Vec<f64> = runtime.block_on(async {
        let mut late = Vec::with_capacity(tasks.len());
        for task in tasks {
            late.push(task.await.expect("no contender panics here"));
        }
        late
    });
    late.sort_by(f64::total_cmp);
    late
}
