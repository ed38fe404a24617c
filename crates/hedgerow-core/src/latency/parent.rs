//! Whom a learner follows while it has seen too little itself.

use std::sync::Arc;
use std::time::Duration;

use super::learner::Learner;
use super::plan::Plan;

/// A server that would be hedged so many times later than its parent says is slow itself: then it
/// is not the call that is late.
const MUCH: u32 = 2;

/// What the calls of a key have in common, and with it where their hedges go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scope {
    /// What is asked for: an operation, a route, a size. A hedge asks for the same, so nothing but
    /// the latencies of this very key counts.
    Key,
    /// Whom the primary asks. A hedge asks somebody else, so that a server which is slow as a whole
    /// is a reason to hedge: its calls are hedged when its parent says so, if that is much
    /// earlier, and only its parent tells whether everything is slow.
    Server,
}

/// The learner of the calls among which a key's are.
pub(super) struct Parent {
    pub(super) learner: Arc<Learner>,
    pub(super) scope: Scope,
}

impl Parent {
    /// What is in force for a child whose own plan is in this word.
    pub(super) fn plan(&self, own: u64) -> Plan {
        match self.scope {
            _ if own == Plan::FOLLOWS => self.learner.plan(),
            Scope::Key => Plan::unpack(own),
            Scope::Server => sooner(Plan::unpack(own), self.learner.plan()),
        }
    }

    /// Whether it is the parent that tells whether everything is slow.
    pub(super) fn tells_slowness(&self, young: bool) -> bool {
        young || self.scope == Scope::Server
    }
}

/// The parent's plan if it hedges much sooner than a server's own.
fn sooner(own: Plan, parents: Plan) -> Plan {
    let delay = |plan: Plan| plan.delay.unwrap_or(Duration::MAX);
    let (first, last) = if delay(own) < delay(parents) { (own, parents) } else { (parents, own) };
    if delay(last) / MUCH > delay(first) { first } else { last }
}
