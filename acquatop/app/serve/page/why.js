// Explanation of an answer: why a key is in it, or is not.

import * as api from "./api.js";
import { h } from "./dom.js";

export class WhyBox {
  constructor(id) {
    this.id = id;
    this.window = null;
    this.key = h("input", { type: "text", required: true, "aria-label": "A key", placeholder: "an IRI, its last part, or a text" });
    this.said = h("ul", { class: "reasons", role: "status" });
    const form = h(
      "form",
      { class: "why", onsubmit: (event) => { event.preventDefault(); this.ask(); } },
      this.key,
      h("button", { type: "submit" }, "Why?"),
    );
    this.element = h("details", { class: "whybox" }, h("summary", {}, "Why, and what if"), form, this.said);
  }

  /** Ask about a row of the answer that is shown. */
  askAbout(row) {
    const terms = Object.values(row.bindings);
    this.key.value = (terms.find((term) => term.type === "uri") ?? terms[0])?.value ?? "";
    this.element.open = true;
    if (this.key.value) this.ask();
  }

  async ask() {
    const lines = await api.why(this.id, this.window, this.key.value).then(
      (why) => why.text,
      (error) => [error.message],
    );
    this.said.replaceChildren(...lines.map((line) => h("li", {}, line)));
  }
}
