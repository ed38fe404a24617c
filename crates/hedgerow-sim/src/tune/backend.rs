//! The servers on which a plan is tried.

use hedgerow_core::InvalidOption;

/// Servers with workers and a queue each, and how busy they are while nothing is hedged.
///
/// ```
/// use hedgerow_sim::tune::Backend;
///
/// let backend = Backend::new(0.6, Backend::SERVERS, Backend::WORKERS)?;
/// assert_eq!((backend.servers(), backend.workers()), (1, 16));
/// assert!(Backend::new(1.0, 1, 16).is_err());
/// # Ok::<(), hedgerow_core::InvalidOption>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Backend {
    load: f64,
    servers: u32,
    workers: u32,
    brief: bool,
}

impl Backend {
    /// How many servers are usual: one queue for all workers.
    pub const SERVERS: u32 = 1;
    /// How many workers of a server are usual.
    pub const WORKERS: u32 = 16;
    /// The most workers of all servers together. More only make the start longer.
    pub const MOST_WORKERS: u32 = 1_000;

    /// So many servers with so many workers each, busy for this share of their time.
    ///
    /// # Errors
    ///
    /// Refuses a load that is not above 0 and below 1, no servers, no workers, and more than
    /// [`MOST_WORKERS`](Self::MOST_WORKERS) in all.
    pub fn new(load: f64, servers: u32, workers: u32) -> Result<Self, InvalidOption> {
        if !(load > 0.0 && load < 1.0) {
            return Err(InvalidOption::new("load", load, "use more than 0 and less than 1"));
        }
        let most = Self::MOST_WORKERS;
        if !(1..=most).contains(&servers) {
            return Err(InvalidOption::new("servers", servers, format!("use 1 to {most}")));
        }
        if !(1..=most / servers).contains(&workers) {
            let remedy = match servers {
                1 => format!("use 1 to {most}"),
                _ => format!("use 1 to {} on each of {servers} servers", most / servers),
            };
            return Err(InvalidOption::new("workers", workers, remedy));
        }
        Ok(Self { load, servers, workers, brief: false })
    }

    /// Tries the recommended plan only, and neither the other choices nor the learned policy: for
    /// many logs in little time.
    #[must_use]
    pub fn brief(self) -> Self {
        Self { brief: true, ..self }
    }

    /// The share of their time that the servers are busy while nothing is hedged.
    pub fn load(&self) -> f64 {
        self.load
    }

    /// How many servers there are.
    pub fn servers(&self) -> u32 {
        self.servers
    }

    /// How many workers each of them has.
    pub fn workers(&self) -> u32 {
        self.workers
    }

    pub(super) fn is_brief(&self) -> bool {
        self.brief
    }

    /// How many calls a second keep the servers as busy as they are, if one takes this long.
    pub(super) fn rate(&self, mean_nanos: f64) -> f64 {
        self.load * f64::from(self.servers) * f64::from(self.workers) / (mean_nanos / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_servers_are_refused_by_name() {
        for (load, servers, workers, option) in [
            (0.0, 1, 16, "load"),
            (1.0, 1, 16, "load"),
            (f64::NAN, 1, 16, "load"),
            (0.5, 0, 16, "servers"),
            (0.5, 1_001, 1, "servers"),
            (0.5, 1, 0, "workers"),
            (0.5, 1, 1_001, "workers"),
            (0.5, 100, 16, "workers"),
        ] {
            assert_eq!(Backend::new(load, servers, workers).unwrap_err().option(), option);
        }
        assert!(Backend::new(0.5, 100, 10).is_ok());
    }

    #[test]
    fn the_rate_keeps_them_busy() {
        let backend = Backend::new(0.5, 2, 10).unwrap();
        // Twenty workers do two thousand calls of 10 ms a second, and half of it is asked for.
        assert!((backend.rate(10e6) - 1_000.0).abs() < 1e-9);
    }
}
