const unpacked = async (data) => {
  const packed = Uint8Array.from(atob(data.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
};
const made = (name, kind, text) => {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  if (text !== undefined) element.textContent = text;
  return element;
};
const scrolled = (inside, label) => {
  const box = made("div", "scroll");
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", label);
  box.append(inside);
  return box;
};

/* Episodes: found by their heads and texts, drawn when they are opened. */
(() => {
  const list = document.querySelector(".episodes");
  if (!list) return;
  const episodes = [...list.children];
  const packs = [...document.querySelectorAll("script[data-count]")];
  const places = packs.flatMap((pack, at) =>
    Array.from({ length: Number(pack.dataset.count) }, (_, inside) => [at, inside]));
  const contents = new Map();
  const pack = (at) => {
    if (!contents.has(at)) contents.set(at, unpacked(packs[at]));
    return contents.get(at);
  };
  const of = async (episode) => {
    const [at, inside] = places[episodes.indexOf(episode)];
    return (await pack(at))[inside];
  };

  const bidi = (name, kind, text) => {
    const element = made(name, kind, text);
    element.dir = "auto";
    return element;
  };
  const message = ([, speaker, text, note, quiet, chosen, aside], level = "h3") => {
    const all = document.createDocumentFragment();
    const head = made(level);
    head.append(made("bdi", "", speaker));
    if (note) head.append(" ", bidi("span", chosen ? "badge strong" : "badge", note));
    const said = bidi("div", `said${quiet ? " quiet" : ""}${chosen ? " delivered" : ""}`, text || "(no text)");
    all.append(head, said);
    if (aside) all.append(bidi("p", "fact", aside));
    return all;
  };
  const group = ([, title, note, folded, messages]) => {
    const all = made(folded ? "details" : "div", "part");
    const head = made(folded ? "summary" : "h3", "", title);
    if (note) head.append(" ", made("span", "badge", note));
    all.append(head);
    const inside = made("div", messages.length > 1 ? "columns" : "");
    for (const one of messages) {
      const cell = made("div");
      cell.append(message(one, "h4"));
      inside.append(cell);
    }
    all.append(inside);
    return all;
  };
  const grid = ([, title, columns, rows, notes]) => {
    const all = made("div");
    const table = made("table");
    const head = table.createTHead().insertRow();
    for (const column of columns) {
      const cell = made("th", "", column);
      cell.scope = "col";
      head.append(cell);
    }
    const body = table.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      row.forEach((text, at) => {
        const cell = bidi(at ? "td" : "th", "", text);
        if (!at) cell.scope = "row";
        line.append(cell);
      });
    }
    all.append(made("h3", "", title), scrolled(table, title));
    for (const note of notes) all.append(bidi("p", "fact", note));
    return all;
  };
  const kinds = { message, group, grid };

  const draw = async (episode) => {
    if (episode.dataset.drawn) return;
    episode.dataset.drawn = "yes";
    try {
      const [facts, ...parts] = await of(episode);
      for (const [name, value] of facts) {
        const line = made("p", "fact");
        line.append(made("span", "label", `${name}: `), bidi("bdi", "", value));
        episode.append(line);
      }
      for (const part of parts) episode.append(kinds[part[0]](part));
    } catch (error) {
      episode.append(made("p", "absent", `This browser cannot unpack what was said (${error}); tutorsim show RUN ${episode.id.slice(2)} prints this one.`));
    }
  };
  list.addEventListener("toggle", (event) => {
    if (event.target.open && event.target.parentElement === list) draw(event.target);
  }, true);

  const go = async () => {
    let name = location.hash.slice(1);
    try {
      name = decodeURIComponent(name);
    } catch { /* a lone % stands for itself */ }
    const wanted = document.getElementById(name);
    if (!wanted && name.startsWith("e-")) {
      document.querySelector(".filters output").value = `no ${list.dataset.unit} ${name.slice(2)} on this page`;
      list.parentElement.scrollIntoView();
    }
    if (!wanted || wanted.parentElement !== list) return;
    wanted.hidden = false;
    wanted.open = true;
    await draw(wanted);
    wanted.scrollIntoView();
  };
  addEventListener("hashchange", go);
  go();
  if (list.hasAttribute("data-printed")) for (const episode of episodes) episode.open = true;

  for (const note of document.querySelectorAll(".unscripted")) note.hidden = true;
  const form = document.querySelector(".filters");
  const shown = form.querySelector("output");
  const words = form.querySelector("input");
  const texts = new Map();
  const text = async (episode) => {
    if (!texts.has(episode)) {
      const said = JSON.stringify(await of(episode)).replaceAll("\\n", " ").replaceAll('\\"', '"');
      texts.set(episode, `${episode.textContent} ${said}`.toLowerCase());
    }
    return texts.get(episode);
  };
  let asked = 0;
  const apply = async () => {
    const now = ++asked;
    const wanted = [...form.querySelectorAll("select")].map((field) => field.value).filter(Boolean);
    const looked = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = [];
    for (const episode of episodes) {
      const is = episode.dataset.is.split(" ");
      let fit = wanted.every((place) => is.includes(place));
      if (fit && looked.length) {
        const said = await text(episode);
        if (now !== asked) return;
        fit = looked.every((word) => said.includes(word));
      }
      fits.push(fit);
    }
    episodes.forEach((episode, at) => { episode.hidden = !fits[at]; });
    shown.value = `${fits.filter(Boolean).length} of ${episodes.length} ${list.dataset.unit}s`;
  };
  form.hidden = episodes.length < 2;
  form.addEventListener("input", apply);
})();

/* Charts: their specifications, and the rows of charts and tables as CSV files. */
(() => {
  const data = document.querySelector("#specifications");
  for (const one of document.querySelectorAll(".specification")) {
    one.hidden = false;
    one.addEventListener("toggle", async () => {
      if (one.children.length > 1) return;
      const all = await unpacked(data);
      one.append(scrolled(made("pre", "", all[one.dataset.of]), "Specification"));
    });
  }
  const value = (cell) => {
    const number = cell.querySelector("data");
    const text = cell.textContent;
    if (number && number.textContent === text && number.value) return number.value;
    return /^'*[=+\-@\t\r＝＋－＠]/.test(text) ? `'${text}` : text;
  };
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const save = (table, name) => {
    const lines = [...table.rows].map((row) => [...row.cells].map((cell) => quoted(value(cell))).join(","));
    const link = made("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], { type: "text/csv" }));
    link.download = `${name}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  for (const part of document.querySelectorAll("figure, .table")) {
    const table = part.querySelector("table");
    const name = part.id.replace(/^(chart|table)-/, "");
    const button = made("button", "save", "Save as CSV");
    button.type = "button";
    button.setAttribute("aria-label", `Save as CSV: the rows of ${name}`);
    button.addEventListener("click", () => save(table, name));
    table.closest(".scroll").after(button);
  }
})();

/* Numbers: a click on one shows how to cite it. */
(() => {
  const line = document.querySelector(".citing");
  if (!line) return;
  const scheme = document.querySelector("#cite ~ pre").textContent.replace(/ID$/, "");
  let chosen = null;
  document.addEventListener("click", (event) => {
    const number = event.target.closest("data");
    if (!number) return;
    chosen?.classList.remove("chosen");
    chosen = number;
    chosen.classList.add("chosen");
    line.hidden = false;
    line.firstElementChild.value = scheme + number.id;
  });
})();
