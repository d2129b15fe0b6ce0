// Building the document. A client's words reach it as text only.

/** make builds an element. props are properties or, with a dash or "role", attributes. */
export function make(name, props = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (key.includes("-") || key === "role" || key === "for" || key === "scope") e.setAttribute(key, value);
    else e[key] = value;
  }
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

/** text sets an element's text where it is another one. */
export function text(e, s) {
  if (e.textContent !== s) e.textContent = s;
}

/** later calls f once, some milliseconds after the last of several calls. */
export function later(f, ms) {
  let timer = 0;
  const g = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...args), ms);
  };
  g.cancel = () => clearTimeout(timer);
  return g;
}
