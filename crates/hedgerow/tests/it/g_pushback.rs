//! G1 to G4: a target asks for quiet, and what that means for the call that it answers.

use std::cell::Cell;
use std::time::Duration;

use hedgerow::{Delay, FailureStart, Gate, Hedge, Pushback, RejectedHedge};
use tokio::time::sleep;

use crate::support::{Act, Answer, Events, Notes, both, err, ms, never, ok, panics, work};

/// Errors that begin with `wait` ask for so many milliseconds, those that begin with `stop` for no
/// more hedges; values, too.
pub(crate) fn asks(answer: &Answer) -> Option<Pushback> {
    let (Ok(text) | Err(text)) = answer;
    let wait = |millis: &str| Pushback::For(ms(millis.parse().unwrap()));
    match text.strip_prefix("wait ") {
        Some("for ever") => Some(Pushback::For(Duration::MAX)),
        Some(millis) => Some(wait(millis)),
        None => text.starts_with("stop").then_some(Pushback::Stop),
    }
}

/// Plays the script on the fast path and on the other, and says what happened.
async fn play<const N: usize>(hedge: &Hedge, script: [Act; N]) -> (Answer, Vec<String>) {
    let mut told = vec![];
    for hedge in both(hedge.clone()) {
        let notes = Notes::new();
        let answer = hedge.call(work(&notes, script)).pushback(asks).await;
        told.push((answer, notes.lines()));
    }
    let last = told.pop().unwrap();
    assert_eq!(told.pop().unwrap(), last, "both paths agree");
    last
}

/// What the events of a call say, with the gate that closed it.
async fn watch<const N: usize>(
    hedge: Hedge,
    deadline: Duration,
    script: [Act; N],
) -> (Vec<String>, Option<(Gate, u64)>) {
    let (notes, events) = (Notes::new(), Events::default());
    let hedge = hedge.observer(events.observer());
    let call = hedge.call(work(&notes, script)).pushback(asks).deadline(deadline);
    let report = call.settle().await;
    let gate = report.not_hedged().map(|(gate, at)| (gate, at.as_nanos() / 1_000_000));
    let hedges = |line: &String| line.starts_with("hedge") || line.starts_with("denied");
    (events.text().into_iter().filter(hedges).collect(), gate)
}

#[tokio::test(start_paused = true)]
async fn g01_stop_ends_launching_and_lets_the_others_run() {
    let hedge = Hedge::after(ms(50)).max_hedges(3);
    let (answer, lines) = play(&hedge, [ok(200, "a"), err(10, "stop"), never()]).await;
    assert_eq!(answer, Ok("a"));
    assert_eq!(lines, ["A0 starts @0", "A1 starts @50", "A1 ends @60", "A0 ends @200"]);
    let (answer, lines) = play(&hedge, [err(10, "stop"), ok(0, "b")]).await;
    assert_eq!(answer, Err("stop"), "nothing runs and nothing may start");
    assert_eq!(lines, ["A0 starts @0", "A0 ends @10"]);
}

#[tokio::test(start_paused = true)]
async fn g01_what_a_stop_has_cost_is_told_when_it_was_due_or_earned() {
    let script = [err(30, "stop"), ok(9, "b")];
    let earned = watch(Hedge::after(ms(50)), Duration::MAX, script).await;
    assert_eq!(earned, (vec!["denied(1,pushback)@30".to_owned()], Some((Gate::Pushback, 30))));

    let by_delay = Hedge::after(ms(50)).max_hedges(2).failure_start(FailureStart::Wait);
    let script = [ok(300, "a"), err(10, "stop")];
    let due = watch(by_delay, Duration::MAX, script).await;
    let expected = ["hedge(1,delay)@50", "denied(2,pushback)@100"];
    assert_eq!(due, (expected.map(str::to_owned).to_vec(), Some((Gate::Pushback, 60))));

    let script = [ok(80, "a"), err(10, "stop")];
    let hedge = Hedge::after(ms(50)).max_hedges(2).failure_start(FailureStart::Wait);
    let never_due = watch(hedge, Duration::MAX, script).await;
    assert_eq!(never_due.0, ["hedge(1,delay)@50"], "no hedge was due by the end");
}

#[tokio::test(start_paused = true)]
async fn g02_a_hedge_waits_for_the_end_of_the_quiet() {
    // Earned by a failure: the schedule of the delay does not matter.
    for delay in [Delay::OnFailure, Delay::After(ms(500)), Delay::After(ms(10))] {
        let hedge = Hedge::default().delay(delay);
        let (answer, lines) = play(&hedge, [err(5, "wait 70"), ok(20, "b")]).await;
        assert_eq!(answer, Ok("b"), "{delay:?}");
        assert_eq!(lines, ["A0 starts @0", "A0 ends @5", "A1 starts @75", "A1 ends @95"]);
    }
    // Due meanwhile.
    let hedge = Hedge::after(ms(50)).max_hedges(2).failure_start(FailureStart::Wait);
    let (answer, lines) = play(&hedge, [ok(300, "a"), err(10, "wait 100"), ok(20, "c")]).await;
    assert_eq!(answer, Ok("c"));
    assert_eq!(lines[3], "A2 starts @160", "not at 100");
    // Due later: the quiet is over by then.
    let (_, lines) = play(&hedge, [ok(300, "a"), err(10, "wait 20"), ok(20, "c")]).await;
    assert_eq!(lines[3], "A2 starts @100");
    // Zero asks for nothing.
    let (_, lines) = play(&Hedge::after(ms(50)), [err(5, "wait 0"), ok(20, "b")]).await;
    assert_eq!(lines[2], "A1 starts @5");
}

#[tokio::test(start_paused = true)]
async fn g02_the_later_of_two_quiets_stands_and_a_delay_counts_from_the_start() {
    let hedge = Hedge::after(ms(30)).max_hedges(3);
    let script = [err(40, "wait 100"), err(20, "wait 50"), never(), ok(20, "d")];
    let (answer, lines) = play(&hedge, script).await;
    assert_eq!(answer, Ok("d"));
    let starts: Vec<_> = lines.iter().filter(|line| line.contains("starts")).collect();
    // Two failures had earned two starts; both waited.
    assert_eq!(starts, ["A0 starts @0", "A1 starts @30", "A2 starts @140", "A3 starts @140"]);

    let script = [err(10, "wait 100"), never(), ok(20, "c")];
    let (_, lines) = play(&hedge, script).await;
    assert_eq!(lines[2..4], ["A1 starts @110", "A2 starts @140"]);
}

#[tokio::test(start_paused = true)]
async fn g02_the_answer_may_come_while_it_is_quiet() {
    let hedge = Hedge::after(ms(50)).max_hedges(2);
    let (answer, lines) = play(&hedge, [ok(120, "a"), err(10, "wait 500")]).await;
    assert_eq!(answer, Ok("a"));
    assert_eq!(lines.last().unwrap(), "A0 ends @120");
}

#[tokio::test(start_paused = true)]
async fn g03_a_hedge_that_could_only_start_past_the_deadline_is_refused() {
    let script = [err(20, "wait 80"), ok(9, "b")];
    for (deadline, expected, gate) in [
        (101, "hedge(1,failure)@100", None),
        (100, "denied(1,pushback)@20", Some((Gate::Pushback, 20))),
        (20, "denied(1,deadline)@20", Some((Gate::Deadline, 20))),
    ] {
        let watched = watch(Hedge::after(ms(50)), ms(deadline), script).await;
        assert_eq!(watched, (vec![expected.to_owned()], gate), "{deadline}");
    }
    let for_ever = watch(Hedge::after(ms(50)), Duration::MAX, [err(20, "wait for ever")]).await;
    assert_eq!(for_ever, (vec!["denied(1,pushback)@20".to_owned()], Some((Gate::Pushback, 20))));
    // Not before it is due: until then the quiet costs nothing.
    let hedge = Hedge::after(ms(50)).max_hedges(2).failure_start(FailureStart::Wait);
    let watched = watch(hedge, ms(150), [ok(120, "a"), err(10, "wait 100")]).await;
    let expected = ["hedge(1,delay)@50", "denied(2,pushback)@100"];
    assert_eq!(watched, (expected.map(str::to_owned).to_vec(), Some((Gate::Pushback, 100))));
}

#[tokio::test(start_paused = true)]
async fn g04_an_outcome_that_decides_closes_nothing_in_its_own_call() {
    for value in ["stop", "wait 100"] {
        let (notes, hedge) = (Notes::new(), Hedge::after(ms(50)).max_hedges(2));
        let call = hedge.call(work(&notes, [never(), ok(10, value)])).pushback(asks);
        let report = call.settle().await;
        assert_eq!((report.winner(), report.not_hedged()), (Some(1), None));
    }
}

#[tokio::test(start_paused = true)]
async fn g01_a_hedge_that_its_hook_holds_back_is_refused_by_a_stop() {
    let (notes, events) = (Notes::new(), Events::default());
    let hedge = Hedge::after(ms(50)).max_hedges(2).observer(events.observer());
    let call = hedge
        .call(work(&notes, [ok(300, "a"), err(80, "stop")]))
        .pushback(asks)
        .on_hedge_async(|next| sleep(ms(u64::from(next.hedge_number() - 1) * 100)));
    let report = call.settle().await;
    assert_eq!(report.hedges_started(), 1);
    assert_eq!(report.not_hedged(), Some((Gate::Pushback, ms(130).into())));
    assert_eq!(events.count("denied(2,pushback)@200"), 1, "when its hook has ended");
}

#[tokio::test(start_paused = true)]
async fn g02_a_hedge_that_its_hook_holds_back_waits_for_the_quiet_and_asks_again() {
    let (notes, hooks) = (Notes::new(), Cell::new(0));
    let hedge = Hedge::after(ms(50)).max_hedges(2).failure_start(FailureStart::Wait);
    let hedge = hedge.budget(notes.budget());
    let call = hedge
        .call(work(&notes, [ok(900, "a"), err(70, "wait 200"), ok(20, "c")]))
        .pushback(asks)
        .on_hedge_async(|next| {
            hooks.set(hooks.get() + 1);
            sleep(if next.hedge_number() == 2 { ms(60) } else { ms(0) })
        });
    assert_eq!(call.await, Ok("c"));
    // Due at 100, held until 160; quiet from 120 to 320; held again until 380.
    assert_eq!(notes.count("A2 starts @380"), 1, "{:?}", notes.lines());
    assert_eq!(hooks.get(), 3);
    assert_eq!((notes.count("takes a token"), notes.count("gives the token back")), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn g01_a_rejection_may_push_back_too() {
    let hedge = Hedge::after(ms(50)).rejected_hedge(RejectedHedge::Hedge).hedge_rejections(true);
    let (notes, events) = (Notes::new(), Events::default());
    let hedge = hedge.max_hedges(2).observer(events.observer());
    let call = hedge
        .call(work(&notes, [err(0, "wait 30"), err(0, "stop"), ok(0, "c")]))
        .rejection(|_| true)
        .pushback(asks);
    assert_eq!(call.await, Err("wait 30"));
    assert_eq!(events.count("hedge(1,failure)@30"), 1);
    assert_eq!(events.count("denied(2,pushback)@30"), 1);
}

#[tokio::test(start_paused = true)]
async fn g01_rules_that_panic_over_a_pushback_end_the_call() {
    for hedge in both(Hedge::after(ms(50))) {
        let notes = Notes::new();
        let call = hedge
            .call(work(&notes, [err(100, "p"), panics(500, "never reached")]))
            .pushback(|_: &Answer| panic!("pushback"));
        let panic = crate::support::caught(call).await.unwrap_err();
        assert_eq!(panic, "pushback");
        assert_eq!(notes.count("A1 dropped @100"), 1, "{:?}", notes.lines());
    }
}

#[tokio::test(start_paused = true)]
async fn g01_spawned_attempts_push_back_like_others() {
    let notes = Notes::new();
    let hedge = Hedge::after(ms(50)).max_hedges(2);
    let call = hedge.call(work(&notes, [ok(300, "a"), err(10, "stop")])).pushback(asks).spawned();
    assert_eq!(call.await, Ok("a"));
    assert_eq!(notes.count("A2"), 0);
}

/// A header with a date in it, or in the wrong unit: nothing runs, so nobody would end the call.
#[tokio::test(start_paused = true)]
async fn g06_a_call_waits_for_ten_minutes_and_no_longer() {
    let hedge = Hedge::default();
    for (asked, told) in [
        ("wait 600000", vec!["hedge(1,failure)@600000"]),
        ("wait 600001", vec!["denied(1,pushback)@0"]),
        ("wait 31536000000", vec!["denied(1,pushback)@0"]),
    ] {
        let script = [err(0, asked), ok(0, "b")];
        assert_eq!(watch(hedge.clone(), Duration::MAX, script).await.0, told);
    }
}
