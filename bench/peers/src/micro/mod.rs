//! What a call costs, in four cases. Contenders take turns, round by round, and each figure is the
//! median of its rounds, so that a disturbance meets everyone and nobody's result.

mod hedged;
mod in_flight;
mod steady;

use counts::operation::{PendingOnce, Ready};

use crate::adapters;
use crate::contender::{Contender, Visitor};
use crate::table::{self, Row};

pub use steady::single;

/// Hedged calls at once in case 3, and rounds of it at most: a round takes long and varies little.
const HEDGED_CALLS: usize = 4_000;
const HEDGED_ROUNDS: usize = 7;
/// Calls in flight in case 4, and rounds of it at most.
const CALLS_IN_FLIGHT: usize = 10_000;
const IN_FLIGHT_ROUNDS: usize = 3;

/// Runs all cases and prints their tables.
pub fn run(rounds: usize) {
    let ready = steady::Measurement::of(Ready);
    run_case("Case 1: ready at the first poll", rounds, ready);

    let pending = steady::Measurement::of(PendingOnce);
    run_case("Case 2: pending once, then ready", rounds, pending);

    let hedged = hedged::Measurement::of(HEDGED_CALLS);
    let title = "Case 3: one hedge starts after 20 ms and wins (task included)";
    run_case(title, rounds.min(HEDGED_ROUNDS), hedged);

    let in_flight = in_flight::Measurement::of(CALLS_IN_FLIGHT);
    let title = "Case 4: 10,000 calls in flight (task included)";
    run_case(title, rounds.min(IN_FLIGHT_ROUNDS), in_flight);
}

fn run_case<M: Measure>(title: &str, rounds: usize, measure: M) {
    let mut case = Case { measure, lanes: Vec::new() };
    adapters::visit(&mut case);
    case.run(rounds);
    let rows: Vec<Row> = case.lanes.iter().map(Lane::row).collect();
    table::print_ratios(title, M::HEADS, &rows);
}

/// Which figures a case has and how a contender gets them.
trait Measure {
    /// Heads of the figures.
    const HEADS: &'static [&'static str];

    /// Whether the case means anything for `C`.
    fn admits<C: Contender>(&self) -> bool;

    /// Prepares `C`; each call of the result is one round.
    fn prepare<C: Contender>(&self) -> Box<dyn FnMut() -> Vec<f64>>;
}

/// A case with its contenders, each ready for its rounds.
struct Case<M> {
    measure: M,
    lanes: Vec<Lane>,
}

impl<M> Case<M> {
    /// Runs the rounds, a different contender first in each.
    fn run(&mut self, rounds: usize) {
        let lanes = self.lanes.len();
        for round in 0..rounds {
            for turn in 0..lanes {
                let lane = &mut self.lanes[(turn + round) % lanes];
                lane.figures.push((lane.round)());
            }
        }
    }
}

struct Lane {
    round: Box<dyn FnMut() -> Vec<f64>>,
    /// The figures of each round so far.
    figures: Vec<Vec<f64>>,
    to_row: fn(Vec<f64>) -> Row,
}

impl Lane {
    fn row(&self) -> Row {
        (self.to_row)(medians(&self.figures))
    }
}

impl<M: Measure> Visitor for Case<M> {
    fn visit<C: Contender>(&mut self) {
        if self.measure.admits::<C>() {
            let round = self.measure.prepare::<C>();
            self.lanes.push(Lane { round, figures: Vec::new(), to_row: Row::of::<C> });
        }
    }
}

/// The median of each figure over the rounds.
fn medians(rounds: &[Vec<f64>]) -> Vec<f64> {
    let figures = rounds.first().map_or(0, Vec::len);
    let median = |figure: usize| {
        let mut values: Vec<f64> = rounds.iter().map(|round| round[figure]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    (0..figures).map(median).collect()
}

#[cfg(test)]
mod tests {
    use super::medians;

    #[test]
    fn each_figure_has_its_own_median() {
        let rounds = [vec![3.0, 10.0], vec![1.0, 30.0], vec![2.0, 20.0]];
        assert_eq!(medians(&rounds), [2.0, 20.0]);
    }
}
