//! Open-loop load: calls leave when they are due, whether or not earlier ones have been answered.
//!
//! Latency counts from the due moment. A driver that waits for a slow server before it sends the
//! next call, or counts from the moment of sending, leaves out the time that the waiting calls
//! lost, which is most of the tail.

use std::{
    future::{Future, pending},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{Semaphore, mpsc::UnboundedReceiver, watch},
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::{
    client::{Answer, CALL_LIMIT, Failure, Sent},
    pace::Departure,
};

/// One call that was due.
#[derive(Debug)]
pub(super) struct Record {
    /// From when it was due until its outcome was known, good or bad, or until the phase was
    /// stopped: its latency would have been that long at least.
    pub(super) latency: Duration,
    /// Whether it had to wait because too many calls were in flight.
    pub(super) waited: bool,
    /// Requests sent for it, the primary included.
    pub(super) requests: u32,
    /// None if the phase was stopped before there was one.
    pub(super) answer: Option<Answer>,
}

/// All calls of one run of the schedule, in the order in which they ended.
#[derive(Debug)]
pub(super) struct Phase {
    pub(super) records: Vec<Record>,
    /// Whether it was stopped. Calls that had no answer by then are the last.
    pub(super) interrupted: bool,
}

impl Phase {
    /// The failure that ended last, in words.
    pub(super) fn last_failure(&self) -> Option<String> {
        self.records
            .iter()
            .rev()
            .find_map(|record| record.answer.as_ref()?.failure.as_ref())
            .map(ToString::to_string)
    }
}

/// Makes each announced call, until the last one has ended or `stop` resolves.
///
/// `call` gets the call's number, the moment by which it must have ended of its own accord, and what
/// counts its requests. At most `in_flight` calls run at once; further ones wait, and their waiting
/// counts.
pub(super) async fn drive<F, C>(
    mut departures: UnboundedReceiver<Departure>,
    in_flight: usize,
    call: F,
    mut ended: impl FnMut(),
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Phase
where
    F: Fn(u32, Instant, Sent) -> C,
    C: Future<Output = Answer> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(in_flight));
    let mut running = JoinSet::new();
    let (stopping, stopped) = watch::channel(false);
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
                    let sent = Sent::default();
                    let call = call(number, due + CALL_LIMIT, sent.clone());
                    let slots = Arc::clone(&slots);
                    running.spawn(measured(due, slots, sent, call, stopped.clone()));
                }
                None => more = false,
            },
            Some(record) = running.join_next() => {
                phase.records.push(record.unwrap_or_else(|_| broken()));
                ended();
            }
        }
    }
    // What is due and has no answer is as much of a result as what has one: left out, it would be
    // the slowest calls that are missing.
    while let Ok(Departure { due, .. }) = departures.try_recv() {
        let latency = Instant::from_std(due).elapsed();
        phase.records.push(Record { latency, waited: false, requests: 0, answer: None });
    }
    stopping.send_replace(true);
    while let Some(record) = running.join_next().await {
        phase.records.push(record.unwrap_or_else(|_| broken()));
    }
    phase
}

/// One call, from its wait for a free slot until its answer, or until everything is stopped.
async fn measured(
    due: Instant,
    slots: Arc<Semaphore>,
    sent: Sent,
    call: impl Future<Output = Answer>,
    mut stopped: watch::Receiver<bool>,
) -> Record {
    let limit = due + CALL_LIMIT;
    let waited = slots.available_permits() == 0;
    let is_stopped = stopped.clone();
    let answer = async {
        match timeout_at(limit, slots.acquire()).await {
            // The slot may come from a call that was stopped.
            Ok(_) if *is_stopped.borrow() => pending().await,
            Ok(_slot) if Instant::now() < limit => call.await,
            _ => Answer { failure: Some(Failure::TimedOut), won_by_hedge: false },
        }
    };
    let answer = tokio::select! {
        biased;
        answer = answer => Some(answer),
        _ = stopped.wait_for(|is_stopped| *is_stopped) => None,
    };
    Record { latency: due.elapsed(), waited, requests: sent.count(), answer }
}

/// Stands for a call whose task has died: as bad as a call can be, rather than missing from the
/// figures.
fn broken() -> Record {
    let failure = Failure::Transport("the call's task ended early".to_owned());
    Record {
        latency: CALL_LIMIT,
        waited: false,
        requests: 1,
        answer: Some(Answer { failure: Some(failure), won_by_hedge: false }),
    }
}

#[cfg(test)]
mod tests {
    use std::{future::ready, pin::pin};

    use tokio::{
        sync::mpsc::unbounded_channel,
        time::{sleep, sleep_until},
    };

    use super::*;
    use crate::demo::stats::Summary;

    const GOOD: Answer = Answer { failure: None, won_by_hedge: false };

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
        let call = |_, _, _| {
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
        let call = |_, deadline, sent: Sent| async move {
            sent.count_one();
            sleep_until(deadline).await;
            Answer { failure: Some(Failure::TimedOut), ..GOOD }
        };
        let phase = drive(announced(schedule), 1, call, || {}, pin!(pending())).await;
        assert_eq!(phase.records.len(), 3);
        let mut answers = phase.records.iter().map(|record| record.answer.as_ref().unwrap());
        assert!(answers.all(|answer| answer.failure == Some(Failure::TimedOut)));
        assert_eq!(phase.records.iter().map(|record| record.requests).sum::<u32>(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn stopping_keeps_what_has_ended() {
        let schedule = [0, 1, 3].map(Duration::from_secs).to_vec();
        let stop = pin!(sleep(Duration::from_secs(2)));
        let phase = drive(announced(schedule), 8, |_, _, _| ready(GOOD), || {}, stop).await;
        assert!(phase.interrupted);
        assert_eq!(phase.records.len(), 2);
        assert_eq!(phase.last_failure(), None);
    }

    /// Three calls have slots and no answer, the fourth has no slot, and the last is not due yet.
    #[tokio::test(start_paused = true)]
    async fn stopping_counts_what_waits_with_its_age_and_its_requests() {
        let schedule = [0, 100, 200, 300, 400, 9_000].map(Duration::from_millis).to_vec();
        let call = |number, _, sent: Sent| async move {
            sent.count_one();
            if number > 0 {
                sleep(Duration::from_millis(250)).await;
                sent.count_one();
                pending::<()>().await;
            }
            GOOD
        };
        let stop = pin!(sleep(Duration::from_millis(500)));
        let phase = drive(announced(schedule), 3, call, || {}, stop).await;
        let mut records = phase.records;
        assert!(records.remove(0).answer.is_some());
        assert!(records.iter().all(|record| record.answer.is_none()));
        records.sort_by_key(|record| record.latency);
        let ages = records.iter().map(|record| record.latency.as_millis()).collect::<Vec<_>>();
        assert_eq!(ages, [100, 200, 300, 400]);
        let requests = records.iter().map(|record| record.requests).collect::<Vec<_>>();
        assert_eq!(requests, [0, 1, 2, 2]);
        let waited = records.iter().map(|record| record.waited).collect::<Vec<_>>();
        assert_eq!(waited, [true, false, false, false]);
    }

    /// The driver hears of two calls only when it has been stopped already.
    #[tokio::test(start_paused = true)]
    async fn calls_that_are_due_when_all_is_stopped_count_too() {
        let (announce, departures) = unbounded_channel();
        let due = Instant::now().into_std();
        for call in 0..2 {
            announce.send(Departure { call, due }).unwrap();
        }
        let phase = drive(departures, 3, |_, _, _| ready(GOOD), || {}, pin!(ready(()))).await;
        assert_eq!(phase.records.len(), 2);
        assert!(phase.records.iter().all(|record| record.answer.is_none()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_panics_is_a_failed_call() {
        let call = |number, _, _| async move {
            assert!(number > 0, "the first call breaks");
            GOOD
        };
        let departures = announced(vec![Duration::ZERO; 2]);
        let phase = drive(departures, 8, call, || {}, pin!(pending())).await;
        assert_eq!(phase.records.len(), 2);
        assert!(phase.last_failure().unwrap().contains("ended early"));
    }
}
