//! H27 to H31, T42, T43: streams through a pipeline.

use futures_util::StreamExt;
use hedgerow::Hedge;
use hedgerow::pipeline::{Pipeline, PipelineError};
use hedgerow::stream::HedgedStream;

use crate::streams::{Items, ends, fails, item, open, read, silent};
use crate::support::{Notes, ms};

/// Opens the stream of each attempt by its number in the whole execution.
macro_rules! scripted {
    ($notes:expr, $script:expr) => {{
        let (notes, script) = ($notes.clone(), $script);
        move |attempt| open(&notes, script.clone())(attempt)
    }};
}

#[tokio::test(start_paused = true)]
async fn h27_the_first_item_decides_and_losers_are_dropped() {
    let pipeline =
        Pipeline::builder().timeout(ms(500)).hedge(Hedge::after(ms(50))).build().unwrap();
    let notes = Notes::new();
    let script = [vec![item(200, "slow")], vec![item(20, "b"), item(40, "c")]];
    let stream = pipeline.execute_stream(scripted!(notes, script)).await.unwrap();
    assert_eq!(read(&notes, stream).await, [(Ok("b"), 70), (Ok("c"), 90)]);
    assert_eq!(notes.lines(), ["S0 dropped @70", "S1 dropped @90"]);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_limits_the_time_to_the_first_item_and_no_more() {
    let pipeline = Pipeline::builder().timeout(ms(100)).build().unwrap();
    let notes = Notes::new();
    let script = [vec![item(90, "a"), item(900, "b"), ends(901)]];
    let stream = pipeline.execute_stream(scripted!(notes, script)).await.unwrap();
    assert_eq!(read(&notes, stream).await, [(Ok("a"), 90), (Ok("b"), 900)]);
    let silent = pipeline.execute_stream(scripted!(notes, [vec![silent()]])).await;
    assert!(matches!(silent, Err(PipelineError::TimedOut(_))));
    assert_eq!(notes.lines().last().unwrap(), "S0 dropped @1001");
}

#[tokio::test(start_paused = true)]
async fn h29_an_error_before_the_first_item_is_a_failure_and_after_it_the_consumers() {
    let pipeline = Pipeline::builder().hedge(Hedge::after(ms(50))).build().unwrap();
    let notes = Notes::new();
    let script = [vec![fails(10, "p")], vec![item(10, "b"), fails(20, "broken"), ends(90)]];
    let stream = pipeline.execute_stream(scripted!(notes, script)).await.unwrap();
    assert_eq!(read(&notes, stream).await, [(Ok("b"), 20), (Err("broken"), 30)]);
}

#[tokio::test(start_paused = true)]
async fn h31_t43_a_refused_stream_is_closed_unless_it_is_returned() {
    let pipeline = Pipeline::builder().hedge(Hedge::after(ms(50))).build().unwrap();
    let notes = Notes::new();
    let script = [vec![item(10, "bad"), silent()], vec![item(10, "worse"), silent()]];
    let mut stream: HedgedStream<Items> =
        pipeline.execute_stream(scripted!(notes, script)).handle(|_| true).await.unwrap();
    assert_eq!(notes.lines(), ["S1 dropped @20"]);
    assert_eq!(stream.next().await, Some(Ok("bad")), "whole, with its first item");
}
