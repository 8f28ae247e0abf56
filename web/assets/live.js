// Talking to the server: questions, and one stream of events for each page.

export async function ask(path) {
  const r = await fetch(path, { headers: { Accept: "application/json" } });
  const body = await r.json().catch(() => ({ error: `the server answered with status ${r.status}` }));
  if (!r.ok) throw Object.assign(new Error(body.error), { status: r.status });
  return body;
}

// How long a stream may be silent until it counts as dead. The server beats every three seconds.
const silence = 10000;

// Stream follows a run. Events are merged into state: {run, curves}; told is called after each, and link when the connection changes:
// link("live" | "connecting" | "lost" | "chain").
export class Stream {
  constructor(run, told, link) {
    this.run = run;
    this.told = told;
    this.link = link;
    this.state = { run: null, curves: {} };
    this.pause = 1000;
    this.lost = false;
    this.connect();
    this.seen = () => (document.hidden ? this.rest() : this.source || this.connect());
    document.addEventListener("visibilitychange", this.seen);
  }

  connect() {
    clearTimeout(this.timer);
    if (!this.lost) this.link("connecting");
    const since = this.state.run ? "?since=" + encodeURIComponent(this.state.run.version) : "";
    const source = (this.source = new EventSource(`/api/runs/${encodeURIComponent(this.run)}/events${since}`));
    source.addEventListener("open", () => this.alive());
    source.addEventListener("run", (e) => {
      this.alive();
      this.merge(JSON.parse(e.data));
    });
    source.addEventListener("beat", (e) => {
      const beat = JSON.parse(e.data);
      this.alive();
      this.reachable = beat.reachable;
      this.link(beat.reachable ? "live" : "chain");
    });
    source.addEventListener("error", () => this.retry());
    this.watch();
  }

  alive() {
    this.lost = false;
    this.pause = 1000;
    this.link(this.reachable === false ? "chain" : "live");
    this.watch();
  }

  watch() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.retry(), silence);
  }

  // retry makes a new connection after a pause. Browsers do so by themselves, but not after every kind of failure.
  retry() {
    if (this.closed) return;
    this.source.close();
    this.lost = true;
    this.link("lost");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), this.pause);
    this.pause = Math.min(this.pause * 1.6, 8000);
  }

  // rest lets go of the connection of a page that nobody sees: browsers have six for a server.
  rest() {
    clearTimeout(this.timer);
    if (this.source) this.source.close();
    this.source = null;
  }

  close() {
    this.closed = true;
    document.removeEventListener("visibilitychange", this.seen);
    this.rest();
  }

  merge(run) {
    const before = this.state.run;
    const other = before && before.version.split(".")[0] !== run.version.split(".")[0];
    if (other) this.state.curves = {};
    this.reachable = run.reachable;
    for (const [name, patch] of Object.entries(run.curves)) {
      const c = (this.state.curves[name] ||= []);
      c.length = Math.min(c.length, patch.at);
      for (const b of patch.buckets) c.push(b);
    }
    run.offset = run.clock_ms - Date.now();
    this.state.run = run;
    this.link(run.reachable ? "live" : "chain");
    this.told(this.state);
  }
}
