//! What the extra load costs on servers that are busy already.

/// By how much latencies grow if servers busy for the share `load` of their time get this much more
/// work: `None` if that is more than they can do.
///
/// Waiting in a queue is proportional to 1 / (1 - load), and all of the latency is taken to be
/// such waiting: a cautious argument, and an exact one for exponential times. Copies are taken to
/// be worked off to their end even when the other one has answered.
///
/// With every call sent twice at once it gives the known break-even: at a load of 1/3 the mean of
/// two exponential copies, half as long, grows twofold.
pub(super) fn growth(load: f64, extra: f64) -> Option<f64> {
    let busy = load * (1.0 + extra);
    (busy < 1.0).then(|| (1.0 - load) / (1.0 - busy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w3_two_copies_of_everything_break_even_at_a_third() {
        let mean = |load: f64| growth(load, 1.0).map(|growth| growth / 2.0);
        assert!((mean(1.0 / 3.0).unwrap() - 1.0).abs() < 1e-9);
        // 1.25 without, 0.833 with; 1.667 without, 2.5 with.
        assert!((mean(0.2).unwrap() - 0.833_333 / 1.25).abs() < 1e-5);
        assert!((mean(0.4).unwrap() - 2.5 / 1.666_667).abs() < 1e-5);
        assert_eq!(mean(0.5), None);
    }

    #[test]
    fn no_extra_load_costs_nothing() {
        assert!((growth(0.9, 0.0).unwrap() - 1.0).abs() < 1e-12);
    }
}
