// How numbers, times and names are shown.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const count = (n) => whole.format(n);

export function si(n, digits = 3) {
  if (!(Math.abs(n) >= 1000)) return trim(n, digits);
  for (const [size, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (Math.abs(n) >= size * 0.9995) return trim(n / size, digits) + letter;
  return trim(n, digits);
}

function trim(n, digits) {
  if (n === 0) return "0";
  const s = n.toPrecision(digits);
  return s.includes("e") ? String(Number(s)) : s.includes(".") ? s.replace(/\.?0+$/, "") : s;
}

export function bytes(n) {
  if (n < 1000) return `${Math.round(n)} B`;
  let i = -1;
  while (n >= 999.95 && i < 4) {
    n /= 1000;
    i++;
  }
  return `${n.toPrecision(3)} ${["kB", "MB", "GB", "TB", "PB"][i]}`;
}

export function loss(v) {
  return v ? v.toFixed(3) : "–";
}

export function span(ms) {
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.floor(s / 60)} min ${String(Math.round(s % 60)).padStart(2, "0")} s`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${(s / 86400).toFixed(1)} days`;
}

export function clock(ms) {
  return ms ? new Date(Number(ms)).toLocaleTimeString("en-GB") : "–";
}

export function moment(ms) {
  return ms ? new Date(Number(ms)).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" }) : "–";
}

export const short = (hash) => (hash ? hash.slice(0, 10) : "–");

export const percent = (part, of) => (of ? `${trim((100 * part) / of, 3)} %` : "–");

export const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many || one + "s"}`;

const phases = {
  WaitingForMembers: "Waiting for members", Warmup: "Warmup", RoundTrain: "Training", RoundWitness: "Witnessing",
  Cooldown: "Cooldown", Finished: "Finished", Paused: "Paused", Uninitialized: "Not begun",
};

export const phase = (p) => phases[p] || p || "–";
