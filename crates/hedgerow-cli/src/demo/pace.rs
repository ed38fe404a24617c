//! The arrival schedule, and the thread that announces each call when it is due.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::draw::Dice;

/// A call whose moment has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Departure {
    pub(super) call: u32,
    pub(super) due: Instant,
}

/// When each call is due, counted from the start of the phase.
///
/// Sorted uniform moments are what a Poisson process looks like once its number of arrivals is
/// known. Fixing the number makes two seeds comparable and keeps a short schedule from being empty.
pub(super) fn poisson(rate: u32, length: Duration, seed: u64) -> Vec<Duration> {
    let calls = (u128::from(rate) * length.as_millis() / 1000).max(1);
    let mut dice = Dice::new(seed);
    let mut due: Vec<_> = (0..calls).map(|_| length.mul_f64(dice.unit())).collect();
    due.sort_unstable();
    due
}

/// Announces the calls of the schedule, the first offset counted from now.
///
/// A thread of its own does it, because a runtime's timer rounds up to its next millisecond, and
/// that would be added to every latency measured. The thread ends with the schedule, or at the
/// first call that nobody wants to hear of.
pub(super) fn departures(schedule: &[Duration]) -> io::Result<UnboundedReceiver<Departure>> {
    let (announce, departures) = unbounded_channel();
    let schedule = schedule.to_vec();
    thread::Builder::new().name("pace".to_owned()).spawn(move || keep(&schedule, &announce))?;
    Ok(departures)
}

fn keep(schedule: &[Duration], announce: &UnboundedSender<Departure>) {
    let start = Instant::now();
    for (call, offset) in (0..).zip(schedule) {
        let due = start + *offset;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if announce.send(Departure { call, due }).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_fixed_by_its_seed_sorted_and_full() {
        let length = Duration::from_secs(2);
        let schedule = poisson(300, length, 9);
        assert_eq!(schedule, poisson(300, length, 9));
        assert_ne!(schedule, poisson(300, length, 10));
        assert_eq!(schedule.len(), 600);
        assert!(schedule.is_sorted() && schedule.iter().all(|due| *due < length));
        assert_eq!(poisson(1, Duration::from_millis(100), 1).len(), 1);
    }

    #[test]
    fn every_call_is_announced_once_in_order_and_not_before_its_time() {
        let schedule = [0, 1, 1, 3].map(Duration::from_millis);
        let mut departures = departures(&schedule).unwrap();
        let mut calls = Vec::new();
        while let Some(Departure { call, due }) = departures.blocking_recv() {
            assert!(Instant::now() >= due);
            calls.push(call);
        }
        assert_eq!(calls, [0, 1, 2, 3]);
    }
}
