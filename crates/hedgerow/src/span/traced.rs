//! Spans through `tracing`.

use tracing::{Span, dispatcher, info_span};

use super::SpanMode;

/// The span of a call, if it has one.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallSpan(Option<Span>);

impl CallSpan {
    /// Opens the span of a call that is made here.
    #[inline]
    pub(crate) fn open(mode: SpanMode) -> Self {
        let wanted = match mode {
            SpanMode::Never => false,
            SpanMode::Always => true,
            SpanMode::IfParent => dispatcher::has_been_set() && has_parent(),
        };
        Self(wanted.then(|| info_span!(target: "hedgerow", "hedged")))
    }

    /// The span that is open here, for an attempt that runs elsewhere; none if its call opens none.
    pub(crate) fn current(mode: SpanMode) -> Self {
        Self((mode != SpanMode::Never && has_parent()).then(Span::current))
    }

    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Runs something inside the span.
    pub(crate) fn within<V>(&self, run: impl FnOnce() -> V) -> V {
        match &self.0 {
            None => run(),
            Some(span) => span.in_scope(run),
        }
    }
}

fn has_parent() -> bool {
    dispatcher::get_default(|dispatch| dispatch.current_span().id().is_some())
}
