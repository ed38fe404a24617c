//! PR-10 and PR-11 for streams, before and after the commit: whenever a call or its stream is
//! dropped, nothing is left behind; what is read is what the winner made, whole and in order.

use std::sync::Arc;

use futures_util::StreamExt;
use hedgerow::testing::{ManualExecutor, Tokens};
use hedgerow::{
    CancellationToken, Decision, Delay, End, Event, EventKind, Hedge, Losers, ManualClock, Origin,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::points_world::ends;
use crate::stage::{self, Came, Stage};
use crate::streams_world::{Case, Failed, Play, Seen, Step, World};
use crate::support::{Events, lock, ms};

const TOKENS: u32 = 9;

/// What is left of one run.
struct Left {
    came: Came<Result<(), Failed>>,
    events: Vec<Event>,
    world: World,
    granted: u32,
}

/// Awaits a call and reads its stream to the end, as a consumer does.
async fn consume<C>(call: C, world: World) -> Result<(), Failed>
where
    C: Future<Output = Result<hedgerow::stream::HedgedStream<crate::streams_world::Items>, Failed>>,
{
    let mut stream = call.await?;
    lock(&world).committed = true;
    while let Some(item) = stream.next().await {
        lock(&world).read.push(item);
    }
    assert_eq!(stream.next().await, None, "it stays at its end");
    Ok(())
}

fn run(case: &Case, polls: usize, late: bool) -> Left {
    let (clock, executor, events) = (ManualClock::new(), ManualExecutor::new(), Events::default());
    let (tokens, cancel) = (Arc::new(Tokens::new(TOKENS)), CancellationToken::new());
    let hedge = case.hedge.clone();
    let hedge = hedge
        .clock(Arc::new(clock.clone()))
        .budget(Arc::clone(&tokens) as Arc<_>)
        .observer(events.observer());
    let world = World::default();
    let play = Play { case: case.clone(), clock: clock.clone(), world: Arc::clone(&world) };
    let opens = play.clone();
    let call = hedge
        .stream(move |attempt| opens.clone().open(attempt))
        .commit_when(play.decides())
        .commit_within(case.most)
        .tokens()
        .rules(play)
        .cancel_on(&cancel);
    let mut stage = Stage { clock, executor, cancel, cancel_in: case.cancel_at.map(ms) };
    let ended = if case.spawned {
        let call = call.spawned_on(Arc::new(stage.executor.clone()));
        stage.drive(consume(call.into_future(), Arc::clone(&world)), polls, late)
    } else {
        stage.drive(consume(call.into_future(), Arc::clone(&world)), polls, late)
    };
    if !case.spawned {
        let world = lock(&world);
        assert_eq!(world.opened.len(), world.closed.len(), "no stream is left, at once");
    }
    stage.finish();
    Left { came: ended, events: events.all(), world, granted: TOKENS - tokens.left() }
}

/// What must hold wherever the call, or its stream, was dropped.
fn check(case: &Case, left: &Left) {
    let world = lock(&left.world);
    let sorted = |numbers: &[u8]| {
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(sorted(&world.opened), sorted(&world.closed), "each stream is closed, once");

    let hedges = left.events.iter().filter(
        |event| matches!(event.kind, EventKind::Started { origin } if origin != Origin::Primary),
    );
    assert_eq!(left.granted as usize, hedges.count(), "what was not started is given back");
    let over = left.events.iter().filter_map(|event| match event.kind {
        EventKind::Over { how } => Some(how),
        _ => None,
    });
    let over: Vec<_> = over.collect();
    let [how] = over.as_slice() else { panic!("the call is over exactly once: {over:?}") };

    match (*how, &left.came) {
        (Decision::Accepted(winner), _) => check_read(case, &world, winner, &left.came),
        (Decision::Exhausted(number), Came::Ended(Err(error))) => {
            assert_eq!(Some(*error), case.failure(number), "the error is the attempt's own");
        }
        (
            Decision::Cancelled,
            Came::Ended(Err(Failed::Cancelled)) | Came::Dropped | Came::Hangs,
        ) => {}
        (how, _) => panic!("a call that is {how:?} does not end like this"),
    }
    for (number, token) in &world.tokens {
        let ended = ends(&left.events, *number);
        let [end] = ended.as_slice() else {
            panic!("attempt {number} ends exactly once: {ended:?}")
        };
        let told = !matches!(end, End::Won | End::Failed);
        let told = told && case.hedge.policy().losers != Losers::Detach;
        assert_eq!(token.is_cancelled(), told, "attempt {number} {end:?}");
    }
    let discarded = sorted(&world.discarded);
    assert!(discarded.is_sorted_by(|a, b| a < b), "each at most once: {discarded:?}");
}

/// What the consumer read is the winner's stream from its first item on, to where it was dropped.
fn check_read(case: &Case, world: &Seen, winner: u8, ended: &Came<Result<(), Failed>>) {
    // Dropped in the very turn of the decision, joining losers, it was never handed over.
    assert_eq!(world.discarded.contains(&winner), !world.committed, "returned or discarded");
    let made = case.items(winner);
    let (last, rest) = match world.read.split_last() {
        Some((Err(Failed::Cancelled), rest)) => (Some(Failed::Cancelled), rest),
        _ => (None, world.read.as_slice()),
    };
    assert_eq!(rest, &made[..rest.len()], "in order, nothing lost, nothing twice");
    assert!(world.read.iter().all(|item| match item {
        Ok((attempt, _)) | Err(Failed::Item((attempt, _))) => *attempt == winner,
        Err(Failed::Cancelled) => case.cancel_at.is_some(),
    }));
    match ended {
        Came::Ended(outcome) => {
            assert_eq!(*outcome, Ok(()));
            assert!(last.is_some() || rest == made, "it was read to its end");
        }
        Came::Hangs => assert!(case.steps(winner).contains(&Step::Never)),
        Came::Dropped => {}
    }
}

fn every_point(case: &Case) -> usize {
    stage::every_point(case, run, check, |left| matches!(left.came, Came::Dropped))
}

fn placements() -> [(Losers, bool); 5] {
    let join = Losers::Join { grace: Some(ms(15)) };
    [
        (Losers::Drop, false),
        (join, false),
        (Losers::Drop, true),
        (join, true),
        (Losers::Detach, true),
    ]
}

#[test]
fn pr_10_pr_11_nothing_is_left_wherever_a_stream_is_dropped() {
    use Step::{Fail, Keep, Never, Text};
    let scripts = [
        vec![vec![Keep(10), Text(60), Text(5)], vec![Keep(5), Text(5), Keep(5), Text(40)]],
        vec![vec![Keep(5), Fail(5)], vec![Text(10), Fail(10), Text(10)]],
        vec![vec![Fail(60)], vec![Fail(60)], vec![Keep(5), Fail(55)]],
        vec![vec![Text(30), Never], vec![Text(10), Text(20), Text(20)]],
        vec![vec![], vec![Text(1)]],
        vec![vec![Text(0), Text(0), Text(30)]],
    ];
    let mut most = 0;
    for (losers, spawned) in placements() {
        for delay in [Delay::After(ms(20)), Delay::Immediately] {
            for script in &scripts {
                for cancel_at in [None, Some(35), Some(48)] {
                    for open in [0, 5] {
                        let hedge = Hedge::default().delay(delay).max_hedges(2).losers(losers);
                        let script = script.clone();
                        let case = Case { hedge, script, open, most: 2, cancel_at, spawned };
                        most = most.max(every_point(&case));
                    }
                }
            }
        }
    }
    assert!(most >= 8, "streams with several await points were among them: {most}");
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let grid = || (0_u64..=4).prop_map(|steps| steps * 10);
    let step = prop_oneof![
        4 => grid().prop_map(Step::Keep),
        4 => grid().prop_map(Step::Text),
        2 => grid().prop_map(Step::Fail),
        1 => Just(Step::Never),
    ];
    vec(step, 0..7)
}

fn case() -> impl Strategy<Value = Case> {
    let delay = prop_oneof![
        4 => (0_u64..=5).prop_map(|steps| Delay::After(ms(steps * 10))),
        1 => Just(Delay::Immediately),
        1 => Just(Delay::OnFailure),
    ];
    let cancel_at = option::weighted(0.4, (0_u64..=12).prop_map(|steps| steps * 10));
    let placement = prop::sample::select(placements().to_vec());
    let open = prop::sample::select(vec![0, 0, 10]);
    (delay, 0_u32..=3, placement, vec(steps(), 0..5), open, 0_usize..=3, cancel_at).prop_map(
        |(delay, hedges, (losers, spawned), script, open, most, cancel_at)| {
            let hedge = Hedge::default().delay(delay).max_hedges(hedges).losers(losers);
            Case { hedge, script, open, most, cancel_at, spawned }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 10_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_read_is_the_winners_stream_and_every_other_is_closed(
        case in case(),
        polls in prop_oneof![Just(usize::MAX), 0_usize..12],
        late: bool,
    ) {
        check(&case, &run(&case, polls, late));
    }
}
