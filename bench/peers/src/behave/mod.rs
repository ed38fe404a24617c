//! What each contender does when attempts fail, hang, panic or are left alone, by experiment.
//!
//! Attempts take real time: some contenders wait by timers of their own, which no virtual clock moves.

mod checks;
mod trial;

use std::panic;

use crate::adapters;
use crate::contender::{Contender, Visitor};
use crate::table;

const LEGEND: &str = "\
Each hedges once, after 20 ms. A cell has the outcome with the number of the attempt that gave it
(0 is the primary) and the time it came; how many attempts started, if not two; and how many still
ran when the call returned (and 10 ms later), if any.
";

/// Runs all checks and prints a table.
pub fn run() {
    // Panics are part of the experiment.
    panic::set_hook(Box::new(|_| {}));
    let mut behaviours = Behaviours { rows: Vec::new() };
    adapters::visit(&mut behaviours);
    println!("{LEGEND}");
    let heads: Vec<&str> = ["contender"].into_iter().chain(checks::ALL).collect();
    table::print(&heads, behaviours.rows);
}

struct Behaviours {
    rows: Vec<Vec<String>>,
}

impl Visitor for Behaviours {
    fn visit<C: Contender>(&mut self) {
        if C::KIND.hedges() && C::FIXED_DELAY && !C::REAL_TIME {
            let mut row = vec![C::NAME.to_owned()];
            row.extend(checks::run::<C>());
            self.rows.push(row);
        }
    }
}
