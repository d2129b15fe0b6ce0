// The adapter's API, as far as the page uses it. Addresses are relative, so that the
// page also works behind a proxy that adds a path.

/** get fetches a JSON document in the shape of Prometheus' API and returns its data. */
async function get(url) {
  const res = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(10_000) });
  if (!res.ok) throw new Error(`${res.status} ${res.statusText}`);
  const doc = await res.json();
  if (doc.status !== "success") throw new Error(doc.error ?? "no success");
  return doc.data;
}

/** devices returns {now, devices}. */
export function devices() {
  return get("api/v1/devices");
}

// What a rate is taken over: the shortest range in which a device has two samples.
// 10 s suits an exporter at any rate, the others suit scrapers that remote-write.
const ranges = ["10s", "1m", "5m"];

/**
 * busy returns how busy a device's CPUs were as [[Unix seconds, ratio], …], from start
 * to end in steps, with the index of the range it was taken over. Without samples the
 * list is empty.
 */
export async function busy(instance, start, end, step, range = 0) {
  for (; range < ranges.length; range++) {
    const selector = `node_cpu_seconds_total{mode="idle",instance=${JSON.stringify(instance)}}`;
    const query = `1 - avg(rate(${selector}[${ranges[range]}]))`;
    const params = new URLSearchParams({ query, start: String(start), end: String(end), step: String(step) });
    const data = await get(`api/v1/query_range?${params}`);
    const values = data.result[0]?.values ?? [];
    if (values.length > 0) {
      return { range, points: values.map(([t, v]) => [t, Number(v)]).filter(([, v]) => Number.isFinite(v)) };
    }
  }
  return { range: 0, points: [] };
}
