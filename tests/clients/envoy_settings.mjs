// Checks a bootstrap file of Envoy (as JSON on stdin) against the definitions of Envoy's API, as the package
// @grpc/grpc-js-xds carries them: names of fields, types, values of enumerations, and fields of which only one may be set.
// What it does not check: rules about values, and how Envoy behaves. Anything wrong ends it with 1 and a line each.
import { createRequire } from "node:module";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
const require = createRequire(import.meta.url); // NODE_PATH names the folder of the packages.
const protobuf = require("protobufjs");

const api = join(dirname(dirname(dirname(require.resolve("@grpc/grpc-js-xds")))), "deps");
const folders = readdirSync(api).map((name) => join(api, name));
folders.push(dirname(require.resolve("protobufjs/package.json"))); // Has google/protobuf/descriptor.proto.
const root = new protobuf.Root();
root.resolvePath = (_, target) => {
  if (existsSync(target)) return target;
  const found = folders.map((folder) => join(folder, target)).find(existsSync);
  return found ?? target; // The other files of google/protobuf are known to protobufjs.
};
function load(folder) {
  const whole = join(api, "envoy-api", folder);
  if (!existsSync(whole)) return;
  const files = readdirSync(whole).filter((name) => name.endsWith(".proto"));
  root.loadSync(files.map((name) => join(whole, name)), { keepCase: true });
}

let wrong = 0;
function complain(path, text) {
  console.error(`${path}: ${text}`);
  wrong = 1;
}

const numbers = /^(u?int|s?fixed|sint)(32|64)$|^(double|float)$/;
const wrapped = { BoolValue: "bool", StringValue: "string", DoubleValue: "double", FloatValue: "float", Int32Value: "int32",
  Int64Value: "int64", UInt32Value: "uint32", UInt64Value: "uint64" };

function checkScalar(type, value, path) {
  const wanted = type === "bool" ? "boolean" : numbers.test(type) ? "number" : "string";
  if (typeof value !== wanted) complain(path, `is no ${wanted}`);
  if (/^(u|fixed)/.test(type) && value < 0) complain(path, "is below 0");
}

function checkAny(value, path) {
  const name = String(value["@type"]).replace("type.googleapis.com/", "");
  load(name.split(".").slice(0, -1).join("/"));
  let type;
  try {
    type = root.lookupType(name);
  } catch {
    return complain(path, `there is no type ${name}`);
  }
  const { "@type": _, ...rest } = value;
  return checkMessage(type, rest, path);
}

function checkValue(field, value, path) {
  const type = field.resolvedType;
  if (!type) return checkScalar(field.type, value, path);
  if (type instanceof protobuf.Enum) {
    if (!(value in type.values)) complain(path, `${type.name} has no ${value}`);
    return undefined;
  }
  const name = type.fullName.replace(".google.protobuf.", "");
  if (name === "Any") return checkAny(value, path);
  if (name === "Duration") {
    if (!/^[0-9]+(\.[0-9]+)?s$/.test(value)) complain(path, "is no duration such as 5s");
    return undefined;
  }
  if (name in wrapped) return checkScalar(wrapped[name], value, path);
  return checkMessage(type, value, path);
}

function checkMessage(type, value, path) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return complain(path, `is no ${type.name}`);
  const chosen = new Map();
  for (const [name, part] of Object.entries(value)) {
    const at = `${path}.${name}`;
    const field = type.fields[name];
    if (!field) {
      complain(at, `${type.name} has no such field`);
      continue;
    }
    field.resolve();
    if (field.options?.deprecated) complain(at, "is deprecated");
    if (field.partOf) {
      if (chosen.has(field.partOf.name)) complain(at, `excludes ${chosen.get(field.partOf.name)}`);
      chosen.set(field.partOf.name, name);
    }
    if (field.map) for (const [key, each] of Object.entries(part)) checkValue(field, each, `${at}.${key}`);
    else if (!field.repeated) checkValue(field, part, at);
    else if (!Array.isArray(part)) complain(at, "is no list");
    else part.forEach((each, number) => checkValue(field, each, `${at}.${number}`));
  }
  return undefined;
}

load("envoy/config/bootstrap/v3");
root.resolveAll();
checkMessage(root.lookupType("envoy.config.bootstrap.v3.Bootstrap"), JSON.parse(readFileSync(0, "utf8")), "bootstrap");
process.exit(wrong);
