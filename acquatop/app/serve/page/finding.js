// One error of a query: a button that goes to its place, the message, a hint.

import { h, mark, say } from "./dom.js";

/** List item that each check updates in place, so that its button keeps focus and presses. */
export class Finding {
  constructor(go) {
    this.span = null;
    this.place = h("button", { type: "button", class: "place", onclick: () => go(this.span) });
    this.message = h("span");
    this.hint = h("span", { class: "hint" });
    this.element = h("li", {}, this.place, this.message, this.hint);
  }

  draw({ severity, line, column, message, hint, span }) {
    this.span = span;
    mark(this.element, "data-severity", severity);
    this.place.hidden = line === null;
    say(this.place, line === null ? "" : `${line}:${column}`);
    say(this.message, message);
    this.hint.hidden = !hint;
    say(this.hint, hint ?? "");
  }
}
