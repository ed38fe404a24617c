//! How many files may be open at once, which bounds how many requests may be in flight.

use std::{fs, io};

use super::error::Error;

/// Requests in flight at any moment, primaries and hedges together, where files allow it: a bound
/// on what somebody's own server has to bear.
const MOST_REQUESTS: usize = 512;

/// Files that a request takes: its connection, and one more because a connection that was given up
/// is closed a little later. Embedded servers have the other ends.
const PER_REQUEST: usize = 2;
const PER_EMBEDDED_REQUEST: usize = 2 * PER_REQUEST;

/// Files beside those that are open already: the runtime's, and the resolver's for a moment.
const RESERVE: usize = 16;

/// What files are needed for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Need {
    /// Listening sockets; none for the person's own servers.
    pub(super) listeners: usize,
    /// The most requests of one call.
    pub(super) requests_per_call: usize,
}

impl Need {
    fn per_request(self) -> usize {
        if self.listeners == 0 { PER_REQUEST } else { PER_EMBEDDED_REQUEST }
    }

    /// Files that are needed whatever the number of calls.
    fn fixed(self) -> usize {
        RESERVE + self.listeners
    }

    /// How many calls may run at once, each of them with all its hedges, and as many in a phase
    /// without hedges as in one with them. The limit of open files is raised for it as far as may
    /// be.
    pub(super) fn calls_in_flight(self) -> Result<usize, Error> {
        let open = open_now();
        let wanted = open + self.fixed() + MOST_REQUESTS * self.per_request();
        self.calls_within(raise_limit(wanted), open)
    }

    fn calls_within(self, limit: usize, open: usize) -> Result<usize, Error> {
        let free = limit.saturating_sub(open + self.fixed());
        let requests = (free / self.per_request()).min(MOST_REQUESTS);
        match requests / self.requests_per_call {
            0 => {
                let one_call = self.per_request() * self.requests_per_call;
                Err(Error::TooFewFiles { limit, needed: open + self.fixed() + one_call })
            }
            calls => Ok(calls),
        }
    }
}

/// How many files are open, as far as the system says.
fn open_now() -> usize {
    // Standard input, output and error, where it does not.
    fs::read_dir("/dev/fd").map_or(3, Iterator::count)
}

/// Raises the limit of open files to this number, or as near to it as the system allows, and says
/// what it is then.
#[cfg(unix)]
fn raise_limit(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let size = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let limit = current.map_or(usize::MAX, size);
    let raised = maximum.map_or(wanted, |most| wanted.min(size(most)));
    if raised <= limit {
        return limit;
    }
    let current = u64::try_from(raised).ok();
    match setrlimit(Resource::Nofile, Rlimit { current, maximum }) {
        Ok(()) => raised,
        Err(_) => limit,
    }
}

#[cfg(not(unix))]
fn raise_limit(wanted: usize) -> usize {
    wanted
}

/// Whether no more files may be opened.
#[cfg(unix)]
pub(super) fn ran_out(error: &io::Error) -> bool {
    use rustix::io::Errno;

    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

#[cfg(not(unix))]
pub(super) fn ran_out(_error: &io::Error) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMBEDDED: Need = Need { listeners: 3, requests_per_call: 2 };
    const OWN: Need = Need { listeners: 0, requests_per_call: 11 };

    #[test]
    fn calls_are_as_many_as_files_allow() {
        for (need, limit, calls) in [
            (EMBEDDED, 1_000_000, 256),
            (EMBEDDED, 1024, 125),
            (EMBEDDED, 256, 29),
            (OWN, usize::MAX, 46),
            (OWN, 1024, 45),
            (OWN, 41, 1),
        ] {
            assert_eq!(need.calls_within(limit, 3).unwrap(), calls, "{need:?} in {limit}");
        }
    }

    #[test]
    fn too_few_files_for_one_call_are_refused_with_the_number() {
        for need in [EMBEDDED, OWN] {
            let Err(Error::TooFewFiles { limit: 20, needed }) = need.calls_within(20, 3) else {
                panic!("20 files are too few for {need:?}");
            };
            assert_eq!(need.calls_within(needed, 3).unwrap(), 1);
            assert!(need.calls_within(needed - 1, 3).is_err());
        }
    }

    #[test]
    fn a_limit_is_never_lowered() {
        let limit = raise_limit(0);
        assert_eq!(raise_limit(1), limit);
        assert!(open_now() >= 3);
    }
}
