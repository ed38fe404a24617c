//! One call whose primary is slow and whose first hedge fails, and what its report says.
//!
//! `cargo run -p hedgerow --example one_call`

use std::time::Duration;

use hedgerow::hedged;
use tokio::time::sleep;

/// A service with three replicas: one slow, one broken, one well.
async fn load(replica: u32) -> Result<&'static str, &'static str> {
    let (millis, answer) = match replica {
        0 => (500, Ok("from the slow replica")),
        1 => (10, Err("connection refused")),
        _ => (20, Ok("from the healthy replica")),
    };
    sleep(Duration::from_millis(millis)).await;
    answer
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let report = hedged(|attempt| load(attempt.number()))
        .after(Duration::from_millis(50))
        .max_hedges(2)
        .settle()
        .await;
    println!("{report}");
    println!("result: {:?}", report.result());
    for failure in report.failures() {
        println!("not returned: {failure}");
    }
}
