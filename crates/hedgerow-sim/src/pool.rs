//! Servers at work.

use std::collections::VecDeque;

use crate::queue::{Event, Key, Queue};
use crate::servers::{OnCancel, Servers};
use crate::slots::Slots;

/// An attempt at a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// Whose it is.
    pub(crate) flight: Key,
    pub(crate) attempt: u8,
    pub(crate) server: u32,
    /// How long it takes at the usual speed, in nanoseconds.
    pub(crate) work: f64,
    /// When it ends, once it runs.
    pub(crate) end: Option<u64>,
}

/// What one server has to do.
#[derive(Debug, Default)]
struct Desk {
    running: u32,
    /// Cancelled jobs stay in line and are passed over.
    line: VecDeque<Key>,
    load: u32,
}

/// All servers and what they have to do.
#[derive(Debug)]
pub(crate) struct Pool<'a> {
    servers: &'a Servers,
    desks: Vec<Desk>,
    jobs: Slots<Job>,
}

impl<'a> Pool<'a> {
    pub(crate) fn new(servers: &'a Servers) -> Self {
        let desks = (0..servers.count).map(|_| Desk::default()).collect();
        Self { servers, desks, jobs: Slots::default() }
    }

    /// How many jobs a server has, running or in line.
    pub(crate) fn load(&self, server: u32) -> u32 {
        self.desks[server as usize].load
    }

    pub(crate) fn job(&self, key: Key) -> Option<&Job> {
        self.jobs.get(key)
    }

    /// Takes a job in, and begins it if a worker is free.
    pub(crate) fn submit(&mut self, job: Job, now: u64, queue: &mut Queue) -> Key {
        let server = job.server;
        let key = self.jobs.add(job);
        self.desks[server as usize].load += 1;
        self.desks[server as usize].line.push_back(key);
        self.begin(server, now, queue);
        key
    }

    /// The job is done; the next one in line begins.
    pub(crate) fn done(&mut self, key: Key, now: u64, queue: &mut Queue) -> Option<Job> {
        let job = self.jobs.remove(key)?;
        self.leave(&job, now, queue);
        Some(job)
    }

    /// Nobody wants the job any more. The job if it stopped because of that.
    pub(crate) fn cancel(&mut self, key: Key, now: u64, queue: &mut Queue) -> Option<Job> {
        let runs = self.jobs.get(key)?.end.is_some();
        let stops = match self.servers.on_cancel {
            OnCancel::Ignore => false,
            OnCancel::Queued => !runs,
            OnCancel::Running => true,
        };
        if stops { self.done(key, now, queue) } else { None }
    }

    fn leave(&mut self, job: &Job, now: u64, queue: &mut Queue) {
        let desk = &mut self.desks[job.server as usize];
        desk.load -= 1;
        if job.end.is_some() {
            desk.running -= 1;
            self.begin(job.server, now, queue);
        }
    }

    /// Gives work to a free worker.
    fn begin(&mut self, server: u32, now: u64, queue: &mut Queue) {
        let desk = &mut self.desks[server as usize];
        while self.servers.workers.is_none_or(|workers| desk.running < workers) {
            let Some(key) = desk.line.pop_front() else { return };
            let Some(job) = self.jobs.get_mut(key) else { continue };
            let end = now.saturating_add(nanos(job.work * self.servers.factor(server, now)));
            job.end = Some(end);
            desk.running += 1;
            queue.add(end, Event::Done(key));
        }
    }
}

/// Whole nanoseconds; what is out of range is as long as can be.
#[inline]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub(crate) fn nanos(nanos: f64) -> u64 {
    (nanos as u64).min(1 << 62)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// What ends when, of three jobs of 10 ns at one worker, the first two of which are cancelled
    /// at 4 ns.
    fn ends(on_cancel: OnCancel) -> Vec<(u8, u64)> {
        let servers = Servers::limited(1, 1).unwrap().on_cancel(on_cancel, Duration::ZERO);
        let (mut pool, mut queue) = (Pool::new(&servers), Queue::default());
        let flight = Key { index: 0, tenant: 0 };
        let keys = [0, 1, 2].map(|attempt| {
            let job = Job { flight, attempt, server: 0, work: 10.0, end: None };
            pool.submit(job, 0, &mut queue)
        });
        assert_eq!(pool.load(0), 3);
        let mut ends = Vec::new();
        for key in &keys[..2] {
            ends.extend(pool.cancel(*key, 4, &mut queue).map(|job| (job.attempt, 4)));
        }
        while let Some((now, event)) = queue.pop() {
            if let Event::Done(key) = event {
                ends.extend(pool.done(key, now, &mut queue).map(|job| (job.attempt, now)));
            }
        }
        assert_eq!(pool.load(0), 0);
        ends
    }

    #[test]
    fn first_come_first_served() {
        assert_eq!(ends(OnCancel::Ignore), [(0, 10), (1, 20), (2, 30)]);
    }

    #[test]
    fn what_waits_can_be_dropped() {
        assert_eq!(ends(OnCancel::Queued), [(1, 4), (0, 10), (2, 20)]);
    }

    #[test]
    fn what_runs_can_be_stopped() {
        assert_eq!(ends(OnCancel::Running), [(0, 4), (1, 4), (2, 14)]);
    }
}
