// Everything works without this script; with it, nothing needs to be loaded again.
"use strict";

const find = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const judged = [];
let busy = false;

function say(text) {
  find("#live").textContent = text;
}

function parse(html) {
  return new DOMParser().parseFromString(html, "text/html").body;
}

async function load(url, options) {
  const answer = await fetch(url, options);
  const body = parse(await answer.text());
  if (!answer.ok) {
    const sentence = find(".banner", body);
    throw new Error((sentence || body).textContent.trim() || answer.statusText);
  }
  return body;
}

function withPart(url) {
  return url + (url.includes("?") ? "&" : "?") + "part=1";
}

function warn(error) {
  const place = find("#results, #question, main");
  let line = find("#problem");
  if (!line) {
    line = document.createElement("p");
    line.id = "problem";
    line.className = "banner";
    line.setAttribute("role", "alert");
    place.before(line);
  }
  line.textContent = error.message;
}

/* Cards */

const cards = () => all(".card");
const current = () => document.activeElement.closest?.(".card");

function focusCard(card) {
  if (card) card.focus({ preventScroll: false });
}

function step(key) {
  const list = cards();
  const here = list.indexOf(current());
  if (here < 0) return focusCard(list[0]);
  const width = list.filter((card) => card.offsetTop === list[0].offsetTop).length;
  const steps = { j: 1, ArrowRight: 1, k: -1, ArrowLeft: -1, ArrowDown: width, ArrowUp: -width };
  focusCard(list[Math.min(Math.max(here + steps[key], 0), list.length - 1)]);
}

function markMoves(before, list) {
  let moved = 0;
  for (const card of list) {
    const rank = before.get(card.dataset.id);
    if (rank === card.dataset.rank || find(".was", card)) continue;
    const note = document.createElement("span");
    note.className = "was";
    note.textContent = rank ? `was #${rank}` : "new here";
    find(".meta", card).append(note);
    card.classList.add("moved");
    moved += 1;
  }
  return moved;
}

async function judge(button) {
  const form = find("#judge");
  const card = button.closest(".card");
  const here = cards().indexOf(card);
  const data = new FormData(form);
  data.set(button.name, button.value);
  await swap(withPart(form.getAttribute("action")), data);
  const list = cards();
  const next = list.slice(Math.max(here, 0)).find((own) => !/said-/.test(own.className));
  if (card) focusCard(next || list[here]);
  const moved = all(".card .was").length;
  say(`${(find(".notice") || form).textContent.trim().replace(/\s+/g, " ").replace("Undo", "")} ${moved} results moved.`);
}

async function swap(url, data) {
  const body = await load(url, { method: "POST", body: new URLSearchParams(data) });
  find("#results").replaceChildren(...body.childNodes);
  const id = find("#judge").dataset.judged;
  if (id && data.get("undo") !== id) judged.push(id);
  watchMore();
}

async function refresh() {
  const form = find("#judge");
  const before = new Map(cards().map((card) => [card.dataset.id, card.dataset.rank]));
  const focused = current()?.dataset.id;
  const pages = Math.max(1, Math.ceil(before.size / 24));
  const url = form.dataset.source.replace(/shown=\d+/, `shown=${pages}`);
  const body = await load(withPart(url));
  find("#results").replaceChildren(...body.childNodes);
  const list = cards();
  const moved = markMoves(before, list);
  if (focused) focusCard(list.find((card) => card.dataset.id === focused));
  say(`The model has learnt something new. ${moved} results moved.`);
  watchMore();
}

/* More results */

const watcher = new IntersectionObserver((entries) => {
  if (entries.some((entry) => entry.isIntersecting)) more();
}, { rootMargin: "400px" });

function watchMore() {
  watcher.disconnect();
  const link = find("#more");
  if (link) watcher.observe(link);
}

async function more() {
  const link = find("#more");
  if (!link || busy) return;
  busy = true;
  watcher.disconnect();
  try {
    const body = await load(withPart(link.getAttribute("href")));
    find(".cards").append(...all(".card", body));
    find("[name=seen]").value += find("[name=seen]", body).value;
    const next = find("#more", body);
    if (next) link.href = next.getAttribute("href");
    else link.remove();
  } catch (error) {
    warn(error);
  }
  busy = false;
  watchMore();
}

/* Questions */

async function answer(button) {
  const form = find("#answer");
  const data = new FormData(form);
  data.set(button.name, button.value);
  const url = withPart(form.getAttribute("action"));
  const body = await load(url, { method: "POST", body: new URLSearchParams(data) });
  find("#question").replaceChildren(...body.childNodes);
  const id = find("#answer").dataset.judged;
  if (id) judged.push(id);
  find("#answer .answers button")?.focus();
  say(find(".sides")?.textContent.trim().replace(/\s+/g, " ") || "There is no pair left to judge.");
}

async function fill(selector) {
  const place = find(selector);
  if (!place) return;
  try {
    const body = await load(place.dataset.from);
    if (place.isConnected) place.replaceChildren(...body.childNodes);
  } catch (error) {
    place.textContent = error.message;
  }
}

/* What is pressed */

async function press(button) {
  if (busy) return;
  busy = true;
  find("#problem")?.remove();
  try {
    await (button.form.id === "judge" ? judge(button) : answer(button));
  } catch (error) {
    warn(error);
  }
  busy = false;
}

function undo() {
  const id = judged.pop();
  const form = find("#judge, #answer");
  if (!id || !form) return say("Nothing to undo.");
  const button = document.createElement("button");
  button.name = "undo";
  button.value = id;
  button.hidden = true;
  form.append(button);
  press(button);
}

document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button || !["judge", "answer"].includes(event.target.id)) return;
  event.preventDefault();
  press(button);
});

function isTyping(target) {
  return target.matches("input:not([type=checkbox]), select, textarea, [contenteditable]");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const toggle = find("#use-keys");
  const arrows = event.key.startsWith("Arrow");
  if (arrows ? !current() : toggle && !toggle.checked) return;
  if (handle(event.key)) event.preventDefault();
});

function handle(key) {
  if (key === "/" && find("#q")) return find("#q").focus(), true;
  if (key === "z") return undo(), true;
  const name = { y: "must", n: "cannot", u: "unsure" }[key];
  if (find("#answer")) {
    const button = name && find(`#answer button[value=${name}]`);
    return button ? (press(button), true) : false;
  }
  if (!find("#judge")) return false;
  if (["j", "k"].includes(key) || key.startsWith("Arrow")) return step(key), true;
  const card = current();
  if (card && key === "w") return find(".score", card).click(), true;
  if (card && key === "Enter" && document.activeElement === card) return find(".face", card).click(), true;
  const button = card && name && find(`button[name=${name}]`, card);
  return button ? (press(button), true) : false;
}

/* What others do */

async function listen() {
  const form = find("#judge");
  if (form && !busy && !document.hidden) {
    try {
      const state = await (await fetch("/api/state")).json();
      // A judgement may have been answered meanwhile.
      if (!busy && state.number > Number(find("#judge").dataset.number)) await refresh();
    } catch {
      // The server may be away for a moment.
    }
  }
  setTimeout(listen, 1500);
}

/* Items to pick, pictures to drop, the map */

let typing;
document.addEventListener("input", (event) => {
  if (event.target.id !== "q") return;
  clearTimeout(typing);
  typing = setTimeout(async () => {
    const wanted = new URLSearchParams({ view: find("#source").value, q: event.target.value });
    const answer = await fetch(`/api/items?${wanted}`);
    if (!answer.ok) return;
    const { items } = await answer.json();
    find("#items").replaceChildren(...items.map((item) => new Option(item.id, item.title)));
  }, 150);
});

const drop = find(".drop");
if (drop) {
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      drop.classList.toggle("over", kind === "dragover");
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      if (kind === "drop" && event.dataTransfer.files.length) {
        find("#picture").files = event.dataTransfer.files;
        find("#drop").requestSubmit();
      }
    });
  }
}

function moveOnMap(map, key) {
  const marks = all("a", map);
  const here = map.contains(document.activeElement) && document.activeElement.closest("a");
  const box = (mark) => mark.getBoundingClientRect();
  if (!here) return marks[0]?.focus();
  const { x, y } = box(here);
  const [across, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  let best = null;
  let least = Infinity;
  for (const mark of marks) {
    const dx = box(mark).x - x;
    const dy = box(mark).y - y;
    const ahead = dx * across + dy * down;
    const aside = Math.abs(dx * down) + Math.abs(dy * across);
    if (ahead > 1 && ahead + 2 * aside < least) [best, least] = [mark, ahead + 2 * aside];
  }
  best?.focus();
}

function startMap() {
  const map = find(".map");
  if (!map) return;
  const tell = (event) => {
    const title = event.target.closest?.("a")?.dataset.title;
    if (title) find(".map-title").textContent = title;
  };
  map.addEventListener("focusin", tell);
  map.addEventListener("mouseover", tell);
  map.addEventListener("keydown", (event) => {
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    moveOnMap(map, event.key);
  });
}

watchMore();
fill("#map").then(startMap);
listen();
