// Numbers and times as people read them. Times are shown in the viewer's zone.

/** age says how long ago something was, given in seconds. */
export function age(seconds) {
  const s = Math.max(0, seconds);
  if (s < 90) return `${Math.floor(s)} s`;
  if (s < 90 * 60) return `${Math.floor(s / 60)} min`;
  if (s < 36 * 3600) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

/** percent shows a ratio, with a decimal where it is small. */
export function percent(ratio) {
  const p = ratio * 100;
  return `${p !== 0 && Math.abs(p) < 9.95 ? p.toFixed(1) : p.toFixed(0)} %`;
}

/** share shows an availability: it is 100 % only where nothing is missing. */
export function share(ratio) {
  if (ratio >= 1) return "100 %";
  const p = Math.floor(ratio * 10_000) / 100;
  return `${p >= 99 ? p.toFixed(2) : p.toFixed(1)} %`;
}

/** count shows a whole number with separators. */
export const count = (n) => Number(n).toLocaleString("en-GB");

/** many shows a number of things. */
export const many = (n, one, more = `${one}s`) => `${count(n)} ${Number(n) === 1 ? one : more}`;

function scaled(n, base, units) {
  let i = 0;
  let v = Math.abs(n);
  for (; v >= base && i < units.length - 1; i++) v /= base;
  const digits = v === 0 || (i === 0 && Number.isInteger(v)) ? 0 : v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
  return `${n < 0 ? "−" : ""}${v.toFixed(digits)} ${units[i]}`.trimEnd();
}

/** bytes shows a size with a binary prefix. */
export const bytes = (n) => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);

/** bits shows bits a second. */
export const bits = (n) => scaled(n, 1000, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);

/** number shows any number shortly. */
export function number(n) {
  if (n !== 0 && Math.abs(n) < 0.01) return n.toPrecision(2);
  return scaled(n, 1000, ["", "k", "M", "G", "T"]);
}

/** duration shows seconds, which may be far below one. */
export function duration(s) {
  const a = Math.abs(s);
  if (a === 0) return "0 s";
  if (a < 1e-3) return `${(s * 1e6).toFixed(0)} µs`;
  if (a < 1) return `${(s * 1e3).toFixed(a < 0.01 ? 2 : a < 0.1 ? 1 : 0)} ms`;
  if (a < 90) return `${Number(s.toFixed(a < 10 ? 1 : 0))} s`;
  return (s < 0 ? "−" : "") + age(a);
}

/** units shows a value in the unit that a chart has. */
export const units = {
  percent, bytes, bits, number, duration,
  bytesRate: (n) => `${bytes(n)}/s`,
  rate: (n) => `${number(n)}/s`,
  celsius: (n) => `${n.toFixed(1)} °C`,
};

/** clock shows a time of day, given in Unix seconds. */
export const clock = (t) => new Date(t * 1000).toLocaleTimeString("en-GB");

/** moment shows a time as exactly as a span of some seconds asks for. */
export function moment(t, span) {
  const d = new Date(t * 1000);
  const date = d.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: span > 180 * 86400 ? "numeric" : undefined });
  if (span > 14 * 86400) return `${date}, ${d.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}`;
  const time = d.toLocaleTimeString("en-GB", span <= 120 ? { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: span <= 20 ? 3 : 1 } : {});
  return `${date}, ${time}`;
}

/** zone names the viewer's time zone. */
export const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;
