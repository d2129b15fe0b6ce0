// Numbers as people read them.

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
  return `${p < 9.95 ? p.toFixed(1) : p.toFixed(0)} %`;
}

/** count shows a whole number with separators. */
export function count(n) {
  return Number(n).toLocaleString("en-GB");
}

/** many shows a number of things. */
export function many(n, one, more = `${one}s`) {
  return `${count(n)} ${Number(n) === 1 ? one : more}`;
}

/** bytes shows a size with a binary prefix. */
export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (n = Number(n); n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${i === 0 ? n : n.toFixed(1)} ${units[i]}`;
}

/** clock shows a time of day, given in Unix seconds. */
export function clock(t) {
  return new Date(t * 1000).toLocaleTimeString("en-GB");
}
