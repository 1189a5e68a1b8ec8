(() => {
  const form = document.querySelector(".filters");
  if (!form) return;
  const episodes = [...document.querySelectorAll("details.episode")];
  const shown = form.querySelector("output");
  const apply = () => {
    const wanted = [...form.querySelectorAll("select")].filter((field) => field.value);
    let count = 0;
    for (const episode of episodes) {
      const fits = wanted.every((field) =>
        (episode.dataset[field.name] ?? "").split(" ").includes(field.value));
      episode.hidden = !fits;
      count += fits ? 1 : 0;
    }
    shown.value = `${count} of ${episodes.length} episodes`;
  };
  form.hidden = false;
  form.addEventListener("change", apply);
  apply();
})();
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
