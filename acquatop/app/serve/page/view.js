// One query: its present answer, the answer's reliability, and the last windows.

import * as api from "./api.js";
import { aboutAnswer, STATUS } from "./about.js";
import { chart } from "./charts.js";
import { byId, h, mark, say } from "./dom.js";
import { announce, Leaderboard } from "./leaderboard.js";
import { WhyBox } from "./why.js";
import { came, many, milliseconds, mostly, number, percent, seconds, short, span, total, waitsFor } from "./words.js";

const MOST_TRIPLES = 200;
const FIRST = "The first answer comes when the first window closes.";
const ANNOUNCED_EVERY = 10_000;

/** Return a tile for one figure: a name, a value, and a note below. */
function tile(name, ...more) {
  const [value, note] = [h("dd", { class: "value" }), h("dd", { class: "note" })];
  const element = h("div", { class: "tile" }, h("dt", {}, name), value, ...more, note);
  return { element, value, note };
}

function graph(name, title) {
  const drawn = chart(name);
  const [now, most] = [h("strong"), h("span", { class: "most" })];
  const element = h("figure", {}, h("figcaption", {}, h("span", {}, title), now, most), drawn.element);
  return { element, now, most, draw: drawn.draw };
}

export class View {
  constructor(query) {
    this.query = query;
    this.id = query.described.id;
    this.announcedAt = 0;
    this.leader = null;
    this.refused = null;
    this.element = h("article", { id: "query", "aria-labelledby": "title" });
    this.build();
    this.draw();
  }

  build() {
    const { name, text } = this.query.described;
    this.state = h("span", { class: "chip state" });
    this.window = h("p", { class: "window" });
    this.turn = h("button", { type: "button", onclick: () => this.pauseOrResume() });
    const away = h("button", { type: "button", class: "quiet", onclick: () => this.askToRemove() }, "Remove");
    this.problem = h("p", { class: "problem", role: "alert", hidden: true });
    this.badge = h("strong", { class: "badge" });
    this.worth = h("span", { class: "worth" });
    this.lead = h("p");
    this.waiting = h("p", { class: "waiting" }, FIRST);
    this.wait = h("p", { class: "wait", role: "status", hidden: true });
    this.why = new WhyBox(this.id);
    this.board = new Leaderboard((row) => this.why.askAbout(row));
    this.truth = h("p", { class: "truth", hidden: true });
    this.triples = h("pre", { class: "triples", tabindex: "0", "aria-label": "Triples", hidden: true });
    this.sentences = h("ul", { class: "sentences" });
    this.buildTiles();
    this.buildGraphs();
    this.plan = h("pre", { class: "plan", tabindex: "0" });
    this.element.append(
      h(
        "header",
        { class: "title" },
        h("div", {}, h("h2", { id: "title" }, short(name), this.state), h("p", { class: "iri" }, name)),
        h("div", { class: "doings" }, this.turn, away),
      ),
      this.problem,
      h("div", { class: "trust" }, this.badge, this.worth, this.lead, this.window),
      this.waiting,
      this.wait,
      this.board.element,
      this.truth,
      this.triples,
      this.tiles,
      this.graphs,
      h(
        "section",
        { class: "more" },
        h("details", { open: true }, h("summary", {}, "About this answer"), this.sentences),
        this.why.element,
        h("details", { ontoggle: (event) => this.showPlan(event.target) }, h("summary", {}, "The plan"), this.plan),
        h("details", {}, h("summary", {}, "The query"), h("pre", { class: "plan", tabindex: "0" }, text)),
      ),
    );
  }

  buildTiles() {
    this.spentBar = h("meter", { min: 0, max: 1, "aria-hidden": "true" });
    this.budget = tile("Budget", this.spentBar);
    this.latency = tile("Latency");
    this.events = tile("Events");
    this.trouble = tile("Late and bad");
    this.remote = tile("Remote");
    const all = [this.budget, this.latency, this.events, this.trouble, this.remote];
    this.tiles = h("dl", { class: "tiles" }, ...all.map((each) => each.element));
  }

  buildGraphs() {
    this.latencies = graph("latency", "Latency");
    this.ages = graph("staleness", "Staleness");
    this.spending = graph("spending", "Spending");
    const all = [this.latencies, this.ages, this.spending];
    this.graphs = h("section", { class: "graphs", "aria-label": "The last windows" }, ...all.map((each) => each.element));
  }

  draw() {
    const { described, answer, moves, points } = this.query;
    say(this.state, described.state);
    mark(this.state, "data-state", described.state);
    const runs = described.state === "running";
    say(this.turn, runs ? "Pause" : "Resume");
    this.offered = runs ? api.pause : api.resume;
    this.drawProblem();
    mark(this.element, "data-answered", answer === null ? "no" : "yes");
    say(this.waiting, came(described) ? `${FIRST} So far ${came(described)}.` : FIRST);
    say(this.wait, runs ? waitsFor(described.waiting) : "");
    mark(this.wait, "data-tone", described.waiting?.remedy ? "warn" : null);
    this.wait.hidden = !(runs && described.waiting);
    if (answer === null) return;
    this.why.window = answer.window;
    this.drawTrust(answer);
    this.drawResults(answer, moves);
    this.drawTiles(answer);
    this.drawGraphs(points);
    this.drawSentences(aboutAnswer(answer));
    this.announce(answer);
  }

  /** Show the last refusal until an action succeeds, whatever answers come; else the error. */
  drawProblem() {
    const wrong = this.refused ?? this.query.described.error;
    this.problem.hidden = !wrong;
    say(this.problem, wrong ?? "");
  }

  drawTrust(answer) {
    const { title, short: words } = STATUS[answer.status];
    mark(this.element, "data-status", answer.status);
    say(this.badge, title);
    const shown = answer.expected && answer.status !== "exact";
    say(this.worth, shown ? `${percent(answer.expected.precision)} expected precision` : "");
    say(this.lead, ["approximate", "probabilistic"].includes(answer.status) && answer.reason ? `${answer.reason}.` : words);
    say(this.window, `window ${span(answer.window.opens, answer.window.closes)}`);
  }

  drawResults(answer, moves) {
    const rows = answer.form === "select";
    this.board.element.hidden = !rows;
    this.truth.hidden = answer.form !== "ask";
    this.triples.hidden = !("triples" in answer);
    if (rows) this.board.draw(answer, moves);
    if (answer.form === "ask") say(this.truth, answer.boolean ? "true" : "false");
    if ("triples" in answer) {
      const more = answer.triples.length - MOST_TRIPLES;
      const shown = answer.triples.slice(0, MOST_TRIPLES).join("\n");
      say(this.triples, more > 0 ? `${shown}\n… and ${more} more` : shown || "no triples");
    }
  }

  drawTiles(answer) {
    const { spent, allowed } = answer;
    say(this.budget.value, allowed.items ? `${spent.items} / ${allowed.items}` : "none");
    say(this.budget.note, allowed.items ? `items, in ${spent.requests} of ${many(allowed.requests, "request")}` : "no remote to ask");
    this.spentBar.hidden = !allowed.items;
    this.spentBar.value = allowed.items ? Math.min(1, spent.items / allowed.items) : 0;
    say(this.latency.value, milliseconds(answer.latency_ms));
    say(this.latency.note, spent.requests ? `${milliseconds(1000 * spent.seconds)} of it for the remote` : "from close to answer");
    say(this.events.value, number(answer.events));
    say(this.events.note, "since the answer before");
    const bad = total(answer.bad);
    const parts = [answer.late ? `${number(answer.late)} late` : "", bad ? `${number(bad)} bad` : ""].filter(Boolean);
    say(this.trouble.value, parts.join(" · ") || "none");
    say(this.trouble.note, bad ? mostly(answer.bad) : answer.late ? "too late for a window" : "all events were used");
    mark(this.trouble.element, "data-tone", bad ? "bad" : answer.late ? "warn" : null);
    this.drawRemote(answer);
  }

  drawRemote({ failure, spent, allowed, rejected }) {
    const refused = total(rejected);
    const tone = failure ? "bad" : refused ? "warn" : allowed.items ? "good" : null;
    mark(this.remote.element, "data-tone", tone);
    say(this.remote.value, failure ? "failing" : allowed.items ? (spent.requests ? "healthy" : "not asked") : "none");
    say(this.remote.note, failure ?? (refused ? `${many(refused, "record")} left out` : spent.requests ? "answers in time" : "nothing to ask for"));
  }

  drawGraphs(points) {
    const last = points.at(-1);
    const most = (name) => Math.max(0, ...points.map((each) => each[name] ?? 0));
    this.latencies.draw(points.map((each) => each.latency));
    say(this.latencies.now, milliseconds(last.latency));
    say(this.latencies.most, `up to ${milliseconds(most("latency"))}`);
    this.ages.draw(points.map((each) => each.staleness));
    say(this.ages.now, last.staleness === null ? "–" : seconds(last.staleness));
    say(this.ages.most, `mean age, up to ${seconds(most("staleness"))}`);
    this.spending.draw(points.map((each) => each.spending), 1);
    say(this.spending.now, last.spending === null ? "–" : percent(last.spending));
    say(this.spending.most, "of the items allowed");
  }

  drawSentences(sentences) {
    while (this.sentences.children.length > sentences.length) this.sentences.lastChild.remove();
    sentences.forEach((sentence, at) => {
      if (!this.sentences.children[at]) this.sentences.append(h("li"));
      say(this.sentences.children[at], sentence);
    });
  }

  /** Announce a new leader to screen readers, but not too often. */
  announce(answer) {
    const leader = this.board.body.querySelector(".name")?.textContent ?? null;
    if (leader === this.leader || answer.form !== "select" || Date.now() - this.announcedAt < ANNOUNCED_EVERY) return;
    [this.leader, this.announcedAt] = [leader, Date.now()];
    if (leader) announce(`${short(answer.query)}: ${leader} leads. ${STATUS[answer.status].title}.`);
  }

  async showPlan(details) {
    if (!details.open || this.plan.textContent) return;
    await this.tell(async () => say(this.plan, await api.plan(this.id)));
  }

  /** Do as the button says, even if the query's state has changed since it was drawn. */
  async pauseOrResume() {
    await this.tell(() => this.offered(this.id));
  }

  askToRemove() {
    const sure = byId("sure");
    say(byId("sure-what"), `${short(this.query.described.name)} and its answers will be gone for all who read them.`);
    sure.returnValue = "";
    sure.onclose = () => sure.returnValue === "remove" && this.tell(() => api.remove(this.id));
    sure.showModal();
  }

  /** Close the dialog about this query before another is shown. */
  leave() {
    if (byId("sure").open) byId("sure").close("cancel");
  }

  async tell(work) {
    try {
      await work();
      this.refused = null;
    } catch (error) {
      this.refused = error.message;
    }
    this.drawProblem();
  }
}
