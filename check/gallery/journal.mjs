// What a server may not forget: one line of JSON for each event, durable before its answer leaves.
import fs from "node:fs";

export class Journal {
  /** Opens or makes the file; `entries` holds what it said at the start. */
  constructor(path) {
    const text = fs.existsSync(path) ? fs.readFileSync(path, "utf8") : "";
    // A kill within a write leaves a last line without its end. No answer followed from it, so it is cut off.
    const whole = text.slice(0, text.lastIndexOf("\n") + 1);
    this.entries = whole.split("\n").filter(Boolean).map((line) => JSON.parse(line));
    this.file = fs.openSync(path, "a");
    fs.ftruncateSync(this.file, Buffer.byteLength(whole));
  }

  append(entry) {
    fs.writeSync(this.file, `${JSON.stringify(entry)}\n`);
    fs.fsyncSync(this.file);
  }
}
