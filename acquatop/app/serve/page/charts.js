// Small chart of one number over the last windows.

import { svg } from "./dom.js";

const FEWEST = 20;
const [WIDTH, HEIGHT, TOP] = [240, 56, 4];

/** Return a chart; `draw(values, limit)` redraws it. Nulls are gaps. */
export function chart(name) {
  const area = svg("path", { class: "area" });
  const line = svg("path", { class: "line" });
  const element = svg(
    "svg",
    { class: `chart ${name}`, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("line", { class: "base", x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 }),
    area,
    line,
  );

  function draw(values, limit = null) {
    const most = limit ?? Math.max(...values.filter((each) => each !== null), 0);
    const step = WIDTH / (Math.max(FEWEST, values.length) - 1);
    const first = WIDTH - step * (values.length - 1);
    const places = values.map((value, at) =>
      value === null ? null : [first + at * step, HEIGHT - (HEIGHT - TOP) * (most > 0 ? value / most : 0)],
    );
    line.setAttribute("d", runs(places).map(path).join(""));
    area.setAttribute("d", runs(places).map(filled).join(""));
  }

  return { element, draw };
}

/** Return the runs of places between gaps. */
function runs(places) {
  const found = [[]];
  places.forEach((place) => (place === null ? found.push([]) : found.at(-1).push(place)));
  return found.filter((run) => run.length > 0);
}

const at = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;
const path = (run) => `M${run.map(at).join("L")}${run.length === 1 ? "h0.01" : ""}`;
const filled = (run) => `M${at([run[0][0], HEIGHT])}L${run.map(at).join("L")}L${at([run.at(-1)[0], HEIGHT])}Z`;
