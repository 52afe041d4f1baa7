import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { ComponentType } from "preact";

import { loginSaid, logOut, nameOf, offline, otherLogin, redeem, session } from "./api/client";
import type { Session } from "./api/types";
import { Approvals } from "./pages/approvals";
import { Audit } from "./pages/audit";
import { Explain } from "./pages/explain";
import { Find } from "./pages/find";
import { Jobs } from "./pages/jobs";
import { Login } from "./pages/login";
import { Messages } from "./pages/messages";
import { Operation } from "./pages/operation";
import { Overview } from "./pages/overview";
import { Retries } from "./pages/retries";
import { Routes } from "./pages/routes";
import { System } from "./pages/system";
import { Tokens } from "./pages/tokens";
import { Unknown } from "./pages/unknown";
import { span } from "./parts/words";
import { now, unused } from "./state/live";
import { address, page, place } from "./state/place";

interface Page {
  path: string;
  name: string;
  /** Empty: the page has no link of its own. */
  letter: string;
  show: ComponentType;
}

const pages: Page[] = [
  { path: "overview", name: "Overview", letter: "o", show: Overview },
  { path: "unknown", name: "Unknown", letter: "u", show: Unknown },
  { path: "find", name: "Find", letter: "f", show: Find },
  { path: "retries", name: "Retries", letter: "y", show: Retries },
  { path: "messages", name: "Messages", letter: "m", show: Messages },
  { path: "jobs", name: "Jobs", letter: "j", show: Jobs },
  { path: "approvals", name: "Approvals", letter: "p", show: Approvals },
  { path: "routes", name: "Routes", letter: "r", show: Routes },
  { path: "audit", name: "Audit", letter: "a", show: Audit },
  { path: "tokens", name: "Tokens", letter: "t", show: Tokens },
  { path: "system", name: "System", letter: "s", show: System },
  { path: "operation", name: "Operation", letter: "", show: Operation },
  { path: "explain", name: "Explain", letter: "", show: Explain },
];
const linked = pages.filter((one) => one.letter !== "");

const keysShown = signal(false);

/** What the page that opens next puts the focus on; screen readers read its heading then. */
let focusNext = "h1";
function focusNow(): void {
  document.querySelector<HTMLElement>(focusNext)?.focus();
  focusNext = "h1";
}

/** `g` and a letter goes to a page, `/` to the search, `?` lists the keys. */
function useLetters(): void {
  useEffect(() => {
    let waits = false;
    const pressed = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
      if (waits) {
        const found = linked.find((one) => one.letter === event.key);
        if (found) location.hash = address([found.path]);
      } else if (event.key === "/") {
        event.preventDefault();
        focusNext = "#find";
        if (page.peek() === "find") focusNow();
        else location.hash = address(["find"]);
      } else if (event.key === "?") {
        keysShown.value = true;
      }
      waits = event.key === "g" && !waits;
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

function KeysOfThisPage() {
  const dialog = useRef<HTMLDialogElement>(null);
  const shown = keysShown.value;
  useEffect(() => {
    if (shown) dialog.current?.showModal();
  }, [shown]);
  if (!shown) return null;
  return (
    <dialog ref={dialog} aria-label="Keys" onClose={() => {
      keysShown.value = false;
    }}>
      <h2>Keys</h2>
      <dl class="facts">
        {linked.map((one) => (
          <>
            <dt key={one.letter}><kbd>g</kbd> <kbd>{one.letter}</kbd></dt>
            <dd>{one.name}</dd>
          </>
        ))}
        <dt><kbd>/</kbd></dt>
        <dd>Find a record</dd>
        <dt><kbd>?</kbd></dt>
        <dd>These keys</dd>
      </dl>
      <button type="button" onClick={() => dialog.current?.close()}>Close</button>
    </dialog>
  );
}

/** The title and the focus follow the page. */
function useHeading(name: string, at: string): void {
  const first = useRef(true);
  useEffect(() => {
    document.title = `${name} · Idem`;
    if (!first.current) focusNow();
    first.current = false;
  }, [at]);
}

function Offline() {
  const lost = offline.value;
  if (lost === null) return null;
  return (
    <p class="offline" role="status">
      The gateway has not answered<span aria-hidden="true"> for {span((now.value - lost.since) / 1000)}</span>: what you see is old. The page tries again.
    </p>
  );
}

function Unused() {
  if (!unused.value) return null;
  return (
    <p class="offline" role="status">
      This page has stopped updating: nobody has used it for half an hour. Press a key or click.
    </p>
  );
}

/** A link may bring the code of another login: nobody works in a name that they did not choose. */
function OtherLogin() {
  const code = otherLogin.value;
  if (code === null) return null;
  return (
    <div class="trouble" role="alert">
      <strong>This address may log you in as another person.</strong>
      <p>
        You are logged in as {nameOf(session.value as Session)}. If you go on, the log names your decisions by the other login. Did you ask for this
        address?
      </p>
      <p class="buttons">
        <button type="button" onClick={() => {
          otherLogin.value = null;
        }}>
          Stay logged in
        </button>
        <button type="button" onClick={() => void redeem(code)}>Log in with the address</button>
      </p>
    </div>
  );
}

function LoginSaid() {
  if (loginSaid.value === "") return null;
  return (
    <p class="note" role="status">
      {loginSaid.value}{" "}
      <button type="button" onClick={() => {
        loginSaid.value = "";
      }}>
        Close
      </button>
    </p>
  );
}

export function App() {
  useLetters();
  const who = session.value;
  const shown = pages.find((one) => one.path === page.value) ?? linked[0]!;
  useHeading(shown.name, place.value.path.join("/"));
  if (who === "asking") {
    return (
      <>
        <Offline />
        <p class="loading">Asking who you are…</p>
      </>
    );
  }
  if (who === null) {
    return (
      <>
        <Offline />
        <Login />
      </>
    );
  }
  const Show = shown.show;
  return (
    <>
      <a class="skip" href="#main">To the content</a>
      <header>
        <strong>Idem</strong>
        <nav aria-label="Pages">
          {linked.map((one) => (
            <a key={one.path} href={address([one.path])} aria-current={one === shown ? "page" : undefined}>{one.name}</a>
          ))}
        </nav>
        <span class="who">
          {nameOf(who)}{" "}
          {who.csrf === null ? null : (
            <button type="button" onClick={() => void logOut()}>Log out</button>
          )}
        </span>
      </header>
      <Offline />
      <Unused />
      <main id="main" tabIndex={-1}>
        <OtherLogin />
        <LoginSaid />
        <h1 tabIndex={-1}>{shown.name}</h1>
        <Show key={`${who.login} ${who.name} ${who.role}`} />
      </main>
      <footer>
        <button type="button" class="plain" onClick={() => {
          keysShown.value = true;
        }}>
          Keys: press ?
        </button>
      </footer>
      <KeysOfThisPage />
    </>
  );
}
