//! What takes part in the benchmark, and in which of its runs.

use std::env;
use std::time::Duration;

use counts::operation::{Operation, Outcome};

/// One operation under one contender's protection.
pub trait Call: Send + Sync + 'static {
    /// Makes one call.
    fn call(&self, request: u64) -> impl Future<Output = Outcome> + Send;
}

/// A way to protect an operation.
pub trait Contender: 'static {
    /// Name in tables and on the command line.
    const NAME: &'static str;
    /// What it is compared with.
    const KIND: Kind;
    /// Whether it is Hedgerow's, and so no peer.
    const OURS: bool = false;
    /// Whether it hedges any call that is slower than a fixed delay, as the micro cases and the
    /// behaviour checks need it.
    const FIXED_DELAY: bool = true;
    /// Whether it takes part in the micro cases in which nothing is hedged.
    const STEADY: bool = Self::FIXED_DELAY;
    /// Whether it waits in real time where tokio's is paused, as in the behaviour checks.
    const REAL_TIME: bool = false;
    /// Whether it takes part in the open-loop runs.
    const OPEN_LOOP: bool = matches!(Self::KIND, Kind::Bare | Kind::ByHand | Kind::Library);

    /// Protects `operation` by one hedge after `delay`. Called inside the runtime that runs it.
    fn build<O: Operation>(operation: O, delay: Duration) -> impl Call;
}

/// What a contender is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The operation alone, which everyone is compared with.
    Bare,
    /// Does not hedge either: what other wrappers cost.
    Baseline,
    /// What people write without a library.
    ByHand,
    /// A hedge of a library.
    Library,
    /// A library's timeout, retry, circuit breaker and hedge around each other.
    Pipeline,
}

impl Kind {
    /// Whether such a contender starts hedges.
    pub fn hedges(self) -> bool {
        !matches!(self, Self::Bare | Self::Baseline)
    }

    /// The kind whose best peer it is compared with.
    pub fn rival(self) -> Self {
        if self == Self::Pipeline { Self::Pipeline } else { Self::Library }
    }
}

/// Something to do with each contender.
pub trait Visitor {
    /// Does it with one.
    fn visit<C: Contender>(&mut self);
}

/// Passes on the contenders that the environment variable `PEERS_ONLY` asks for: those whose name
/// contains one of its texts, which are separated by commas. Everyone without it.
pub struct Wanted<'a, V> {
    texts: Option<Vec<String>>,
    inner: &'a mut V,
}

impl<'a, V: Visitor> Wanted<'a, V> {
    /// In front of `inner`.
    pub fn from_env(inner: &'a mut V) -> Self {
        let texts = env::var("PEERS_ONLY").ok();
        let texts = texts.map(|list| list.split(',').map(|text| text.trim().to_owned()).collect());
        Self { texts, inner }
    }
}

impl<V: Visitor> Visitor for Wanted<'_, V> {
    fn visit<C: Contender>(&mut self) {
        let wanted = match &self.texts {
            None => true,
            Some(texts) => texts.iter().any(|text| C::NAME.contains(text.as_str())),
        };
        if wanted {
            self.inner.visit::<C>();
        }
    }
}
