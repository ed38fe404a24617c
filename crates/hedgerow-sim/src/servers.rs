//! Servers as a model describes them.

use std::time::Duration;

use fastrand::Rng;
use hedgerow_core::{InvalidOption, MOST_HEDGES};

use crate::distribution::positive;

/// How an attempt finds its server. A copy never goes to a server that its call has used, as long
/// as there is another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Balancer {
    /// Any server.
    #[default]
    Random,
    /// The servers in turn.
    RoundRobin,
    /// Of two random ones the one with less to do.
    PowerOfTwo,
}

/// What a server does when it hears that nobody waits any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnCancel {
    /// It works on.
    #[default]
    Ignore,
    /// It drops what still waits in its queue.
    Queued,
    /// It drops what waits and stops what runs.
    Running,
}

/// A time during which servers need `factor` times as long for what they begin.
#[derive(Clone, PartialEq, Debug)]
pub struct Slow {
    servers: Option<Vec<u32>>,
    from: u64,
    to: u64,
    factor: f64,
}

impl Slow {
    /// All servers, from one time to another, counted from the start of the run.
    ///
    /// # Errors
    ///
    /// Refuses a factor that is not positive, and an end that is not after the beginning.
    pub fn new(from: Duration, to: Duration, factor: f64) -> Result<Self, InvalidOption> {
        if to <= from {
            return Err(InvalidOption::new("to", format!("{to:?}"), "end after the beginning"));
        }
        let factor = positive("factor", factor)?;
        Ok(Self { servers: None, from: nanos(from), to: nanos(to), factor })
    }

    /// Only these servers, counted from 0.
    #[must_use]
    pub fn only(mut self, servers: impl Into<Vec<u32>>) -> Self {
        self.servers = Some(servers.into());
        self
    }

    fn factor(&self, server: u32, now: u64) -> f64 {
        let applies = (self.from..self.to).contains(&now)
            && self.servers.as_ref().is_none_or(|servers| servers.contains(&server));
        if applies { self.factor } else { 1.0 }
    }
}

/// The servers of a model: alike, each with its workers and one queue, first come first served.
#[derive(Clone, PartialEq, Debug)]
pub struct Servers {
    pub(crate) count: u32,
    /// `None`: as many as are wanted.
    pub(crate) workers: Option<u32>,
    pub(crate) balancer: Balancer,
    pub(crate) on_cancel: OnCancel,
    pub(crate) cancel_latency: u64,
    slow: Vec<Slow>,
    drift: Option<Drift>,
}

/// A speed that goes up and down.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Drift {
    period: f64,
    swing: f64,
}

impl Default for Servers {
    /// One server that takes whatever comes at once.
    fn default() -> Self {
        Self {
            count: 1,
            workers: None,
            balancer: Balancer::default(),
            on_cancel: OnCancel::default(),
            cancel_latency: 0,
            slow: Vec::new(),
            drift: None,
        }
    }
}

impl Servers {
    /// The most servers of a model.
    pub const MOST: u32 = 1_000_000;

    /// This many servers, each of which takes whatever comes at once.
    ///
    /// # Errors
    ///
    /// Refuses none, and more than [`MOST`](Servers::MOST).
    pub fn unlimited(count: u32) -> Result<Self, InvalidOption> {
        if (1..=Self::MOST).contains(&count) {
            return Ok(Self { count, ..Self::default() });
        }
        Err(InvalidOption::new("count", count, format!("use 1 to {} servers", Self::MOST)))
    }

    /// This many servers with `workers` workers each.
    ///
    /// # Errors
    ///
    /// Refuses none of either.
    pub fn limited(count: u32, workers: u32) -> Result<Self, InvalidOption> {
        if workers == 0 {
            let remedy = "use at least 1, or leave it out for no limit";
            return Err(InvalidOption::new("workers", workers, remedy));
        }
        Ok(Self { workers: Some(workers), ..Self::unlimited(count)? })
    }

    /// How attempts find their server.
    #[must_use]
    pub fn balancer(mut self, balancer: Balancer) -> Self {
        self.balancer = balancer;
        self
    }

    /// What a server does with a cancelled attempt, of which it hears after `latency`.
    #[must_use]
    pub fn on_cancel(mut self, on_cancel: OnCancel, latency: Duration) -> Self {
        self.on_cancel = on_cancel;
        self.cancel_latency = nanos(latency);
        self
    }

    /// Makes servers slow for a time; several times that overlap multiply.
    ///
    /// # Errors
    ///
    /// Refuses a server that is not there.
    pub fn slow(mut self, slow: Slow) -> Result<Self, InvalidOption> {
        let missing = slow.servers.iter().flatten().find(|server| **server >= self.count);
        if let Some(server) = missing {
            let remedy = format!("there are {} servers, counted from 0", self.count);
            return Err(InvalidOption::new("servers", server, remedy));
        }
        self.slow.push(slow);
        Ok(self)
    }

    /// Makes everything take up to `1 + swing` and down to `1 - swing` times as long, as a sine
    /// wave of this period.
    ///
    /// # Errors
    ///
    /// Refuses no period, and a swing that is not from 0 up to 1.
    pub fn drift(mut self, period: Duration, swing: f64) -> Result<Self, InvalidOption> {
        if period.is_zero() {
            return Err(InvalidOption::new("period", "0s", "use more than no time"));
        }
        if !(0.0..1.0).contains(&swing) {
            return Err(InvalidOption::new("swing", swing, "use a number from 0 up to 1"));
        }
        self.drift = Some(Drift { period: period.as_secs_f64() * 1e9, swing });
        Ok(self)
    }

    /// Whether it cannot matter to a call which others there are.
    pub(crate) fn are_independent(&self) -> bool {
        self.workers.is_none() && (self.balancer == Balancer::Random || self.count == 1)
    }

    /// How many times as long `server` needs for what it begins now.
    #[inline]
    pub(crate) fn factor(&self, server: u32, now: u64) -> f64 {
        let slow: f64 = self.slow.iter().map(|slow| slow.factor(server, now)).product();
        self.drift.map_or(slow, |drift| slow * drift.factor(now))
    }
}

impl Drift {
    #[expect(clippy::cast_precision_loss, reason = "a time")]
    fn factor(self, now: u64) -> f64 {
        1.0 + self.swing * (std::f64::consts::TAU * (now as f64 / self.period)).sin()
    }
}

/// The servers that a call has used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    servers: [u32; MOST_HEDGES as usize + 1],
    count: u8,
}

impl Used {
    fn as_slice(&self) -> &[u32] {
        &self.servers[..usize::from(self.count)]
    }

    /// The one that the primary went to.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        self.as_slice().first().copied()
    }

    fn add(&mut self, server: u32) {
        self.servers[usize::from(self.count)] = server;
        self.count += 1;
    }
}

/// Picks servers for attempts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picker {
    turn: u32,
}

impl Picker {
    /// The next attempt's server; `load` says how much a server has to do.
    #[inline]
    pub(crate) fn pick(
        &mut self,
        servers: &Servers,
        used: &mut Used,
        rng: &mut Rng,
        load: impl Fn(u32) -> u32,
    ) -> u32 {
        if servers.count == 1 {
            return 0;
        }
        let server = match servers.balancer {
            Balancer::Random => another(servers.count, used, || rng.u32(..servers.count)),
            Balancer::RoundRobin => another(servers.count, used, || self.next(servers.count)),
            Balancer::PowerOfTwo => {
                let mut random = || another(servers.count, used, || rng.u32(..servers.count));
                let (one, two) = (random(), random());
                if load(two) < load(one) { two } else { one }
            }
        };
        used.add(server);
        server
    }

    fn next(&mut self, count: u32) -> u32 {
        let next = self.turn;
        self.turn = (next + 1) % count;
        next
    }
}

/// A server that was not used, if there is one.
fn another(count: u32, used: &Used, mut pick: impl FnMut() -> u32) -> u32 {
    loop {
        let server = pick();
        if u32::from(used.count) >= count || !used.as_slice().contains(&server) {
            return server;
        }
    }
}

/// Nanoseconds, at most about 146 years, so that sums stay in range.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).min(1 << 62)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    const BALANCERS: [Balancer; 3] = [Balancer::Random, Balancer::RoundRobin, Balancer::PowerOfTwo];

    #[test]
    fn copies_go_to_servers_of_their_own_while_there_are_any() {
        for balancer in BALANCERS {
            let servers = Servers::unlimited(4).unwrap().balancer(balancer);
            let (mut picker, mut rng) = (Picker::default(), stream(1, 0));
            for _ in 0..100 {
                let mut used = Used::default();
                let mut pick = || picker.pick(&servers, &mut used, &mut rng, |_| 0);
                let mut servers_used = [pick(), pick(), pick(), pick()];
                servers_used.sort_unstable();
                assert_eq!(servers_used, [0, 1, 2, 3]);
                assert!(pick() < 4, "the fifth copy goes to any of them");
            }
        }
    }

    #[test]
    fn slow_times_apply_where_and_while_they_should() {
        let ms = Duration::from_millis;
        let some = Slow::new(ms(10), ms(20), 3.0).unwrap().only([1]);
        let all = Slow::new(ms(15), Duration::MAX, 2.0).unwrap();
        let servers = Servers::unlimited(2).unwrap().slow(some).unwrap().slow(all).unwrap();
        for (server, at, wanted) in
            [(0, 12, 1.0), (1, 9, 1.0), (1, 10, 3.0), (1, 15, 6.0), (0, 15, 2.0), (1, 20, 2.0)]
        {
            let factor = servers.factor(server, at * 1_000_000);
            assert!((factor - wanted).abs() < 1e-12, "{server} at {at}: {factor}");
        }
    }

    #[test]
    fn a_drift_comes_back_to_where_it_was() {
        let servers = Servers::default().drift(Duration::from_nanos(400), 0.5).unwrap();
        for (at, wanted) in [(0, 1.0), (100, 1.5), (200, 1.0), (300, 0.5), (400, 1.0)] {
            assert!((servers.factor(0, at) - wanted).abs() < 1e-9);
        }
    }

    #[test]
    fn impossible_servers_are_refused_by_name() {
        let second = Duration::from_secs(1);
        let slow = Slow::new(Duration::ZERO, second, 2.0).unwrap().only([3]);
        for (error, option) in [
            (Servers::unlimited(0).unwrap_err(), "count"),
            (Servers::limited(1, 0).unwrap_err(), "workers"),
            (Servers::unlimited(3).unwrap().slow(slow).unwrap_err(), "servers"),
            (Servers::default().drift(second, 1.0).unwrap_err(), "swing"),
            (Servers::default().drift(Duration::ZERO, 0.5).unwrap_err(), "period"),
            (Slow::new(second, second, 2.0).unwrap_err(), "to"),
            (Slow::new(Duration::ZERO, second, -1.0).unwrap_err(), "factor"),
        ] {
            assert_eq!(error.option(), option);
        }
    }
}
