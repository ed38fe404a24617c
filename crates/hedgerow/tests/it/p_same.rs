//! A pipeline whose only strategy is a hedge does what the hedge does, whatever the policy and the
//! script; and so does one with strategies around and inside that never have anything to do.

use hedgerow::pipeline::{Pipeline, PipelineError};
use hedgerow::{Attempt, Delay, Exhausted, FailureStart, Hedge, Losers, RejectedHedge};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Act, Answer, Notes, Scripted, act, ms, transient};

fn policy() -> impl Strategy<Value = Hedge> {
    let delay = prop_oneof![
        3 => (0_u64..6).prop_map(|steps| Delay::After(ms(steps * 10))),
        1 => Just(Delay::OnFailure),
    ];
    let start = prop_oneof![
        Just(FailureStart::Launch),
        Just(FailureStart::LaunchWhenIdle),
        Just(FailureStart::Wait)
    ];
    let exhausted =
        prop_oneof![Just(Exhausted::Primary), Just(Exhausted::First), Just(Exhausted::Last)];
    let losers = prop_oneof![
        3 => Just(Losers::Drop),
        1 => Just(Losers::Join { grace: None }),
        1 => Just(Losers::Join { grace: Some(ms(20)) }),
    ];
    (vec(delay, 1..3), 0_u32..4, start, exhausted, losers).prop_map(
        |(delays, hedges, start, exhausted, losers)| {
            Hedge::default()
                .delay(delays)
                .max_hedges(hedges)
                .failure_start(start)
                .exhausted(exhausted)
                .losers(losers)
                .rejected_hedge(RejectedHedge::Decide)
        },
    )
}

fn script() -> impl Strategy<Value = Vec<Act>> {
    let answer = prop_oneof![
        3 => Just(Ok("good")),
        1 => Just(Ok("bad")),
        4 => Just(Err("x")),
        1 => Just(Err("fatal")),
    ];
    let act = prop_oneof![
        12 => (0_u64..8, answer).prop_map(|(steps, answer)| Act::Return(steps * 10, answer)),
        1 => Just(Act::Never),
    ];
    vec(act, 4)
}

fn work(notes: &Notes, script: &[Act]) -> impl Fn(Attempt) -> Scripted + Clone + use<> {
    let (notes, script) = (notes.clone(), script.to_vec());
    move |attempt: Attempt| {
        let number = attempt.hedge_number();
        assert_eq!(attempt.number(), u32::from(number));
        let does = script.get(usize::from(number)).copied().unwrap_or(Act::Never);
        Box::pin(notes.clone().attempt(number, act(does)))
    }
}

/// What happened: the answer, and all notes. A day is for ever.
async fn run<F>(notes: Notes, call: F) -> (Option<Answer>, Vec<String>)
where
    F: Future<Output = Result<&'static str, PipelineError<&'static str>>>,
{
    let answer = tokio::time::timeout(ms(86_400_000), call).await.ok();
    let answer = answer.map(|answer| answer.map_err(|error| error.into_failed().unwrap()));
    (answer, notes.lines())
}

async fn same(hedge: Hedge, acts: Vec<Act>, idempotent: bool) {
    let notes = Notes::new();
    let call = hedge.call(work(&notes, &acts)).handle(transient).idempotent(idempotent);
    let call = async { call.await.map_err(PipelineError::Failed) };
    let expected = run(notes, call).await;

    let handle = |outcome: &Result<&'static str, PipelineError<&'static str>>| match outcome {
        Ok(value) => transient(&Ok(value)),
        Err(error) => error.failed().is_some_and(|error| transient(&Err(error))),
    };
    let day = ms(2 * 86_400_000);
    let alone = Pipeline::builder().hedge(hedge.clone()).build().unwrap();
    let amid = Pipeline::builder().timeout(day).hedge(hedge).timeout(day).build().unwrap();
    for asked in [false, true] {
        let notes = Notes::new();
        let execution = alone.execute(work(&notes, &acts)).handle(handle).idempotent(idempotent);
        let execution = if asked { execution.tokens() } else { execution };
        assert_eq!(run(notes, execution.into_future()).await, expected, "alone, asked: {asked}");
        let notes = Notes::new();
        let execution = amid.execute(work(&notes, &acts)).handle(handle).idempotent(idempotent);
        let execution = if asked { execution.tokens() } else { execution };
        assert_eq!(run(notes, execution.into_future()).await, expected, "amid, asked: {asked}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_pipeline_of_a_hedge_does_what_the_hedge_does(
        hedge in policy(),
        acts in script(),
        idempotent in prop::bool::weighted(0.9),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(same(hedge, acts, idempotent));
    }
}
