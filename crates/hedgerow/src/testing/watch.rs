//! What the calls of one's own code did.

use std::sync::{Arc, Mutex, PoisonError};

use hedgerow_core::{Event, Observer};

use super::timeline::TimelineEvent;

/// Watches the calls of a policy in a test of one's own code, and says what they did as a
/// [`Timeline`](super::Timeline) says it.
///
/// ```
/// use std::time::Duration;
/// use hedgerow::Hedge;
/// use hedgerow::testing::Watch;
///
/// /// The code under test: whatever takes a policy.
/// async fn greeting(hedge: &Hedge) -> Result<&'static str, ()> {
///     let work = async |attempt: hedgerow::Attempt| {
///         let millis = if attempt.number() == 0 { 400 } else { 20 };
///         tokio::time::sleep(Duration::from_millis(millis)).await;
///         Ok("hello")
///     };
///     hedge.call(work).await
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// let watch = Watch::new();
/// let hedge = Hedge::after(Duration::from_millis(50)).observer(watch.observer());
/// assert_eq!(greeting(&hedge).await, Ok("hello"));
/// watch.assert(["hedge(1)@50", "win(1)@70"]);
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<Mutex<Vec<Event>>>);

impl Watch {
    /// Watches nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What to give to [`Hedge::observer`](crate::Hedge::observer). Several policies may share it.
    pub fn observer(&self) -> Arc<dyn Observer> {
        let seen = Arc::clone(&self.0);
        Arc::new(move |event: &Event| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(*event);
        })
    }

    /// Every event so far, of all calls.
    pub fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Hedges, refusals and decisions, each at the millisecond of its call, as scenario files spell
    /// them: `hedge(1)@50`, `denied(1)@50`, `win(1)@70`, `exhausted@80`.
    pub fn timeline(&self) -> Vec<String> {
        let events = self.events();
        events.iter().filter_map(TimelineEvent::of).map(|event| event.text()).collect()
    }

    /// # Panics
    ///
    /// If the timeline is another one: says both.
    #[track_caller]
    pub fn assert<const N: usize>(&self, expected: [&str; N]) {
        let timeline = self.timeline();
        assert!(
            timeline == expected,
            "the timeline differs\n  expected: {}\n  it was:   {}",
            expected.join(", "),
            timeline.join(", "),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Hedge;
    use crate::testing::{Scenario, Script, Tokens};

    fn played(hedge: Hedge, attempts: [Script; 2]) -> Watch {
        let watch = Watch::new();
        let scenario = Scenario::new(hedge.observer(watch.observer())).script(attempts.into());
        let timeline = scenario.run(crate::testing::Front::Async);
        assert_eq!(watch.timeline(), timeline.events_text(), "they speak alike");
        watch
    }

    #[test]
    fn it_speaks_as_scenarios_do() {
        let ms = Duration::from_millis;
        let hedge = Hedge::after(ms(50));
        let watch = played(hedge.clone(), [Script::ok(ms(400), "a"), Script::ok(ms(20), "b")]);
        watch.assert(["hedge(1)@50", "win(1)@70"]);
        let fails = [Script::error(ms(10), "a"), Script::error(ms(5), "b")];
        played(hedge.clone(), fails).assert(["hedge(1)@10", "exhausted@15"]);
        let refused = hedge.budget(Arc::new(Tokens::new(0)));
        let watch = played(refused, [Script::ok(ms(90), "a"), Script::never()]);
        watch.assert(["denied(1)@50", "win(0)@90"]);
    }

    #[test]
    #[should_panic(expected = "it was:   win(0)@0")]
    fn another_timeline_is_told() {
        let scripts = [Script::ok(Duration::ZERO, "a"), Script::never()];
        played(Hedge::default(), scripts).assert(["hedge(1)@50"]);
    }
}
