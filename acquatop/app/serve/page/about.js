// Sentences that explain an answer.

import { many, milliseconds, mostly, number, percent, seconds, total } from "./words.js";

export const STATUS = {
  exact: { title: "Exact", short: "No other answer is possible." },
  certified: { title: "Certified", short: "Right for all values known here." },
  probabilistic: { title: "Probabilistic", short: "A result is missing by chance, as you accept for few." },
  approximate: { title: "Approximate", short: "Something missing might belong here." },
};

/** Return sentences about an answer: its reliability, its cost, and the stream's events. */
export function aboutAnswer(answer) {
  return [trust(answer), expected(answer), spent(answer), failure(answer), stream(answer), late(answer)].filter(Boolean);
}

function trust(answer) {
  if (answer.status === "exact") {
    const asked = answer.allowed.items > 0;
    return `It is exact: no other answer is possible.${
      asked ? " Every remote value that could have mattered was fetched while this window closed." : ""
    }`;
  }
  if (answer.status === "certified") return `It is certified: the right answer for the values known here. ${staleness(answer)}`;
  return `It is ${answer.status}: ${answer.reason}.${bound(answer)}`;
}

function staleness(answer) {
  const old = answer.results.filter((row) => row.refreshed === false && row.age_seconds !== null);
  if (answer.ambiguous) return "The remote has several values where one is expected, and one of them was chosen.";
  if (!old.length) return "Some value that could matter was fetched before this window closed, and may have changed since.";
  const oldest = Math.max(...old.map((row) => row.age_seconds));
  const rows = `${old.length} of ${many(answer.results.length, "row")}`;
  return `${rows} show${old.length === 1 ? "s" : ""} a value fetched earlier, the oldest ${seconds(oldest)} ago; the remote may have changed since.`;
}

function bound(answer) {
  if (!("bound" in answer)) return "";
  if (answer.bound === null) return " How high what is missing could score is not known.";
  return ` Nothing that is missing scores beyond ${number(answer.bound)}.`;
}

function expected(answer) {
  if (!answer.expected || answer.status === "exact") return "";
  const rows = answer.results.length;
  const right = Math.round(answer.expected.precision * rows * 10) / 10;
  const missed = answer.target?.reached === false ? " That is below the target: the budget, or this answer's share of it, did not suffice." : "";
  return `From how the remote has been seen to change, ${percent(answer.expected.precision)} of it can be expected to be right by now: about ${right} of ${many(rows, "row")}.${missed}`;
}

function spent({ allowed, spent }) {
  if (!allowed.items) return "No remote had to be asked.";
  if (!spent.requests) return `The remote was not asked, though ${many(allowed.items, "item")} would have been allowed.`;
  const failed = spent.failed ? `, of which ${spent.failed} failed` : "";
  return `The remote was asked for ${spent.items} of at most ${many(allowed.items, "item")}, in ${spent.requests} of ${many(allowed.requests, "request")}${failed}, and waited for ${milliseconds(1000 * spent.seconds)}.`;
}

function failure(answer) {
  return answer.failure ? `The remote could not be used as it should: ${answer.failure}. The last known values stand in.` : "";
}

function stream(answer) {
  return `${many(answer.events, "event")} came since the answer before. It was ready ${milliseconds(answer.latency_ms)} after it could be known that the window had closed.`;
}

function late(answer) {
  const bad = total(answer.bad);
  const parts = [
    answer.late ? `${many(answer.late, "event")} came too late to count` : "",
    bad ? `${many(bad, "record")} could not be read (${mostly(answer.bad)})` : "",
    answer.unscored ? `${many(answer.unscored, "solution")} had no score` : "",
  ].filter(Boolean);
  return parts.length ? `${parts.join("; ")}.` : "";
}
