// Prints the list of models that WebLLM's bundle has built in, as JSON.     node scripts/catalogue.mjs NODE_MODULES
//
// An entry keeps its known fields, and lacks those that WebLLM's list lacks: internal/models/catalogue refuses others.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = `${process.argv[2]}/@mlc-ai/web-llm`;
const { version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
const { prebuiltAppConfig } = await import(pathToFileURL(`${folder}/lib/index.js`).href);
const known = [
  "model", "model_id", "model_lib", "model_manifest", "model_type", "vram_required_MB", "buffer_size_required_bytes",
  "low_resource_required", "required_features", "overrides",
];
const models = prebuiltAppConfig.model_list.map((entry) =>
  Object.fromEntries(known.filter((name) => entry[name] !== undefined).map((name) => [name, entry[name]])));
if (models.length === 0) {
  throw new Error(`WebLLM ${version} has no models built in`);
}
process.stdout.write(`${JSON.stringify({ webllm: version, models }, null, 1)}\n`);
