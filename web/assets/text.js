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
  const whole = Math.round(s);
  if (whole < 90) return `${whole} s`;
  if (whole < 5400) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${(s / 86400).toFixed(1)} days`;
}

export function clock(ms) {
  return ms ? new Date(Number(ms)).toLocaleTimeString("en-GB") : "–";
}

export function moment(ms) {
  return ms ? new Date(Number(ms)).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" }) : "–";
}

export function day(ms) {
  return ms ? new Date(Number(ms)).toLocaleDateString("en-GB", { dateStyle: "medium" }) : "–";
}

export const short = (hash) => (hash ? hash.slice(0, 10) : "–");

export const percent = (part, of) => (of ? `${trim((100 * part) / of, 3)} %` : "–");

export const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many || one + "s"}`;

const phases = {
  WaitingForMembers: "Waiting for members", Warmup: "Warmup", RoundTrain: "Training", RoundWitness: "Witnessing",
  Cooldown: "Cooldown", Finished: "Finished", Paused: "Paused", Uninitialized: "Not begun",
};

export const phase = (p) => phases[p] || p || "–";

// standing is a member's status in words: nobody waits in a run that has finished.
export const standing = (status, phase) => (phase === "Finished" && status === "waiting" ? "done" : status);

// What the labels of numbers mean, by label.
export const meaning = {
  Step: "An update of the model. Every member applies the same one, made of all accepted results of a round.",
  Epoch: "A stretch of rounds. Members join and leave between epochs, and a checkpoint is written at the end.",
  Tokens: "Tokens in all accepted results. A token that was trained on twice counts twice.",
  Work: "Tokens in accepted results of this key, in all runs: those that it trained on, and those that it computed again for others.",
  Throughput: "Tokens of accepted results per second, over the last rounds. Work that was not accepted does not count.",
  Loss: "Negative log-likelihood of a training token, in nats: the median of what members state and sign, which less than half of them cannot move. Less is better; guessing among 256 bytes is 5.55.",
  "Held-out": "The loss on text that is never trained on, as this participant measured it. It shows what the model has learned rather than memorized.",
  Members: "Those that take part now: they wait for the next epoch, are ready, or train.",
  Points: "One for each sequence of an accepted result.",
  Share: "Part of all points ever given.",
  Score: "What validators found a member's results to be worth, from −1 to 1, as a moving average. At 0 and below nothing is paid.",
  Earned: "Tokens of the chain earned by scores, in all.",
  Results: "Results of this member that were accepted.",
  Keys: "Keys on the leaderboard that have joined the team.",
  "Missed in a row": "Rounds without an accepted result since the last one, and elections as a witness without a report. A member that misses too many rounds is dropped and may come back.",
  Missed: "Rounds in a row without an accepted result. Who misses too many is dropped and may come back.",
  Stake: "Tokens that the member loses if it is convicted of cheating.",
  Doubt: "How much more often than others its results are checked, 1 to 16. It rises when a check cannot be done or a result is missed, and falls with every check passed.",
  Trust: "How much a validator's scores count, 0 to 255. It falls when it is silent or far from the median of the others.",
  Agreed: "Hash of the parameters that two quorums of witnesses named, of this round's and of the next.",
  Speed: "Tokens a second that the member states; its share of the batch may follow from it.",
  Balance: "Tokens of the member in this run: those at stake, which it loses if it is convicted of cheating, and those that it can claim. Points are settled when an epoch ends. entrain wallet claim collects what can be claimed.",
  "Last period": "What validators said of the results of the last period, and what its part of the emission paid.",
  "Stake of a member": "Tokens that a member puts up to take part, and loses if it is convicted of cheating.",
  Pay: "What the run's treasury pays for a point. If it does not suffice in the end, each point gets the same part of it.",
  "Points for verifying": "Points given for recomputing results of others, in all.",
  Offence: "What the member is proven to have done. The chain judges the proof.",
  Lost: "Tokens of its stake. Half of them go to the member that showed the offence.",
  "In the model": "Its results that were accepted before the offence was shown. They stay in the model.",
  Periods: "After each period validators commit to scores of all results in it, then reveal them, and the chain pays by the combined scores.",
  Emission: "Tokens that the run's treasury pays in a period, to members by score and to validators by agreement.",
  Part: "Of the period's emission, by its score.",
  Average: "The moving average of the scores over all periods.",
  "Each validator said": "The score by each validator, after the number of its seat.",
  Reward: "Tokens of the last period, which the member can claim after the next.",
  Rank: "Place by what members have earned: points, or tokens where results are scored.",
  Round: "The smallest step of the protocol: members train, commit, and witness. Rounds are numbered from 1 over the whole run.",
  "No.": "The number of the conviction in this run.",
  Sequences: "Pieces of text of equal length, on which members train.",
  Took: "From the opening of the round to its end.",
  Opened: "When the round began, by the clock of the chain.",
  Accepted: "Results that a quorum of witnesses held, of those that were expected. Exactly these enter the model.",
  Reports: "Witnesses that said whose results they hold, of those that were elected.",
  "Held by": "Witnesses that reported this result, of those that were elected. A quorum is more than two thirds.",
  After: "Time from the opening of the round to the report.",
  "Witnessing after": "Time from the opening of the round to the phase in which witnesses only report.",
  Kind: "A round that trains is a step. A drain round trains nothing: it applies the last results of an epoch.",
  "Witnesses attest": "The round whose results the witnesses of this one report on.",
  Passed: "Checks that found the member's results right.",
  "Results accepted": "Results of this member that entered the model.",
  Joined: "When the member joined the run for the first time.",
  "Left last": "When the member withdrew or was dropped last.",
  "Loss of its last share": "Loss on the sequences of its last result, as the member states it.",
  "Payloads seen here": "Bytes of its results that this participant has received.",
  Convicted: "An offence that was proven on the chain, and what the member lost.",
  Seat: "The number of the validator's seat.",
  "To claim": "Tokens of the validator that it has not claimed yet.",
  Windows: "A window is a round of fixed length, in blocks of the chain.",
  "So far": "Sums since the run began.",
  Checked: "How many results others compute again.",
  Verifier: "The member that computes the result again.",
  "Time left": "Until the deadline of the chain. A member that is silent until then loses.",
  "They differ in": "The first place at which the two computations differ, as far as it was found.",
  When: "When the chain recorded it.",
  Train: "Members with a share of the round's batch.",
  Commit: "Results whose authors have signed what they stand for.",
  Witness: "Elected members that have reported whose results they hold.",
  Verify: "Results that others have computed again, of those drawn for it.",
  Accept: "Results that a quorum of witnesses holds. They enter the model.",
  Accuracy: "The part of the task's questions that the model answers right; normalized: by the likelihood of an answer per byte.",
  "Time of a round": "From the opening of a round to its end, in seconds.",
  Payloads: "Bytes of all results of a round, as this participant received them.",
  Outcome: "How the dispute ended, as the chain judged it.",
  Runs: "Runs of this chain in which the key has earned something.",
  Processor: "What computes. A GPU makes it faster and changes no result.",
  Batch: "Sequences of a round, over all members.",
  Places: "Members that the run has room for, and those that take part.",
  Memory: "What a member's program takes of the machine's memory, about.",
  "Time for a share": "How long a round waits for results; later ones are not accepted.",
  Model: "The number of parameters that are trained, and the shape of the model.",
  Checkpoint: "The model's files at an epoch's end, by the hash that the chain has of their manifest.",
  Length: "How much the model writes at most, in tokens, the pieces of text that it knows. It ends earlier when its context is full, the longest text that it can see.",
  Temperature: "How freely it chooses: at 0 always the likeliest token, at 1 as often as it holds each to be likely, above 1 more evenly.",
  Parameters: "Hash of the parameters that the run agreed on last.",
  Chain: "The ledger that decides, and its newest block.",
};
