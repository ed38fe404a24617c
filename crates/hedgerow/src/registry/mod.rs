//! Named pipelines from one configuration, changed while they are in use.
//!
//! ```toml
//! [pipelines.search]
//! strategies = ["total", "retry", "hedge", "attempt"]     # the first is outermost
//! total = { kind = "timeout", limit = "2s" }
//! retry = { max_retries = 2, base = "50ms" }
//! hedge = { delay = "150ms", max_extra_load = "5%" }
//! attempt = { kind = "timeout", limit = "500ms" }
//! ```
//!
//! A strategy that is called as its kind needs no `kind`. [`PipelinesConfig`] says which kinds there
//! are, and what can be said of each.

mod config;
mod live;
mod strategies;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use config::Entry;
pub use config::{PipelineConfig, PipelinesConfig};
pub use live::Live;

use crate::pipeline::parts::Dynamic;
use crate::pipeline::{Builder, Pipeline};

/// A pipeline from a configuration.
pub type ConfiguredPipeline = Pipeline<Dynamic>;

type Entries = BTreeMap<Arc<str>, Arc<Entry>>;

type Setup = dyn Fn(&str, Builder<()>) -> Builder<()> + Send + Sync;

/// Named pipelines, which can be changed while executions run through them.
///
/// Clones share them. An execution runs under the pipeline that it was made with: ask for the
/// pipeline by its name each time.
///
/// ```
/// use hedgerow::registry::{PipelinesConfig, Registry};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = r#"{ "search": { "strategies": ["timeout", "hedge"], "timeout": { "limit": "2s" } } }"#;
/// let config: PipelinesConfig = serde_json::from_str(text)?;
/// let registry = Registry::new(&config);
/// let answer = registry.get("search").unwrap().execute(async |_| Ok::<_, String>(42)).await;
/// assert_eq!(answer, Ok(42));
///
/// let changed: PipelinesConfig = serde_json::from_str(r#"{ "search": { "strategies": [] } }"#)?;
/// registry.set(&changed);
/// assert_eq!(registry.get("search").unwrap().to_string(), "search: work");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Registry {
    pipelines: Arc<RwLock<Entries>>,
    /// One change at a time.
    changing: Arc<Mutex<()>>,
    setup: Arc<Setup>,
}

impl Registry {
    /// The pipelines of this configuration.
    pub fn new(config: &PipelinesConfig) -> Self {
        Self::with(config, |_, builder| builder)
    }

    /// The same, each set up by this first, which is told its name: given its observer, its clock.
    /// Used for those of a changed configuration as well.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use hedgerow::registry::{PipelinesConfig, Registry};
    /// use hedgerow::telemetry::PipelineMetrics;
    ///
    /// # fn registry(config: &PipelinesConfig) -> Registry {
    /// Registry::with(config, |name, builder| {
    ///     builder.observer(Arc::new(PipelineMetrics::new(name.to_owned())))
    /// })
    /// # }
    /// ```
    pub fn with(
        config: &PipelinesConfig,
        setup: impl Fn(&str, Builder<()>) -> Builder<()> + Send + Sync + 'static,
    ) -> Self {
        let (pipelines, changing) = (Arc::default(), Arc::default());
        let registry = Self { pipelines, changing, setup: Arc::new(setup) };
        registry.set(config);
        registry
    }

    /// The pipeline of this name, as it is now.
    pub fn get(&self, name: &str) -> Option<ConfiguredPipeline> {
        self.read().get(name).map(|entry| entry.pipeline.clone())
    }

    /// The pipeline of this name, to be put into another one, which then always has what is in force:
    /// code that goes around strategies from a file.
    pub fn live(&self, name: &str) -> Option<Live> {
        let pipeline = self.get(name)?;
        Some(Live::new(self.clone(), pipeline))
    }

    /// The names, in alphabetical order.
    pub fn names(&self) -> Vec<Arc<str>> {
        self.read().keys().cloned().collect()
    }

    /// Puts another configuration in force, for every later execution; those under way end as they
    /// began.
    ///
    /// A strategy that keeps its name and kind in a pipeline that keeps its name goes on with what it
    /// has: a hedge with what it learned, and with its budget if the ratio stays; a breaker and a
    /// limiter if none of their settings changed. Pipelines that the configuration does not name are
    /// gone. A configuration that was refused never gets here, so the last good one stays.
    pub fn set(&self, config: &PipelinesConfig) {
        let one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        // Nothing of the program's runs under the lock that executions need.
        let earlier = self.read().clone();
        let next = config.pipelines().map(|(name, config)| {
            let builder = (self.setup)(name, Pipeline::builder()).name(Arc::clone(name));
            let entry = Entry::new(config, builder, earlier.get(name).map(|entry| &**entry));
            (Arc::clone(name), Arc::new(entry))
        });
        let next: Entries = next.collect();
        let replaced = std::mem::replace(
            &mut *self.pipelines.write().unwrap_or_else(PoisonError::into_inner),
            next,
        );
        drop(one_at_a_time);
        drop((replaced, earlier));
    }

    fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.pipelines.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pipelines = self.read();
        let lines = pipelines.values().map(|entry| entry.pipeline.to_string()).collect::<Vec<_>>();
        f.debug_struct("Registry").field("pipelines", &lines).finish_non_exhaustive()
    }
}
