//! Keeps good values.

mod run;
mod store;

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::InvalidOption;
use hedgerow_core::text::format_duration;

use super::builder::Builder;
use super::classify::{HandleBy, Inherit, Own, PipelineResult};
use super::context::Context;
use super::layer::{Layer, Place};
use super::outcome::Raises;
pub use run::CacheRun;
use store::Store;

/// Where a [`single`](Cache::single) value is kept: there is one place.
type Always = fn(&Context) -> Option<()>;

/// Keeps good values, and answers with them instead of doing the work.
///
/// | option | values | default |
/// |---|---|---|
/// | `max_entries` | how many keys, 1 or more | none: [`keyed`](Cache::keyed) says it |
/// | `ttl` | how long a value is good; zero is refused, [`Duration::MAX`] is for ever | for ever |
/// | `serve_stale` | how long after that a failure is still answered with it | zero: not at all |
/// | `handle`, `classify` | which outcomes are failures | as the execution says |
///
/// A value is kept if it is a success that is not handled, and counts as made when the work ended.
/// It is cloned for each answer, so streams and other values that can be read only once cannot be
/// kept; `Arc` makes cloning cheap.
///
/// **Stale values.** A value past its time stays where it is. The work runs then, and only if its
/// outcome is handled and the value no longer than `serve_stale` past its time is the value the
/// answer. Rejections inside are not handled unless a predicate says so; whoever wants old values
/// while an inner breaker is open has [`handle`](Cache::handle) say it.
///
/// **Keys.** The closure makes one from what the execution carries, its operation or its properties
/// for instance; `None` goes past the cache. It must name everything that the answer depends on:
/// who asks, too. They are spread over a few shards, each with its part of `max_entries`, rounded up:
/// one that is full forgets what was asked for least, though others may have room. `Hash` and `Eq`
/// of keys must not panic.
///
/// **Misses.** Executions that miss at the same time all do the work, and each keeps what it got.
/// There is nothing here that makes them wait for one of them.
///
/// Clones share the values; [`control`](Cache::control) drops them. A value that was on its way when
/// something was dropped is not kept. Outside a hedge or a retry a hit saves all of it, which is its
/// place; inside, each attempt looks.
///
/// ```
/// use std::time::Duration;
/// use hedgerow::Properties;
/// use hedgerow::pipeline::{Cache, Context, Pipeline};
///
/// #[derive(Clone, PartialEq, Eq, Hash)]
/// struct User(u32);
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let cache = Cache::keyed(10_000, |cx: &Context| cx.attempt().properties().get::<User>())
///     .ttl(Duration::from_secs(60))
///     .serve_stale(Duration::from_secs(3600));
/// let pipeline = Pipeline::builder().cache(cache).build().unwrap();
/// for name in ["ada", "bob"] {
///     let properties = Properties::new();
///     properties.insert(User(7));
///     let found = pipeline.execute(|_| async move { Ok::<_, String>(name) });
///     assert_eq!(found.properties(&properties).await, Ok("ada"));
/// }
/// # }
/// ```
///
/// A value that cannot be cloned cannot be kept:
///
/// ```compile_fail
/// use hedgerow::pipeline::{Cache, Pipeline};
///
/// struct Body;
///
/// # async fn run() {
/// let pipeline = Pipeline::builder().cache(Cache::single()).build().unwrap();
/// let _ = pipeline.execute(|_| async { Ok::<_, String>(Body) }).await;
/// # }
/// ```
pub struct Cache<T, K = (), F = Always, P = Inherit> {
    settings: Settings,
    key: F,
    store: Arc<Store<T, K>>,
    predicate: P,
    place: Place,
}

#[derive(Debug, Clone, Copy)]
struct Settings {
    /// `None`: a single value.
    max_entries: Option<usize>,
    ttl: Duration,
    serve_stale: Duration,
}

impl Settings {
    fn new(max_entries: Option<usize>) -> Self {
        Self { max_entries, ttl: Duration::MAX, serve_stale: Duration::ZERO }
    }
}

impl<T> Cache<T> {
    /// Keeps one value, whoever asks.
    pub fn single() -> Self {
        let (settings, store) = (Settings::new(None), Arc::new(Store::single()));
        let (predicate, place) = (Inherit, Place::default());
        Self { settings, key: |_| Some(()), store, predicate, place }
    }
}

impl<T, K: Hash + Eq, F: Fn(&Context) -> Option<K>> Cache<T, K, F> {
    /// Keeps a value for each of about `max_entries` keys.
    pub fn keyed(max_entries: usize, key: F) -> Self {
        let settings = Settings::new(Some(max_entries));
        let store = Arc::new(Store::keyed(max_entries));
        Self { settings, key, store, predicate: Inherit, place: Place::default() }
    }
}

impl<T, K, F, P> Cache<T, K, F, P> {
    /// How long a value is good. Default: for ever.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// How long after its time a value still answers for a failure; [`Duration::MAX`] is for ever.
    /// Default: zero, which is not at all.
    pub fn serve_stale(mut self, longest: Duration) -> Self {
        self.settings.serve_stale = longest;
        self
    }

    /// Which outcomes are failures, whatever the execution says: those are not kept, and a stale
    /// value is better.
    pub fn handle<E, H>(self, handle: H) -> Cache<T, K, F, HandleBy<H>>
    where
        H: Fn(&PipelineResult<T, E>) -> bool,
    {
        self.predicate(HandleBy(handle))
    }

    /// What outcomes mean, whatever the execution says.
    pub fn classify<C>(self, classifier: C) -> Cache<T, K, F, Own<C>> {
        self.predicate(Own(classifier))
    }

    fn predicate<Q>(self, predicate: Q) -> Cache<T, K, F, Q> {
        let Self { settings, key, store, predicate: _, place } = self;
        Cache { settings, key, store, predicate, place }
    }

    /// Drops what is kept, before and after the cache is built into a pipeline.
    pub fn control(&self) -> CacheControl<T, K> {
        CacheControl(Arc::clone(&self.store))
    }
}

impl<T, K, F, P> Layer for Cache<T, K, F, P> {
    type Raises<I: Raises> = I;

    fn kind(&self) -> &'static str {
        "cache"
    }

    fn settings(&self) -> String {
        let Settings { max_entries, ttl, serve_stale } = self.settings;
        let values = match max_entries {
            Some(most) => format!("{most} values"),
            None => "one value".to_owned(),
        };
        let ttl = match ttl {
            Duration::MAX => String::new(),
            ttl => format!(", good for {}", format_duration(ttl)),
        };
        let stale = match serve_stale {
            Duration::ZERO => String::new(),
            Duration::MAX => ", stale for ever".to_owned(),
            stale => format!(", stale for {}", format_duration(stale)),
        };
        values + &ttl + &stale
    }

    fn check(&self, mistakes: &mut Vec<InvalidOption>) {
        if self.settings.max_entries == Some(0) {
            let remedy = "nothing could be kept; give it room, or leave the cache out";
            mistakes.push(InvalidOption::new("max_entries", 0, remedy));
        }
        if self.settings.ttl.is_zero() {
            let remedy = "no value would ever be good; give it a time, or leave the cache out";
            mistakes.push(InvalidOption::new("ttl", "0s", remedy));
        }
    }

    fn attach(&mut self, place: Place) {
        self.place = place;
    }
}

impl<T, K, F: Clone, P: Clone> Clone for Cache<T, K, F, P> {
    fn clone(&self) -> Self {
        Self {
            settings: self.settings,
            key: self.key.clone(),
            store: Arc::clone(&self.store),
            predicate: self.predicate.clone(),
            place: self.place.clone(),
        }
    }
}

impl<T, K, F, P> fmt::Debug for Cache<T, K, F, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Drops what a [`Cache`] and its clones keep. Values may use it when they are dropped.
pub struct CacheControl<T, K = ()>(Arc<Store<T, K>>);

impl<T, K: Hash + Eq> CacheControl<T, K> {
    /// Drops everything.
    pub fn invalidate(&self) {
        self.0.clear();
    }

    /// Drops the value of this key. Values that are on their way are not kept, whatever their keys.
    pub fn invalidate_key(&self, key: &K) {
        self.0.remove(key);
    }

    /// How many values are kept, those past their time included.
    pub fn entries(&self) -> usize {
        self.0.len()
    }
}

impl<T, K> Clone for CacheControl<T, K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T, K> fmt::Debug for CacheControl<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CacheControl")
    }
}

impl<S> Builder<S> {
    /// Adds a [`Cache`].
    pub fn cache<T, K, F, P>(self, cache: Cache<T, K, F, P>) -> Builder<(S, Cache<T, K, F, P>)> {
        self.with(cache)
    }
}
