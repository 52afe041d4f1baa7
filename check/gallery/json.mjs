// JSON that keeps the digits of numbers: JSON.parse makes 2^53 of 2^53+1, and then two payments look alike.

const depthMax = 64; // deeper than any order, shallow enough for the stack

/** A number as its sender wrote it. */
export class Digits {
  constructor(text) {
    this.text = text;
  }
}

const mark = /([{}[\],:])/;
const string = /("(?:[^"\\\u0000-\u001f]|\\.)*")/;
const number = /(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/;
const word = /(true|false|null)/;
const kinds = [mark, string, number, word].map((one) => one.source).join("|");
const token = new RegExp(`[ \\t\\n\\r]*(?:${kinds})`, "y");

/** The value, with Digits for numbers and Maps for objects; throws SyntaxError. */
export function parse(text) {
  let at = 0;
  const wrong = () => new SyntaxError(`no JSON at ${at}`);
  const next = () => {
    token.lastIndex = at;
    const found = token.exec(text);
    if (!found) throw wrong();
    at = token.lastIndex;
    const [, mark, string, number, word] = found;
    return { mark, string, number, word };
  };
  const value = (first, depth) => {
    if (depth > depthMax) throw wrong();
    if (first.string !== undefined) return JSON.parse(first.string);
    if (first.number !== undefined) return new Digits(first.number);
    if (first.word !== undefined) return JSON.parse(first.word);
    if (first.mark === "[") return list(depth);
    if (first.mark === "{") return object(depth);
    throw wrong();
  };
  const list = (depth) => {
    const all = [];
    let one = next();
    if (one.mark === "]") return all;
    for (;;) {
      all.push(value(one, depth + 1));
      const { mark } = next();
      if (mark === "]") return all;
      if (mark !== ",") throw wrong();
      one = next();
    }
  };
  const object = (depth) => {
    const all = new Map();
    let one = next();
    if (one.mark === "}") return all;
    for (;;) {
      if (one.string === undefined || next().mark !== ":") throw wrong();
      const name = JSON.parse(one.string);
      if (all.has(name)) throw wrong(); // which of the two counts is anybody's guess
      all.set(name, value(next(), depth + 1));
      const { mark } = next();
      if (mark === "}") return all;
      if (mark !== ",") throw wrong();
      one = next();
    }
  };
  const whole = value(next(), 0);
  if (text.slice(at).trim() !== "") throw wrong();
  return whole;
}

/** One text for all spellings of a value: sorted members, no whitespace; `number` writes the digits. */
export function canonical(value, number = (digits) => digits) {
  if (value instanceof Digits) return number(value.text);
  if (Array.isArray(value)) return `[${value.map((one) => canonical(one, number)).join(",")}]`;
  if (!(value instanceof Map)) return JSON.stringify(value);
  const members = [...value.keys()].sort();
  const member = (name) => `${JSON.stringify(name)}:${canonical(value.get(name), number)}`;
  return `{${members.map(member).join(",")}}`;
}

/** A number by its exact decimal value: 1, 1.0 and 10e-1 are one text; 2^53 and 2^53+1 are two. */
export function decimal(digits) {
  const [, sign, whole, part = "", power = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(digits);
  const all = (whole + part).replace(/^0+/, "");
  const kept = all.replace(/0+$/, "");
  if (kept === "") return "0";
  return `${sign}${kept}e${BigInt(power) - BigInt(part.length) + BigInt(all.length - kept.length)}`;
}
