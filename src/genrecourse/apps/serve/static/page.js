// Puts a new answer into the page whenever the form changes. Without this file the form works, too:
// it is posted as a whole, and the page comes back.
"use strict";

const form = document.getElementById("ask");
const said = document.getElementById("said");
const wishes = document.getElementById("wishes");
const stale = document.getElementById("stale"); // says that the answer is an older one
const slots = {
  mistakes: document.getElementById("mistakes"),
  decision: document.getElementById("decision-slot"),
  plans: document.getElementById("plans-slot"),
  reasons: document.getElementById("reasons-slot"),
};
const WAIT = 120; // milliseconds after the last change, before the server is asked

let asked = 0; // how often the server was asked: only the last answer is shown
let running = null; // stops the request before
let timer = 0;
let facts = null; // the answers to the form that the reasons on the page are about

document.documentElement.classList.add("scripted");

// ---- asking -----------------------------------------------------------------------------------

async function post(path, body, signal) {
  const response = await fetch(path, { method: "POST", body, signal, headers: { Accept: "text/html" } });
  const html = response.headers.get("content-type")?.startsWith("text/html");
  if (!html) throw new Error(await problem(response));
  const parts = document.createElement("template");
  parts.innerHTML = await response.text(); // made by our own templates, which escape every text
  return { ok: response.ok, parts: parts.content };
}

async function problem(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `The service cannot answer now (${response.status}).`;
  }
}

function sent() {
  return new URLSearchParams(new FormData(form));
}

async function ask(focus) {
  clearTimeout(timer);
  running?.abort();
  running = new AbortController();
  const mine = ++asked;
  slots.plans.setAttribute("aria-busy", "true");
  try {
    const { ok, parts } = await post("answer", sent(), running.signal);
    if (mine !== asked) return;
    if (ok) show(parts, focus);
    else showMistakes(parts, focus);
  } catch (error) {
    if (mine === asked && error.name !== "AbortError") tell(error.message);
  }
  if (mine === asked) slots.plans.removeAttribute("aria-busy");
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(() => ask(false), WAIT);
}

// ---- showing ----------------------------------------------------------------------------------

function show(parts, focus) {
  clearMistakes();
  stale.hidden = true;
  const kept = stateOf(slots.plans);
  slots.decision.replaceChildren(...parts.querySelector("#decision-slot").childNodes);
  slots.plans.replaceChildren(...parts.querySelector("#plans-slot").childNodes);
  restore(kept);
  const decision = slots.decision.firstElementChild;
  wishes.hidden = decision.dataset.accepted === "yes";
  document.getElementById("answer").dataset.has = "yes";
  announce(decision.dataset.said);
  if (focus) {
    document.getElementById("you").open = false;
    const title = document.getElementById("decision-title");
    title.focus({ preventScroll: true });
    document.getElementById("answer").scrollIntoView();
  }
  askReasons();
}

function announce(text) {
  said.textContent = "";
  requestAnimationFrame(() => (said.textContent = text));
}

function tell(message) {
  const box = document.createElement("div");
  box.className = "mistakes";
  box.setAttribute("role", "alert");
  const text = document.createElement("p");
  text.textContent = message;
  box.append(text);
  slots.mistakes.replaceChildren(box);
  stale.hidden = !hasAnswer();
}

// Which element has the focus and which details are open, by id: new HTML takes their place.
function stateOf(slot) {
  const active = slot.contains(document.activeElement) ? document.activeElement.id : "";
  return { active, open: [...slot.querySelectorAll("details[open][id]")].map((each) => each.id) };
}

function restore({ active, open }) {
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (!active) return;
  const again = document.getElementById(active) ?? document.getElementById("plans-title");
  if (again && !again.matches("button, input, summary")) again.tabIndex = -1;
  again?.focus({ preventScroll: true });
}

// ---- mistakes ---------------------------------------------------------------------------------

function clearMistakes() {
  slots.mistakes.replaceChildren();
  for (const each of document.querySelectorAll(".error")) each.textContent = "";
  for (const each of document.querySelectorAll(".wrong")) each.classList.remove("wrong");
  for (const each of document.querySelectorAll("[aria-invalid]")) each.removeAttribute("aria-invalid");
}

function showMistakes(parts, focus) {
  clearMistakes();
  stale.hidden = !hasAnswer();
  slots.mistakes.replaceChildren(...parts.childNodes);
  for (const link of slots.mistakes.querySelectorAll("[data-field]")) {
    const field = document.getElementById(link.dataset.field);
    const text = document.getElementById(`${link.dataset.field}-error`);
    if (text) text.textContent = link.dataset.text;
    field?.setAttribute("aria-invalid", "true");
    field?.closest(".field, .wish, .limit")?.classList.add("wrong");
  }
  if (focus) {
    document.getElementById("you").open = true;
    const box = document.getElementById("mistakes-box");
    box?.focus({ preventScroll: true });
    box?.scrollIntoView({ block: "start" });
  }
}

// A link to a field that lies in something closed opens it.
slots.mistakes.addEventListener("click", (event) => {
  const field = document.getElementById(event.target.dataset?.field ?? "");
  if (!field) return;
  for (let up = field.closest("details"); up; up = up.parentElement.closest("details")) up.open = true;
  event.preventDefault();
  field.focus();
});

// ---- reasons ----------------------------------------------------------------------------------

async function askReasons() {
  const fields = [...sent()].filter(([name]) => /^f\d/.test(name));
  const now = JSON.stringify(fields);
  if (now === facts) return;
  facts = now;
  slots.reasons.setAttribute("aria-busy", "true");
  try {
    const { ok, parts } = await post("reasons", new URLSearchParams(fields), null);
    if (facts === now) slots.reasons.replaceChildren(...(ok ? parts.childNodes : []));
  } catch {
    if (facts === now) {
      slots.reasons.replaceChildren();
      facts = null;
    }
  }
  slots.reasons.removeAttribute("aria-busy");
}

// ---- what people do ---------------------------------------------------------------------------

form.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (button?.hasAttribute("formaction")) return; // a plan of its own page
  event.preventDefault();
  if (button?.dataset.release) {
    for (const each of document.querySelectorAll("[data-limit]")) {
      if (each.dataset.limit !== button.dataset.release) continue;
      if (each.type === "checkbox") each.checked = false;
      else each.value = "";
    }
    ask(false);
  } else ask(button?.id === "go" || !button);
});

const hasAnswer = () => document.getElementById("answer").dataset.has === "yes";

wishes.addEventListener("input", () => hasAnswer() && later());
slots.plans.addEventListener("change", (event) => {
  if (event.target.name === "compare") later();
});
form.addEventListener("change", () => hasAnswer() && later());

const slider = document.getElementById("safety");
if (slider) {
  const words = ["as cheap as possible", "cheaper", "as usual", "as safe as possible"];
  const inWords = () => slider.setAttribute("aria-valuetext", words[Number(slider.value)]);
  slider.addEventListener("input", inWords);
  inWords();
}

if (document.getElementById("mistakes-box")) document.getElementById("mistakes-box").focus();
else if (hasAnswer() && !slots.reasons.firstElementChild) askReasons();
