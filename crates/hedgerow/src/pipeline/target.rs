//! One set of strategies for each of several targets.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use hedgerow_core::InvalidOption;

use super::context::Context;
use super::layer::{Facts, Layer, Nests, Place};
use super::leaf::Inner;
use super::next::{Around, Next, Strategy};
use super::outcome::Raises;
use super::pipeline::Pipeline;
use crate::attempt::Attempt;

/// Sends each attempt to one of several targets, through strategies of that target's own: a breaker
/// and a limiter for each endpoint, say. Added inside a hedge or a retry.
///
/// Each target has a pipeline, and all of these have strategies of the same types. The work reads
/// where it is to go from [`Attempt::target`], an index into the list. By default attempt 0 goes to
/// the first target, attempt 1 to the second and so on, round and round: the first has nearly all of
/// the load. [`spread`](PerTarget::spread) lets each execution begin at another, by chance;
/// [`route`](PerTarget::route) decides otherwise.
///
/// ```
/// use std::time::Duration;
/// use hedgerow::Hedge;
/// use hedgerow::pipeline::{PerTarget, Pipeline};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # async fn get(host: &str) -> Result<String, String> {
/// #     if host == "eu.example" { std::future::pending().await } Ok(host.to_owned())
/// # }
/// let hosts = ["eu.example", "us.example"];
/// let endpoint = |_: &_| Pipeline::builder().timeout(Duration::from_secs(10)).build().unwrap();
/// let pipeline = Pipeline::builder()
///     .hedge(Hedge::after(Duration::from_millis(5)))
///     .with(PerTarget::new(hosts.iter().map(|host| (*host, endpoint(host)))))
///     .build()
///     .unwrap();
/// let answer = pipeline.execute(|attempt| get(hosts[attempt.target().unwrap()])).await;
/// assert_eq!(answer, Ok("us.example".to_owned()));
/// # }
/// ```
pub struct PerTarget<L> {
    targets: Arc<[(Arc<str>, Pipeline<L>)]>,
    route: Option<Route>,
    spread: bool,
    place: Place,
}

type Route = Arc<dyn Fn(&Attempt) -> usize + Send + Sync>;

impl<L> PerTarget<L> {
    /// Targets with their names and their pipelines.
    pub fn new<K: Into<Arc<str>>>(targets: impl IntoIterator<Item = (K, Pipeline<L>)>) -> Self {
        let targets = targets.into_iter().map(|(name, pipeline)| (name.into(), pipeline));
        let (targets, place) = (targets.collect(), Place::default());
        Self { targets, route: None, spread: false, place }
    }

    /// Begins each execution at another target, by chance, so that all have the same load; further
    /// attempts go round from there.
    #[must_use]
    pub fn spread(mut self) -> Self {
        self.spread = true;
        self
    }

    /// Which target an attempt goes to, by its index; a number past the last counts on from the
    /// first.
    #[must_use]
    pub fn route(mut self, route: impl Fn(&Attempt) -> usize + Send + Sync + 'static) -> Self {
        self.route = Some(Arc::new(route));
        self
    }

    /// How many targets there are.
    pub(super) fn len(&self) -> usize {
        self.targets.len()
    }

    /// The target of this name.
    pub fn get(&self, name: &str) -> Option<&Pipeline<L>> {
        self.targets.iter().find(|(target, _)| **target == *name).map(|(_, pipeline)| pipeline)
    }

    /// Where the attempt goes.
    fn index(&self, cx: &Context) -> usize {
        let begun = if self.spread { cx.start() } else { 0 };
        let chosen = match &self.route {
            Some(route) => route(cx.attempt()),
            None => usize::try_from(begun.wrapping_add(cx.number())).unwrap_or(usize::MAX),
        };
        chosen % self.len()
    }
}

impl<L> Clone for PerTarget<L> {
    fn clone(&self) -> Self {
        let Self { targets, route, spread, place } = self;
        let (targets, route, place) = (Arc::clone(targets), route.clone(), place.clone());
        Self { targets, route, spread: *spread, place }
    }
}

impl<L> fmt::Debug for PerTarget<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerTarget").field("targets", &self.targets).finish_non_exhaustive()
    }
}

impl<L: Nests> Layer for PerTarget<L> {
    type Raises<I: Raises> = L::Raises<I>;

    fn kind(&self) -> &'static str {
        "per-target"
    }

    fn settings(&self) -> String {
        let names: Vec<_> = self.targets.iter().map(|(name, _)| &**name).collect();
        names.join(", ")
    }

    fn check(&self, mistakes: &mut Vec<InvalidOption>) {
        let most = usize::from(u16::MAX);
        match self.targets.len() {
            0 => {
                let remedy = "there is nowhere to go; name at least one target";
                mistakes.push(InvalidOption::new("targets", "[]", remedy));
            }
            targets if targets > most => {
                let remedy = format!("at most {most} targets can be told apart");
                mistakes.push(InvalidOption::new("targets", targets, remedy));
            }
            _ => {}
        }
        let mut names = BTreeSet::new();
        if let Some((twice, _)) = self.targets.iter().find(|(name, _)| !names.insert(name)) {
            let remedy = "named twice; give each target a name of its own";
            mistakes.push(InvalidOption::new("targets", twice, remedy));
        }
    }

    fn attach(&mut self, place: Place) {
        let targets = self.targets.iter();
        let targets = targets.map(|(name, there)| (Arc::clone(name), there.adopted(&place)));
        self.targets = targets.collect();
        self.place = place;
    }

    /// Those of any target, and of times and counts the one that all keep to.
    fn facts(&self) -> Facts {
        let targets = self.targets.iter().map(|(_, pipeline)| Layer::facts(pipeline));
        let spreads = Facts { spreads: self.spread, ..Facts::default() };
        targets.reduce(Facts::either).map_or(spreads.clone(), |facts| Facts {
            spreads: facts.spreads || self.spread,
            ..facts
        })
    }
}

impl<'p, N, L> Strategy<N> for &'p PerTarget<L>
where
    N: Next,
    L: Around<'p, Inner<N>>,
{
    type Run = L::Run;

    const FORKS: bool = L::FORKS;

    fn run(self, next: N, cx: &Context) -> Self::Run {
        let index = self.index(cx);
        let (_, pipeline) = &self.targets[index];
        let cx = cx.at_target(u16::try_from(index).unwrap_or(u16::MAX));
        pipeline.layers().run_once(Inner(next), &cx)
    }

    fn attempts(run: &Self::Run) -> u32 {
        L::attempts(run)
    }
}
