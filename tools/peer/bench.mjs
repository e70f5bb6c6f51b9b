// Times a model by npm's node-llama-cpp: node bench.mjs MODEL.gguf vulkan|cpu. See docs/benchmarks.md.
import {getLlama} from "node-llama-cpp";
const [,, model, gpu] = process.argv;
const llama = await getLlama({gpu: gpu === "cpu" ? false : gpu, build: "never", logLevel: "error"});
console.log("gpu", llama.gpu, gpu === "cpu" ? "" : await llama.getGpuDeviceNames());
const m = await llama.loadModel({modelPath: model, gpuLayers: gpu === "cpu" ? 0 : "max"});
const c = await m.createContext({contextSize: 512, batchSize: 512, sequences: 1});
const s = c.getSequence();
const toks = n => Array.from({length: n}, (_, i) => 100 + i * 7 % 3000);
async function time(name, n, f) {
  const t = process.hrtime.bigint(), u = process.cpuUsage();
  await f();
  const dt = Number(process.hrtime.bigint() - t) / 1e9, d = process.cpuUsage(u);
  const cpu = (d.user + d.system) / 1e6;
  console.log(name, (n / dt).toFixed(3), "tok/s", (cpu / n).toFixed(4), "CPU-s/token");
}
await s.evaluateWithoutGeneratingNewTokens(toks(4)); // warm
for (let r = 0; r < 2; r++) {
  await s.clearHistory();
  await time("pp64", 64, () => s.evaluateWithoutGeneratingNewTokens(toks(64)));
  await s.clearHistory();
  await s.evaluateWithoutGeneratingNewTokens(toks(4));
  await time("tg8", 8, async () => { for (let i = 0; i < 8; i++) await s.evaluateWithoutGeneratingNewTokens([200 + i]); });
}
process.exit(0);
