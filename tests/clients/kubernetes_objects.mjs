// Checks Kubernetes objects (a JSON list on stdin) against the schemas of Kubernetes' API, as the package
// kubernetes-models carries them. Kinds that it does not know (of custom resources) are named on stdout.
// An object that is wrong ends it with 1 and a line that says where.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
const require = createRequire(import.meta.url); // NODE_PATH names the folder of the package.

// These schemas allow every field, and the API server drops those that it does not know: a misspelt probe would be no
// probe. Their validators read each field that they know, so a field that was never read is unknown.
const unread = new Map(); // path -> the fields not read yet
function watched(value, path) {
  if (value === null || typeof value !== "object") return value;
  const left = new Set(Array.isArray(value) ? [] : Object.keys(value));
  unread.set(path, left);
  const parts = new Map();
  return new Proxy(value, {
    get(target, name, receiver) {
      left.delete(name);
      const part = Reflect.get(target, name, receiver);
      if (typeof name !== "string" || part === null || typeof part !== "object") return part;
      if (!parts.has(name)) parts.set(name, watched(part, `${path}.${name}`));
      return parts.get(name);
    },
  });
}

let wrong = 0;
for (const object of JSON.parse(readFileSync(0, "utf8"))) {
  const name = `${object.kind} ${object.metadata?.name}`;
  let model;
  try {
    model = require(`kubernetes-models/${object.apiVersion}/${object.kind}`)[object.kind];
  } catch {
    console.log(`not known: ${object.apiVersion} ${object.kind}`);
    continue;
  }
  unread.clear();
  try {
    model.prototype.validate.call(watched(new model(object), name));
  } catch (error) {
    console.error(`${name}: ${error.message}`);
    wrong = 1;
    continue; // What comes behind the error was not read.
  }
  for (const [path, left] of unread) {
    for (const field of left) {
      console.error(`${path}: there is no field ${field}`);
      wrong = 1;
    }
  }
}
process.exit(wrong);
