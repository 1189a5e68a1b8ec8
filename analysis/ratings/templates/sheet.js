"use strict";
const $ = (id) => document.getElementById(id);
const sheet = JSON.parse($("sheet").textContent);
const key = "tutorsim-ratings:" + sheet.sheet;
const said = new Map(sheet.items.map((item) => [item.item, { score: "", note: "" }]));
let at = 0;

const make = (tag, text, cls) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (cls) made.className = cls;
  return made;
};
const visible = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g, (found) => {
  const code = found.charCodeAt(0);
  return code < 32 ? String.fromCharCode(0x2400 + code) : "\u27e8U+" + code.toString(16).toUpperCase().padStart(4, "0") + "\u27e9";
});

// What was entered is kept under the sheet's digest, so that another sheet never reads it.
const keep = () => {
  try { localStorage.setItem(key, JSON.stringify({ at: at, said: [...said] })); }
  catch { $("notice").textContent = "This browser keeps nothing: download the ratings before you close the page."; }
};
const restore = () => {
  try {
    const kept = JSON.parse(localStorage.getItem(key) || "{}");
    for (const [item, one] of kept.said || [])
      if (said.has(item) && (one.score === "" || sheet.values.includes(one.score))) said.set(item, { score: one.score, note: String(one.note) });
    if (kept.at >= 0 && kept.at < sheet.items.length) at = kept.at;
  } catch { $("notice").textContent = "What was entered before could not be read in this browser."; }
};
const rated = (item) => said.get(item.item).score !== "";
const count = () => {
  const done = sheet.items.filter(rated).length;
  $("bar").max = sheet.items.length;
  $("bar").value = done;
  $("count").textContent = done + " of " + sheet.items.length + " rated";
  [...$("places").children].forEach((place, number) => {
    const button = place.firstChild, done = rated(sheet.items[number]);
    button.classList.toggle("done", done);
    button.setAttribute("aria-label", "Item " + (number + 1) + (done ? ", rated" : ", not rated"));
    if (number === at) button.setAttribute("aria-current", "step"); else button.removeAttribute("aria-current");
  });
};
const show = () => {
  const item = sheet.items[at], one = said.get(item.item);
  $("title").textContent = "Item " + (at + 1) + " of " + sheet.items.length;
  $("shown").replaceChildren(...item.blocks.map(([heading, text], place) => {
    const block = make("section", undefined, "said" + (place === item.blocks.length - 1 ? " rated" : ""));
    block.append(make("h3", heading), make("p", visible(text)));
    return block;
  }));
  document.querySelectorAll("input[name=score]").forEach((input) => { input.checked = input.value === one.score; });
  $("note").value = one.note;
  $("previous").disabled = at === 0;
  $("next").textContent = at === sheet.items.length - 1 ? "Done" : "Next";
  count();
};
const go = (to) => {
  $("notice").textContent = "";
  at = to;
  keep();
  show();
  $("title").focus();
};

// A cell in quotes can hold anything; a quote in it is doubled.
const cell = (value) => "\"" + String(value).replaceAll("\"", "\"\"") + "\"";
const csv = () => {
  const rows = sheet.items.map((item, place) => {
    const shown = item.blocks.map(([heading, text]) => heading + ":\n" + text).join("\n\n");
    const one = said.get(item.item);
    return [place + 1, shown, one.score, one.note, item.item, sheet.rater, sheet.sheet, sheet.survey];
  });
  return [sheet.columns, ...rows].map((row) => row.map(cell).join(",") + "\r\n").join("");
};
const download = () => {
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  link.download = sheet.file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};

sheet.values.forEach((value) => {
  const label = make("label", undefined, "value"), input = make("input");
  input.type = "radio";
  input.name = "score";
  input.value = value;
  label.append(input, make("b", value), make("span", visible(sheet.anchors[value] || "")));
  $("values").append(label);
});
sheet.items.forEach((item, place) => {
  const entry = make("li"), button = make("button", place + 1);
  button.type = "button";
  button.addEventListener("click", () => go(place));
  entry.append(button);
  $("places").append(entry);
});
$("values").addEventListener("change", (event) => {
  said.get(sheet.items[at].item).score = event.target.value;
  keep();
  count();
});
$("note").addEventListener("input", () => {
  said.get(sheet.items[at].item).note = $("note").value;
  keep();
});
$("previous").addEventListener("click", () => go(at - 1));
$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (at < sheet.items.length - 1) return go(at + 1);
  const open = sheet.items.findIndex((item) => !rated(item));
  if (open >= 0) { go(open); $("notice").textContent = "Item " + (open + 1) + " is not rated yet."; }
  else { $("notice").textContent = "All items are rated: download the ratings."; $("download").focus(); }
});
$("download").addEventListener("click", download);
restore();
show();
