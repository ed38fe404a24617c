//! Where executions can go: other threads, with what they borrow. That it compiles is the test.

use std::future::IntoFuture;

use hedgerow::Hedge;
use hedgerow::pipeline::{CircuitBreaker, End, Pipeline, Retry, Then, Timeout};
use hedgerow::registry::{PipelinesConfig, Registry};

use crate::support::ms;

fn anywhere<F: Future + Send + 'static>(_: F) {}

type Stack = Then<Timeout, Then<Retry, End>>;

/// Pipelines can be named, too.
fn named() -> Pipeline<Stack> {
    Pipeline::builder().timeout(ms(10)).retry(Retry::immediately()).build().unwrap()
}

#[test]
fn executions_are_send_with_what_they_borrow() {
    let pipeline = Pipeline::builder()
        .timeout(ms(10))
        .retry(Retry::exponential())
        .hedge(Hedge::default())
        .circuit_breaker(CircuitBreaker::default())
        .build()
        .unwrap();
    let (boxed, texts) = (pipeline.boxed::<usize, String>(), pipeline.boxed::<&str, &str>());
    let config: PipelinesConfig = toml::from_str("[x]\nstrategies = [\"hedge\"]").unwrap();
    let registry = Registry::new(&config);
    let configured = registry.get("x").unwrap();
    let again = configured.clone();
    let stack = named();
    anywhere(async move {
        let query = String::new();
        stack.execute(|_| async { Ok::<_, String>(query.len()) }).await
    });
    let (one, two) = (pipeline.clone(), pipeline.clone());
    anywhere(async move {
        let query = String::new();
        let query = &query;
        one.execute(move |_| async move { Ok::<&str, &str>(query) }).await.map(str::len).is_ok()
    });
    anywhere(async move { two.execute(|_| async { Ok::<_, String>(1) }).handle(|_| true).await });
    anywhere(async move {
        let query = String::new();
        boxed.execute(|_| async { Ok(query.len()) }).await
    });
    anywhere(async move { texts.execute(|_| async { Ok("x") }).await });
    anywhere(async move {
        let query = String::new();
        configured.execute(|_| async { Ok::<_, String>(query.len()) }).await
    });
    anywhere(async move {
        again.execute(|_| async { Ok::<_, &str>("x") }).handle(Result::is_err).await
    });
}

#[test]
fn executions_need_not_be_send() {
    let pipeline = Pipeline::builder().hedge(Hedge::default()).build().unwrap();
    let here = std::rc::Rc::new(7);
    let work = |_| {
        let here = std::rc::Rc::clone(&here);
        async move { Ok::<_, String>(*here) }
    };
    let outcome = futures_executor::block_on(pipeline.execute(work).into_future());
    assert_eq!(outcome, Ok(7));
}
