// Requests to the service, and its event stream.

const TOKEN = "acquatop-token";
let askForToken = async () => "";

/** Set the function that asks the user for a token if one is needed. */
export function onNeedOfToken(ask) {
  askForToken = ask;
}

/** Refusal by the service; `problem` is its problem document. */
export class Refused extends Error {
  constructor(problem) {
    super(problem.detail ?? problem.title ?? "the service does not answer");
    this.problem = problem;
  }
}

async function request(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    const response = await fetch(path, { ...options, headers });
    if (response.status !== 401) return response;
    sessionStorage.setItem(TOKEN, await askForToken());
  }
}

async function result(path, options) {
  const response = await request(path, options);
  if (response.ok) return response;
  throw new Refused(await response.json().catch(() => ({ title: `HTTP ${response.status}` })));
}

const text = (body, more = {}) => ({
  method: "POST",
  body,
  headers: { "Content-Type": "application/sparql-query", ...more },
});
const plain = { Accept: "text/plain" };
const one = (id) => `/queries/${encodeURIComponent(id)}`;

export const register = async (query) => (await result("/queries", text(query))).json();
export const check = async (query, signal) => (await result("/check", { ...text(query), signal })).json();
export const explain = async (query) => (await result("/explain", text(query, plain))).text();
export const plan = async (id) => (await result(`${one(id)}/plan`, { headers: plain })).text();
export const catalog = async () => (await result("/catalog")).json();
export const answers = async (id) => (await (await result(`${one(id)}/answers`)).json()).answers;
export const why = async (id, { closes, index }, key) => {
  const time = Date.parse(closes);
  const answer = Number.isNaN(time) ? "answer" : `answers/${time}.${index}`;
  return (await result(`${one(id)}/${answer}/why?key=${encodeURIComponent(key)}`)).json();
};
export const pause = (id) => result(`${one(id)}/pause`, { method: "POST" });
export const resume = (id) => result(`${one(id)}/resume`, { method: "POST" });
export const remove = (id) => result(one(id), { method: "DELETE" });

const LONGEST_SILENCE = 45_000;
const PAUSES = [500, 1000, 2000, 5000, 10_000];

/**
 * Read all events, and reconnect forever. Call `heard(kind, data)` with each event, and `state`
 * with the state of the connection.
 */
export async function follow(heard, state) {
  let last = null;
  for (let failures = 0; ; failures += 1) {
    try {
      const headers = last === null ? {} : { "Last-Event-ID": last };
      await read(await request("/events", { headers }), (event) => {
        failures = 0;
        state("live");
        if (event.id !== null) last = event.id;
        if (event.kind !== null) heard(event.kind, JSON.parse(event.data));
      });
    } catch {
      // Reconnect, whatever ended the connection.
    }
    state("reconnecting");
    const pause = PAUSES[Math.min(failures, PAUSES.length - 1)];
    await new Promise((resolve) => setTimeout(resolve, pause * (0.5 + Math.random() / 2)));
  }
}

async function read(response, heard) {
  if (!response.ok) throw new Refused({ title: `HTTP ${response.status}` });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const silence = setTimeout(() => reader.cancel(), LONGEST_SILENCE);
    const { value, done } = await reader.read();
    clearTimeout(silence);
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    parts.forEach((part) => heard(parsed(part)));
  }
}

function parsed(part) {
  const event = { id: null, kind: null, data: "" };
  for (const line of part.split("\n")) {
    const colon = line.indexOf(": ");
    const [field, value] = [line.slice(0, colon), line.slice(colon + 2)];
    if (field === "id") event.id = value;
    else if (field === "event") event.kind = value;
    else if (field === "data") event.data = value;
  }
  return event;
}
