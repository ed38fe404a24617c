#![allow(missing_docs)]
use hedgerow::pipeline::*;
use hedgerow::*;
use std::time::Duration;
macro_rules! size { ($name:expr, $b:expr) => {{ let p = $b.build().unwrap(); let f = p.execute(|_| std::future::ready(Ok::<u64, String>(1))).into_future(); println!("{} {}", $name, size_of_val(&f)); }} }
fn main() {
    let d = Duration::from_secs(1);
    let h = Hedge::after(d);
    size!("empty", Pipeline::builder());
    size!("timeout", Pipeline::builder().timeout(d));
    size!("retry", Pipeline::builder().retry(Retry::constant()));
    size!("breaker", Pipeline::builder().circuit_breaker(CircuitBreaker::default()));
    size!("hedge", Pipeline::builder().hedge(h.clone()));
    size!("all", Pipeline::builder().timeout(d).retry(Retry::constant()).circuit_breaker(CircuitBreaker::default()).hedge(h.clone()));
    println!("cx {}", size_of::<Context>());
    let x = h.call(|_| std::future::ready(Ok::<u64, String>(1))).into_future();
    println!("hedge alone {}", size_of_val(&x));
}
