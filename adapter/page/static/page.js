// The page: it asks the adapter for the devices every few seconds, keeps one card for
// each, and asks for the chart of those that can be seen.

import * as api from "./api.js";
import { Card } from "./card.js";
import { clock, count, many } from "./format.js";

const every = 5_000; // milliseconds between two rounds
const most = 500; // cards that are shown
const atOnce = 4; // charts that are asked for at the same time

const $ = (id) => document.getElementById(id);
const cards = new Map();
let offset = 0; // seconds the adapter's clock is ahead of this one
let heard = 0; // when the adapter answered last, in seconds of its clock
let timer = 0;
let running = false;

const now = () => Date.now() / 1000 + offset;

const observer = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const card = cards.get(entry.target.dataset.instance);
    if (!card) continue;
    card.visible = entry.isIntersecting;
    if (card.visible && card.points.length === 0) card.refresh(now()).catch(() => {}); // the next round tells
  }
}, { rootMargin: "200px" });

/** show brings the list in line with what the adapter says. */
function show(list) {
  const known = new Set(list.map((d) => d.instance));
  for (const [instance, card] of cards) {
    if (known.has(instance)) continue;
    observer.unobserve(card.root);
    cards.delete(instance);
  }
  const shown = list.slice(0, most).map((device) => {
    let card = cards.get(device.instance);
    if (!card) {
      card = new Card(device.instance);
      card.root.dataset.instance = device.instance;
      cards.set(device.instance, card);
      observer.observe(card.root);
    }
    card.update(device, offset);
    return card.root;
  });
  const ul = $("devices");
  if (shown.length !== ul.children.length || shown.some((e, i) => e !== ul.children[i])) ul.replaceChildren(...shown);
  $("empty").hidden = list.length > 0;
  summarise(list);
}

function summarise(list) {
  const silent = list.filter((d) => !d.up).length;
  let text = many(list.length, "device");
  if (silent > 0) text += `, ${count(silent)} silent`;
  if (list.length > most) text += `; the first ${count(most)} are shown`;
  $("summary").textContent = text;
  $("more")?.remove();
}

/** charts refreshes the charts that can be seen, a few at a time. */
async function charts() {
  const waiting = [...cards.values()].filter((card) => card.visible);
  const work = async () => {
    for (let card = waiting.shift(); card; card = waiting.shift()) await card.refresh(now());
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

/** trouble says what is wrong, or that nothing is. */
function trouble(text) {
  $("trouble").textContent = text;
  $("trouble").hidden = text === "";
  document.body.classList.toggle("stale", text !== "");
}

/** round is one refresh of everything. */
async function round() {
  if (running) return;
  running = true;
  clearTimeout(timer);
  try {
    const asked = Date.now();
    const data = await api.devices();
    offset = Date.parse(data.now) / 1000 - (asked + Date.now()) / 2000;
    heard = now();
    show(data.devices);
    await charts();
    trouble("");
  } catch (err) {
    const since = heard ? ` What is shown is from ${clock(heard - offset)}.` : "";
    trouble(`The adapter does not answer as it should (${err.message}).${since} The page keeps trying.`);
  } finally {
    running = false;
    if (!document.hidden) timer = setTimeout(round, every);
  }
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) round();
});

setInterval(() => {
  for (const card of cards.values()) card.tick(now());
}, 1000);

$("command").textContent = `ticktier-exporter --remote-write.url=${new URL("api/v1/write", location.href)}`;
round();
