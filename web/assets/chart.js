// Curves, as SVG: a line for the mean of each bucket, a band from its least to its greatest value. Colours come from the style sheet.

import { h, text, attr, fill } from "./dom.js";
import { count, si } from "./text.js";

const [FROM, TO, TOKENS, MEAN, MIN, MAX] = [0, 1, 2, 3, 4, 5];
const pad = { left: 46, right: 12, top: 8, bottom: 24 };

// Chart draws some curves over the same steps. series: [{name, label, show}], the names being those of the server's curves.
// o: {title, height, zero (begin the axis at 0), format, empty (text when there is nothing)}.
export class Chart {
  constructor(series, o) {
    this.series = series;
    this.o = o;
    this.by = "steps";
    this.curves = {};
    this.svg = h("svg", { "aria-hidden": "true", focusable: "false" });
    this.legend = h("div", { class: "legend" });
    this.empty = h("p", { class: "quiet empty" }, o.empty || "Nothing yet.");
    this.note = h("output", { class: "tip", "aria-hidden": "true", hidden: true });
    this.slider = h("input", { type: "range", min: 0, max: 0, value: 0, class: "reader", "aria-label": `${o.title}: read along the curve` });
    this.slider.addEventListener("input", () => this.read(Number(this.slider.value)));
    this.slider.addEventListener("focus", () => this.read(Number(this.slider.value)));
    this.slider.addEventListener("blur", () => this.unread());
    this.plot = h("div", { class: "plot" }, this.svg, this.note, this.slider);
    this.el = h("figure", { class: "chart" }, h("figcaption", {}, h("h2", {}, o.title), this.legend), this.plot, this.empty);
    this.plot.style.height = `${o.height || 180}px`;
    this.plot.addEventListener("pointermove", (e) => this.point(e));
    this.plot.addEventListener("pointerleave", () => this.unread());
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  set(curves, by) {
    if (by) this.by = by;
    this.curves = curves;
    this.draw();
  }

  x(b) {
    return this.by === "tokens" ? b[TOKENS] : b[TO];
  }

  draw() {
    const w = this.plot.clientWidth, hgt = this.o.height || 180;
    const used = this.series.map((s) => ({ ...s, data: (this.curves[s.name] || []).filter((b) => b[MEAN] !== null) })).filter((s) => s.data.length);
    this.used = used;
    this.empty.hidden = used.length > 0;
    this.plot.hidden = !used.length;
    this.caption(used);
    if (!used.length || w < 80) return;
    const box = this.bounds(used);
    const sx = (v) => pad.left + ((v - box.x0) / (box.x1 - box.x0 || 1)) * (w - pad.left - pad.right);
    const sy = (v) => hgt - pad.bottom - ((v - box.y0) / (box.y1 - box.y0 || 1)) * (hgt - pad.top - pad.bottom);
    this.scale = { sx, sy, w, hgt };
    attr(this.svg, "viewBox", `0 0 ${w} ${hgt}`);
    const format = this.o.format || ((v) => si(v));
    const parts = [];
    for (const t of ticks(box.y0, box.y1, 4).filter((t) => !this.o.whole || Number.isInteger(t))) {
      parts.push(h("line", { class: "grid", x1: pad.left, x2: w - pad.right, y1: sy(t), y2: sy(t) }));
      parts.push(h("text", { class: "tick", x: pad.left - 8, y: sy(t) + 4, "text-anchor": "end" }, format(t)));
    }
    const xs = ticks(box.x0, box.x1, Math.max(3, Math.floor(w / 90)));
    for (const t of xs) parts.push(h("text", { class: "tick", x: sx(t), y: hgt - 6, "text-anchor": t === xs.at(-1) && sx(t) > w - 40 ? "end" : "middle" }, si(t)));
    used.forEach((s, i) => {
      const k = this.series.findIndex((o) => o.name === s.name);
      if (s.data.some((b) => b[MIN] < b[MAX])) parts.push(h("path", { class: `band c${k}`, d: band(s.data, (b) => sx(this.x(b)), (v) => sy(Math.min(Math.max(v, box.y0), box.y1))) }));
      parts.push(h("path", { class: `line c${k}`, d: path(s.data, (b) => sx(this.x(b)), (b) => sy(b[MEAN])) }));
      const last = s.data.at(-1);
      parts.push(h("circle", { class: `dot c${k}`, r: 3, cx: sx(this.x(last)), cy: sy(last[MEAN]) }));
    });
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
      const k = this.series.findIndex((o) => o.name === s.name);
      return h("span", { class: `key c${k}` }, h("i", { "aria-hidden": "true" }), s.label, " ", h("b", {}, format(s.data.at(-1)[MEAN]), this.o.unit ? ` ${this.o.unit}` : ""));
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
      this.at(i).map((s) => h("circle", { class: `dot c${this.series.findIndex((o) => o.name === s.name)}`, r: 4, cx: sx(this.x(s.bucket)), cy: sy(s.bucket[MEAN]) })));
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
  return data.map((b, i) => `${i ? "L" : "M"}${x(b).toFixed(1)} ${y(b).toFixed(1)}`).join("");
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
