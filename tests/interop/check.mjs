// Compares a GGUF file with what is not ours: llama.cpp's tokenizer and probabilities.
//
//     node check.mjs FILE.gguf TEXT OURS.json TOLERANCE
//
// OURS.json is what ./logits printed.
import {readFileSync} from "node:fs";
import {getLlama} from "node-llama-cpp";

const [file, text, oursFile, tolerance] = process.argv.slice(2);
const ours = JSON.parse(readFileSync(oursFile, "utf8"));
const llama = await getLlama({gpu: false, build: "never", logLevel: "error"});
const model = await llama.loadModel({modelPath: file});
const ids = Array.from(model.tokenize(text));
if (JSON.stringify(ids) !== JSON.stringify(ours.tokens)) {
    throw new Error(`tokens differ: ${ids} and ${ours.tokens}`);
}
// Unless told otherwise llama.cpp rounds keys and values to 16 bits, and its flash attention computes with these. Of the model that foreign.py makes that changes
// probabilities by 3e-3; with 32 bits and plain attention they are ours to 3e-6.
const context = await model.createContext({
    contextSize: 128, flashAttention: false, experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32",
});
const last = [ids.at(-1), {generateNext: {probabilities: true}}];
const read = await context.getSequence().controlledEvaluate([...ids.slice(0, -1), last]);
const theirs = read.at(-1).next.probabilities;
const most = Math.max(...ours.logits);
const total = ours.logits.reduce((sum, x) => sum + Math.exp(x - most), 0);
let worst = 0;
for (const [token, p] of theirs) {
    worst = Math.max(worst, Math.abs(p - Math.exp(ours.logits[token] - most) / total));
}
console.log(`llama.cpp: ${file}: ${ids.length} equal tokens, ${theirs.size} probabilities differ by at most ${worst.toExponential(2)}`);
if (!(theirs.size > 100 && worst < Number(tolerance))) {
    throw new Error("llama.cpp's probabilities are not ours");
}
process.exit(0);
