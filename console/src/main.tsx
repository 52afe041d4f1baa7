import { render } from "preact";

import { App } from "./app";
import { begin } from "./api/client";

const root = document.getElementById("app");
if (root === null) throw new Error("index.html has no #app");
// The code of `idem console` is good once; it leaves the address at once, too.
const code = /^#\/?login\?code=([0-9a-f]+)$/.exec(location.hash)?.[1] ?? null;
if (code !== null) history.replaceState(null, "", "#/");
void begin(code);
root.replaceChildren();
render(<App />, root);
