// Builds the console: node build.mjs FOLDER writes index.html and assets/NAME-DIGEST.js|css there, each also as .gz,
// and console_files.cpp, which has them for the program.
import { build } from "esbuild";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2];
if (!out) {
  console.error("usage: node build.mjs FOLDER");
  process.exit(2);
}
await rm(join(out, "assets"), { recursive: true, force: true });
await mkdir(join(out, "assets"), { recursive: true });
const result = await build({
  entryPoints: [join(here, "src/main.tsx"), join(here, "src/style.css")],
  outdir: join(out, "assets"),
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  metafile: true,
});
const names = Object.keys(result.metafile.outputs).map((path) => basename(path));
const named = (start, end) => names.find((name) => name.startsWith(start) && name.endsWith(end));
const html = (await readFile(join(here, "src/index.html"), "utf8"))
  .replace("%STYLE%", `/assets/${named("style-", ".css")}`)
  .replace("%SCRIPT%", `/assets/${named("main-", ".js")}`);
await writeFile(join(out, "index.html"), html);

const types = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8" };
const files = [["/", join(out, "index.html")]];
for (const name of (await readdir(join(out, "assets"))).sort()) {
  files.push([`/assets/${name}`, join(out, "assets", name)]);
}
let text = '// Made by console/build.mjs.\n#include "admin/console/console_files.hpp"\n\n#include <array>\n\nnamespace idem::admin {\nnamespace {\n\n';
let rows = "";
let index = 0;
// What a browser loads before it shows anything, on a slow link too.
const first_page_max = 60 * 1024;
let first_page = 0;
for (const [path, file] of files) {
  const bytes = gzipSync(await readFile(file), { level: 9 });
  bytes[9] = 255; // The system that made it: the same on each.
  const octal = Array.from(bytes, (byte) => `\\${byte.toString(8).padStart(3, "0")}`);
  let literal = "";
  for (let at = 0; at < octal.length; at += 24) literal += `    "${octal.slice(at, at + 24).join("")}"\n`;
  text += `constexpr char content_${index}[] =\n${literal.trimEnd()};\n\n`;
  rows += `    ConsoleFile{"${path}", "${types[file.split(".").pop()]}", {content_${index}, ${bytes.length}}},\n`;
  index += 1;
  console.error(`${path} ${bytes.length} bytes`);
  if (html.includes(path) || path === "/") first_page += bytes.length;
}
text += `constexpr std::array files{\n${rows}};\n\n}  // namespace\n\nstd::span<const ConsoleFile> console_files() noexcept { return files; }\n\n}  // namespace idem::admin\n`;
if (first_page > first_page_max) {
  console.error(`the first page has ${first_page} bytes; more than ${first_page_max} take too long on a slow link`);
  process.exit(1);
}
await writeFile(join(out, "console_files.cpp"), text);
