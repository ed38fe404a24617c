//! The stream front: each attempt is a stream of one item, its outcome.

use std::future::{Future, ready};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::future::{Outcome, ScriptRules, Shows, Stage};
use super::scenario::{Scenario, Scripted};
use super::timeline::Timeline;
use crate::stream::HedgedStream;

/// Runs the scenario to its end, or until nothing can happen any more.
pub(super) fn run(scenario: &Scenario) -> Timeline {
    let stage = Stage::new(scenario);
    let call =
        stage.hedge.stream(|attempt| ready(Ok(OneItem(Some(Box::pin(stage.play(attempt)))))));
    stage.conduct(call.rules(ScriptRules(scenario.clone())))
}

/// The outcome of an attempt as the only item of a stream.
struct OneItem(Option<Pin<Box<dyn Future<Output = Outcome> + Send>>>);

impl Stream for OneItem {
    type Item = Outcome;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Outcome>> {
        let Some(work) = &mut self.0 else { return Poll::Ready(None) };
        let outcome = ready!(work.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(Some(outcome))
    }
}

impl Shows for HedgedStream<OneItem> {
    fn shows(&self) -> Scripted {
        *self.committed().expect("the one item decides")
    }
}
