// Editor for a query: marks errors at their places while the user types.

import * as api from "./api.js";
import { byId, h, mark, say } from "./dom.js";
import { Finding } from "./finding.js";
import { arrange } from "./order.js";
import { many } from "./words.js";

const DRAFT = "acquatop-draft";
const PAUSE = 250;

export class Editor {
  constructor(submitted) {
    this.submitted = submitted;
    this.isSubmitting = false;
    this.findings = [];
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

  get isOpen() {
    return this.dialog.open;
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

  /** Show the names in the catalog; if the editor is empty, insert a query that uses them. */
  offer({ prefixes, streams, services, graphs }) {
    const name = (iri) => prefixed(iri, prefixes);
    const parts = { streams, services, graphs: graphs.map((iri) => ({ iri })) };
    const said = Object.entries(parts).map(([kind, each]) => each.length && [`${kind} `, h("code", {}, each.map(({ iri }) => name(iri)).join(" ")), " "]);
    byId("names").replaceChildren("The catalog has ", ...said.filter(Boolean).flat());
    if (this.text.value || !streams.length) return;
    const service = services[0] ? `\n  SERVICE ${name(services[0].iri)} { ?item ?about ?other }` : "";
    this.text.value = `SELECT ?item ?value\nFROM NAMED WINDOW <urn:w> ON ${name(streams[0].iri)} [RANGE 10s STEP 5s]\nWHERE {\n  WINDOW <urn:w> { ?item ?property ?value }${service}\n}\nORDER BY DESC(?value)\nLIMIT 5\n`;
    // Select it, so that text typed or pasted now replaces it.
    this.text.select();
    this.changed();
  }

  changed() {
    localStorage.setItem(DRAFT, this.text.value);
    byId("draft-plan").hidden = true;
    const count = this.text.value.split("\n").length;
    say(byId("lines"), Array.from({ length: count }, (_, at) => at + 1).join("\n"));
    byId("marks").replaceChildren(this.text.value);
    this.scroll();
    // Abort the check under way: the text has changed.
    this.checking?.abort();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), PAUSE);
  }

  scroll() {
    const { scrollTop, scrollLeft } = this.text;
    byId("lines").style.transform = `translateY(${-scrollTop}px)`;
    byId("marks").style.transform = `translate(${-scrollLeft}px, ${-scrollTop}px)`;
  }

  async check() {
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
    byId("marks").replaceChildren(...marked(this.text.value, diagnostics));
    while (this.findings.length < diagnostics.length) this.findings.push(new Finding((span) => this.go(span)));
    const shown = this.findings.slice(0, diagnostics.length);
    shown.forEach((finding, at) => finding.draw(diagnostics[at]));
    const hadFocus = byId("findings").contains(document.activeElement);
    arrange(byId("findings"), shown.map((finding) => finding.element));
    if (hadFocus && !byId("findings").contains(document.activeElement)) this.text.focus();
  }

  go(span) {
    const units = (count) => Array.from(this.text.value).slice(0, count).join("").length;
    this.text.focus();
    this.text.setSelectionRange(units(span.start), units(Math.max(span.end, span.start + 1)));
  }

  async showPlan() {
    await this.tell(async () => {
      const plan = byId("draft-plan");
      const text = this.text.value;
      const said = await api.explain(text);
      if (text !== this.text.value) return;
      say(plan, said);
      plan.hidden = false;
      plan.scrollIntoView({ block: "nearest" });
    });
  }

  /** Register the query once: further presses while the request is under way do nothing. */
  async submit() {
    if (this.isSubmitting) return;
    this.isSubmitting = true;
    mark(byId("submit"), "aria-busy", "true");
    await this.tell(async () => {
      const text = this.text.value;
      const query = await api.register(text);
      // Keep text written during the request as a draft.
      if (text === this.text.value) this.text.value = "";
      this.changed();
      this.dialog.close();
      this.submitted(query.id);
    });
    this.isSubmitting = false;
    mark(byId("submit"), "aria-busy", null);
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

/** Return an IRI in query syntax, with the catalog's prefixes. */
function prefixed(iri, prefixes) {
  const found = Object.entries(prefixes).find(([, start]) => iri.startsWith(start));
  return found ? `${found[0]}:${iri.slice(found[1].length)}` : `<${iri}>`;
}

/** Return the text with errors marked; spans count code points, not UTF-16 units. */
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
