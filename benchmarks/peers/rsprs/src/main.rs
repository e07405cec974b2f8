//! rsp-rs on the events of a file: prints a line of JSON with its answers, the wall and CPU time of each from the
//! event that lets its window close, and how long everything took when nobody waited between the windows.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{env, error::Error, fs::File, io::BufReader, thread};

use cpu_time::ProcessTime;
use oxigraph::model::{GraphName, Literal, NamedNode, Quad, Term};
use rsp_rs::{BindingWithTimestamp, CSPARQLWindow, RDFStream, RSPEngine};
use serde::Deserialize;
use serde_json::json;

type Fallible<T> = Result<T, Box<dyn Error>>;

const LONGEST: Duration = Duration::from_secs(120);

#[derive(Deserialize)]
#[serde(untagged)]
enum Object {
    Iri(String),
    Typed(String, String),
}

#[derive(Deserialize)]
struct Triple(String, String, Object);

#[derive(Deserialize)]
struct Event(i64, Vec<Triple>);

#[derive(Deserialize)]
struct Slide {
    close: i64,
    events: Vec<Event>,
    closing: Event,
}

#[derive(Deserialize)]
struct Job {
    query: String,
    stream: String,
    window: String,
    start: i64,
    statics: Vec<Triple>,
    slides: Vec<Slide>,
    rows: usize,
}

/// Quads of an event, and its time.
type Ready = (Vec<Quad>, i64);

struct Peer {
    stream: RDFStream,
    window: Arc<Mutex<CSPARQLWindow>>,
    found: Receiver<BindingWithTimestamp>,
}

impl Peer {
    fn new(job: &Job) -> Fallible<Self> {
        let mut engine = RSPEngine::new(job.query.clone());
        engine.initialize()?;
        for each in &job.statics {
            engine.add_static_data(quad(each)?);
        }
        let stream = engine.get_stream(&job.stream).ok_or("no such stream")?;
        let window = engine.get_window(&job.window).ok_or("no such window")?;
        // By itself it counts windows from its first event.
        window.lock().unwrap().t0 = job.start;
        let found = engine.start_processing();
        Ok(Self { stream, window, found })
    }

    fn add(&self, (quads, time): Ready) -> Fallible<()> {
        Ok(self.stream.add_quads(quads, time)?)
    }

    /// Waits until its thread has put the event of a time into a window.
    fn wait_for(&self, time: i64) {
        let taken = |window: &CSPARQLWindow| {
            let content = window.get_content_from_window(time);
            content.is_some_and(|each| each.last_timestamp_changed >= time)
        };
        while !taken(&self.window.lock().unwrap()) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn rows(&self, count: usize) -> Fallible<Vec<String>> {
        let row = |_| Ok(self.found.recv_timeout(LONGEST)?.bindings);
        (0..count).map(row).collect()
    }
}

fn quad(Triple(subject, predicate, object): &Triple) -> Fallible<Quad> {
    let object: Term = match object {
        Object::Iri(iri) => NamedNode::new(iri)?.into(),
        Object::Typed(text, datatype) => {
            Literal::new_typed_literal(text, NamedNode::new(datatype)?).into()
        }
    };
    let (subject, predicate) = (NamedNode::new(subject)?, NamedNode::new(predicate)?);
    Ok(Quad::new(subject, predicate, object, GraphName::DefaultGraph))
}

fn ready(Event(time, triples): &Event) -> Fallible<Ready> {
    Ok((triples.iter().map(quad).collect::<Fallible<_>>()?, *time))
}

/// Gives it all events before each close, then the one that closes the window.
fn live(job: &Job) -> Fallible<serde_json::Value> {
    let peer = Peer::new(job)?;
    let (mut answers, mut latencies, mut cpu) = (vec![], vec![], vec![]);
    for slide in &job.slides {
        for event in &slide.events {
            peer.add(ready(event)?)?;
        }
        if let Some(Event(last, _)) = slide.events.last() {
            peer.wait_for(*last);
        }
        let closing = ready(&slide.closing)?;
        let (began, spent) = (Instant::now(), ProcessTime::now());
        peer.add(closing)?;
        answers.push((slide.close, peer.rows(job.rows)?));
        latencies.push(began.elapsed().as_secs_f64() * 1000.0);
        cpu.push(spent.elapsed().as_secs_f64() * 1000.0);
        let progress = format!("{} of {} windows", answers.len(), job.slides.len());
        println!("{}", json!({ "progress": progress }));
    }
    Ok(json!({ "answers": answers, "latencies": latencies, "cpu": cpu }))
}

/// Gives it all events at once; returns the wall and CPU seconds until the last answer.
fn replay(job: &Job) -> Fallible<(f64, f64)> {
    let peer = Peer::new(job)?;
    let slides = job.slides.iter();
    let events = slides.flat_map(|each| each.events.iter().chain([&each.closing]));
    let events: Vec<Ready> = events.map(ready).collect::<Fallible<_>>()?;
    let (began, spent) = (Instant::now(), ProcessTime::now());
    for each in events {
        peer.add(each)?;
    }
    peer.rows(job.rows * job.slides.len())?;
    Ok((began.elapsed().as_secs_f64(), spent.elapsed().as_secs_f64()))
}

fn main() -> Fallible<()> {
    let file = env::args().nth(1).ok_or("the file of the job is missing")?;
    let job: Job = serde_json::from_reader(BufReader::new(File::open(file)?))?;
    let mut result = live(&job)?;
    let (seconds, cpu_seconds) = replay(&job)?;
    result["seconds"] = seconds.into();
    result["cpu_seconds"] = cpu_seconds.into();
    println!("{}", json!({ "result": result }));
    Ok(())
}
