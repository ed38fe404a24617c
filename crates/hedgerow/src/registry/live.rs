//! A pipeline of a registry inside a pipeline that code makes.

use std::fmt;

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
/// It keeps the observer and the clock that the registry gives, and tells that observer what its own
/// strategies do: give the pipeline around it the same, which is told every attempt and the end. What the pipeline around it prints
/// and [counts](crate::pipeline::Pipeline::max_attempts) of it is as it was when it was built; when
/// its name is gone from the configuration, it goes on as it was then, too.
#[derive(Clone)]
pub struct Live {
    registry: Registry,
    earlier: ConfiguredPipeline,
}

impl Live {
    pub(super) fn new(registry: Registry, earlier: ConfiguredPipeline) -> Self {
        Self { registry, earlier }
    }

    fn pipeline(&self) -> ConfiguredPipeline {
        self.registry.get(self.earlier.name()).unwrap_or_else(|| self.earlier.clone())
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
        Layer::kind(&self.earlier)
    }

    fn settings(&self) -> String {
        Layer::settings(&self.earlier)
    }

    fn attach(&mut self, _: Place) {}

    fn facts(&self) -> Facts {
        Layer::facts(&self.earlier)
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
