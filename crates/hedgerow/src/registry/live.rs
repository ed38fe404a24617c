//! A pipeline of a registry inside a pipeline that code makes.

use std::fmt;
use std::mem::replace;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{ConfiguredPipeline, Registry};
use crate::pipeline::parts::{CustomRun, Everything, Layer, Place, Raises, Strategy};
use crate::pipeline::{BoxRun, Context, Facts, Next};

/// A pipeline of a [`Registry`] as a strategy: a run goes through what is in force when it begins.
///
/// Made by [`Registry::live`], for what a file cannot say. [Box](crate::pipeline::Pipeline::boxed)
/// the whole to spawn its executions.
///
/// ```
/// use hedgerow::pipeline::{Fallback, Pipeline};
/// use hedgerow::registry::{PipelinesConfig, Registry};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = r#"{ "search": { "strategies": ["timeout"], "timeout": "10ms" } }"#;
/// let registry = Registry::new(&serde_json::from_str::<PipelinesConfig>(text)?);
/// let search = Pipeline::builder()
///     .fallback(Fallback::value(42))
///     .with(registry.live("search").ok_or("no such pipeline")?)
///     .build()?
///     .boxed::<u32, String>();
/// assert_eq!(search.execute(|_| std::future::pending()).await, Ok(42));
/// # Ok(()) }
/// ```
///
/// It has the observer and the clock that the registry gives, or else those of the pipeline around it.
/// What that prints and [counts](crate::pipeline::Pipeline::max_attempts) of it is as it was when it
/// was built. When its name is gone from the configuration, it goes on as in its last run. An observer
/// of the registry is told what its strategies do; every attempt and the end are told to that of the
/// pipeline around it: give both the same.
#[derive(Clone)]
pub struct Live {
    registry: Registry,
    place: Place,
    latest: Arc<Mutex<Latest>>,
}

/// What is in force, as far as it was asked for.
#[derive(Clone)]
struct Latest {
    of_registry: ConfiguredPipeline,
    /// The same in its place.
    here: ConfiguredPipeline,
}

impl Live {
    pub(super) fn new(registry: Registry, of_registry: ConfiguredPipeline) -> Self {
        let latest = Latest { here: of_registry.clone(), of_registry };
        Self { registry, place: Place::default(), latest: Arc::new(Mutex::new(latest)) }
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        // Nothing panics under the lock.
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pipeline(&self) -> ConfiguredPipeline {
        let latest = self.latest().clone();
        let now = self.registry.get(latest.of_registry.name());
        let Some(of_registry) = now.filter(|now| !now.is(&latest.of_registry)) else {
            return latest.here;
        };
        // Taking its place may drop what is the program's: not under the lock.
        let here = of_registry.adopted(&self.place);
        let next = Latest { of_registry, here: here.clone() };
        let before = replace(&mut *self.latest(), next);
        drop(before);
        here
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Live").field(&self.pipeline()).finish()
    }
}

impl Layer for Live {
    type Raises<I: Raises> = Everything;

    fn kind(&self) -> &'static str {
        "pipeline"
    }

    fn settings(&self) -> String {
        self.pipeline().to_string()
    }

    fn attach(&mut self, place: Place) {
        let of_registry = self.latest().of_registry.clone();
        let here = of_registry.adopted(&place);
        self.latest = Arc::new(Mutex::new(Latest { of_registry, here }));
        self.place = place;
    }

    fn facts(&self) -> Facts {
        Layer::facts(&self.pipeline())
    }
}

impl<'p, N> Strategy<N> for &'p Live
where
    N: Next<Value: Send, Error: Send, Run: Send, Classifier: Send + Sync> + Send + Sync + 'p,
{
    type Run = CustomRun<BoxRun<'p, N::Value, N::Error>>;

    const FORKS: bool = true;

    fn run(self, next: N, cx: &Context) -> Self::Run {
        let pipeline = self.pipeline();
        CustomRun::counted(cx, |cx| -> BoxRun<'p, N::Value, N::Error> {
            Box::pin(async move { pipeline.run(next, &cx).await })
        })
    }

    fn attempts(run: &Self::Run) -> u32 {
        run.attempts()
    }
}
