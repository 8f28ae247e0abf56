// Texts that the model wrote along the run.

import { h, text, attr, fill, card } from "./dom.js";
import { ask } from "./live.js";
import { throttle } from "./members.js";
import { count } from "./text.js";

// written is one text: what was given, and how the model went on.
function written(s) {
  return h("figure", { class: "sample" }, h("blockquote", {}, h("b", {}, s.prompt), s.text), s.who ? h("figcaption", { class: "quiet" }, `by ${s.who}`) : null);
}

// newest is the card of the overview.
export function newest(base) {
  const head = h("p", { class: "quiet" }), list = h("div", {});
  const el = card("Sample texts", "samples", head, list, h("p", {}, h("a", { href: `${base}/model` }, "Samples along the run")));
  el.hidden = true;
  let last = "";
  return {
    el,
    told(samples) {
      el.hidden = !samples.length;
      const k = JSON.stringify(samples);
      if (el.hidden || k === last) return;
      last = k;
      text(head, `After step ${count(samples[0].step)} the model continues:`);
      fill(list, samples.map(written));
    },
  };
}

// along is the card of the model's page: a slider over the steps that have samples.
export function along(base) {
  const none = h("p", { class: "quiet" }, "None yet. A participant writes them with --evaluate, and its --state directory tells this server.");
  const slider = h("input", { type: "range", id: "sample-step", min: 0, max: 0, value: 0 });
  const at = h("output", { for: "sample-step" });
  const list = h("div", {});
  const box = h("div", { hidden: true }, h("p", { class: "along" }, h("label", { for: "sample-step" }, "Step"), slider, at), list);
  const el = card("Samples along the run", "wide samples", none, box);
  let steps = [], last = "", closed = false;
  function draw() {
    const s = steps[Number(slider.value)];
    if (!s) return;
    text(at, `${count(s[0].step)} (${count(Number(slider.value) + 1)} of ${count(steps.length)})`);
    attr(slider, "aria-valuetext", `step ${count(s[0].step)}`);
    fill(list, s.map(written));
  }
  slider.addEventListener("input", draw);
  async function load() {
    try {
      const { samples } = await ask(`/api${base}/samples`);
      const k = samples.map((s) => `${s.step} ${s.prompt} ${s.text}`).join();
      if (closed || k === last) return;
      last = k;
      const end = Number(slider.value) === steps.length - 1 || !steps.length;
      steps = [];
      for (const s of samples) {
        if (steps.length && steps.at(-1)[0].step === s.step) steps.at(-1).push(s);
        else steps.push([s]);
      }
      none.hidden = steps.length > 0;
      box.hidden = !steps.length;
      attr(slider, "max", Math.max(0, steps.length - 1));
      if (end) slider.value = steps.length - 1;
      draw();
    } catch {
      // The connection's state is shown at the top, and it is tried again.
    }
  }
  load();
  const again = throttle(load, 3000);
  return { el, told: again, close: () => { closed = true; again.stop(); } };
}
