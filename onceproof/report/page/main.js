// Puts the parts of the page together.
"use strict";

async function main() {
  const data = await decoded();
  const view = new View(data.length), facts = new Facts(data), detail = byId("detail");
  const lanes = new Lanes(data, view, at => detail.replaceChildren(...(at === null ? [] : [detailed(data, facts, at)])));
  const curves = new Curves(data, view, () => lanes.gutter - 16);
  const draw = () => { lanes.draw(); curves.draw(); };
  draw();
  let wide = document.documentElement.clientWidth;
  addEventListener("resize", () => {
    if (document.documentElement.clientWidth === wide) return; // a phone hides its address bar
    wide = document.documentElement.clientWidth;
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  matchMedia("print").addEventListener("change", draw);
  for (const [id, act] of Object.entries({
    "zoom-in": () => view.zoom(0.5), "zoom-out": () => view.zoom(2), "earlier": () => view.pan(-0.5),
    "later": () => view.pan(0.5), "whole": () => view.reset(),
  })) byId(id).addEventListener("click", act);
  const span = () => { byId("span").textContent = `${seconds(view.from, view.span)} to ${seconds(view.to, view.span)} s`; };
  view.watchers.push(span);
  span();
  follow(data, facts);
  globalThis.report = {data, view, lanes, facts}; // for whoever looks closer in the console, and for tests
  document.documentElement.dataset.ready = "yes";
}

/** Answer the form that asks for the story of a record, and the links that name one. */
function follow(data, facts) {
  const form = byId("follow"), stories = byId("stories");
  const left = data.left_out.length ? `This page does not contain ${data.left_out.join(" and ")}, because the run is too ` +
    "large. `onceproof trace` and `onceproof serve` read them from the run's folder." : "";
  if (left) stories.replaceChildren(element("p", {}, left));
  const ask = text => {
    form.what.value = text;
    const found = facts.asked(text.trim());
    const nothing = element("p", {}, `Nothing is known of ${text.trim() || "nothing"}.`);
    stories.replaceChildren(...(found.length ? found.map(told) : [nothing]), element("p", {}, left));
  };
  form.addEventListener("submit", event => {
    event.preventDefault();
    ask(form.what.value);
  });
  for (const link of document.querySelectorAll("[data-follow]")) {
    link.addEventListener("click", () => {
      ask(link.dataset.follow);
      form.scrollIntoView({behavior: "smooth"});
    });
  }
}

main().catch(error => {
  byId("interactive").replaceChildren(element("p", {}, `The charts cannot be drawn by this browser: ${error.message}`));
  document.documentElement.dataset.ready = "failed";
});
