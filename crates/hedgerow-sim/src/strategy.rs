//! What the calls of a run are hedged by. The one place where the simulator asks a policy for
//! anything but its steps.

use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::latency::{Keys, Learner, Scope};
use hedgerow_core::{Call, Delay, InvalidOption, Moment, Policy, Terms};

use crate::distribution::share;
use crate::estimator::{Biased, Estimator};
use crate::random::stream;
use crate::servers::Servers;

/// A policy, and how often it is followed.
#[derive(Clone, Debug)]
pub struct Strategy {
    policy: Policy,
    probability: f64,
    /// What each server's calls follow once it is known which server's they are; empty: the policy.
    by_server: Arc<[Policy]>,
    biased: Option<Biased>,
}

impl Strategy {
    /// Follows this policy in every call.
    ///
    /// A policy's budget and what it learned are shared by its clones: give every run a policy of
    /// its own.
    pub fn new(policy: Policy) -> Self {
        Self { policy, probability: 1.0, by_server: Arc::default(), biased: None }
    }

    /// Hedges slow calls with this probability only; the others wait. With a fixed delay this is
    /// the policy that [`Reissue`](hedgerow_core::latency::Reissue) solves.
    ///
    /// # Errors
    ///
    /// Refuses what is no share.
    pub fn with_probability(mut self, probability: f64) -> Result<Self, InvalidOption> {
        self.probability = share("probability", probability)?;
        Ok(self)
    }

    /// Learns apart for each of these servers: a call follows the learner of the server that its
    /// primary goes to. Changes nothing for a policy that does not learn.
    ///
    /// # Errors
    ///
    /// Refuses more servers than the policy's `max_keys`.
    pub fn by_server(mut self, servers: &Servers) -> Result<Self, InvalidOption> {
        let Some(learner) = &self.policy.learner else { return Ok(self) };
        let most = learner.learning().max_keys;
        if servers.count > most.get() {
            let remedy = format!("there are {} servers; use at least as many", servers.count);
            return Err(InvalidOption::new("max_keys", most.get(), remedy));
        }
        let keys = Keys::new(most);
        let policy = |server: u32| {
            let learner = keys.child(learner, Scope::Server, &server.to_string());
            Policy { learner: Some(learner), ..self.policy.clone() }
        };
        self.by_server = (0..servers.count).map(policy).collect();
        Ok(self)
    }

    /// What calls follow whose primary went to this server.
    #[inline]
    pub fn policy_of(&self, server: Option<u32>) -> &Policy {
        server.and_then(|server| self.by_server.get(server as usize)).unwrap_or(&self.policy)
    }

    /// Takes the delay from this estimator instead. Everything else, gates and budget, stays the
    /// policy's.
    ///
    /// # Errors
    ///
    /// Refuses a policy whose delay is not a learned percentile.
    pub fn with_estimator(mut self, estimator: Estimator) -> Result<Self, InvalidOption> {
        self.biased = Biased::new(estimator, &self.policy)?;
        Ok(self)
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether no call can change anything for another one.
    pub(crate) fn forgets(&self) -> bool {
        self.policy.budget.is_none() && self.policy.learner.is_none()
    }

    /// The terms of call number `call`: its chances come from the seed, like everything else.
    #[inline]
    pub(crate) fn terms(&self, seed: u64, call: u64) -> Terms {
        let chances = self.probability < 1.0 || self.policy.learner.is_some();
        let draw = if chances { stream(!seed, call).u64(..) } else { 0 };
        Terms { draw, log: self.biased.is_some(), ..Terms::default() }
    }

    /// The delay before hedge number `hedge` of a call under this policy with this draw.
    #[inline]
    pub(crate) fn delay(&self, policy: &Policy, hedge: u8, draw: u64) -> Delay {
        if self.probability < 1.0 && unit(draw) >= self.probability {
            return Delay::OnFailure;
        }
        match &self.biased {
            None => policy.delay(hedge, draw),
            Some(biased) => biased.learner().delay(draw).1.map_or(Delay::OnFailure, Delay::After),
        }
    }

    /// What the delay of this server's calls is learned by.
    fn learner(&self, server: Option<u32>) -> Option<&Learner> {
        let biased = self.biased.as_ref().map(Biased::learner);
        biased.or(self.policy_of(server).learner.as_deref())
    }

    /// The delay that is learned so far for calls of this server, before any bound: `None` if
    /// nothing is.
    #[inline]
    pub(crate) fn learned(&self, server: Option<u32>) -> Option<Duration> {
        self.learner(server)?.decided().delay
    }

    /// A call of this server's is over: whatever learns may look at what came. `nanos` counts from
    /// the start of the run.
    #[inline]
    pub(crate) fn completed(&self, call: &Call, server: Option<u32>, nanos: u64) {
        if let Some(learner) = &self.policy_of(server).learner {
            learner.tick(Moment::from_nanos(nanos));
        }
        if let Some(biased) = &self.biased {
            biased.believe(call);
            biased.learner().tick(Moment::from_nanos(nanos));
        }
    }
}

/// A number from 0 up to 1 from evenly spread bits.
#[expect(clippy::cast_precision_loss, reason = "53 bits")]
fn unit(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1_u64 << 53) as f64
}
