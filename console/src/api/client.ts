import { signal } from "@preact/signals";

import type { Problem, Session } from "./types";

/** A request that the Admin API refused, or that never reached it. */
export class ApiError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail ?? problem.title);
  }
}

export const session = signal<Session | null | "asking">("asking");
/** The name that decisions carry where the login proves a role only. */
export const operatorName = signal(sessionStorage.getItem("idem.name") ?? "");
operatorName.subscribe((name) => sessionStorage.setItem("idem.name", name));

/** How far the gateway's clock is ahead of the browser's, in milliseconds; whole seconds, rounded down. */
let ahead = 0;
export const serverNow = (): number => Date.now() + ahead;

const patience = { GET: 15_000, POST: 90_000, verify: 600_000 };

/** The server does not answer: since when, and why. */
export const offline = signal<{ since: number; why: string } | null>(null);

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  const now = session.peek();
  if (method !== "GET") {
    headers["Content-Type"] = "application/json";
    if (now !== null && now !== "asking") {
      if (now.csrf !== null) headers["Idem-Csrf"] = now.csrf;
      if (now.name === null && operatorName.peek() !== "") {
        headers["Idem-Operator"] = operatorName.peek();
      }
    }
  }
  const most = path.startsWith("/v1/audit/verify") ? patience.verify : method === "GET" ? patience.GET : patience.POST;
  let answer: Response;
  let text: string;
  let read: unknown = {};
  try {
    answer = await fetch(path, {
      method,
      headers,
      cache: "no-store",
      signal: AbortSignal.timeout(most),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    text = await answer.text();
    // An answer that is cut, or comes from something in between, says nothing about an order either.
    if (answer.ok && text !== "") read = JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    offline.value = { since: offline.peek()?.since ?? Date.now(), why };
    throw new ApiError({
      code: method === "GET" ? "offline" : "no_answer",
      title: "The gateway did not answer",
      status: 0,
      detail:
        method === "GET"
          ? "It does not answer now. The page asks again by itself."
          : "It may have done what you ordered, or not. Look at what it shows when it answers again, before you repeat the order.",
    });
  }
  offline.value = null;
  const date = Date.parse(answer.headers.get("Date") ?? "");
  if (!Number.isNaN(date)) ahead = date - Date.now();
  if (answer.ok) return read as T;
  let problem: Problem;
  try {
    problem = JSON.parse(text) as Problem;
  } catch {
    problem = { code: "unreadable", title: `HTTP ${answer.status}`, status: answer.status };
  }
  // That a login was refused ends no other one.
  if (answer.status === 401 && path !== "/v1/session") session.value = null;
  throw new ApiError(problem);
}

export const get = <T>(path: string): Promise<T> => ask<T>("GET", path);
export const post = <T>(path: string, body: unknown = {}): Promise<T> =>
  ask<T>("POST", path, body);

/** Why the code of the address did not log in. */
export const codeRefused = signal<Problem | null>(null);
/** A code of the address while another login is good: the operator chooses. */
export const otherLogin = signal<string | null>(null);
/** What became of a login or a logout, for the page to say. */
export const loginSaid = signal("");

const nameOf = (who: Session): string => `${who.name ?? "the gateway's token"} (${who.role})`;

/** Who is logged in; a code of the address logs in where nobody is. */
export async function begin(code: string | null): Promise<void> {
  try {
    session.value = await get<Session>("/v1/session");
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    session.value = null;
    if (error.problem.code === "offline") return;
  }
  if (code === null) return;
  if (session.value === null) await redeem(code);
  else otherLogin.value = code;
}

export async function redeem(code: string): Promise<void> {
  otherLogin.value = null;
  try {
    await logInBy({ code });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    codeRefused.value = error.problem;
  }
}

async function logInBy(by: { token: string } | { code: string }): Promise<void> {
  await post<Session>("/v1/session", by);
  // What counts is who the next request is from.
  const who = await get<Session>("/v1/session");
  session.value = who;
  codeRefused.value = null;
  loginSaid.value = `You are logged in as ${nameOf(who)}.`;
}

export const logIn = (token: string): Promise<void> => logInBy({ token });

export async function logOut(): Promise<void> {
  try {
    await post("/v1/session/end");
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.problem.code !== "login_required") {
      loginSaid.value = `You are still logged in: ${error.problem.detail ?? error.problem.title}`;
      return;
    }
  }
  operatorName.value = "";
  loginSaid.value = "";
  session.value = null;
}

export function query(parameters: Record<string, string | number | undefined>): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== "") given.set(name, String(value));
  }
  const text = given.toString();
  return text === "" ? "" : `?${text}`;
}
