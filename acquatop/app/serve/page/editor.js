// Where a query is written: what is wrong with it is shown where it is, as it is typed.

import * as api from "./api.js";
import { byId, h, mark, say } from "./dom.js";
import { many } from "./words.js";

const DRAFT = "acquatop-draft";
const PAUSE = 250;

export class Editor {
  constructor(submitted) {
    this.submitted = submitted;
    this.dialog = byId("editor");
    this.text = byId("text");
    this.text.value = localStorage.getItem(DRAFT) ?? "";
    this.text.addEventListener("input", () => this.changed());
    this.text.addEventListener("scroll", () => this.scroll());
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.submit();
    });
    byId("show-plan").addEventListener("click", () => this.showPlan());
    byId("submit").addEventListener("click", () => this.submit());
  }

  async open() {
    this.dialog.showModal();
    this.text.focus();
    this.changed();
    try {
      this.offer(await api.catalog());
    } catch (error) {
      this.judge(error.message, "bad");
    }
  }

  /** Say what a query may name, and begin one with it where there is none yet. */
  offer({ prefixes, streams, services, graphs }) {
    const name = (iri) => prefixed(iri, prefixes);
    const parts = { streams, services, graphs: graphs.map((iri) => ({ iri })) };
    const said = Object.entries(parts).map(([kind, each]) => each.length && [`${kind} `, h("code", {}, each.map(({ iri }) => name(iri)).join(" ")), " "]);
    byId("names").replaceChildren("The catalog has ", ...said.filter(Boolean).flat());
    if (this.text.value || !streams.length) return;
    const service = services[0] ? `\n  SERVICE ${name(services[0].iri)} { ?item ?about ?other }` : "";
    this.text.value = `SELECT ?item ?value\nFROM NAMED WINDOW <urn:w> ON ${name(streams[0].iri)} [RANGE 10s STEP 5s]\nWHERE {\n  WINDOW <urn:w> { ?item ?property ?value }${service}\n}\nORDER BY DESC(?value)\nLIMIT 5\n`;
    this.changed();
  }

  changed() {
    localStorage.setItem(DRAFT, this.text.value);
    byId("draft-plan").hidden = true;
    const count = this.text.value.split("\n").length;
    say(byId("lines"), Array.from({ length: count }, (_, at) => at + 1).join("\n"));
    byId("marks").replaceChildren(this.text.value);
    this.scroll();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), PAUSE);
  }

  scroll() {
    const { scrollTop, scrollLeft } = this.text;
    byId("lines").style.transform = `translateY(${-scrollTop}px)`;
    byId("marks").style.transform = `translate(${-scrollLeft}px, ${-scrollTop}px)`;
  }

  async check() {
    this.checking?.abort();
    this.checking = new AbortController();
    if (!this.text.value.trim()) {
      this.show([]);
      this.judge("", null);
      return;
    }
    try {
      const { ok, diagnostics } = await api.check(this.text.value, this.checking.signal);
      this.show(diagnostics);
      const errors = diagnostics.filter((each) => each.severity === "error").length;
      this.judge(ok ? "It can be run." : `${many(errors, "mistake")}.`, ok ? "good" : "bad");
    } catch (error) {
      if (error.name !== "AbortError") this.judge(error.message, "bad");
    }
  }

  judge(text, tone) {
    say(byId("verdict"), text);
    mark(byId("verdict"), "data-tone", tone);
  }

  show(diagnostics) {
    byId("findings").replaceChildren(...diagnostics.map((each) => this.finding(each)));
    byId("marks").replaceChildren(...marked(this.text.value, diagnostics));
  }

  finding({ severity, line, column, message, hint, span }) {
    const place = line === null ? null : h("button", { type: "button", class: "place", onclick: () => this.go(span) }, `${line}:${column}`);
    return h("li", { "data-severity": severity }, place, h("span", {}, message), hint ? h("span", { class: "hint" }, hint) : null);
  }

  go(span) {
    const units = (count) => Array.from(this.text.value).slice(0, count).join("").length;
    this.text.focus();
    this.text.setSelectionRange(units(span.start), units(Math.max(span.end, span.start + 1)));
  }

  async showPlan() {
    await this.tell(async () => {
      const plan = byId("draft-plan");
      say(plan, await api.explain(this.text.value));
      plan.hidden = false;
      plan.scrollIntoView({ block: "nearest" });
    });
  }

  async submit() {
    await this.tell(async () => {
      const query = await api.register(this.text.value);
      localStorage.removeItem(DRAFT);
      this.text.value = "";
      this.dialog.close();
      this.submitted(query.id);
    });
  }

  async tell(work) {
    try {
      await work();
    } catch (error) {
      this.show(error.problem?.diagnostics ?? []);
      this.judge(error.message, "bad");
    }
  }
}

/** An IRI as a query may write it, with the catalog's prefixes. */
function prefixed(iri, prefixes) {
  const found = Object.entries(prefixes).find(([, start]) => iri.startsWith(start));
  return found ? `${found[0]}:${iri.slice(found[1].length)}` : `<${iri}>`;
}

/** The text with what is wrong in it marked; places count characters, as people do. */
function marked(text, diagnostics) {
  const letters = Array.from(text);
  const parts = [];
  let at = 0;
  for (const { span, severity } of diagnostics) {
    if (span === null || span.start < at) continue;
    const end = Math.min(letters.length, Math.max(span.end, span.start + 1));
    parts.push(letters.slice(at, span.start).join(""));
    parts.push(h("mark", { "data-severity": severity }, letters.slice(span.start, end).join("") || " "));
    at = end;
  }
  return [...parts, letters.slice(at).join("")];
}
