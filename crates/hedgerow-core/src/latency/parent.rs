//! Whom a learner follows while it has seen too little itself.

use std::sync::Arc;
use std::time::Duration;

use super::learner::Learner;
use super::plan::Plan;

/// Plans of which one hedges more than so many times later are not about the same.
const MUCH: u32 = 2;

/// What the calls of a key have in common, and with it where their hedges go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scope {
    /// What is asked for: an operation, a route, a size. A hedge asks for the same, so nothing but
    /// the latencies of this very key counts.
    Key,
    /// Whom the primary asks. A hedge asks somebody else, so that a server which is slow as a whole
    /// is a reason to hedge: its calls are hedged as its parent says unless its own plan is much
    /// sooner, and only its parent tells whether everything is slow.
    Server,
}

/// The learner of the calls among which a key's are.
pub(super) struct Parent {
    pub(super) learner: Arc<Learner>,
    pub(super) scope: Scope,
}

/// How many learners are above this one.
pub(super) fn depth(learner: &Learner) -> usize {
    std::iter::successors(learner.parent.as_ref(), |parent| parent.learner.parent.as_ref()).count()
}

impl Parent {
    /// What is in force for a child whose own plan is in this word.
    pub(super) fn plan(&self, own: u64) -> Plan {
        match self.scope {
            _ if own == Plan::FOLLOWS => self.learner.decided(),
            Scope::Key => Plan::unpack(own),
            Scope::Server => for_server(Plan::unpack(own), self.learner.decided()),
        }
    }

    /// Whether it is the parent that tells whether everything is slow.
    pub(super) fn tells_slowness(&self, young: bool) -> bool {
        young || self.scope == Scope::Server
    }
}

/// The plan of a server: its own or its parent's.
///
/// Where they are about the same, the later one: it costs less. Where they are not, the sooner one.
/// If that is the server's own, another server is slow and the parent waits for it; if it is the
/// parent's, this server is slow, and its calls need not wait as long as it makes them wait.
fn for_server(own: Plan, parents: Plan) -> Plan {
    let (first, last) = if most(own) < most(parents) { (own, parents) } else { (parents, own) };
    if most(last) / MUCH > most(first) { first } else { last }
}

/// When a plan hedges most of the calls that are still pending.
fn most(plan: Plan) -> Duration {
    let delay = if plan.probability < 0.5 { plan.backstop } else { plan.delay };
    delay.unwrap_or(Duration::MAX)
}
