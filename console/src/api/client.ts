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

const patience = { GET: 15_000, POST: 90_000, verify: 600_000 };

/** Why the login page is there; empty: nobody was logged in. */
export const loginNote = signal("");

/** The server does not answer: since when, and why. */
export const offline = signal<{ since: number; why: string } | null>(null);

/** An order to which no answer came that says what became of it. */
export const inDoubt: Problem = {
  code: "no_answer",
  title: "The gateway did not answer",
  status: 0,
  detail:
    "It is not known whether your order was carried out. Look at the state of what it is about before you order again.",
};

/** Throws where the text is no JSON object: no answer of the admin API is anything else. */
function objectOf(text: string): object {
  const read: unknown = JSON.parse(text);
  if (typeof read !== "object" || read === null || Array.isArray(read)) throw new SyntaxError("The answer is no object.");
  return read;
}

function problemOf(status: number, text: string): Problem {
  try {
    const read = objectOf(text) as Partial<Problem>;
    if (typeof read.title === "string" && typeof read.code === "string") return { ...read, title: read.title, code: read.code, status };
  } catch {
    // Something between the browser and the gateway answered.
  }
  return { code: "unreadable", title: `HTTP ${status}, not from the gateway`, status };
}

/** Sent by POST, and an order all the same it is not. */
function isQuestion(path: string, body: unknown): boolean {
  return path === "/v1/explain" || path === "/v1/jobs/preview" || (body as { dry_run?: boolean } | undefined)?.dry_run === true;
}

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
  let read: unknown;
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
    if (answer.ok) read = objectOf(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    offline.value = { since: offline.peek()?.since ?? Date.now(), why };
    if (method === "GET") throw new ApiError({ ...inDoubt, code: "offline", detail: "It does not answer now." });
    throw new ApiError(isQuestion(path, body) ? { ...inDoubt, detail: "Nothing was ordered: ask again." } : inDoubt);
  }
  offline.value = null;
  if (answer.ok) return read as T;
  const problem = problemOf(answer.status, text);
  const orders = method !== "GET" && !path.startsWith("/v1/session") && !isQuestion(path, body);
  if (problem.code === "store_unavailable") {
    // The protocol's own title is about a client's request. Of an order, the detail says what could not be finished.
    if (method === "GET") problem.code = "store_silent";
    problem.title = method === "GET" ? "The store does not answer" : "The gateway could not finish this";
  }
  if (orders && answer.status >= 500) problem.detail = `${inDoubt.detail} ${problem.detail ?? ""}`;
  // That a login was refused ends no other one.
  if (answer.status === 401 && path !== "/v1/session") {
    session.value = null;
    operatorName.value = "";
    loginNote.value = orders
      ? "Your login had ended: nothing was ordered. Log in and decide again."
      : "Your login has ended.";
  }
  throw new ApiError(problem);
}

export const get = <T>(path: string): Promise<T> => ask<T>("GET", path);
export const post = <T>(path: string, body: unknown = {}): Promise<T> =>
  ask<T>("POST", path, body);

/** Why nobody is logged in, where the gateway said so. */
export const refused = signal<Problem | null>(null);
/** A code of the address while another login is good: the operator chooses. */
export const otherLogin = signal<string | null>(null);
/** What became of a login or a logout, for the page to say. */
export const loginSaid = signal("");

export const nameOf = (who: Session): string => `${who.name ?? "the gateway's token"} (${who.role})`;

/** Who is logged in; a code of the address logs in where nobody is. */
export async function begin(code: string | null): Promise<void> {
  try {
    session.value = await get<Session>("/v1/session");
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.problem.code === "offline") {
      setTimeout(() => void begin(code), 3_000);
      return;
    }
    if (error.problem.code !== "login_required") refused.value = error.problem;
    session.value = null;
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
    refused.value = error.problem;
    const who = session.peek();
    if (who === null || who === "asking") return;
    loginSaid.value = `You are still logged in as ${nameOf(who)}. ${error.problem.detail ?? error.problem.title}`;
  }
}

async function logInBy(by: { token: string } | { code: string }): Promise<void> {
  await post<Session>("/v1/session", by);
  // What counts is who the next request is from.
  const who = await get<Session>("/v1/session");
  operatorName.value = "";
  session.value = who;
  refused.value = null;
  loginNote.value = "";
  loginSaid.value = `You are logged in as ${nameOf(who)}.`;
}

export const logIn = (token: string): Promise<void> => logInBy({ token });

export async function logOut(): Promise<void> {
  try {
    await post("/v1/session/end");
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.problem.code !== "login_required") {
      loginSaid.value =
        error.problem.code === "no_answer"
          ? "It is not known whether you are logged out: try again, or close the browser."
          : `You are still logged in. ${error.problem.detail ?? error.problem.title}`;
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
