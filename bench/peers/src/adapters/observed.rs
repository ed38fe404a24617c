//! Hedgerow with its metrics on, recorded as an exporter would.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use counts::operation::Operation;
use hedgerow::Hedge;
use hedgerow::telemetry::Metrics;
use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

use super::hedgerow::HedgeCall;
use crate::contender::{Call, Contender, Kind};

/// A fixed delay, and metrics.
pub struct Measured;

impl Contender for Measured {
    const NAME: &'static str = "hedgerow, metrics";
    const KIND: Kind = Kind::Library;
    const OURS: bool = true;
    const OPEN_LOOP: bool = false;

    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call {
        let hedge = Hedge::after(delay).max_hedges(1);
        let metrics = metrics::with_local_recorder(&Exporter, || Metrics::new("bench", &hedge));
        HedgeCall { operation, hedge: hedge.observer(Arc::new(metrics)) }
    }
}

/// Keeps numbers as exporters do: a word for each counter and gauge, and a histogram of powers of
/// two.
struct Exporter;

impl Recorder for Exporter {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(AtomicU64::new(0)))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::new(AtomicU64::new(0)))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(PowersOfTwo([const { AtomicU64::new(0) }; 64])))
    }
}

struct PowersOfTwo([AtomicU64; 64]);

impl HistogramFn for PowersOfTwo {
    fn record(&self, seconds: f64) {
        let nanos = Duration::from_secs_f64(seconds).as_nanos();
        let place = (nanos + 1).ilog2().min(63);
        self.0[place as usize].fetch_add(1, Relaxed);
    }
}
