//! Executions whose answer is a stream.

use std::future::Future;

use futures_core::TryStream;

use super::execution::Execution;
use super::layer::Layers;
use super::outcome::Nothing;
use super::pipeline::Pipeline;
use crate::attempt::Attempt;
use crate::rules::Defaults;
use crate::stream::Opening;

/// Whether an item decides, where nothing was said about it: any does.
type AnyItem<S> = fn(&<S as TryStream>::Ok) -> bool;

impl<L: Layers> Pipeline<L> {
    /// Opens a stream through the whole pipeline: an attempt's outcome is its first item, or what
    /// comes instead (see [`stream`](crate::stream)).
    ///
    /// What the strategies do, they do until the stream commits: a timeout limits the time to the
    /// first item, a slot of a limiter is given back then, a retry and a hedge open it again. From
    /// then on the stream is the caller's, also where a token cancels the execution. The streams of
    /// losers are dropped, as are those that a predicate refused, unless one of them is returned in
    /// the end (T42, T43).
    ///
    /// Which items decide is said by the opening itself:
    /// `pipeline.execute(|attempt| Opening::new(open(attempt)).commit_when(..))`.
    ///
    /// ```
    /// use futures_util::{StreamExt, stream};
    /// use hedgerow::Hedge;
    /// use hedgerow::pipeline::Pipeline;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # type Answer = stream::Iter<std::vec::IntoIter<Result<&'static str, std::fmt::Error>>>;
    /// # async fn ask(attempt: u32) -> Result<Answer, std::fmt::Error> {
    /// #     if attempt == 0 { std::future::pending().await }
    /// #     Ok(stream::iter(vec![Ok("to "), Ok("be")]))
    /// # }
    /// let hedge = Hedge::after(std::time::Duration::from_millis(5));
    /// let pipeline = Pipeline::builder().hedge(hedge).build()?;
    /// let mut answer = pipeline.execute_stream(|attempt| ask(attempt.number())).await?;
    /// while let Some(word) = answer.next().await {
    ///     print!("{}", word?);
    /// }
    /// # Ok(()) }
    /// ```
    #[expect(clippy::type_complexity, reason = "what an execution is made of")]
    pub fn execute_stream<F, Fut, S>(
        &self,
        open: F,
    ) -> Execution<
        '_,
        L,
        impl Fn(Attempt) -> Opening<Fut, S, AnyItem<S>> + Clone + use<L, F, Fut, S>,
        Defaults,
        L::Raises<Nothing>,
    >
    where
        F: Fn(Attempt) -> Fut + Clone,
        Fut: Future<Output = Result<S, S::Error>>,
        S: TryStream + Unpin,
    {
        Execution::new(self, move |attempt| Opening::new(open(attempt)))
    }
}
