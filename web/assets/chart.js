// Curves, as SVG: a line for the mean of each bucket, a band from its least to its greatest value. Colours come from the style sheet.

import { h, text, attr, fill, term } from "./dom.js";
import { count, si } from "./text.js";

const [FROM, TO, TOKENS, MEAN, MIN, MAX] = [0, 1, 2, 3, 4, 5];
const pad = { left: 46, right: 12, top: 8, bottom: 24 };

let charts = 0;

// Chart draws some curves over the same steps. series: [{name, label, k}]: the names are those of the server's curves, k is a colour.
// o: {title, height, zero (begin the axis at 0), format, empty (text when there is nothing), logs (the axes may be logarithmic)}.
// set takes how they are drawn: {by: "tokens" | "steps", axes: "linear" | "y" | "xy", smooth: 0 to below 1, range: [from, to] or null}.
// onrange([from, to]) is called when a stretch is chosen with the mouse.
export class Chart {
  constructor(series, o) {
    this.series = series.map((s, k) => ({ k, ...s }));
    this.o = o;
    this.view = { by: "steps", axes: "linear", smooth: 0, range: null };
    this.curves = {};
    this.clip = `clip-${charts++}`;
    this.svg = h("svg", { "aria-hidden": "true", focusable: "false" });
    this.legend = h("div", { class: "legend" });
    this.empty = h("p", { class: "quiet empty" }, o.empty || "Nothing yet.");
    this.note = h("output", { class: "tip", "aria-hidden": "true", hidden: true });
    this.slider = h("input", { type: "range", min: 0, max: 0, value: 0, class: "reader", "aria-label": `${o.title}: read along the curve` });
    this.slider.addEventListener("input", () => this.read(Number(this.slider.value)));
    this.slider.addEventListener("focus", () => this.read(Number(this.slider.value)));
    this.slider.addEventListener("blur", () => this.unread());
    this.plot = h("div", { class: "plot" }, this.svg, this.note, this.slider);
    this.el = h("figure", { class: "chart" }, h("figcaption", {}, h("h2", {}, term(o.title, o.why)), this.legend), this.plot, this.empty);
    this.plot.style.height = `${o.height || 180}px`;
    this.plot.addEventListener("pointermove", (e) => this.point(e));
    this.plot.addEventListener("pointerleave", () => this.unread());
    this.plot.addEventListener("pointerdown", (e) => e.pointerType === "mouse" && this.pull(e));
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  set(curves, view) {
    this.view = view;
    this.curves = curves;
    this.draw();
  }

  x(b) {
    return this.view.by === "tokens" ? b[TOKENS] : b[TO];
  }

  // pull chooses the stretch that the mouse is pulled over.
  pull(e) {
    if (!this.scale || !this.onrange) return;
    const left = this.plot.getBoundingClientRect().left, from = e.clientX - left;
    const mark = h("rect", { class: "pulled", y: pad.top, height: this.scale.hgt - pad.top - pad.bottom });
    this.svg.append(mark);
    const move = (e) => {
      attr(mark, "x", Math.min(from, e.clientX - left));
      attr(mark, "width", Math.abs(e.clientX - left - from));
    };
    const done = (e) => {
      removeEventListener("pointermove", move);
      mark.remove();
      const ends = [from, e.clientX - left].sort((a, b) => a - b);
      if (ends[1] - ends[0] > 8) this.onrange(ends.map(this.scale.back));
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", done, { once: true });
  }

  draw() {
    const w = this.plot.clientWidth, hgt = this.o.height || 180;
    const [from, to] = this.view.range || [-Infinity, Infinity];
    const used = this.series.map((s) => ({ ...s, data: (this.curves[s.name] || []).filter((b) => b[MEAN] !== null && this.x(b) >= from && this.x(b) <= to) })).filter((s) => s.data.length);
    this.used = used;
    this.empty.hidden = used.length > 0;
    this.plot.hidden = !used.length;
    this.caption(used);
    if (!used.length || w < 80) return;
    const box = this.bounds(used);
    const lx = this.o.logs && this.view.axes === "xy" && box.x0 > 0 ? Math.log : Number, ly = this.o.logs && this.view.axes !== "linear" && box.y0 > 0 ? Math.log : Number;
    const sx = (v) => pad.left + ((lx(v) - lx(box.x0)) / (lx(box.x1) - lx(box.x0) || 1)) * (w - pad.left - pad.right);
    const sy = (v) => hgt - pad.bottom - ((ly(v) - ly(box.y0)) / (ly(box.y1) - ly(box.y0) || 1)) * (hgt - pad.top - pad.bottom);
    const back = (px) => {
      const part = Math.min(1, Math.max(0, (px - pad.left) / (w - pad.left - pad.right)));
      return lx === Number ? box.x0 + part * (box.x1 - box.x0) : box.x0 * (box.x1 / box.x0) ** part;
    };
    this.scale = { sx, sy, w, hgt, back };
    attr(this.svg, "viewBox", `0 0 ${w} ${hgt}`);
    const format = this.o.format || ((v) => si(v));
    const parts = [];
    for (const t of ticks(box.y0, box.y1, 4).filter((t) => !this.o.whole || Number.isInteger(t))) {
      parts.push(h("line", { class: "grid", x1: pad.left, x2: w - pad.right, y1: sy(t), y2: sy(t) }));
      parts.push(h("text", { class: "tick", x: pad.left - 8, y: sy(t) + 4, "text-anchor": "end" }, format(t)));
    }
    const most = Math.max(3, Math.floor(w / 90));
    let xs = lx === Number ? ticks(box.x0, box.x1, most) : decades(box.x0, box.x1);
    if (xs.length < 2) xs = ticks(box.x0, box.x1, 2 * most); // one says nothing of the scale
    for (const t of xs) parts.push(h("text", { class: "tick", x: sx(t), y: hgt - 6, "text-anchor": t === xs.at(-1) && sx(t) > w - 40 ? "end" : "middle" }, si(t)));
    const lines = [];
    used.forEach((s) => {
      const k = s.k, x = (b) => sx(this.x(b)), y = (b) => sy(b[MEAN]);
      if (s.data.some((b) => b[MIN] < b[MAX])) lines.push(h("path", { class: `band c${k}`, d: band(s.data, x, (v) => sy(Math.min(Math.max(v, box.y0), box.y1))) }));
      if (this.view.smooth) lines.push(h("path", { class: `line raw c${k}`, d: path(s.data, x, y) }));
      const smooth = smoothed(s.data, this.view.smooth);
      lines.push(h("path", { class: `line c${k}`, d: path(s.data, x, (b, i) => sy(smooth[i])) }));
      const last = s.data.at(-1);
      lines.push(h("circle", { class: `dot c${k}`, r: 3, cx: x(last), cy: sy(smooth.at(-1)) }));
    });
    parts.push(h("clipPath", { id: this.clip }, h("rect", { x: pad.left - 4, y: 0, width: w - pad.left - pad.right + 8, height: hgt - pad.bottom })), h("g", { "clip-path": `url(#${this.clip})` }, lines));
    this.cross = h("g", { class: "cross" });
    fill(this.svg, parts, this.cross);
    const longest = used.reduce((a, b) => (b.data.length > a.data.length ? b : a));
    this.along = longest.data;
    const end = Number(this.slider.max) === Number(this.slider.value);
    attr(this.slider, "max", longest.data.length - 1);
    if (end) this.slider.value = longest.data.length - 1;
    if (document.activeElement === this.slider) this.read(Number(this.slider.value));
    else attr(this.slider, "aria-valuetext", this.words(Number(this.slider.value)));
  }

  caption(used) {
    const format = this.o.format || ((v) => si(v));
    fill(this.legend, used.map((s) => {
      return h("span", { class: `key c${s.k}` }, h("i", { "aria-hidden": "true" }), s.label, " ", h("b", {}, format(s.data.at(-1)[MEAN]), this.o.unit ? ` ${this.o.unit}` : ""));
    }));
  }

  bounds(used) {
    let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const s of used) {
      // A spike in one bucket must not flatten the curve: the axis follows the means. A band that
      // exceeds it is drawn to the edge of the plot.
      for (const b of s.data) {
        x0 = Math.min(x0, this.x(b));
        x1 = Math.max(x1, this.x(b));
        y0 = Math.min(y0, b[MEAN]);
        y1 = Math.max(y1, b[MEAN]);
      }
    }
    const room = (y1 - y0 || Math.abs(y1) || 1) * 0.08;
    y1 += room;
    y0 = this.o.zero ? 0 : y0 - room;
    if (this.o.most !== undefined) y1 = Math.min(y1, this.o.most);
    if (x0 === x1) x1 = x0 + 1;
    return { x0, x1, y0, y1 };
  }

  point(e) {
    if (!this.along || !this.scale) return;
    const px = e.clientX - this.plot.getBoundingClientRect().left;
    let [best, far] = [0, Infinity];
    this.along.forEach((b, i) => {
      const d = Math.abs(this.scale.sx(this.x(b)) - px);
      if (d < far) [best, far] = [i, d];
    });
    this.read(best);
  }

  // at returns each curve's bucket at the step of the i-th bucket of the longest one.
  at(i) {
    const step = this.along[i][TO];
    return this.used.map((s) => {
      let near = s.data[0];
      for (const b of s.data) if (b[FROM] <= step) near = b;
      return { ...s, bucket: near };
    });
  }

  words(i) {
    if (!this.along || !this.along[i]) return "";
    const format = this.o.format || ((v) => si(v));
    const b = this.along[i];
    return `step ${count(b[TO])}, ${si(b[TOKENS])} tokens: ` + this.at(i).map((s) => `${s.label} ${format(s.bucket[MEAN])}${this.o.unit ? " " + this.o.unit : ""}`).join(", ");
  }

  read(i) {
    if (!this.along || !this.along[i]) return;
    const { sx, sy, w, hgt } = this.scale;
    const x = sx(this.x(this.along[i]));
    fill(this.cross, h("line", { x1: x, x2: x, y1: pad.top, y2: hgt - pad.bottom }),
      this.at(i).map((s) => h("circle", { class: `dot c${s.k}`, r: 4, cx: sx(this.x(s.bucket)), cy: sy(s.bucket[MEAN]) })));
    const words = this.words(i);
    attr(this.slider, "aria-valuetext", words);
    text(this.note, words);
    this.note.hidden = false;
    const half = this.note.offsetWidth / 2;
    this.note.style.left = `${Math.min(Math.max(x, half + 2), w - half - 2)}px`;
  }

  unread() {
    if (document.activeElement === this.slider) return;
    this.note.hidden = true;
    if (this.cross) fill(this.cross);
  }
}

function path(data, x, y) {
  return data.map((b, i) => `${i ? "L" : "M"}${x(b).toFixed(1)} ${y(b, i).toFixed(1)}`).join("");
}

// smoothed returns the moving average of the means in which each older one weighs by a factor less, without a bias to 0.
export function smoothed(data, factor) {
  let sum = 0, weight = 0;
  return data.map((b) => {
    sum = sum * factor + b[MEAN];
    weight = weight * factor + 1;
    return sum / weight;
  });
}

function band(data, x, sy) {
  const up = data.map((b, i) => `${i ? "L" : "M"}${x(b).toFixed(1)} ${sy(b[MAX]).toFixed(1)}`);
  const down = data.toReversed().map((b) => `L${x(b).toFixed(1)} ${sy(b[MIN]).toFixed(1)}`);
  return up.join("") + down.join("") + "Z";
}

// ticks returns about n round numbers between two.
export function ticks(from, to, n) {
  const rough = (to - from) / n;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * size).find((s) => s >= rough) || rough;
  const out = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to + step * 1e-9; k++) out.push(Number((k * step).toPrecision(12)));
  return out;
}

// decades returns 1, 2 and 5 times the powers of ten between two positive numbers.
function decades(from, to) {
  const out = [];
  for (let k = Math.floor(Math.log10(from)); 10 ** k <= to; k++) for (const m of [1, 2, 5]) out.push(m * 10 ** k);
  const inside = out.filter((t) => t >= from && t <= to);
  return inside.length > 7 ? inside.filter((t) => Number.isInteger(Math.log10(t))) : inside;
}
