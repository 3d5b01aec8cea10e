// Everything works without this script; with it, nothing needs to be loaded again.
"use strict";

const find = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const root = document.documentElement.dataset.root;
const CLASSES = { must: "said-must", cannot: "said-cannot", unsure: "said-unsure" };

function say(text) {
  find("#live").textContent = text;
}

async function load(url) {
  const answer = await fetch(url);
  const body = new DOMParser().parseFromString(await answer.text(), "text/html").body;
  if (!answer.ok) {
    throw new Error((find(".banner", body) || body).textContent.trim() || answer.statusText);
  }
  return body;
}

function warn(text) {
  let line = find("#problem");
  if (!line) {
    line = document.createElement("p");
    line.id = "problem";
    line.className = "banner";
    line.setAttribute("role", "alert");
    find("main").prepend(line);
  }
  line.textContent = text;
}

function withPart(url) {
  return url + (url.includes("?") ? "&" : "?") + "part=1";
}

/* The queue: judgements wait in the browser's storage until the server has them. */

const QUEUE = `linkspread ${root} `;
const DONE = `linkspread-done ${root}`;
let token = document.body.dataset.token;
let sending = false;
let pause = 0;
let onHold = false;

function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 15) | 64;
  bytes[8] = (bytes[8] & 63) | 128;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const waiting = () => Object.keys(localStorage).filter((own) => own.startsWith(QUEUE)).sort();
const done = () => JSON.parse(localStorage.getItem(DONE) || "[]");

let last = 0;
function enqueue(judgement) {
  const key = judgement.key || uuid();
  // Names sort by time, also of two in one millisecond.
  last = Math.max(Date.now(), last + 1);
  localStorage.setItem(`${QUEUE}${last} ${key}`, JSON.stringify({ ...judgement, key }));
  askName();
  send();
  return key;
}

function showWaiting(problem = "") {
  const n = waiting().length;
  const line = find("#waiting");
  if (!line) return;
  line.hidden = !n || !(problem || onHold);
  line.textContent = onHold ? `${n} waiting for your name` : `${problem}, ${n} waiting`;
}

async function send() {
  if (sending || onHold) return showWaiting();
  sending = true;
  for (let name; (name = waiting()[0]); ) {
    const given = JSON.parse(localStorage.getItem(name) || "null");
    if (!given) {
      localStorage.removeItem(name);
      continue;
    }
    const undone = given.undoes && done().find((own) => own.key === given.undoes);
    if (given.undoes && !undone) {
      localStorage.removeItem(name);
      continue;
    }
    const { label, undoes, ...body } = undone ? { ...given, undo: undone.id } : given;
    let answer;
    try {
      answer = await fetch(`${root}/judgements`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ ...body, form_token: token }),
      });
      if (answer.status === 403) {
        token = (await (await fetch(`${root}/session`)).json()).form_token;
        throw new Error("session");
      }
      if (answer.status === 401 || answer.status === 408 || answer.status >= 429) throw new Error("later");
      if (answer.ok) remember(given, (await answer.json()).id);
      else warn(/banner">([^<]*)/.exec(await answer.text())?.[1] || "This judgement was refused.");
      localStorage.removeItem(name);
      pause = 0;
    } catch (error) {
      pause = Math.min(8000, 2 * pause || 500);
      showWaiting(answer?.status === 401 ? "Enter the token again" : answer ? "The server is busy" : "Offline");
      setTimeout(() => {
        sending = false;
        send();
      }, error.message === "session" ? Math.min(pause, 2000) : pause);
      return;
    }
    showWaiting();
  }
  sending = false;
  showWaiting();
}

function remember(given, id) {
  const kept = done().filter((own) => own.key !== given.undoes);
  if (given.verdict !== "undo") kept.push({ key: given.key, id, label: given.label });
  localStorage.setItem(DONE, JSON.stringify(kept.slice(-50)));
  for (const card of cards()) {
    if (card.dataset.key === given.key) find(".undo", card).value = id;
  }
}

function takeBack(key) {
  const unsent = waiting().find((own) => own.endsWith(key));
  // The first one may be on its way already.
  if (unsent && (onHold || unsent !== waiting()[0])) localStorage.removeItem(unsent);
  else enqueue({ verdict: "undo", undoes: key });
  showWaiting();
}

function undoLast() {
  const pending = waiting().map((own) => JSON.parse(localStorage.getItem(own)));
  const undone = new Set(pending.map((own) => own.undoes));
  const latest = [...done(), ...pending]
    .filter((own) => own.verdict !== "undo" && !undone.has(own.key)).at(-1);
  if (!latest) return say("Nothing to undo.");
  takeBack(latest.key);
  const card = cards().find((own) => own.dataset.key === latest.key);
  if (card) mark(card, "");
  const form = answered.get(latest.key);
  if (form) {
    answered.delete(latest.key);
    all(".question").forEach((own) => (own.hidden = true));
    find("#questions").prepend(form);
    showQuestion();
  }
  say(`Taken back: ${latest.label}`);
}

/* A name is asked at the first judgement, and judgements wait for it a little. */

let asked = document.documentElement.dataset.named === "1" || sessionStorage.getItem("asked");
function askName() {
  const dialog = find("#who");
  if (asked || !dialog) return;
  asked = true;
  onHold = true;
  dialog.show();
  const release = async () => {
    clearTimeout(timer);
    if (!onHold) return;
    sessionStorage.setItem("asked", "1");
    const name = find("#who-name").value.trim();
    if (dialog.returnValue === "keep" && name) {
      const body = new URLSearchParams({ name, form_token: token });
      await fetch(`${root}/name`, { method: "POST", body, redirect: "manual" }).catch(() => {});
      find(".name b").textContent = name;
    }
    onHold = false;
    send();
  };
  const timer = setTimeout(() => dialog.contains(document.activeElement) || dialog.close(), 20000);
  dialog.addEventListener("close", release);
}

/* Cards */

const cards = () => all(".card");
const current = () => document.activeElement.closest?.(".card");
const labelOf = (card) => card.dataset.name;

function focusCard(card) {
  card?.focus({ preventScroll: false });
}

function step(key) {
  const list = cards();
  const here = list.indexOf(current());
  if (here < 0) return focusCard(list[0]);
  const width = list.filter((card) => card.offsetTop === list[0].offsetTop).length;
  const steps = { j: 1, ArrowRight: 1, k: -1, ArrowLeft: -1, ArrowDown: width, ArrowUp: -width };
  focusCard(list[Math.min(Math.max(here + steps[key], 0), list.length - 1)]);
}

function mark(card, verdict, key = "") {
  card.classList.remove(...Object.values(CLASSES), "picked");
  if (verdict) card.classList.add(CLASSES[verdict]);
  for (const button of all(".verdicts [aria-pressed]", card)) {
    button.setAttribute("aria-pressed", String(button.name === verdict));
  }
  card.dataset.key = key;
  find(".undo", card).hidden = !verdict;
  find(".undo", card).value = "";
}

function judge(card, verdict) {
  const { source, target, item, q, upload } = find("#judge").dataset;
  const key = uuid();
  mark(card, verdict, key);
  enqueue({ key, source, left: item, q, upload, target, right: card.dataset.id, verdict,
    note: card.dataset.note || "", label: labelOf(card) });
}

function takeBackCard(card) {
  const { key } = card.dataset;
  const id = find(".undo", card).value;
  if (key) takeBack(key);
  else enqueue({ verdict: "undo", undo: id });
  mark(card, "");
}

function press(button) {
  const card = button.closest(".card");
  find("#problem")?.remove();
  touched = Date.now();
  if (!card) return button.form.submit();
  if (button.name === "undo" || button.getAttribute("aria-pressed") === "true") {
    takeBackCard(card);
    return say(`${labelOf(card)}: taken back.`);
  }
  const chosen = card.classList.contains("picked") ? all(".card.picked") : [card];
  for (const own of chosen) judge(own, button.name);
  showPicked();
  say(`${chosen.map(labelOf).join(", ")}: ${button.textContent.trim().slice(2)}.`);
  const list = cards();
  const isDone = (own) => /said-/.test(own.className);
  if (document.activeElement.closest(".cards") || current()) {
    focusCard(list.slice(list.indexOf(card)).find((own) => !isDone(own)) || card);
  }
}

function pick(card) {
  card.classList.toggle("picked");
  showPicked();
  const list = cards();
  focusCard(list[list.indexOf(card) + 1] || card);
}

function showPicked() {
  const n = all(".card.picked").length;
  const line = find("#picked");
  if (!line) return;
  line.hidden = !n;
  line.textContent = `${n} selected: a verdict on one of them counts for all.`;
  if (n) say(line.textContent);
}

/* Zoom */

function zoom(card) {
  let dialog = find("#zoom");
  if (!dialog) {
    dialog = document.createElement("dialog");
    dialog.id = "zoom";
    dialog.setAttribute("aria-label", "Enlarged");
    document.body.append(dialog);
    dialog.addEventListener("close", () => focusCard(dialog.card));
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  }
  dialog.card = card;
  const face = find(".face", card);
  const made = (tag, values, ...children) => {
    const own = Object.assign(document.createElement(tag), values);
    own.append(...children);
    return own;
  };
  const link = (from, text) => (from ? [made("a", { href: from.href, textContent: text })] : []);
  const turn = (key, text) => made("button", { type: "button", textContent: text, onclick: () => turnZoom(key) });
  const image = face.dataset.picture
    ? [made("img", { src: face.dataset.picture, alt: labelOf(card), className: find("img", face).className })]
    : [];
  const { text } = card.dataset;
  const own = (name) => find(`.verdicts [name=${name}]`, card);
  const again = (name) => [press(own(name)), zoom(card)];
  const verdicts = ["must", "cannot", "unsure"].filter(own).map((name) => {
    const button = made("button", { type: "button", textContent: own(name).textContent, onclick: () => again(name) });
    for (const kind of ["aria-pressed", "aria-label"]) button.setAttribute(kind, own(name).getAttribute(kind));
    return button;
  });
  const keepNote = ({ target }) => {
    card.dataset.note = target.value;
    const said = find(".verdicts [aria-pressed=true]", card);
    if (said) judge(card, said.name);
  };
  const note = made("input", { id: "note", maxLength: 1000, value: card.dataset.note || "", onchange: keepNote });
  dialog.replaceChildren(
    ...image,
    made("h2", { textContent: labelOf(card) }),
    ...(text && text !== labelOf(card) ? [made("p", { textContent: text })] : []),
    made("p", { className: "caption", textContent: `No. ${card.dataset.rank}. ${find(".score", card).title.replace(" Why?", "")}` }),
    made("p", { className: "links" }, ...link(find(".like a", card), "More like this"), " ",
      ...link(find(".score", card), "Why this score"), " ", ...link(face, "Search by this")),
    ...(verdicts.length ? [made("p", { className: "turns" }, ...verdicts),
      made("label", { className: "note" }, "Note to your judgement ", note)] : []),
    made("p", { className: "turns" }, turn("ArrowLeft", "← Previous"), turn("ArrowRight", "Next →"),
      made("button", { type: "button", textContent: "Close", onclick: () => dialog.close() })),
  );
  if (!dialog.open) dialog.showModal();
  find(".turns button:last-child", dialog).focus();
}

function turnZoom(key) {
  const list = cards();
  const place = list.indexOf(find("#zoom").card) + (key === "ArrowLeft" ? -1 : 1);
  if (list[place]) zoom(list[place]);
}

/* A new order of the list is offered; it comes by itself only when nobody is at work. */

const IDLE = 5000;
let touched = Date.now();
let news = null;
let over = false;

for (const kind of ["pointermove", "pointerdown", "keydown", "scroll", "touchstart"]) {
  addEventListener(kind, (event) => {
    touched = Date.now();
    if (kind === "pointermove") over = Boolean(event.target.closest?.("#results"));
  }, { passive: true, capture: true });
}
document.documentElement.addEventListener("pointerleave", () => (over = false));

async function listen() {
  const form = find("#judge");
  if (form && !document.hidden && !find("#zoom[open]") && !waiting().length) {
    try {
      const { number } = await (await fetch(`${root}/api/state`)).json();
      if (number > Number((news || form).dataset.number)) await getNews();
    } catch {
      // The server may be away for a moment.
    }
  }
  if (news && !over && !current() && !all(".picked").length && Date.now() - touched > IDLE) showNews();
  setTimeout(listen, 1500);
}

async function getNews() {
  const old = find("#judge");
  const pages = Math.max(1, Math.ceil(cards().length / 24));
  const url = old.dataset.from.replace(/shown=\d+/, `shown=${pages}`);
  const fresh = find("#judge", await load(withPart(url)));
  if (find("#judge") !== old || waiting().length) return;
  const ranks = new Map(cards().map((card) => [card.dataset.id, card.dataset.rank]));
  const moved = all(".card", fresh).filter((own) => ranks.get(own.dataset.id) !== own.dataset.rank);
  news = fresh;
  if (moved.length) {
    find("#news button").textContent = `${moved.length} results moved: show`;
    find("#news").hidden = false;
    say(`${moved.length} results moved. Press r to show them.`);
    return;
  }
  // The same order: only what others said is new, and no button moves.
  for (const card of all(".card", fresh)) {
    const own = cards().find((mine) => mine.dataset.id === card.dataset.id);
    find(".others", own).replaceWith(find(".others", card));
  }
  old.dataset.number = fresh.dataset.number;
  news = null;
}

function showNews() {
  if (!news) return;
  const ranks = new Map(cards().map((card) => [card.dataset.id, card.dataset.rank]));
  const focused = current()?.dataset.id;
  for (const card of all(".card", news)) {
    const before = ranks.get(card.dataset.id);
    if (before === card.dataset.rank) continue;
    const note = document.createElement("span");
    note.className = "was";
    note.textContent = before ? `was #${before}` : "new here";
    find(".meta", card).append(note);
    card.classList.add("moved");
  }
  find("#judge").replaceWith(news);
  news = null;
  find("#news").hidden = true;
  if (focused) focusCard(cards().find((card) => card.dataset.id === focused));
  say("The list is in its new order.");
  watchMore();
}

/* More results */

let loading = false;
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
  if (!link || loading) return;
  loading = true;
  watcher.disconnect();
  try {
    const body = await load(withPart(link.getAttribute("href")));
    const known = new Set(cards().map((card) => card.dataset.id));
    find(".cards").append(...all(".card", body).filter((card) => !known.has(card.dataset.id)));
    find("[name=seen]").value += find("[name=seen]", body).value;
    const next = find("#more", body);
    if (next) link.href = next.getAttribute("href");
    else link.remove();
  } catch (error) {
    warn(error.message);
  }
  loading = false;
  watchMore();
}

/* Questions: the next one is there before it is needed. */

const pairOf = (form) => `${form.dataset.left}\n${form.dataset.right}`;
const answered = new Map();

function answer(form, verdict) {
  const { source, target } = find("#questions").dataset;
  const { left, right } = form.dataset;
  const note = find("[name=note]", form).value;
  const label = all("section", form).map((own) => own.textContent.trim().replace(/\s+/g, " ")).join(" and ");
  answered.set(enqueue({ source, left, target, right, verdict, note, label }), form);
  form.remove();
  showQuestion();
  if (all(".question").length < 4) moreQuestions();
}

function showQuestion() {
  const next = find(".question");
  if (!next) return;
  next.hidden = false;
  find("#no-question").hidden = true;
  find("button", next).focus();
  say(find(".sides", next).textContent.trim().replace(/\s+/g, " "));
}

async function moreQuestions() {
  if (loading) return;
  loading = true;
  try {
    const body = await load(find("#questions").dataset.from);
    const known = new Set([...all(".question"), ...answered.values()].map(pairOf));
    const fresh = all(".question", body).filter((own) => !known.has(pairOf(own)));
    for (const own of fresh) own.hidden = true;
    find("#no-question").before(...fresh);
    if (!find(".question:not([hidden])")) showQuestion();
    find("#no-question").hidden = Boolean(find(".question"));
  } catch {
    // Offline: the next answer asks again.
  }
  loading = false;
}

/* What is pressed */

document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (event.target.id === "judge" && button) {
    event.preventDefault();
    press(button);
  } else if (event.target.matches(".question") && button) {
    event.preventDefault();
    answer(event.target, button.value);
  }
});

document.addEventListener("click", (event) => {
  if (event.target.closest("#news button")) return showNews();
  const face = event.target.closest?.(".face");
  if (!face || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  zoom(face.closest(".card"));
});

function isTyping(target) {
  return target.matches("input:not([type=checkbox]), select, textarea, [contenteditable]");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const dialog = find("#zoom[open]");
  if (dialog) {
    if (["ArrowLeft", "ArrowRight"].includes(event.key)) return turnZoom(event.key);
    const name = { y: "must", n: "cannot", u: "unsure" }[event.key];
    const button = name && find(`button[name=${name}]`, dialog.card);
    if (button) [press(button), zoom(dialog.card)];
    return;
  }
  const toggle = find("#use-keys");
  const arrows = event.key.startsWith("Arrow");
  if (arrows ? !current() : toggle && !toggle.checked) return;
  if (handle(event.key)) event.preventDefault();
});

function handle(key) {
  if (key === "/" && find("#q")) return find("#q").focus(), true;
  if (key === "z" && find("#judge, #questions")) return undoLast(), true;
  const name = { y: "must", n: "cannot", u: "unsure" }[key];
  const question = find(".question:not([hidden])");
  if (question) return name ? (answer(question, name), true) : false;
  if (!find("#judge")) return false;
  if (key === "r") return showNews(), true;
  if (["j", "k"].includes(key) || key.startsWith("Arrow")) return step(key), true;
  const card = current();
  if (!card) return false;
  if (key === "w") return find(".score", card).click(), true;
  if (key === "x" && find(".verdicts", card)) return pick(card), true;
  if (key === "Enter" && document.activeElement === card) return zoom(card), true;
  const button = name && find(`button[name=${name}]`, card);
  return button ? (press(button), true) : false;
}

/* Items to pick, pictures to drop, the map */

let typing;
document.addEventListener("input", (event) => {
  if (event.target.id !== "q") return;
  clearTimeout(typing);
  typing = setTimeout(async () => {
    const [view] = find("#way").value.split("~");
    const wanted = new URLSearchParams({ view, q: event.target.value });
    const found = await fetch(`${root}/api/items?${wanted}`);
    if (!found.ok) return;
    const { items } = await found.json();
    find("#items").replaceChildren(...items.map((item) => new Option(item.id, item.title)));
  }, 150);
});

async function shrink(file) {
  if (file.size < 1_000_000) return file;
  const picture = await createImageBitmap(file);
  const scale = Math.min(1, 1600 / Math.max(picture.width, picture.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(picture.width * scale);
  canvas.height = Math.round(picture.height * scale);
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((keep) => canvas.toBlob(keep, "image/jpeg", 0.9));
  return new File([blob], "picture.jpg", { type: "image/jpeg" });
}

const drop = find(".drop");
if (drop) {
  const form = find("#drop");
  form.addEventListener("submit", async (event) => {
    const input = find("#picture");
    if (form.dataset.ready || !input.files.length) return;
    event.preventDefault();
    const files = new DataTransfer();
    // What the browser cannot read, the server refuses with a sentence.
    files.items.add(await shrink(input.files[0]).catch(() => input.files[0]));
    input.files = files.files;
    form.dataset.ready = 1;
    // Not within this event, during which a form does not submit again.
    setTimeout(() => form.requestSubmit());
  });
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      drop.classList.toggle("over", kind === "dragover");
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      if (kind === "drop" && event.dataTransfer.files.length) {
        find("#picture").files = event.dataTransfer.files;
        form.requestSubmit();
      }
    });
  }
}

function moveOnMap(map, key) {
  const marks = all("a", map);
  const here = map.contains(document.activeElement) && document.activeElement.closest("a");
  const box = (own) => own.getBoundingClientRect();
  if (!here) return marks[0]?.focus();
  const { x, y } = box(here);
  const [across, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  let best = null;
  let least = Infinity;
  for (const own of marks) {
    const dx = box(own).x - x;
    const dy = box(own).y - y;
    const ahead = dx * across + dy * down;
    const aside = Math.abs(dx * down) + Math.abs(dy * across);
    if (ahead > 1 && ahead + 2 * aside < least) [best, least] = [own, ahead + 2 * aside];
  }
  best?.focus();
}

async function startMap() {
  const place = find("#map");
  if (!place) return;
  try {
    place.replaceChildren(...(await load(place.dataset.from)).childNodes);
  } catch (error) {
    place.textContent = error.message;
    return;
  }
  const map = find(".map");
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

if (find("#refit[data-kind=running]")) setTimeout(() => location.replace(location.pathname), 5000);
watchMore();
startMap();
send();
listen();
