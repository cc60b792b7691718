//! A plain collector, for comparison: POST a JSON object with "events", one record an event keyed by view, 200 after all acks.
//!
//! BOOTSTRAP, TOPIC and PORT are its settings. One thread serves, as every server of the benchmark has one.

use axum::{body::Bytes, extract::State, http::StatusCode, routing::post, Router};
use futures::future::try_join_all;
use rdkafka::{
    producer::{FutureProducer, FutureRecord},
    ClientConfig,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::env;

#[derive(Deserialize)]
struct Head<'a> {
    ake: &'a str,
    xid: &'a str,
}

#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
}

#[derive(Clone)]
struct Sink {
    producer: FutureProducer,
    topic: &'static str,
}

async fn receive(State(sink): State<Sink>, body: Bytes) -> Result<([(&'static str, &'static str); 1], ()), StatusCode> {
    let batch: Batch = serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let mut stored = Vec::with_capacity(batch.events.len());
    for event in batch.events {
        let head: Head = serde_json::from_str(event.get()).map_err(|_| StatusCode::BAD_REQUEST)?;
        let key = format!("{}:{}", head.ake, head.xid);
        let record = FutureRecord::to(sink.topic).key(&key).payload(event.get());
        let report = sink.producer.send_result(record).map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
        stored.push(async { report.await.map_err(|_| ())?.map_err(|_| ()) });
    }
    try_join_all(stored).await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok(([("Access-Control-Allow-Origin", "*")], ()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let producer: FutureProducer = ClientConfig::new()
        .set("bootstrap.servers", env::var("BOOTSTRAP").expect("BOOTSTRAP"))
        .set("acks", "all")
        .set("enable.idempotence", "true")
        .set("linger.ms", "5")
        .set("compression.codec", "lz4")
        .set("partitioner", "murmur2")
        .create()
        .expect("a producer");
    let topic: &'static str = env::var("TOPIC").expect("TOPIC").leak();
    let app = Router::new().route("/", post(receive)).with_state(Sink { producer, topic });
    let address = format!("127.0.0.1:{}", env::var("PORT").expect("PORT"));
    let listener = tokio::net::TcpListener::bind(address).await.expect("the port");
    axum::serve(listener, app).await.expect("serving");
}
