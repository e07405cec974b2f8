// Table of an answer's rows; rows move to their new places.

import { byId, h, mark, say } from "./dom.js";
import { arrange } from "./order.js";
import { keysOf } from "./store.js";
import { isNumber, seconds, termText } from "./words.js";

const MOST = 200;
const CALM = window.matchMedia("(prefers-reduced-motion: reduce)");

/** Return the variable that identifies a row, the other columns, and the score's name. */
function columnsOf(answer) {
  const names = [...new Set(answer.results.flatMap((row) => Object.keys(row.bindings)))];
  const isScore = (name) =>
    answer.results.every((row) => row.score !== null && isNumber(row.bindings[name]) && near(row, name));
  const score = names.findLast(isScore);
  const shown = names.filter((name) => name !== score);
  const subject = shown.find((name) => answer.results.some((row) => row.bindings[name]?.type === "uri")) ?? shown[0];
  return { subject, others: shown.filter((name) => name !== subject), score: score ?? "score" };
}

const near = (row, name) => Math.abs(Number(row.bindings[name].value) - row.score) <= 1e-9 * Math.max(1, Math.abs(row.score));

export class Leaderboard {
  constructor(chosen) {
    this.chosen = chosen;
    this.head = h("thead");
    this.body = h("tbody");
    this.caption = h("caption", { class: "unseen" });
    this.more = h("p", { class: "hint more" });
    this.element = h("div", { class: "board" }, h("table", {}, this.caption, this.head, this.body), this.more);
    this.rows = new Map();
    this.layout = "";
  }

  draw(answer, moves) {
    const columns = columnsOf(answer);
    const scored = answer.results.some((row) => row.score !== null);
    const aged = answer.results.some((row) => row.refreshed !== null);
    this.lay(columns, scored, aged);
    say(this.caption, `${answer.results.length} results of the window that closed at ${answer.window.closes}`);
    const shown = answer.results.slice(0, MOST);
    const range = scoresOf(shown);
    const before = this.places();
    const keys = keysOf(shown);
    const lines = keys.map((key) => this.rows.get(key) ?? new Line(this.parts, this.chosen));
    lines.forEach((line, at) => line.draw(shown[at], columns, range, moves.get(keys[at]) ?? null));
    arrange(this.body, lines.map((line) => line.element));
    this.rows = new Map(lines.map((line, at) => [keys[at], line]));
    this.move(before);
    say(this.more, answer.results.length > MOST ? `and ${answer.results.length - MOST} more` : "");
  }

  /** Rebuild the head if the columns have changed. */
  lay(columns, scored, aged) {
    const layout = JSON.stringify([columns, scored, aged]);
    if (layout === this.layout) return;
    this.layout = layout;
    this.parts = { others: columns.others.length, scored, aged };
    this.rows.forEach((line) => line.element.remove());
    this.rows = new Map();
    const head = (text, name) => h("th", { scope: "col", class: name }, text);
    this.head.replaceChildren(
      h(
        "tr",
        {},
        head("Rank", "rank"),
        head(columns.subject ?? "result", "subject"),
        columns.others.map((name) => head(name, "value")),
        scored ? head(columns.score, "score") : null,
        aged ? head("Remote value", "fresh") : null,
      ),
    );
  }

  places() {
    if (CALM.matches) return new Map();
    return new Map([...this.rows.values()].map((line) => [line.element, line.element.offsetTop]));
  }

  /** Animate rows from their former places. */
  move(before) {
    for (const [element, top] of before) {
      if (!element.isConnected) continue;
      const distance = top - element.offsetTop;
      if (distance) element.animate([{ transform: `translateY(${distance}px)` }, { transform: "none" }], GLIDE);
    }
  }
}

const GLIDE = { duration: 450, easing: "cubic-bezier(.2, .8, .2, 1)" };

class Line {
  constructor({ others, scored, aged }, chosen) {
    const cell = (name, ...children) => h("td", { class: name }, ...children);
    this.rank = h("span", { class: "place" });
    this.arrow = h("span", { class: "move", "aria-hidden": "true" });
    this.moved = h("span", { class: "unseen" });
    this.name = h("span", { class: "name" });
    this.facts = h("span", { class: "facts" });
    this.subject = h("th", { scope: "row", class: "subject" }, this.name, this.facts);
    this.others = Array.from({ length: others }, () => cell("value"));
    this.number = h("span", { class: "number" });
    this.bar = h("span", { class: "fill" });
    this.age = h("span", { class: "age" });
    this.element = h(
      "tr",
      { onclick: () => chosen(this.row), title: "Why?" },
      cell("rank", this.rank, this.arrow, this.moved),
      this.subject,
      this.others,
      scored ? cell("score", this.number, h("span", { class: "bar", "aria-hidden": "true" }, this.bar)) : null,
      aged ? cell("fresh", this.age) : null,
    );
  }

  draw(row, columns, range, move) {
    this.row = row;
    say(this.rank, String(row.rank));
    mark(this.element, "data-rank", row.rank <= 3 ? row.rank : null);
    this.drawMove(move);
    const subject = row.bindings[columns.subject];
    say(this.name, termText(subject));
    mark(this.subject, "title", subject?.value);
    const texts = columns.others.map((name) => termText(row.bindings[name]));
    texts.forEach((text, at) => say(this.others[at], text));
    // Shown if there is no room for columns.
    say(this.facts, texts.map((text, at) => `${columns.others[at]} ${text}`).join(" · "));
    if (row.score !== null) {
      say(this.number, range.text(row.score));
      this.bar.style.setProperty("--part", String(part(row.score, range)));
    }
    this.drawAge(row);
  }

  drawMove(move) {
    const kind = move === null || move === 0 ? "same" : move === "new" ? "new" : move > 0 ? "up" : "down";
    const steps = Math.abs(move);
    mark(this.arrow, "data-kind", kind);
    say(this.arrow, { same: "", new: "new", up: `▲${steps}`, down: `▼${steps}` }[kind]);
    say(this.moved, { same: "", new: ", new", up: `, up ${steps}`, down: `, down ${steps}` }[kind]);
  }

  drawAge(row) {
    const old = row.age_seconds;
    mark(this.age, "data-age", row.refreshed ? "now" : old === null ? "none" : old < 10 ? "young" : "old");
    say(this.age, row.refreshed ? "fetched now" : old === null ? "–" : `${seconds(old)} old`);
  }
}

function scoresOf(rows) {
  const scores = rows.map((row) => row.score).filter((score) => score !== null);
  const most = Math.max(...scores);
  const digits = scores.every(Number.isInteger) ? 0 : most < 10 ? 4 : 2;
  const style = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return { most, least: Math.min(...scores, 0), text: (score) => score.toLocaleString("en", style) };
}

const part = (score, { most, least }) => (most > least ? (score - least) / (most - least) : 1);

export const announce = (text) => say(byId("said"), text);
