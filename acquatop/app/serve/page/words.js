// Texts for terms, times and numbers.

/** Return the last part of an IRI. */
export function short(iri) {
  const cut = iri.replace(/[/#:]+$/, "").split(/[/#]/).pop();
  return cut || iri;
}

export function termText(term) {
  if (term === undefined) return "";
  if (term.type === "uri") return short(term.value);
  if (term.type === "bnode") return `_:${term.value}`;
  return isNumber(term) ? number(Number(term.value)) : term.value;
}

export const isNumber = (term) =>
  term?.type === "literal" && term.value.trim() !== "" && Number.isFinite(Number(term.value));

export function number(value) {
  const digits = Number.isInteger(value) ? 0 : Math.abs(value) < 10 ? 4 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

/** Return an instant for people: the time of day, after the date if that is not today's, in UTC. */
export function clock(instant, today = new Date().toISOString()) {
  const [date, time] = instant.split("T");
  const short = time.replace(/\.000Z?$|Z$/, "");
  return date === today.split("T")[0] ? short : `${date} ${short}`;
}

/** Return two instants for people; the second has a date only if it is not that of the first. */
export const span = (opens, closes) => `${clock(opens)} – ${clock(closes, opens)}`;

/** Return a sentence about the thing that a query waits for, and the remedy; empty for nothing. */
export const waitsFor = (waiting) =>
  waiting ? `Waiting: ${[waiting.text, waiting.remedy].filter(Boolean).join("; ")}.` : "";

/** Return true if an instant is after another. For years from 1 on, also of five digits. */
export const isAfter = (instant, other) =>
  instant.length === other.length ? instant > other : instant.length > other.length;

export const percent = (part) => `${Math.round(100 * part)} %`;

export function milliseconds(value) {
  return value < 1000 ? `${value < 10 ? value.toFixed(1) : Math.round(value)} ms` : seconds(value / 1000);
}

export function seconds(value) {
  if (value < 0.05) return "0 s";
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 120) return `${Math.round(value)} s`;
  return value < 7200 ? `${Math.round(value / 60)} min` : `${Math.round(value / 3600)} h`;
}

export const many = (count, one, more = `${one}s`) => `${number(count)} ${count === 1 ? one : more}`;

export const total = (counts) => Object.values(counts).reduce((sum, each) => sum + each, 0);

/** Return a text about a query's items so far, and the bad ones. Empty before the first item. */
export function came({ streams, unanswered }) {
  const items = streams.reduce((sum, each) => sum + each.items, 0);
  if (!items) return "";
  const windows = total(unanswered.windows);
  const lost = windows ? `; ${many(windows, "window")} without an answer: ${unanswered.last.message}` : "";
  const bad = {};
  for (const [reason, count] of streams.flatMap((each) => Object.entries(each.bad))) {
    bad[reason] = (bad[reason] ?? 0) + count;
  }
  const reason = Object.keys(bad).length > 1 ? `, mostly: ${mostly(bad)}` : `: ${mostly(bad)}`;
  return `${many(items, "item")} came, ${total(bad) ? `${number(total(bad))} of them bad${reason}` : "all good"}${lost}`;
}

/** Return the commonest reason. */
export const mostly = (counts) => Object.entries(counts).sort((a, b) => b[1] - a[1])[0]?.[0] ?? "";
