// The page: a list of queries, one of them in full, and a dialog to add more.

import * as api from "./api.js";
import { STATUS } from "./about.js";
import { addressOf, idIn } from "./address.js";
import { byId, h, mark, say } from "./dom.js";
import { Editor } from "./editor.js";
import { pressOnce, watchPresses } from "./press.js";
import { Store } from "./store.js";
import { View } from "./view.js";
import { came, short, termText } from "./words.js";

const RATE_EVERY = 1000;
const items = new Map();
let view = null;
let wanted = idIn(location.hash);

const store = new Store((touched) => draw(touched));
const editor = new Editor((id) => {
  location.hash = addressOf(id);
});

const first = () => store.queries.keys().next().value ?? null;

/** Choose the query to show: the wanted one; until it is known, the present one; else the first. */
function chosen() {
  // Show no query behind the open dialog: its buttons could not be reached.
  if (view === null && editor.isOpen) return null;
  if (store.queries.has(wanted)) return wanted;
  return view !== null && store.queries.has(view.id) ? view.id : first();
}

function draw(touched) {
  drawList(touched);
  const id = chosen();
  const query = id === null ? null : store.queries.get(id);
  if ((view?.query ?? null) !== query) turnTo(query);
  else if (touched.has(id) || touched.has(null)) view?.draw();
  byId("empty").hidden = query !== null || !store.isKnown;
  for (const [each, item] of items) mark(item.link, "aria-current", each === id ? "page" : null);
  document.title = query === null ? "AcquaTop" : `${short(query.described.name)} · AcquaTop`;
}

/** Show another query, or none. If the focused element goes, move the focus to the main part. */
function turnTo(query) {
  view?.leave();
  const had = [byId("query"), byId("empty")].some((each) => each.contains(document.activeElement));
  if (view?.id === wanted && !store.queries.has(wanted)) forget();
  view = query === null ? null : new View(query);
  byId("query").replaceWith(view?.element ?? h("article", { id: "query", hidden: true }));
  if (had) byId("main").focus({ preventScroll: true });
  if (query !== null && !query.hasPast) recall(query);
}

/** Forget the wanted query after its removal: a later one with the same id is a different query. */
function forget() {
  wanted = null;
  history.replaceState(null, "", location.pathname);
}

/** Fetch the answers from before this page was opened. */
async function recall(query) {
  query.hasPast = true;
  const past = await api.answers(query.described.id).catch(() => []);
  if (past.length) query.takePast(past);
  store.touch(query.described.id);
}

function drawList(touched) {
  for (const [id, item] of items) {
    if (store.queries.has(id)) continue;
    item.leave();
    items.delete(id);
  }
  for (const [id, query] of store.queries) {
    if (!items.has(id)) {
      items.set(id, new Item(id));
      byId("queries").append(items.get(id).element);
    }
    if (touched.has(id) || touched.has(null)) items.get(id).draw(query);
  }
  say(byId("count"), String(store.queries.size));
}

class Item {
  constructor(id) {
    [this.name, this.leader, this.status] = [h("strong"), h("span", { class: "leader" }), h("span", { class: "chip" })];
    this.link = h("a", { href: addressOf(id) }, this.name, this.leader, this.status);
    this.element = h("li", {}, this.link);
  }

  /** Leave the list, and pass the focus to the neighbour. */
  leave() {
    const had = this.element.contains(document.activeElement);
    const next = this.element.nextElementSibling ?? this.element.previousElementSibling;
    this.element.remove();
    if (had) (next?.querySelector("a") ?? byId("main")).focus({ preventScroll: true });
  }

  draw({ described, answer }) {
    say(this.name, short(described.name));
    const runs = described.state === "running";
    say(this.status, runs ? (answer ? STATUS[answer.status].title : "waiting") : described.state);
    mark(this.status, "data-status", runs ? (answer?.status ?? null) : null);
    mark(this.status, "data-state", runs ? null : described.state);
    say(this.leader, answer === null ? ["no answer yet", came(described)].filter(Boolean).join(": ") : glance(answer));
  }
}

/** Summarise an answer: its first row, its truth value, or its number of triples. */
function glance(answer) {
  if (answer.form === "ask") return String(answer.boolean);
  if ("triples" in answer) return `${answer.triples.length} triples`;
  const [first] = answer.results;
  if (first === undefined) return "no results";
  const terms = Object.values(first.bindings);
  return `1. ${termText(terms.find((term) => term.type === "uri") ?? terms[0])}`;
}

function connection(state) {
  mark(byId("pulse"), "data-state", state);
  say(byId("pulse"), state);
}

function askForToken() {
  const door = byId("door");
  const input = byId("token");
  input.value = "";
  return new Promise((resolve) => {
    door.onclose = () => (input.value ? resolve(input.value) : door.showModal());
    if (!door.open) door.showModal();
  });
}

let asked = null;
api.onNeedOfToken(() => {
  asked ??= askForToken().finally(() => {
    asked = null;
  });
  return asked;
});

let before = 0;
setInterval(() => {
  const count = store.answered - before;
  before = store.answered;
  say(byId("rate"), `${count} answer${count === 1 ? "" : "s"}/s`);
}, RATE_EVERY);

byId("new").addEventListener("click", () => editor.open());
byId("first").addEventListener("click", () => editor.open());
byId("editor").addEventListener("close", () => store.touch(null));
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
window.addEventListener("hashchange", () => {
  wanted = idIn(location.hash) ?? first();
  store.touch(null);
});
pressOnce();
watchPresses(() => store.hold(), () => store.release());
store.touch(null);
api.follow((kind, data) => store.heard(kind, data), connection);
