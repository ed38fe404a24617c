//! Load that does not wait for answers.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use crate::contender::Call;

/// Requests at a steady rate for a while.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// Number of the first request.
    pub(super) first: u64,
    /// Requests a second.
    pub(super) rate: u32,
    /// How many.
    pub(super) requests: u64,
    /// How long to wait for answers after the last request is sent.
    pub(super) grace: Duration,
}

impl Load {
    /// Sends each request from a task of its own at its time. The latencies of those answered, in
    /// milliseconds from the time they were due, sorted.
    pub(super) async fn send<C: Call>(self, contender: &Arc<C>) -> Vec<f64> {
        let latencies: Arc<[AtomicU64]> = (0..self.requests).map(|_| AtomicU64::new(0)).collect();
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        for (index, request) in (self.first..self.first + self.requests).enumerate() {
            let due = start + Duration::from_secs_f64(index as f64 / f64::from(self.rate));
            if due > Instant::now() {
                sleep_until(due.into()).await;
            }
            let (contender, latencies) = (Arc::clone(contender), Arc::clone(&latencies));
            tasks.spawn(async move {
                if contender.call(request).await.is_ok() {
                    let nanoseconds = u64::try_from(due.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    latencies[index].store(nanoseconds, Relaxed);
                }
            });
        }
        let all_answered = async { while tasks.join_next().await.is_some() {} };
        // Who has no answer by then is counted as such.
        let _ = timeout(self.grace, all_answered).await;
        sorted_milliseconds(&latencies)
    }
}

fn sorted_milliseconds(nanoseconds: &[AtomicU64]) -> Vec<f64> {
    let answered =
        nanoseconds.iter().map(|latency| latency.load(Relaxed)).filter(|latency| *latency > 0);
    let mut milliseconds: Vec<f64> = answered.map(|latency| latency as f64 / 1e6).collect();
    milliseconds.sort_by(f64::total_cmp);
    milliseconds
}
