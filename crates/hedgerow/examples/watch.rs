//! What the metrics of a policy look like.
//!
//! `cargo run -p hedgerow --example watch --features metrics`

use std::sync::Arc;
use std::time::Duration;

use hedgerow::Hedge;
use hedgerow::telemetry::Metrics;
use metrics_util::debugging::DebuggingRecorder;
use tokio::time::sleep;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    // Stands for the exporter of your choice; it comes before the policy.
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().expect("nobody else installs one");

    let hedge = Hedge::after(Duration::from_millis(50)).max_extra_load(0.05);
    let hedge = hedge.clone().observer(Arc::new(Metrics::new("search", &hedge)));
    for call in 0..1_000_u32 {
        let work = async |attempt: hedgerow::Attempt| {
            let stuck = call.is_multiple_of(30) && attempt.number() == 0;
            sleep(Duration::from_millis(if stuck { 500 } else { 10 })).await;
            if call.is_multiple_of(100) { Err("refused") } else { Ok(()) }
        };
        // Some calls fail with every attempt: they are counted, too.
        let _ = hedge.call(work).await;
    }
    let mut lines: Vec<_> = snapshotter.snapshot().into_vec().into_iter().collect();
    lines.sort_by_key(|(key, ..)| key.key().to_string());
    for (key, _, _, value) in lines {
        use metrics_util::debugging::DebugValue::{Counter, Gauge, Histogram};
        match value {
            Counter(0) => {}
            Counter(count) => println!("{}: {count}", key.key()),
            Gauge(value) => println!("{}: {value}", key.key()),
            Histogram(values) if values.is_empty() => {}
            Histogram(values) => println!("{}: {} values", key.key(), values.len()),
        }
    }
}
