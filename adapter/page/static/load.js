// Reading a section's lines over a stretch of time: the mean of each step, and the
// lowest and highest within it.

import * as api from "./api.js";

const steps = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
  2 * 86400, 7 * 86400,
];
const bucket = 300; // seconds of the finest tier that is folded

/** stepFor is the time between points that fits a span and a number of points. */
export function stepFor(span, points) {
  return steps.find((s) => span / s <= points) ?? steps.at(-1);
}

/**
 * cadence is the time between two samples of a section, in seconds, around a time. Where
 * none are found it is that of a device that sends every 30 seconds.
 */
export async function cadence(query, time, signal) {
  const selector = query.gauge ?? /rate\(([a-z_0-9]+\{[^[]*\})\[/.exec(query.rate("1m"))[1];
  for (const window of [10, 120]) {
    const { data } = await api.query(`max(count_over_time(${selector}[${window}s]))`, time, signal);
    const n = Number(data.result[0]?.value[1] ?? 0);
    if (n >= 3) return window / n;
  }
  return 30;
}

/** grid puts values of a range query on a grid of steps; what is missing is null. */
function grid(values, start, step, n) {
  const out = new Array(n).fill(null);
  for (const [t, v] of values) {
    const i = Math.round((t - start) / step);
    const x = Number(v);
    if (i >= 0 && i < n && Number.isFinite(x)) out[i] = x;
  }
  return out;
}

/**
 * load reads the queries of a section from one time to another, in Unix seconds, in at
 * most so many points. It returns {xs, lines, step, tiers, warnings, quiet}; a line is
 * {name, mean, low, high}, quiet how many lines were 0 throughout and are left out.
 */
export async function load(section, queries, from, to, points, every, signal) {
  const step = Math.max(stepFor(to - from, points), steps.find((s) => s >= every * 0.9) ?? every);
  const start = Math.floor(from / step) * step - step;
  // No step is asked for that is not over yet: it would show a part for the whole.
  const end = Math.max(start + step, Math.min(Math.ceil(to / step) * step + step, Math.floor((to > api.now() - step ? to : api.now()) / step) * step));
  const n = Math.round((end - start) / step) + 1;
  const xs = Array.from({ length: n }, (_, i) => start + i * step);
  const out = { xs, lines: [], step, tiers: new Set(), warnings: new Set(), quiet: 0 };
  const ask = async (q) => {
    const got = await api.range(q, start, end, step, signal);
    for (const w of got.warnings) out.warnings.add(w);
    return got;
  };
  for (const q of queries) {
    const window = api.seconds(q.gauge ? Math.max(step, 1.6 * every) : Math.max(step, 2.2 * every));
    const mean = await ask(q.gauge ? `avg_over_time(${q.gauge}[${window}])` : q.rate(window));
    for (const t of mean.tiers) out.tiers.add(t);
    if (mean.data.result.length === 0) continue;
    const bands = await band(q, step, every, mean.tiers, window, ask);
    for (const { metric, values } of mean.data.result) {
      const line = { name: q.name(metric), mean: grid(values, start, step, n), low: null, high: null };
      const key = keyOf(metric);
      for (const side of ["low", "high"]) {
        const found = bands?.[side].get(key);
        if (found) line[side] = grid(found, start, step, n);
      }
      if (q.zero && [...line.mean, ...(line.high ?? [])].every((v) => v === null || Math.abs(v) < 1e-12)) out.quiet++;
      else out.lines.push(line);
    }
  }
  return out;
}

const keyOf = ({ __name__: _, ...labels }) => JSON.stringify(Object.entries(labels).sort());

/**
 * band asks for the lowest and highest within each step. Of a gauge they are its
 * samples'; of a counter those of the rates over shorter ranges, as short as a tier
 * may hold, but no more than twenty to a step. Where a step holds one sample
 * there is no band.
 */
async function band(q, step, every, tiers, window, ask) {
  const least = tiers.includes("raw") ? 0 : bucket;
  const within = Math.max(step / 20, 2 * every, least);
  if (q.gauge ? step < 1.6 * every : within > step / 2) return null;
  const inner = q.gauge ? `${q.gauge}[${window}]` : `(${q.rate(api.seconds(within))})[${api.seconds(step)}:${api.seconds(within)}]`;
  const [low, high] = await Promise.all(["min_over_time", "max_over_time"].map((f) => ask(`${f}(${inner})`)));
  const byKey = (r) => new Map(r.data.result.map(({ metric, values }) => [keyOf(metric), values]));
  return { low: byKey(low), high: byKey(high) };
}
