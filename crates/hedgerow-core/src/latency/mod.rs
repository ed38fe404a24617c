//! What is known of latencies: buckets, the survival curve of one attempt, and what follows from it.
//!
//! A hedge that wins cuts its primary short: of that primary it is only known that it would have
//! taken *at least* so long. Dropping such a call, or counting it as if it had finished, makes the
//! estimate too low, hedges too early, and cuts more calls short. So finished and cut calls are
//! counted apart, and the curve is the Kaplan-Meier estimate from both.

mod buckets;
mod curve;
mod estimate;
mod keys;
mod learner;
mod learning;
#[cfg(all(test, loom))]
mod models;
mod parent;
mod percentile;
mod plan;
mod prediction;
mod recorder;
mod rounds;
mod signs;
mod single_r;

pub use buckets::{BUCKETS, Bucket};
pub use curve::Curve;
pub use keys::{Keys, MaxKeys};
pub use learner::Learner;
pub use learning::{Explanation, Learning, Record, Rule};
pub use parent::Scope;
pub use percentile::Percentile;
pub use plan::Plan;
pub use prediction::Prediction;
pub use single_r::Reissue;
