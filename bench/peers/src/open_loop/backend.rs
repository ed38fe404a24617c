//! The simulated backend of the open-loop runs.

use std::f64::consts::TAU;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::operations::Scripted;

/// Latency: a lognormal body around this median ...
const MEDIAN_MS: f64 = 5.0;
const SIGMA: f64 = 0.35;
/// ... and now and then a stall.
const STALL_CHANCE: f64 = 0.02;
const STALL_MS: f64 = 200.0;
/// What a slowdown multiplies each latency by.
const SLOWDOWN: f64 = 3.0;

/// Answers requests after latencies that depend on request and attempt number alone, so that
/// every contender meets the same.
#[derive(Clone)]
pub(super) struct Backend {
    /// Attempts at each request.
    attempts: Arc<[AtomicU32]>,
    slow: Arc<AtomicBool>,
    /// One permit per request in service; `None` serves any number at once.
    servers: Option<Arc<Semaphore>>,
}

impl Backend {
    /// Serves any number of the requests 0 up to `requests` at once.
    pub(super) fn unlimited(requests: usize) -> Self {
        let attempts = (0..requests).map(|_| AtomicU32::new(0)).collect();
        Self { attempts, slow: Arc::default(), servers: None }
    }

    /// Serves `servers` at once; the others wait in one queue. What was sent is served to its end,
    /// whether its client still waits or not, as most servers do.
    pub(super) fn limited(requests: usize, servers: usize) -> Self {
        Self { servers: Some(Arc::new(Semaphore::new(servers))), ..Self::unlimited(requests) }
    }

    /// Makes attempts slow that start from now on, or normal again.
    pub(super) fn set_slow(&self, slow: bool) {
        self.slow.store(slow, Relaxed);
    }

    /// Attempts so far, at all requests.
    pub(super) fn attempts(&self) -> u64 {
        self.attempts.iter().map(|attempts| u64::from(attempts.load(Relaxed))).sum()
    }

    /// The operation that sends a request to this backend.
    pub(super) fn operation(&self) -> Scripted {
        let backend = self.clone();
        Scripted::new(move |request| {
            let latency = backend.next_latency(request);
            let queued = backend.servers.clone().map(|servers| {
                tokio::spawn(async move {
                    let served = servers.acquire().await;
                    sleep(latency).await;
                    drop(served);
                })
            });
            async move {
                match queued {
                    // Ends early only when the run ends.
                    Some(queued) => drop(queued.await),
                    None => sleep(latency).await,
                }
                Ok(request)
            }
        })
    }

    fn next_latency(&self, request: u64) -> Duration {
        let index = usize::try_from(request).expect("requests are indices");
        let number = self.attempts[index].fetch_add(1, Relaxed);
        let latency = latency(request, number);
        if self.slow.load(Relaxed) { latency.mul_f64(SLOWDOWN) } else { latency }
    }
}

/// The latency of an attempt: the same in every run.
fn latency(request: u64, attempt: u32) -> Duration {
    let seed = mix(request ^ (u64::from(attempt) << 48));
    let draw = |stream: u64| unit(mix(seed.wrapping_add(stream)));
    let normal = (-2.0 * draw(1).ln()).sqrt() * (TAU * draw(2)).cos();
    let stall = if draw(3) < STALL_CHANCE { STALL_MS } else { 0.0 };
    Duration::from_secs_f64((MEDIAN_MS * (SIGMA * normal).exp() + stall) / 1e3)
}

/// `SplitMix64`: well mixed bits of any number.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Strictly between 0 and 1.
fn unit(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_have_the_stated_median_and_stalls() {
        let mut latencies: Vec<Duration> =
            (0..10_000).flat_map(|request| [latency(request, 0), latency(request, 1)]).collect();
        latencies.sort();
        let median = latencies[latencies.len() / 2].as_secs_f64() * 1e3;
        assert!((4.9..5.2).contains(&median), "{median}");
        let stalls = latencies.iter().filter(|latency| latency.as_millis() > 150).count();
        assert!((320..480).contains(&stalls), "{stalls}");
    }

    #[test]
    fn attempts_at_one_request_are_independent() {
        let both = (0..10_000)
            .filter(|request| {
                latency(*request, 0).as_millis() > 150 && latency(*request, 1).as_millis() > 150
            })
            .count();
        assert!(both < 15, "{both}");
    }
}
