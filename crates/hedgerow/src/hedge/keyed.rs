//! A policy for some of its calls: what is learned apart.

use hedgerow_core::latency::{Learner, Learning, MaxKeys, Scope};

use super::{Hedge, literal};

impl Hedge {
    /// The same policy, with latencies learned apart for calls that ask for this: a route, a
    /// method, a size.
    ///
    /// What is fast and what is slow by nature then have delays of their own. All that is learned
    /// of a key is learned of the whole policy too, and a key that has seen too little follows the
    /// policy: until then (1,000 calls for the 99th percentile) its calls are hedged as all calls
    /// are. The budget, the options and the clock are shared: keys change when a hedge is sent,
    /// never how many.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), String> {
    /// use hedgerow::Hedge;
    ///
    /// # async fn get(_url: &str) -> Result<&'static str, String> { Ok("page") }
    /// let hedge = Hedge::adaptive();
    /// let page = hedge.key("GET /search").call(|_| get("/search?q=ada")).await?;
    ///
    /// let why = hedge.key("GET /search").explain().expect("it learns");
    /// assert!(why.young, "one call says little of a route");
    /// # assert_eq!(page, "page"); Ok(()) }
    /// ```
    ///
    /// # Bounds and costs
    ///
    /// At most [`max_keys`](Hedge::max_keys) keys are known, whatever names come: the one that was
    /// asked for least recently gives way. Calls of a forgotten key go on, and so does a policy
    /// that somebody kept; who asks for it by name begins anew, as the whole policy's follower.
    /// A name of more than 1,024 bytes is not told apart: its calls are the policy's. Nor is a key
    /// of a key of a key, more than eight levels below the policy.
    ///
    /// A key takes some 24 kB, and 8 kB more for each thread that makes calls of it. Asking for a
    /// known one costs a hash of its name and a clone of the policy, without allocating; where the
    /// key is known beforehand, ask once and keep the result.
    ///
    /// A policy that does not learn is the same for every key. A key of a key is learned below it:
    /// see [`server`](Hedge::server).
    pub fn key(&self, name: &str) -> Self {
        self.narrowed(Scope::Key, name)
    }

    /// The same policy, with latencies learned apart for calls whose primary goes to this server (a
    /// replica, a shard, a region) and whose hedges go to another one.
    ///
    /// A server that turns slow then does not make the others wait: their calls are hedged when
    /// they are late for *their* servers. And because a hedge goes elsewhere, calls of the slow one
    /// are hedged as the whole policy says, and not as late as it makes them; that nearly all of
    /// them are slow is no reason not to. Only what is much sooner by itself (less than half the
    /// delay) has its own way.
    ///
    /// Bounds and costs are those of [`key`](Hedge::key), and both go together:
    ///
    /// ```
    /// use hedgerow::Hedge;
    ///
    /// let hedge = Hedge::adaptive();
    /// let search = hedge.key("GET /search");
    /// let replica = search.server("10.0.0.7:80"); // follows the search, which follows the policy
    /// ```
    pub fn server(&self, name: &str) -> Self {
        self.narrowed(Scope::Server, name)
    }

    /// How many keys and servers are known at most, together: 256 unless said otherwise. Forgets
    /// what was learned so far; changes nothing for a policy that does not learn.
    ///
    /// # Panics
    ///
    /// If it is 0 or more than 10,000.
    #[track_caller]
    pub fn max_keys(self, keys: u32) -> Self {
        let max_keys = literal(MaxKeys::new(keys));
        match self.learner().map(Learner::learning) {
            Some(learning) => {
                let (budget, load) = (self.policy.budget.clone(), self.load);
                let mut hedge = self.learning(Learning { max_keys, ..learning });
                (hedge.policy.budget, hedge.load) = (budget, load);
                hedge
            }
            None => self,
        }
    }

    fn narrowed(&self, scope: Scope, name: &str) -> Self {
        let mut hedge = self.clone();
        if let (Some(learner), Some(keys)) = (&self.policy.learner, &self.keys) {
            hedge.policy.learner = Some(keys.child(learner, scope, name));
        }
        hedge
    }
}
