// RSP-JS on the events of a file: reads {"query", "stream", "statics", "slides", "rows"} and prints a line of JSON
// with its answers, the wall and CPU time of each from the event that lets its window close, and of everything.
//
// Its log of every event is turned off. Every row of an answer moves the time from which it counts windows, so that
// the next events fall into wrong ones; it is set back after each.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
console.debug = console.log = console.error = () => {};

const { RSPEngine } = require("rsp-js");
const { DataFactory } = require("n3");
const { namedNode, literal, quad } = DataFactory;

const job = JSON.parse(readFileSync(process.argv[2], "utf8"));
const term = (value) =>
  typeof value === "string" ? namedNode(value) : literal(String(value[0]), namedNode(value[1]));
const triple = ([s, p, o]) => quad(term(s), term(p), term(o));

const engine = new RSPEngine(job.query);
for (const each of job.statics) engine.addStaticData(triple(each));
const stream = engine.getStream(job.stream);
const [window] = engine.windows;

// One answer is under way at a time: when it is complete, as it has so many rows, its promise is kept.
let rows = [];
let complete = null;
engine.register().on("RStream", ({ bindings }) => {
  window.t0 = 0;
  rows.push(Object.fromEntries([...bindings].map(([name, value]) => [name.value, value.value])));
  if (rows.length === job.rows) complete();
});

const quads = ([time, triples]) => triples.map((said) => [triple(said), time]);
const add = (event) => event.forEach((each) => stream.add(...each));
const slides = job.slides.map(({ close, events, closing }) => ({
  close,
  events: events.map(quads),
  closing: quads(closing),
}));
const answers = [];
const latencies = [];
const cpu = [];
const spent = () => Object.values(process.cpuUsage()).reduce((sum, each) => sum + each, 0);
const [started, before] = [performance.now(), spent()];
for (const [number, slide] of slides.entries()) {
  for (const event of slide.events) add(event);
  rows = [];
  const answered = new Promise((resolve) => (complete = resolve));
  const [began, spentThen] = [performance.now(), spent()];
  add(slide.closing);
  await answered;
  latencies.push(performance.now() - began);
  cpu.push((spent() - spentThen) / 1000);
  answers.push([slide.close, rows]);
  if (number % 10 === 9) say({ progress: `${number + 1} of ${slides.length} windows` });
}
const seconds = (performance.now() - started) / 1000;
const cpuSeconds = (spent() - before) / 1e6;
const { version } = require("rsp-js/package.json");
say({ result: { seconds, cpu_seconds: cpuSeconds, latencies, cpu, answers, version } });
