//! The reference workloads, on a million samples or fewer.

use hedgerow_core::ExtraLoad;
use hedgerow_core::latency::Percentile;

use super::noise::Dice;
use super::{
    Backend, Finding, Latencies, Pairs, Question, Reason, Simulated, Warning, tune, tune_watched,
};
use crate::Progress;

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a latency")]
fn nanos(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}

fn collect(count: usize, mut draw: impl FnMut() -> f64) -> Latencies {
    let mut latencies = Latencies::default();
    (0..count).for_each(|_| latencies.record(nanos(draw())));
    latencies
}

/// W1: lognormal of mean 5 ms and standard deviation 2 ms, ten times that for one in twenty.
fn w1(dice: &mut Dice) -> f64 {
    let variance = 1.16_f64.ln();
    let body = (5.0_f64.ln() - variance / 2.0 + variance.sqrt() * dice.normal()).exp();
    if dice.uniform() <= 0.05 { 10.0 * body } else { body }
}

fn asked(target: Percentile, load: f64) -> Question {
    let max_extra_load = Some(ExtraLoad::new(load).unwrap());
    Question { target, max_extra_load, ..Question::default() }
}

#[track_caller]
fn near(what: &str, value: f64, wanted: f64, relative: f64) {
    assert!((value / wanted - 1.0).abs() <= relative, "{what}: {value} is not {wanted}");
}

#[test]
fn w1_delay_probability_and_quantiles() {
    let mut dice = Dice(1);
    let latencies = collect(1_000_000, || w1(&mut dice));
    let advice = tune(&latencies, None, &Question::default());
    let wanted = [4.76, 8.66, 17.46, 64.20, 102.41];
    // p95 lies in a gap, where a million samples leave it noise of some percent.
    let relative = [0.005, 0.005, 0.05, 0.008, 0.01];
    for (place, value) in advice.without.each().into_iter().enumerate() {
        near("without", value / 1e6, wanted[place], relative[place]);
    }
    // The less load, the flatter the optimum: there the delay is less sure than what it gives.
    for (load, delay, within, probability, reached) in [
        (0.05, 12.50, 0.5, 0.912, 20.46),
        (0.02, 40.22, 0.7, 0.620, 48.74),
        (0.01, 47.51, 1.0, 0.420, 55.71),
        (0.10, 8.67, 0.1, 1.000, 15.53),
    ] {
        let choice = advice.choices.iter().find(|choice| choice.max_extra_load >= load).unwrap();
        let plan = choice.plan.unwrap();
        let said = format!("{choice:?}");
        assert!((plan.delay / 1e6 - delay).abs() < within, "{said}");
        assert!((plan.probability - probability).abs() < 0.02, "{said}");
        assert!((plan.extra_load / load - 1.0).abs() < 0.005, "{said}");
        near("p99", choice.predicted.p99 / 1e6, reached, 0.005);
    }
    for (interval, wanted) in advice.intervals.without.each().into_iter().zip(wanted) {
        let (low, high) = (interval.low / 1e6, interval.high.unwrap() / 1e6);
        assert!(low < wanted * 1.01 && wanted * 0.99 < high, "{low} {wanted} {high}");
    }
    let p99 = advice.intervals.predicted.p99;
    assert!(p99.low < 20.46e6 && 20.46e6 < p99.high.unwrap(), "{p99:?}");
}

#[test]
fn w1_for_p999_every_hedge_is_sent() {
    let mut dice = Dice(2);
    let latencies = collect(1_000_000, || w1(&mut dice));
    for load in [0.01, 0.02, 0.05] {
        let advice = tune(&latencies, None, &asked(Percentile::P99_9, load));
        assert!(advice.verdict.unwrap().probability >= 0.95, "{load}: {:?}", advice.verdict);
    }
}

/// W2: one request of the hundred, by its inverse survival.
fn w2(alive: f64) -> f64 {
    let at_ten = 5.0_f64.powf(-2.4307);
    match alive {
        alive if alive > at_ten => 2.0 * alive.powf(-1.0 / 2.4307),
        alive if alive > 0.02 * 7.0_f64.powf(-0.9418) => 10.0 * (alive / 0.02).powf(-1.0 / 0.9418),
        alive => 70.0 * (alive / 0.0032).powf(-1.0 / 1.7765),
    }
}

#[test]
fn w2_the_tail_of_one_request() {
    let mut dice = Dice(3);
    let latencies = collect(300_000, || w2(dice.uniform()));
    let advice = tune(&latencies, None, &asked(Percentile::P99_9, 0.02));
    let plan = advice.verdict.unwrap();
    // A hedge after 10 ms costs 2 % and cuts p99.9 to about a sixth.
    assert!(plan.delay < 14e6 && plan.probability > 0.9, "{plan:?}");
    assert!(advice.predicted.p999 < advice.without.p999 / 4.0, "{advice:?}");
}

#[test]
fn without_a_tail_there_is_nothing_to_cut() {
    let constant = collect(10_000, || 5.0);
    let mut dice = Dice(4);
    let narrow = collect(200_000, || (5.0_f64.ln() + 0.2 * dice.normal()).exp());
    let zero = collect(10_000, || 0.0);
    for latencies in [constant, narrow, zero] {
        let advice = tune(&latencies, None, &Question::default());
        assert!(matches!(advice.verdict, Err(Reason::NoTail { .. })), "{:?}", advice.verdict);
        assert_eq!(advice.predicted, advice.without);
    }
}

#[test]
fn too_few_samples_say_so() {
    let mut dice = Dice(5);
    let mut latencies = collect(999, || w1(&mut dice));
    let verdict = tune(&latencies, None, &Question::default()).verdict;
    let target = Percentile::P99;
    assert_eq!(verdict, Err(Reason::TooFew { samples: 999, needed: 1_000, target }));
    latencies.record(5_000_000);
    assert!(tune(&latencies, None, &Question::default()).verdict.is_ok());
    let verdict = tune(&latencies, None, &asked(Percentile::P99_9, 0.05)).verdict;
    assert!(matches!(verdict, Err(Reason::TooFew { needed: 10_000, .. })), "{verdict:?}");
    assert!(tune(&Latencies::default(), None, &Question::default()).verdict.is_err());
}

/// W6: size times slowdown, both lognormal; `share` of the variance is the size's.
fn w6(share: f64, seed: u64) -> (Latencies, Pairs) {
    let mut dice = Dice(seed);
    let (mut latencies, mut pairs) = (Latencies::default(), Pairs::new(0.0, 50_000, 1));
    for _ in 0..20_000 {
        let size = 0.8 * share.sqrt() * dice.normal();
        let mut copy = || 5e6 * (size + 0.8 * (1.0 - share).sqrt() * dice.normal()).exp();
        let (first, second) = (copy(), copy());
        latencies.record(nanos(first / 1e6));
        pairs.record(first, second);
    }
    (latencies, pairs)
}

#[test]
fn w6_where_size_explains_latency_do_not_hedge() {
    for share in [0.9, 1.0] {
        let (latencies, pairs) = w6(share, 6);
        let alone = tune(&latencies, None, &Question::default());
        assert!(alone.verdict.is_ok(), "single latencies cannot tell");
        assert!(alone.warnings.contains(&Warning::NoPairs));
        let advice = tune(&latencies, Some(&pairs), &Question::default());
        let Err(Reason::Copies(copies)) = advice.verdict else { panic!("{advice:?}") };
        assert!(copies.finding == Finding::DoNotHedge && copies.correlation > 0.8, "{copies:?}");
    }
}

#[test]
fn w6_where_copies_are_independent_hedge() {
    let (latencies, pairs) = w6(0.0, 7);
    let advice = tune(&latencies, Some(&pairs), &Question::default());
    assert!(advice.verdict.is_ok(), "{advice:?}");
    let copies = advice.copies.unwrap();
    assert!(copies.finding == Finding::Helps && copies.correlation.abs() < 0.05, "{copies:?}");
    near("p99 by pairs", copies.reached.unwrap(), advice.predicted.p99, 0.05);
    let (latencies, pairs) = w6(0.5, 8);
    let advice = tune(&latencies, Some(&pairs), &Question::default());
    let told = |warning: &Warning| matches!(warning, Warning::Alike { .. });
    assert!(advice.verdict.is_ok() && advice.warnings.iter().any(told), "{advice:?}");
}

#[test]
fn a_few_pairs_are_unclear() {
    let (latencies, _) = w6(0.0, 9);
    let mut pairs = Pairs::new(0.0, 100, 1);
    (0..50).for_each(|pair| pairs.record(100e6, if pair % 2 == 0 { 200e6 } else { 1e6 }));
    let advice = tune(&latencies, Some(&pairs), &Question::default());
    let told = |warning: &Warning| matches!(warning, Warning::Unclear(_));
    assert!(advice.verdict.is_ok() && advice.warnings.iter().any(told), "{advice:?}");
}

fn busy(load: f64, servers: u32, workers: u32) -> Question {
    let backend = Some(Backend::new(load, servers, workers).unwrap());
    Question { backend, ..Question::default() }
}

#[test]
fn busy_servers_have_no_room() {
    let mut dice = Dice(10);
    let latencies = collect(50_000, || w1(&mut dice));
    let under = |load| tune(&latencies, None, &busy(load, 1, 16));
    let advice = under(0.5);
    let simulated = advice.simulated.as_ref().unwrap();
    assert!(advice.verdict.is_ok() && simulated.with.pays, "{advice:?}");
    // With room the queues add little to what is predicted.
    near("p99", simulated.with.reached, advice.predicted.p99, 0.15);
    near("p99", simulated.without.reached, advice.without.p99, 0.05);
    near("extra load", simulated.with.extra_load, 0.05, 0.04);
    near("busy", simulated.with.utilisation, 0.525, 0.002);
    assert!(simulated.adaptive.unwrap().pays, "{advice:?}");
    assert!(advice.choices.iter().all(|choice| choice.simulated.unwrap().pays));
    let advice = under(0.97);
    assert!(matches!(advice.verdict, Err(Reason::Load { .. })), "{advice:?}");
    assert_eq!(advice.predicted, advice.without);
    let with = advice.simulated.as_ref().unwrap().with;
    assert!(!with.pays && with.utilisation > 1.0, "{with:?}");
}

/// Every call sent twice to servers with one worker each pays below a load of a third.
#[test]
fn w3_two_copies_of_everything_break_even_at_a_third() {
    let mut dice = Dice(12);
    let latencies = collect(200_000, || -dice.uniform().ln());
    let under = |load| {
        let max_extra_load = Some(ExtraLoad::new(1.0).unwrap());
        let backend = Backend::new(load, 100, 1).ok().map(Backend::brief);
        tune(&latencies, None, &Question { max_extra_load, backend, ..Question::default() })
    };
    for (load, pays) in [(0.3, true), (0.37, false)] {
        let advice = under(load);
        let Simulated { without, with, .. } = advice.simulated.as_ref().unwrap();
        // The budget pays a hedge when a call completes, and refuses some where many are under way.
        near("extra load", with.extra_load, 1.0, 0.04);
        let (alone, twice) = (1.0 / (1.0 - load), 0.5 / (1.0 - 2.0 * load));
        near("alone", without.reached / 1e6, 100.0_f64.ln() * alone, 0.04);
        near("twice", with.reached / 1e6, 100.0_f64.ln() * twice, 0.08);
        assert_eq!(advice.verdict.is_ok(), pays, "{load}: {:?}", with.ratio);
    }
    let third = under(1.0 / 3.0).simulated.unwrap().with.ratio;
    near("at a third", third.mean, 1.0, 0.04);
}

#[test]
fn only_what_would_be_hedged_is_tried_and_the_brief_try_one_plan() {
    let (latencies, pairs) = w6(1.0, 6);
    let advice = tune(&latencies, Some(&pairs), &busy(0.5, 1, 16));
    assert!(advice.verdict.is_err() && advice.simulated.is_none(), "{advice:?}");
    let mut dice = Dice(13);
    let latencies = collect(20_000, || w1(&mut dice));
    let whole = busy(0.5, 1, 16);
    let brief = Question { backend: whole.backend.map(Backend::brief), ..whole };
    let (whole_calls, calls) = (whole.simulated_calls(), brief.simulated_calls());
    assert_eq!((whole_calls, calls), (6 * 5 * 125_000, 2 * 5 * 125_000));
    let [whole, brief] = [whole, brief].map(|question| tune(&latencies, None, &question));
    let (of_whole, of_brief) = (whole.simulated.unwrap(), brief.simulated.unwrap());
    assert_eq!((of_whole.with, of_whole.without), (of_brief.with, of_brief.without));
    assert!(of_brief.adaptive.is_none() && of_whole.adaptive.is_some());
    assert_eq!(brief.choices.iter().filter(|choice| choice.simulated.is_some()).count(), 1);
}

#[test]
fn what_cannot_be_simulated_is_said() {
    let mut latencies = Latencies::default();
    (0..50_000).for_each(|call| latencies.record(if call % 30 == 0 { 4_000 } else { 100 }));
    let advice = tune(&latencies, None, &busy(0.9, 1, 1_000));
    let told = |warning: &Warning| matches!(warning, Warning::NotSimulated { .. });
    assert!(advice.verdict.is_ok() && advice.warnings.iter().any(told), "{advice:?}");
    assert!(advice.simulated.is_none());
}

#[test]
fn the_same_question_has_the_same_answer() {
    let (latencies, pairs) = w6(0.3, 11);
    let backend = Backend::new(0.6, 2, 8).ok().map(Backend::brief);
    let question = Question { backend, ..Question::default() };
    let answer = |threads, seed| {
        let question = Question { seed, ..question };
        let progress = Progress::default();
        format!("{:?}", tune_watched(&latencies, Some(&pairs), &question, threads, &progress))
    };
    let first = answer(1, 1);
    assert!(first.contains("simulated: Some"), "{first}");
    assert!(first == answer(3, 1) && first != answer(1, 2));
}

#[test]
fn the_load_is_that_of_a_coarse_log() {
    // Four readings: 80 % of 1 ms, 15 % of 10, 4 % of 100, 1 % of 1,000 at most.
    let mut latencies = Latencies::default();
    for call in 0..100_000_u64 {
        let ms = match call % 1_000 {
            0..801 => 1,
            801..951 => 10,
            951..991 => 100,
            _ => 1_000,
        };
        latencies.record(ms * 1_000_000);
    }
    let question =
        Question { max_extra_load: Some(ExtraLoad::new(0.1).unwrap()), ..Question::default() };
    let advice = tune(&latencies, None, &question);
    let plan = advice.verdict.unwrap();
    assert!(plan.delay >= 10e6, "{plan:?}");
    near("extra load", plan.extra_load, 0.049 * plan.probability, 1e-9);
    near("p50", advice.without.p50, 1e6, 1e-9);
}
