//! PR-23: when all attempts fail, one error names them all.

use std::error::Error;
use std::fmt;

use hedgerow::{Attempt, End, Exhausted, Hedge, Losers, Moment, Origin};
use tokio::time::sleep;

use crate::support::ms;

/// An error with a cause.
#[derive(Debug, PartialEq)]
struct Down(&'static str, Cause);

#[derive(Debug, PartialEq)]
struct Cause;

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Down {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.1)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("connection refused")
    }
}

impl Error for Cause {}

type Failed = hedgerow::AllFailed<(), Down>;

/// x after 200, y and z after 10 each; a hedge after 50.
async fn all_fail(hedge: Hedge) -> Failed {
    let work = async |attempt: Attempt| {
        let number = usize::from(attempt.hedge_number());
        sleep(ms([200, 10, 10][number])).await;
        Err::<(), _>(Down(["x", "y", "z"][number], Cause))
    };
    let report = hedge.max_hedges(2).call(work).settle().await;
    report.into_detailed().unwrap().unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn pr_23_the_error_of_a_call_names_every_attempt() {
    let error = all_fail(Hedge::after(ms(50))).await;
    assert_eq!(error.error(), &Down("x", Cause));
    assert_eq!(error.returned_attempt(), Some(0));
    let others: Vec<_> = error
        .others()
        .iter()
        .map(|failure| (failure.hedge_number(), failure.error().unwrap().0))
        .collect();
    assert_eq!(others, [(1, "y"), (2, "z")], "in completion order");
    let attempts: Vec<_> = error
        .attempts()
        .iter()
        .map(|attempt| {
            let end = attempt.ended.unwrap().1;
            (attempt.origin, attempt.started, attempt.duration().unwrap(), end)
        })
        .collect();
    let at = Moment::from_millis;
    let expected = [
        (Origin::Primary, at(0), ms(200), End::Failed),
        (Origin::Delay, at(50), ms(10), End::Failed),
        (Origin::Failure, at(60), ms(10), End::Failed),
    ];
    assert_eq!(attempts, expected);
}

#[tokio::test(start_paused = true)]
async fn pr_23_the_text_and_the_chain_lead_to_the_cause() {
    let error = all_fail(Hedge::after(ms(50))).await;
    let text = "no good answer from 3 attempts: attempt 0: x; attempt 1: y; attempt 2: z";
    assert_eq!(error.to_string(), text);
    let source = error.source().unwrap();
    assert_eq!(source.to_string(), "x");
    assert_eq!(source.source().unwrap().to_string(), "connection refused");
    assert_eq!(error.into_error(), Down("x", Cause));
}

#[tokio::test(start_paused = true)]
async fn pr_23_the_policy_says_which_error_stands_for_the_whole() {
    for (exhausted, expected, others) in [
        (Exhausted::Primary, "x", ["y", "z"]),
        (Exhausted::First, "y", ["z", "x"]),
        (Exhausted::Last, "x", ["y", "z"]),
    ] {
        let error = all_fail(Hedge::after(ms(50)).exhausted(exhausted)).await;
        assert_eq!(error.error().0, expected, "{exhausted:?}");
        let named: Vec<_> = error.others().iter().map(|f| f.error().unwrap().0).collect();
        assert_eq!(named, others, "{exhausted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn pr_23_the_caller_can_choose_instead() {
    let hedge = Hedge::after(ms(50)).max_hedges(2);
    let work = async |attempt: Attempt| {
        let number = u64::from(attempt.hedge_number());
        sleep(ms(100 - number * 10)).await;
        Err::<(), _>(number)
    };
    for (chosen, expected) in [(0, 0), (1, 1), (2, 2), (9, 0)] {
        let call = hedge.call(work).exhausted(|failures: &[hedgerow::Failure<(), u64>]| {
            let order: Vec<_> =
                failures.iter().map(|failure| (failure.hedge_number(), failure.at())).collect();
            let at = Moment::from_millis;
            assert_eq!(order, [(0, at(100)), (1, at(140)), (2, at(180))]);
            chosen
        });
        let result: Result<(), u64> = call.await;
        assert_eq!(result, Err(expected), "one that is not there leaves it to the policy");
    }
}

/// The moments of failures count from the start of the call, whichever path it took.
#[tokio::test(start_paused = true)]
async fn pr_23_failures_carry_their_moments_in_every_mode() {
    use hedgerow::Delay;
    for delay in [Delay::OnFailure, Delay::After(ms(1_000)), Delay::After(std::time::Duration::MAX)]
    {
        for hedge in crate::support::both(Hedge::default().delay(delay)) {
            let work = async |attempt: Attempt| {
                sleep(ms(30)).await;
                Err::<(), _>(attempt.hedge_number())
            };
            let mut moments = vec![];
            let call = hedge.call(work).exhausted(|failures: &[hedgerow::Failure<(), u8>]| {
                moments.extend(failures.iter().map(hedgerow::Failure::at));
                1
            });
            assert_eq!(call.await, Err(1));
            let at = Moment::from_millis;
            assert_eq!(moments, [at(30), at(60)], "{delay:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pr_23_a_panic_and_a_handled_value_are_named_too() {
    let hedge =
        Hedge::after(ms(50)).max_hedges(2).panics(hedgerow::Panics::AsFailure).losers(Losers::Drop);
    let work = async |attempt: Attempt| match attempt.hedge_number() {
        0 => Err::<u16, _>(Down("x", Cause)),
        1 => Ok(503),
        _ => panic!("boom"),
    };
    let call = hedge.call(work).handle(|_: &Result<u16, Down>| true);
    let error = call.settle().await.into_detailed().unwrap().unwrap_err();
    let text = "no good answer from 3 attempts: attempt 0: x; \
                attempt 1: a value that counts as a failure; attempt 2: it panicked";
    assert_eq!(error.to_string(), text);
}
