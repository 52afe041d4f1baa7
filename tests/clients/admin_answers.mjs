// Whether docs/openapi.yaml is an OpenAPI 3.1 document, and whether it describes the answers of an admin listener that
// tests have recorded (tests/support/admin_answers.cpp): path, method, status, media type, and each member.
// After a run of all tests each operation must have an answer of each 2xx that the page lists.
// usage: node admin_answers.mjs DESCRIPTION FOLDER
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [description, folder] = process.argv.slice(2);
// Tests that asked an admin listener. A part of the tests asks fewer.
const whole_run = 200;
// The packages lie in build/clients, which NODE_PATH names; import() does not look there.
const near = createRequire(path.join(process.env.NODE_PATH, "x.js"));
const load = async (name) => import(pathToFileURL(near.resolve(name)));
const { Validator } = await load("@seriousme/openapi-schema-validator");
const YAML = (await load("yaml")).default;
const Ajv = (await load("ajv/dist/2020.js")).default.default;
const addFormats = (await load("ajv-formats")).default.default;

const findings = new Map();
const find = (what, example) => findings.set(what, findings.get(what) ?? example);

const page = YAML.parse(fs.readFileSync(description, "utf8"), { merge: true });
const judged = await new Validator().validate(structuredClone(page));
if (!judged.valid) find("the page is no OpenAPI 3.1 document", JSON.stringify(judged.errors));

// A member that the page does not name is an error here; clients must accept new ones.
function close(schema) {
  if (schema === null || typeof schema !== "object") return;
  if (schema.properties && schema.additionalProperties === undefined) schema.additionalProperties = false;
  Object.values(schema).forEach(close);
}
close(page.components.schemas);
close(page.components.responses);
close(page.paths);

const ajv = new Ajv({ strict: false, allErrors: true });
addFormats(ajv);
ajv.addSchema(page, "page");
const compiled = new Map();
function validator(pointer) {
  if (!compiled.has(pointer)) compiled.set(pointer, ajv.compile({ $ref: `page#${pointer}` }));
  return compiled.get(pointer);
}
const escaped = (text) => encodeURIComponent(text.replaceAll("~", "~0").replaceAll("/", "~1"));

// A path without a parameter is more exact than one with.
const paths = Object.keys(page.paths)
  .map((name) => ({ name, fits: new RegExp(`^${name.replaceAll(/\{[a-z]+\}/g, "[^/]+")}$`) }))
  .sort((a, b) => a.name.includes("{") - b.name.includes("{"));

const seen = new Set();
function check({ method, target, status, type, body }) {
  const route = paths.find((one) => one.fits.test(target.split("?")[0]));
  // What is none of the paths is 404, and a method that a path does not have is 404 or 405.
  const operation = route && page.paths[route.name][method.toLowerCase()];
  if (!operation) {
    if ([400, 401, 403, 404, 405].includes(status)) return;
    return find(`${method} ${target}: ${status} of an operation that the page does not have`, body);
  }
  const where = `${method} ${route.name} ${status}`;
  seen.add(where);
  if (!operation.responses[status]) return find(`${where}: the page does not have this status`, body);
  let at = `/paths/${escaped(route.name)}/${method.toLowerCase()}/responses/${status}`;
  let response = operation.responses[status];
  if (response.$ref) {
    at = response.$ref.slice(1);
    response = page.components.responses[at.split("/").pop()];
  }
  const media = type.split(";")[0];
  const content = response.content?.[media];
  if (!content) return find(`${where}: the page does not have the media type ${type}`, body);
  if (method === "HEAD" || !media.endsWith("json")) return;
  const valid = validator(`${at}/content/${escaped(media)}/schema`);
  let value;
  try {
    value = JSON.parse(body);
  } catch (error) {
    return find(`${where}: no JSON`, body);
  }
  if (valid(value)) return;
  for (const { instancePath, message, params } of valid.errors) {
    find(`${where}: ${instancePath} ${message} ${JSON.stringify(params)}`, body);
  }
}

let answers = 0;
const tests = new Set();  // One that runs on several stores is several, each in a process of its own.
for (const file of fs.readdirSync(folder)) {
  for (const line of fs.readFileSync(path.join(folder, file), "utf8").split("\n")) {
    if (line === "") continue;
    ++answers;
    const answer = JSON.parse(line);
    tests.add(`${file} ${answer.test}`);
    check(answer);
  }
}
if (tests.size >= whole_run) {
  for (const [name, item] of Object.entries(page.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      for (const status of Object.keys(operation.responses ?? {})) {
        const where = `${method.toUpperCase()} ${name} ${status}`;
        if (status.startsWith("2") && !seen.has(where)) find(`${where}: no test has seen it`, "");
      }
    }
  }
}
for (const [what, example] of findings) console.error(`${what}\n    ${example.slice(0, 400)}`);
console.log(`${answers} answers of ${seen.size} kinds; ${findings.size} findings`);
process.exit(findings.size === 0 ? 0 : 1);
