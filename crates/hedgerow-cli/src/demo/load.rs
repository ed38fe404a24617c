//! Open-loop load: calls leave when they are due, whether or not earlier ones have been answered.
//!
//! Latency counts from the due moment. A driver that waits for a slow server before it sends the
//! next call, or counts from the moment of sending, leaves out the time that the waiting calls
//! lost, which is most of the tail.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use tokio::{
    sync::{Semaphore, mpsc::UnboundedReceiver},
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::{
    client::{Answer, CALL_LIMIT, Failure},
    pace::Departure,
};

/// One call that has ended.
#[derive(Debug)]
pub(super) struct Record {
    /// From when it was due until its outcome was known, good or bad.
    pub(super) latency: Duration,
    /// Whether it had to wait because too many calls were in flight.
    pub(super) waited: bool,
    pub(super) answer: Answer,
}

/// All calls of one run of the schedule that have ended, in the order in which they did.
#[derive(Debug)]
pub(super) struct Phase {
    pub(super) records: Vec<Record>,
    /// Whether it was stopped; calls that had not ended by then are left out.
    pub(super) interrupted: bool,
}

impl Phase {
    /// The failure that ended last, in words.
    pub(super) fn last_failure(&self) -> Option<String> {
        self.records
            .iter()
            .rev()
            .find_map(|record| record.answer.failure.as_ref())
            .map(ToString::to_string)
    }
}

/// Makes each announced call, until the last one has ended or `stop` resolves.
///
/// `call` gets the call's number and the moment by which it must have ended of its own accord. At
/// most `in_flight` calls run at once; further ones wait, and their waiting counts.
pub(super) async fn drive<F, C>(
    mut departures: UnboundedReceiver<Departure>,
    in_flight: usize,
    call: F,
    mut ended: impl FnMut(),
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Phase
where
    F: Fn(u32, Instant) -> C,
    C: Future<Output = Answer> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(in_flight));
    let mut running = JoinSet::new();
    let mut phase = Phase { records: Vec::new(), interrupted: false };
    let mut more = true;
    while more || !running.is_empty() {
        tokio::select! {
            biased;
            () = stop.as_mut() => {
                phase.interrupted = true;
                break;
            }
            // Before the answers, so that a crowd of them never delays a departure.
            departure = departures.recv(), if more => match departure {
                Some(Departure { call: number, due }) => {
                    let due = Instant::from_std(due);
                    let call = call(number, due + CALL_LIMIT);
                    running.spawn(measured(due, Arc::clone(&slots), call));
                }
                None => more = false,
            },
            Some(record) = running.join_next() => {
                phase.records.push(record.unwrap_or_else(|_| broken()));
                ended();
            }
        }
    }
    phase
}

/// One call, its wait for a free slot included.
async fn measured(
    due: Instant,
    slots: Arc<Semaphore>,
    call: impl Future<Output = Answer>,
) -> Record {
    let limit = due + CALL_LIMIT;
    let waited = slots.available_permits() == 0;
    let answer = match timeout_at(limit, slots.acquire()).await {
        Ok(_slot) if Instant::now() < limit => call.await,
        _ => Answer { failure: Some(Failure::TimedOut), requests: 0, won_by_hedge: false },
    };
    Record { latency: due.elapsed(), waited, answer }
}

/// Stands for a call whose task has died: as bad as a call can be, rather than missing from the
/// figures.
fn broken() -> Record {
    let failure = Failure::Transport("the call's task ended early".to_owned());
    Record {
        latency: CALL_LIMIT,
        waited: false,
        answer: Answer { failure: Some(failure), requests: 1, won_by_hedge: false },
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        pin::pin,
    };

    use tokio::{
        sync::mpsc::unbounded_channel,
        time::{sleep, sleep_until},
    };

    use super::*;
    use crate::demo::stats::Summary;

    const GOOD: Answer = Answer { failure: None, requests: 1, won_by_hedge: false };

    /// Announces a schedule in the paused clock of a test.
    fn announced(schedule: Vec<Duration>) -> UnboundedReceiver<Departure> {
        let (announce, departures) = unbounded_channel();
        let start = Instant::now();
        tokio::spawn(async move {
            for (call, offset) in (0..).zip(schedule) {
                sleep_until(start + offset).await;
                let _ = announce.send(Departure { call, due: (start + offset).into_std() });
            }
        });
        departures
    }

    /// A server that freezes from second 2 to 8 of 10 and then clears its backlog at once: 3000 of
    /// 5000 calls wait, the first of them for 6 s. The known right answer is p50 1 s, p90 5 s, p99
    /// 5.9 s.
    #[tokio::test(start_paused = true)]
    async fn a_freeze_counts_for_every_call_that_was_due_in_it() {
        let schedule = (0..5000).map(|number| Duration::from_millis(2 * number)).collect();
        let start = Instant::now();
        let frozen = start + Duration::from_secs(2)..start + Duration::from_secs(8);
        let call = |_, _| {
            let frozen = frozen.clone();
            async move {
                if frozen.contains(&Instant::now()) {
                    sleep_until(frozen.end).await;
                }
                GOOD
            }
        };
        let phase = drive(announced(schedule), 256, call, || {}, pin!(pending())).await;
        let summary = Summary::of(&phase.records).unwrap();
        for (figure, expected) in
            [(summary.p50, 1.0), (summary.p90, 5.0), (summary.p99, 5.9), (summary.max, 6.0)]
        {
            assert!(
                (figure.as_secs_f64() - expected).abs() < 0.1,
                "{figure:?} should be about {expected} s"
            );
        }
        assert!(summary.waited > 2000, "{}", summary.waited);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_find_no_slot_in_time_fail_unsent() {
        let schedule = vec![Duration::ZERO; 3];
        let call = |_, deadline| async move {
            sleep_until(deadline).await;
            Answer { failure: Some(Failure::TimedOut), ..GOOD }
        };
        let phase = drive(announced(schedule), 1, call, || {}, pin!(pending())).await;
        assert_eq!(phase.records.len(), 3);
        let answers = phase.records.iter().map(|record| &record.answer);
        assert!(answers.clone().all(|answer| answer.failure == Some(Failure::TimedOut)));
        assert_eq!(answers.map(|answer| answer.requests).sum::<u32>(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn stopping_keeps_what_has_ended() {
        let schedule = [0, 1, 3].map(Duration::from_secs).to_vec();
        let stop = pin!(sleep(Duration::from_secs(2)));
        let phase = drive(announced(schedule), 8, |_, _| ready(GOOD), || {}, stop).await;
        assert!(phase.interrupted);
        assert_eq!(phase.records.len(), 2);
        assert_eq!(phase.last_failure(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_panics_is_a_failed_call() {
        let call = |number, _| async move {
            assert!(number > 0, "the first call breaks");
            GOOD
        };
        let departures = announced(vec![Duration::ZERO; 2]);
        let phase = drive(departures, 8, call, || {}, pin!(pending())).await;
        assert_eq!(phase.records.len(), 2);
        assert!(phase.last_failure().unwrap().contains("ended early"));
    }
}
