// The adapter's API, as far as the page uses it. Addresses are relative, so that the
// page also works behind a proxy that adds a path.

let offset = 0; // seconds the adapter's clock is ahead of this one

/** now is the adapter's clock in Unix seconds. */
export const now = () => Date.now() / 1000 + offset;

/** Refused is an answer that says what is wrong with the request. */
export class Refused extends Error {}

/**
 * get fetches a JSON document in the shape of Prometheus' API and returns its data, the
 * tiers that were read and the warnings. It gives up after 30 seconds.
 */
async function get(path, params = {}, signal) {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) for (const v of [value].flat()) search.append(key, v);
  const url = search.size > 0 ? `${path}?${search}` : path;
  const timeout = AbortSignal.timeout(30_000);
  const res = await fetch(url, { cache: "no-store", signal: signal ? AbortSignal.any([signal, timeout]) : timeout });
  let doc;
  try {
    doc = await res.json();
  } catch (err) {
    if (signal?.aborted) throw err;
    throw new Error(`it answered ${res.status} ${res.statusText} without a document`);
  }
  if (doc.status !== "success") throw new Refused(doc.error ?? `it answered ${res.status}`);
  return {
    data: doc.data, warnings: [...(doc.warnings ?? []), ...(doc.infos ?? [])],
    tiers: (res.headers.get("X-Ticktier-Tiers") ?? "").split(/[,\s]+/).filter(Boolean),
  };
}

/** aborted says whether err is that of a request nobody waits for any more. */
export const aborted = (err) => err?.name === "AbortError";

/** devices returns the devices that push, and sets the clock by the answer. */
export async function devices() {
  const asked = Date.now();
  const { data } = await get("api/v1/devices");
  offset = Date.parse(data.now) / 1000 - (asked + Date.now()) / 2000;
  return data.devices;
}

/** device returns one device with its outages, or null where none of that name pushes. */
export async function device(instance, signal) {
  // The list first: asking for one that is not known would be an error in the console.
  const { data } = await get("api/v1/devices", { search: instance.toLowerCase() }, signal);
  if (!data.devices.some((d) => d.instance === instance)) return null;
  return (await get(`api/v1/devices/${encodeURIComponent(instance)}`, {}, signal)).data;
}

/** seconds writes a duration as PromQL does, given in seconds. */
export const seconds = (s) => `${Math.max(1, Math.round(s * 1000))}ms`;

/** quote writes a string as PromQL does. */
export const quote = (s) => JSON.stringify(s);

export const query = (q, time, signal) => get("api/v1/query", { query: q, time: time.toFixed(3) }, signal);

export const range = (q, start, end, step, signal) =>
  get("api/v1/query_range", { query: q, start: start.toFixed(3), end: end.toFixed(3), step: step.toFixed(3) }, signal);

export const series = (match, start, end, signal) =>
  get("api/v1/series", { "match[]": match, start: start.toFixed(0), end: end.toFixed(0) }, signal);

export const names = (match, start, end, signal) =>
  get("api/v1/label/__name__/values", { "match[]": match, start: start.toFixed(3), end: end.toFixed(3) }, signal);

export const alerts = async (signal) => (await get("api/v1/alerts", {}, signal)).data.alerts;

export const rules = async (signal) => (await get("api/v1/rules", {}, signal)).data.groups;
