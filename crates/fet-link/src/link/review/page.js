"use strict";
const pairs = [...document.querySelectorAll(".pair")];
const told = document.getElementById("told");
let kept = true;

const decision = pair => pair.querySelector("input:checked")?.value ?? "";

function count() {
  const done = pairs.filter(pair => decision(pair) !== "").length;
  told.textContent = `${done} of ${pairs.length} decided`;
}

function save() {
  const lines = pairs.map(pair => `${pair.dataset.line},${decision(pair)}\n`);
  const file = new Blob([document.body.dataset.header, "\n", ...lines], { type: "text/csv" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = "decisions.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  kept = true;
}

document.getElementById("save").addEventListener("click", save);
document.addEventListener("change", () => { kept = false; count(); });
// Y, N and U decide the pair that has the focus, and go on to the next.
document.addEventListener("keydown", event => {
  const word = { y: "yes", n: "no", u: "unsure" }[event.key.toLowerCase()];
  if (!word || event.ctrlKey || event.metaKey || event.altKey) return;
  const at = Math.max(0, pairs.indexOf(document.activeElement?.closest(".pair")));
  if (pairs.length === 0) return;
  pairs[at].querySelector(`input[value=${word}]`).checked = true;
  kept = false;
  count();
  const next = pairs[Math.min(at + 1, pairs.length - 1)];
  next.querySelector("input").focus({ preventScroll: true });
  next.scrollIntoView({ block: "center" });
});
window.addEventListener("beforeunload", event => { if (!kept) event.preventDefault(); });
count();
