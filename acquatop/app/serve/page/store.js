// State of the queries. Memory is bounded: one answer, two rankings and some numbers per query.

import { isAfter, total } from "./words.js";

export const WINDOWS = 60;

class Query {
  constructor(described) {
    this.described = described;
    this.answer = null;
    this.ranks = new Map();
    this.moves = new Map();
    this.points = [];
    this.hasPast = false;
  }

  /** Add an answer; it replaces the last one if its window closes no later. */
  take(answer) {
    const before = this.answer;
    if (before !== null && !isAfter(answer.window.closes, before.window.closes)) this.points.pop();
    else this.before = this.ranks;
    const keys = keysOf(answer.results);
    const ranks = new Map(answer.results.map((row, at) => [keys[at], row.rank]));
    this.moves = new Map([...ranks].map(([key, rank]) => [key, move(this.before, key, rank)]));
    this.ranks = ranks;
    this.answer = answer;
    this.points.push(point(answer));
    if (this.points.length > WINDOWS) this.points.shift();
  }

  /** Add the answers from before the page was opened. */
  takePast(answers) {
    this.hasPast = true;
    const [newest, ranks] = [this.answer, this.ranks];
    [this.answer, this.ranks, this.points] = [null, new Map(), []];
    answers.forEach((each) => this.take(each));
    if (newest !== null && (this.answer === null || isAfter(newest.window.closes, this.answer.window.closes))) {
      this.take(newest);
    }
    if (this.answer === null) this.ranks = ranks;
  }
}

/** Return a row's identity across answers: its IRIs and blank nodes, or else its first term. */
function identity(row) {
  const terms = Object.values(row.bindings);
  const named = terms.filter((term) => term.type !== "literal");
  return JSON.stringify((named.length ? named : terms.slice(0, 1)).map((term) => term.value));
}

/** Return a unique key per row; rows with the same identity are numbered in their order. */
export function keysOf(rows) {
  const counts = new Map();
  return rows.map((row) => {
    const about = identity(row);
    const count = (counts.get(about) ?? 0) + 1;
    counts.set(about, count);
    return `${count} ${about}`;
  });
}

function move(before, key, rank) {
  if (!before || before.size === 0) return null;
  return before.has(key) ? before.get(key) - rank : "new";
}

function point(answer) {
  const ages = answer.results.map((row) => (row.refreshed ? 0 : row.age_seconds)).filter((age) => age !== null);
  return {
    latency: answer.latency_ms,
    staleness: ages.length ? ages.reduce((sum, age) => sum + age, 0) / ages.length : null,
    spending: answer.allowed.items ? answer.spent.items / answer.allowed.items : null,
    late: answer.late,
    bad: total(answer.bad),
  };
}

export class Store {
  /** Call `changed` at most once per frame, with the ids that have changed. */
  constructor(changed) {
    this.queries = new Map();
    this.isKnown = false;
    this.answered = 0;
    this.changed = changed;
    this.touched = new Set();
    this.isDue = false;
    this.isHeld = false;
  }

  /** Apply an event of the service. The page is drawn once per frame, however many come. */
  heard(kind, data) {
    if (kind === "snapshot") this.replace(data.queries);
    else if (kind === "query") this.describe(data);
    else if (kind === "removed") this.queries.delete(data.id);
    else if (kind === "answer") this.take(data);
    else if (kind === "items") this.change(data.queries, "streams");
    else if (kind === "waiting") this.change(data.queries, "waiting");
    this.touch(data.id ?? null);
  }

  replace(queries) {
    this.isKnown = true;
    const gone = new Set(this.queries.keys());
    for (const each of queries) {
      gone.delete(each.id);
      this.describe(each);
    }
    gone.forEach((id) => this.queries.delete(id));
  }

  describe(described) {
    const known = this.queries.get(described.id);
    if (known?.described.registered === described.registered) known.described = described;
    else this.queries.set(described.id, new Query(described));
  }

  /** Replace one part of the descriptions of some queries. */
  change(queries, part) {
    for (const [id, value] of Object.entries(queries)) {
      const known = this.queries.get(id);
      if (known) known.described = { ...known.described, [part]: value };
    }
  }

  take({ id, answer }) {
    this.answered += 1;
    this.queries.get(id)?.take(answer);
  }

  touch(id) {
    this.touched.add(id);
    this.plan();
  }

  /** Draw nothing until the release, so that a pressed element keeps its meaning and its place. */
  hold() {
    this.isHeld = true;
  }

  release() {
    this.isHeld = false;
    if (this.touched.size) this.plan();
  }

  plan() {
    if (this.isDue || this.isHeld) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      if (this.isHeld) return;
      const touched = this.touched;
      this.touched = new Set();
      this.changed(touched);
    });
  }
}
