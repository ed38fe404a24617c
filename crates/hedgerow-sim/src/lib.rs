//! Discrete-event simulation of hedged requests.
//!
//! It drives the very [`Call`](hedgerow_core::Call) that people deploy, with invented servers: what
//! a policy does here it does in production, as far as the model is true. Open loop, deterministic
//! by seed, and primaries draw the same numbers under every policy, so that policies are compared
//! pair by pair.
//!
//! ```
//! use std::time::Duration;
//! use hedgerow_core::{Delay, Policy, Schedule};
//! use hedgerow_sim::{Arrivals, Distribution, Load, Model, Servers, Step, Strategy, Work, run};
//!
//! // Lognormal latencies of 5 ms on average, ten times that for one attempt in twenty.
//! let latency = Distribution::lognormal(5.0, 2.0)?.with_stalls(0.05, 10.0, 0.0)?;
//! let load = Load::new(Arrivals::Poisson, [Step::counting(1_000.0, 100_000)?])?;
//! let model = Model::new(Work::new(latency), Servers::default(), load);
//!
//! let delay = Delay::After(Duration::from_millis(10));
//! let strategy = Strategy::new(Policy { schedule: Schedule::Every(delay), ..Policy::default() });
//! let total = run(&model, &strategy, 1).total();
//! assert!(total.latency.quantile_ms(0.99) < 18.0); // 64.2 without hedging
//! assert!(total.extra_load() < 0.08);
//! # Ok::<(), hedgerow_core::InvalidOption>(())
//! ```
//!
//! # The model
//!
//! * [`Work`]: how long attempts take. [`Distribution`] has the shapes; what copies of a call have
//!   in common (its size, the cause of a stall) is said here, because hedging cannot help there.
//! * [`Servers`]: how many, with how many workers and a queue each, how attempts find them, what
//!   they do when an attempt is cancelled, and when they are slow.
//! * [`Load`]: when requests arrive, step by step, and how many calls a request is.
//! * [`Strategy`]: the policy, and by which [`Estimator`] its delay is learned.
//!
//! # What it does not know
//!
//! Networks, errors, deadlines, clients that give up, and timers that fire late.

mod alone;
mod distribution;
mod estimator;
mod flight;
mod histogram;
mod load;
mod model;
mod pool;
mod queue;
mod random;
mod run;
mod servers;
mod slots;
mod stats;
mod strategy;
mod together;
pub mod tune;
mod work;

pub use distribution::Distribution;
pub use estimator::Estimator;
pub use histogram::Histogram;
pub use load::{Arrivals, Load, Step};
pub use model::Model;
pub use run::{Progress, run, run_all, run_each};
pub use servers::{Balancer, OnCancel, Servers, Slow};
pub use stats::{Outcome, Stats};
pub use strategy::Strategy;
pub use work::Work;
