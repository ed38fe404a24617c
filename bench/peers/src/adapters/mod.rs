//! One adapter per contender. To add one: a type that implements
//! [`Contender`](crate::contender::Contender), and its line in [`visit`].

mod baselines;
mod by_hand;
mod closures;
mod hedgerow;
mod observed;
mod our_pipeline;
mod pipelines;
mod seatbelt;
mod tower;

use crate::contender::{Visitor, Wanted};

/// Shows every wanted contender to `visitor`, in the order of the tables.
pub fn visit(visitor: &mut impl Visitor) {
    let mut wanted = Wanted::from_env(visitor);
    wanted.visit::<baselines::Bare>();
    wanted.visit::<baselines::Boxed>();
    wanted.visit::<baselines::Timeout>();
    wanted.visit::<by_hand::Select>();
    wanted.visit::<by_hand::SelectWithBudget>();
    wanted.visit::<by_hand::Spawned>();
    wanted.visit::<seatbelt::Layered>();
    wanted.visit::<seatbelt::AsTower>();
    wanted.visit::<tower::Resilience>();
    wanted.visit::<tower::FixedPercentile>();
    wanted.visit::<tower::Adaptive>();
    wanted.visit::<closures::Hedged>();
    wanted.visit::<closures::HedgedPeriod10>();
    wanted.visit::<closures::DoOver>();
    wanted.visit::<closures::Fure>();
    wanted.visit::<hedgerow::Plain>();
    wanted.visit::<hedgerow::OnRing>();
    wanted.visit::<hedgerow::Budgeted>();
    wanted.visit::<hedgerow::Adaptive>();
    wanted.visit::<observed::Measured>();
    wanted.visit::<hedgerow::EveryOption>();
    wanted.visit::<pipelines::Seatbelt>();
    wanted.visit::<pipelines::TowerResilience>();
    wanted.visit::<our_pipeline::OurPipeline>();
    wanted.visit::<our_pipeline::OnRing>();
}
