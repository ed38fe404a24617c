//! PR-10 and PR-11 at every await point: a call is polled so many times and then dropped, for every
//! number of times until it ends. Whenever that is, nothing is left behind.

use std::sync::Arc;

use hedgerow::testing::{ManualExecutor, Tokens};
use hedgerow::{
    CancellationToken, Decision, Delay, End, Event, EventKind, Hedge, Losers, ManualClock, Origin,
};

use crate::points_world::{Case, Failed, Instead, Outcome, Play, World, ends};
use crate::stage::{self, Came, Stage};
use crate::support::{Events, lock, ms};

/// What is left of one run.
struct Left {
    came: Came<Outcome>,
    events: Vec<Event>,
    world: World,
    granted: u32,
}

const TOKENS: u32 = 9;

fn run(case: &Case, polls: usize, late: bool) -> Left {
    let (clock, executor, events) = (ManualClock::new(), ManualExecutor::new(), Events::default());
    let (tokens, cancel) = (Arc::new(Tokens::new(TOKENS)), CancellationToken::new());
    let hedge = case.hedge.clone();
    let hedge = hedge
        .clock(Arc::new(clock.clone()))
        .budget(Arc::clone(&tokens) as Arc<_>)
        .observer(events.observer());
    let play = Play::new(case, &clock);
    let world = play.world();
    let work = {
        let play = play.clone();
        move |attempt| play.attempt(attempt)
    };
    let call = hedge.call(work).tokens().rules(play).cancel_on(&cancel);
    let mut stage = Stage { clock, executor, cancel, cancel_in: case.cancel_at.map(ms) };
    let ended = if case.spawned {
        let call = call.spawned_on(Arc::new(stage.executor.clone()));
        stage.drive(call.into_future(), polls, late)
    } else {
        stage.drive(call.into_future(), polls, late)
    };
    if !case.spawned {
        assert_eq!(lock(&world).alive(), 0, "no attempt is left, at once");
    }
    assert_eq!(lock(&world).hooks, 0, "no hook is left");
    stage.finish();
    Left { came: ended, events: events.all(), world, granted: TOKENS - tokens.left() }
}

/// What must hold wherever the call was dropped.
fn check(case: &Case, left: &Left) {
    let world = lock(&left.world);
    assert_eq!(world.alive(), 0, "every attempt is over");
    let kinds: Vec<_> = left.events.iter().map(|event| event.kind).collect();
    let starts: Vec<u8> = left
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Started { .. }))
        .filter_map(|event| event.attempt)
        .collect();
    let hedges = kinds
        .iter()
        .filter(|kind| matches!(kind, EventKind::Started { origin } if *origin != Origin::Primary))
        .count();
    assert_eq!(left.granted as usize, hedges, "what was not started is given back");

    let over: Vec<_> = kinds
        .iter()
        .filter_map(|kind| match kind {
            EventKind::Over { how } => Some(*how),
            _ => None,
        })
        .collect();
    let [how] = over.as_slice() else { panic!("the call is over exactly once: {kinds:?}") };
    match &left.came {
        Came::Ended(Ok(_)) => assert!(matches!(how, Decision::Accepted(_))),
        Came::Ended(Err(Failed::Attempt(_))) => assert!(matches!(how, Decision::Exhausted(_))),
        Came::Ended(Err(Failed::Cancelled)) | Came::Dropped | Came::Hangs => {
            assert_eq!(*how, Decision::Cancelled);
        }
    }

    let detached = case.hedge.policy().losers == Losers::Detach;
    for number in &starts {
        let ended = ends(&left.events, *number);
        let [end] = ended.as_slice() else {
            panic!("attempt {number} ends exactly once: {ended:?}")
        };
        if let Some(token) = world.tokens.get(number) {
            let by_itself = matches!(end, End::Won | End::Failed);
            let told = !by_itself && !detached;
            assert_eq!(token.is_cancelled(), told, "attempt {number} {end:?}");
        }
    }

    let mut produced = world.produced.clone();
    produced.extend(case.answered().filter(|number| starts.contains(number)));
    let mut seen = world.discarded.clone();
    if let Came::Ended(Ok(number) | Err(Failed::Attempt(number))) = &left.came {
        seen.push(*number);
    }
    produced.sort_unstable();
    seen.sort_unstable();
    assert_eq!(produced, seen, "each outcome is returned or discarded, once");
}

fn every_point(case: &Case) -> usize {
    stage::every_point(case, run, check, |left| matches!(left.came, Came::Dropped))
}

fn losers() -> [(Losers, bool); 7] {
    let grace = Some(ms(15));
    [
        (Losers::Drop, false),
        (Losers::Join { grace: None }, false),
        (Losers::Join { grace }, false),
        (Losers::Drop, true),
        (Losers::Join { grace: None }, true),
        (Losers::Join { grace }, true),
        (Losers::Detach, true),
    ]
}

/// Every case with these losers.
fn cases(losers: Losers, spawned: bool) -> Vec<Case> {
    use crate::points_world::Ends::{Bad, Good, Never};
    // A detached attempt that never ends is never over.
    let never = if losers == Losers::Detach { Good(700) } else { Never };
    let scripts = [
        vec![never, Good(20), never],
        vec![Bad(10), Bad(10), Good(10)],
        vec![Good(50), Bad(5), Good(500)],
        vec![Bad(60), Bad(60), Bad(60)],
        vec![Good(30), never, never],
        vec![Good(0), never, never],
    ];
    let instead = [None, Some(Instead::Answer), Some(Instead::Run), Some(Instead::Stop)];
    let mut cases = vec![];
    for delay in [Delay::After(ms(20)), Delay::Immediately, Delay::OnFailure] {
        for script in &scripts {
            for hook in [None, Some(12)] {
                for cancel_at in [None, Some(35)] {
                    for instead in instead {
                        cases.push(Case {
                            hedge: Hedge::default().delay(delay).max_hedges(2).losers(losers),
                            script: script.clone(),
                            hook,
                            cancel_at,
                            instead,
                            spawned,
                        });
                    }
                }
            }
        }
    }
    cases
}

#[test]
fn pr_10_pr_11_nothing_is_left_wherever_a_call_is_dropped() {
    let mut most = 0;
    for (losers, spawned) in losers() {
        for case in cases(losers, spawned) {
            most = most.max(every_point(&case));
        }
    }
    assert!(most >= 6, "calls with several await points were among them");
}
