//! What a call asks for, and what its attempts draw.

use fastrand::Rng;
use hedgerow_core::InvalidOption;

use crate::distribution::{Distribution, share};
use crate::random::stream;

/// How much work a call is.
///
/// An attempt takes *size* x *latency* milliseconds on a server that runs at its usual speed. The
/// size belongs to the call: every copy has the same one, and hedging cannot help against it. The
/// latency is drawn anew by each attempt.
#[derive(Clone, Debug)]
pub struct Work {
    latency: Distribution,
    size: Option<Distribution>,
    shared_stalls: f64,
}

impl Work {
    /// Attempts that take this many milliseconds, independently of each other.
    pub fn new(latency: Distribution) -> Self {
        Self { latency, size: None, shared_stalls: 0.0 }
    }

    /// Multiplies every attempt of a call with a number that they share.
    #[must_use]
    pub fn size(mut self, size: Distribution) -> Self {
        self.size = Some(size);
        self
    }

    /// The chance that a hedge stalls exactly if its primary does. At 1 the cause of a stall is
    /// always common to both.
    ///
    /// # Errors
    ///
    /// Refuses what is no share.
    pub fn shared_stalls(mut self, chance: f64) -> Result<Self, InvalidOption> {
        self.shared_stalls = share("shared_stalls", chance)?;
        Ok(self)
    }
}

/// What one call draws, in order: first all that its primary needs, so that primaries are alike
/// under every policy.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    pub(crate) rng: Rng,
    size: f64,
    /// Where the primary's mixture branched; negative before it did.
    branch: f64,
}

impl Draws {
    #[inline]
    pub(crate) fn new(work: &Work, seed: u64, call: u64) -> Self {
        let mut rng = stream(seed, call);
        let size = match &work.size {
            Some(size) => {
                let branch = rng.f64();
                size.sample(branch, &mut rng)
            }
            None => 1.0,
        };
        Self { rng, size, branch: -1.0 }
    }

    /// How long the next attempt takes, in nanoseconds; `other` takes the place of the work's
    /// latency.
    #[inline]
    pub(crate) fn attempt(&mut self, work: &Work, other: Option<&Distribution>) -> f64 {
        let latency = other.unwrap_or(&work.latency);
        let branch = if latency.has_branches() { self.branch(work) } else { 0.0 };
        latency.sample(branch, &mut self.rng) * self.size * 1e6
    }

    fn branch(&mut self, work: &Work) -> f64 {
        let own = self.rng.f64();
        if self.branch < 0.0 {
            self.branch = own;
            own
        } else if work.shared_stalls > 0.0 && self.rng.f64() < work.shared_stalls {
            self.branch
        } else {
            own
        }
    }
}
