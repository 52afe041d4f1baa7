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
export const operatorName = signal(localStorage.getItem("idem.name") ?? "");
operatorName.subscribe((name) => localStorage.setItem("idem.name", name));

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
  let answer: Response;
  try {
    answer = await fetch(path, {
      method,
      headers,
      cache: "no-store",
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
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
  const text = await answer.text();
  if (answer.ok) return (text === "" ? {} : JSON.parse(text)) as T;
  let problem: Problem;
  try {
    problem = JSON.parse(text) as Problem;
  } catch {
    problem = { code: "unreadable", title: `HTTP ${answer.status}`, status: answer.status };
  }
  if (answer.status === 401) session.value = null;
  throw new ApiError(problem);
}

export const get = <T>(path: string): Promise<T> => ask<T>("GET", path);
export const post = <T>(path: string, body: unknown = {}): Promise<T> =>
  ask<T>("POST", path, body);

/** Who is logged in; with a code from the address, as that code says. */
export async function begin(code: string | null): Promise<void> {
  try {
    session.value =
      code === null
        ? await get<Session>("/v1/session")
        : await post<Session>("/v1/session", { code });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (code !== null) codeRefused.value = error.problem;
    session.value = null;
  }
}

/** Why the code of the address did not log in. */
export const codeRefused = signal<Problem | null>(null);

export async function logIn(token: string): Promise<void> {
  session.value = await post<Session>("/v1/session", { token });
}

export async function logOut(): Promise<void> {
  await post("/v1/session/end");
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
