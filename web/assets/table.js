// A table of any length: only the rows that are seen exist, and are asked for when they come into sight.

import { h, text, attr, fill, term } from "./dom.js";
import { meaning } from "./text.js";

const rowHeight = 36;
const part = 100; // rows asked for at once

// Table shows rows that load(from, count) promises as {total, rows}. columns: [{name, label, cls, sort, cell(row, td)}].
// o: {label, key(row), sort, up, sorted(name, up)}.
export class Table {
  constructor(columns, load, o) {
    Object.assign(this, { columns, load, o, total: 0, parts: new Map(), asked: new Map(), generation: 0 });
    this.head = h("tr", { "aria-rowindex": 1 });
    this.body = h("tbody", {});
    this.table = h("table", { "aria-label": o.label, "aria-rowcount": -1 }, h("thead", {}, this.head), this.body);
    this.status = h("p", { class: "quiet tablenote", role: "status" }, "Loading…");
    this.box = h("div", { class: "tablebox", tabindex: 0, role: "region", "aria-label": o.label + ", scrolls" }, this.table);
    this.el = h("div", {}, this.box, this.status);
    this.above = h("tr", { "aria-hidden": "true", class: "space" }, h("td", { colspan: columns.length }));
    this.below = h("tr", { "aria-hidden": "true", class: "space" }, h("td", { colspan: columns.length }));
    this.box.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.heads();
    this.refresh();
  }

  heads() {
    fill(this.head, this.columns.map((c) => {
      if (!c.sort) return h("th", { scope: "col", class: c.cls }, term(c.label));
      const on = this.o.sort === c.sort;
      const button = h("button", { type: "button", "data-why": meaning[c.label] }, c.label, h("span", { "aria-hidden": "true", class: "arrow" }, on ? (this.o.up ? " ↑" : " ↓") : ""));
      button.addEventListener("click", () => {
        this.o.up = this.o.sort === c.sort ? !this.o.up : c.up === true;
        this.o.sort = c.sort;
        this.heads();
        this.head.querySelector(`[data-sort="${c.sort}"] button`).focus();
        this.reset();
      });
      return h("th", { scope: "col", class: c.cls, "data-sort": c.sort, "aria-sort": on ? (this.o.up ? "ascending" : "descending") : "none" }, button);
    }));
  }

  // reset forgets everything: other rows are asked for.
  reset() {
    this.parts.clear();
    this.box.scrollTop = 0;
    this.refresh();
  }

  // refresh asks again for the rows in sight; what is shown stays until the answer is there.
  refresh() {
    this.generation++;
    this.asked.clear();
    this.draw(true);
  }

  seen() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / rowHeight) - 8);
    return [first, first + Math.ceil((this.box.clientHeight || 600) / rowHeight) + 16];
  }

  draw(again) {
    const [from, to] = this.seen();
    for (let p = Math.floor(from / part); p <= Math.floor(to / part); p++) {
      if (p > 0 && p * part >= this.total) break;
      if (!this.asked.has(p) && (again || !this.parts.has(p) || this.parts.get(p).generation !== this.generation)) this.ask(p);
    }
    const end = Math.min(to, this.total);
    const rows = [];
    for (let i = from; i < end; i++) {
      const held = this.parts.get(Math.floor(i / part));
      const row = held && held.rows[i % part];
      if (row) rows.push([i, row]);
    }
    this.above.firstChild.style.height = `${(rows.length ? rows[0][0] : 0) * rowHeight}px`;
    this.below.firstChild.style.height = `${Math.max(0, this.total - (rows.length ? rows.at(-1)[0] + 1 : 0)) * rowHeight}px`;
    for (const space of [this.above, this.below]) space.hidden = space.firstChild.style.height === "0px";
    this.rows(rows);
  }

  rows(rows) {
    const known = new Map();
    for (const tr of this.body.querySelectorAll("tr[data-key]")) known.set(tr.dataset.key, tr);
    if (this.above.parentNode !== this.body) fill(this.body, this.above, this.below);
    let at = this.above.nextSibling;
    for (const [i, row] of rows) {
      const key = String(this.o.key(row));
      let tr = known.get(key);
      known.delete(key);
      if (!tr) tr = h("tr", { "data-key": key }, this.columns.map((c) => h("td", { class: c.cls })));
      attr(tr, "aria-rowindex", i + 2);
      this.columns.forEach((c, k) => {
        const cell = c.cell(row, tr.children[k]);
        if (cell !== undefined && cell !== null) text(tr.children[k], cell);
      });
      if (tr === at) at = at.nextSibling;
      else this.body.insertBefore(tr, at);
    }
    for (const tr of known.values()) tr.remove();
  }

  async ask(p) {
    const generation = this.generation;
    this.asked.set(p, true);
    try {
      const answer = await this.load(p * part, part, this.o);
      if (generation !== this.generation && this.parts.has(p)) return;
      if (answer.total < this.total) for (const k of this.parts.keys()) if (k * part >= answer.total) this.parts.delete(k);
      this.total = answer.total;
      this.parts.set(p, { rows: answer.rows, generation });
      if (this.parts.size > 40) this.parts.delete(this.parts.keys().next().value);
      attr(this.table, "aria-rowcount", this.total + 1);
      text(this.status, this.o.says ? this.o.says(this.total) : `${this.total.toLocaleString("en")} rows`);
      this.draw();
    } catch (e) {
      text(this.status, e.message);
    }
  }
}
