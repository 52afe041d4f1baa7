import { render } from "preact";

import { App } from "./app";
import { begin } from "./api/client";

const root = document.getElementById("app");
if (root === null) throw new Error("index.html has no #app");
/** The code of `idem console` is good once; it leaves the address at once, too. */
function takeCode(): string | null {
  const code = /^#\/?login\?code=([0-9a-f]+)$/.exec(location.hash)?.[1] ?? null;
  if (code !== null) history.replaceState(null, "", "#/");
  return code;
}
void begin(takeCode());
// Pasted into a page that is open already, an address loads nothing.
addEventListener("hashchange", () => {
  const code = takeCode();
  if (code !== null) void begin(code);
});
root.replaceChildren();
render(<App />, root);
