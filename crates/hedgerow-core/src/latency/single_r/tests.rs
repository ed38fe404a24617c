use super::*;

/// Abramowitz and Stegun 7.1.26, good to 1.5e-7.
fn erf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let poly = t
        * (0.254_829_592
            + t * (-0.284_496_736
                + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    (1.0 - poly * (-x * x).exp()).copysign(x)
}

/// W1: lognormal of mean 5 ms and standard deviation 2 ms, ten times that for one in twenty.
fn w1(ms: f64) -> f64 {
    let variance = 1.16_f64.ln();
    let lognormal = |ms: f64| {
        if ms <= 0.0 {
            return 0.0;
        }
        let z = (ms.ln() - (5.0_f64.ln() - variance / 2.0)) / variance.sqrt();
        0.5 * (1.0 + erf(z / 2.0_f64.sqrt()))
    };
    0.95 * lognormal(ms) + 0.05 * lognormal(ms / 10.0)
}

fn curve() -> Curve {
    counted(w1)
}

/// The curve of a million latencies of this distribution.
fn counted(ended_by_ms: impl Fn(f64) -> f64) -> Curve {
    let mut done = Box::new([0.0; BUCKETS]);
    for (index, slot) in done.iter_mut().enumerate() {
        let (lower, upper) = edges(Bucket::at(index));
        *slot = 1e6 * (ended_by_ms(upper / 1e6) - ended_by_ms(lower / 1e6));
    }
    Curve::new(&done, &Box::new([0.0; BUCKETS]))
}

/// Lognormal around 5 ms, and 200 ms more for this share.
fn stalls(share: f64) -> Curve {
    let body = |ms: f64| {
        if ms <= 0.0 { 0.0 } else { 0.5 * (1.0 + erf((ms / 5.0).ln() / 0.35 / 2.0_f64.sqrt())) }
    };
    counted(|ms| (1.0 - share) * body(ms) + share * body(ms - 200.0))
}

fn ms(nanos: f64) -> f64 {
    nanos / 1e6
}

#[test]
fn w1_the_curve_has_its_quantiles() {
    let curve = curve();
    for (chance, wanted) in
        [(0.5, 4.76), (0.1, 8.66), (0.05, 17.46), (0.01, 64.20), (0.001, 102.41)]
    {
        let value = ms(curve.exceeded_with(chance).unwrap());
        assert!((value / wanted - 1.0).abs() < 0.005, "{chance}: {value}");
    }
}

#[test]
fn w1_r_the_optimum_for_p99() {
    let curve = curve();
    for (load, delay, probability, reached) in
        [(0.05, 12.43, 0.909, 20.46), (0.02, 40.02, 0.615, 48.75), (0.01, 46.42, 0.400, 55.82)]
    {
        let best = Reissue::solve(&curve, 0.99, load).unwrap();
        let said = format!("{load}: {best:?}");
        assert!((ms(best.reached) / reached - 1.0).abs() < 0.005, "{said}");
        // Delays are bucket edges, 3 % apart, and of those that end in one bucket the surest.
        assert!((ms(best.delay) / delay - 1.0).abs() < 0.05, "{said}");
        assert!((best.probability - probability).abs() < 0.04, "{said}");
    }
}

/// Two stalls in a hundred, a load of five: nearly the best p99 needs no coin. Where stalls are
/// as many as hedges, the coin stays.
#[test]
fn the_surer_one_is_surer_and_hardly_later() {
    for (curve, load, least) in [
        (stalls(0.02), 0.05, 1.0),
        (stalls(0.01), 0.05, 1.0),
        (curve(), 0.05, 0.9),
        (curve(), 0.10, 1.0),
    ] {
        let best = Reissue::solve(&curve, 0.99, load).unwrap();
        let surer = best.surer(&curve, 0.99, load);
        let said = format!("{best:?} {surer:?}");
        assert!(surer.probability >= best.probability && surer.probability >= least, "{said}");
        assert!(
            surer.delay >= 0.97 * best.delay && surer.reached <= 1.021 * best.reached,
            "{said}"
        );
        let plan = Plan { curve: &curve, allowed: 0.01, load };
        let late = plan.late(surer.reached, surer.delay, surer.probability);
        assert!(late <= 0.01 + 1e-9, "{said}: {late}");
        let spent = surer.probability * curve.survival(surer.delay);
        assert!((spent / load - 1.0).abs() < 1e-6, "all of the load: {said}: {spent}");
    }
}

/// Eight stalls in a hundred, a load of five: the p99 stays among the stalls whatever is done, and
/// only the delay before them helps the p95.
#[test]
fn where_the_target_gains_nothing_the_hedge_stays_early() {
    let curve = stalls(0.08);
    let best = Reissue::solve(&curve, 0.99, 0.05).unwrap();
    assert!(ms(best.delay) < 100.0, "{best:?}");
    assert_eq!(best.surer(&curve, 0.99, 0.05), best);
}

#[test]
fn w1_r_the_optimum_for_p999_hedges_for_certain() {
    let curve = curve();
    for load in [0.05, 0.02, 0.01] {
        let best = Reissue::solve(&curve, 0.999, load).unwrap();
        assert!(best.probability > 0.98, "{load}: {best:?}");
    }
}

#[test]
fn w1_at_ten_percent_both_rules_agree() {
    let best = Reissue::solve(&curve(), 0.99, 0.10).unwrap();
    assert!((ms(best.reached) - 15.53).abs() < 0.1, "{best:?}");
}

/// What `best_edges` is a quick way to: every delay with every end.
fn by_trying_all(plan: &Plan<'_>, without: f64) -> Option<Reissue> {
    let last = Bucket::of_nanos(ceil(without)).index();
    let late = |end: usize, index: usize| {
        let (end_at, delay) = (edges(Bucket::at(end)).1, edges(Bucket::at(index)).1);
        let probability = (plan.load / plan.curve.at_upper(index)).min(1.0);
        let answered = 1.0 - plan.curve.survival(end_at - delay);
        plan.curve.at_upper(end) * (1.0 - probability * answered)
    };
    (1..=last).find_map(|end| {
        let each = (0..end).map(|index| (late(end, index), index));
        let enough = each.filter(|(chance, _)| *chance <= plan.allowed);
        let (chance, index) = enough.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(plan.inside(edges(Bucket::at(index)).1, end, chance))
    })
}

#[test]
fn the_quick_way_finds_what_trying_everything_finds() {
    let mut seed = 7_u64;
    let mut below = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x9E37_79B9);
        (seed >> 33) % most
    };
    let mut gains = 0;
    for round in 0..60 {
        let (mut done, mut cut) = (Box::new([0.0; BUCKETS]), Box::new([0.0; BUCKETS]));
        for _ in 0..=below(6) {
            let (start, width) = (100 + below(200), 1 + below(60));
            for _ in 0..below(200) {
                let index = usize::try_from(start + below(width)).unwrap();
                let weight = 1.0 + f64::from(u32::try_from(below(1_000)).unwrap()) / 7.0;
                if below(8) == 0 { cut[index] += weight } else { done[index] += weight }
            }
        }
        let curve = Curve::new(&done, &cut);
        for (allowed, load) in [(0.1, 0.05), (0.01, 0.05), (0.01, 0.3), (0.001, 0.02)] {
            let plan = Plan { curve: &curve, allowed, load };
            let Some(without) = curve.exceeded_with(allowed) else { continue };
            let best = plan.best_edges(without);
            assert_eq!(best, by_trying_all(&plan, without), "{round}, {allowed}, {load}");
            gains += u32::from(best.is_some_and(|best| best.reached < without));
        }
    }
    assert!(gains > 60, "{gains}");
}

#[test]
fn nothing_to_gain_gives_nothing() {
    let mut done = Box::new([0.0; BUCKETS]);
    done[Bucket::of_nanos(5_000_000).index()] = 1_000.0;
    let curve = Curve::new(&done, &Box::new([0.0; BUCKETS]));
    assert_eq!(Reissue::solve(&curve, 0.99, 0.05), None);
}
