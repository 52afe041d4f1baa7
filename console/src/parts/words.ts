import type { State } from "../api/types";

/** "3 min", "2 h 10 min", "4 d": how long it is. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d`;
}

/** The time of a moment today, and the date of another one. */
export function timeOf(moment: string): string {
  const at = new Date(moment);
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? at.toLocaleTimeString() : at.toLocaleString();
}

export const count = (number: number): string => number.toLocaleString("en");

/** What a state means for the money, in one sentence. */
export const meanings: Record<State, string> = {
  unknown: "The work may have run. Nothing runs again until a provider or an operator says what happened.",
  in_progress: "An attempt holds the key.",
  pending: "The request is stored, and the gateway runs it.",
  failed_retryable: "Not done, as far as is known. The next retry runs it.",
  completed: "It has ended. Each retry gets the stored answer.",
  expired: "The gateway no longer keeps the answer, and refuses retries until it forgets the key.",
};

/** The same of one record. */
export function meaningOf(key: {
  state: State;
  release_basis: "proven" | "declared" | null;
  last_error_code: string;
  response_status: number | null;
}): string {
  if (key.state === "completed" && key.response_status !== null) {
    const failed = key.response_status >= 400 ? " This answer reports a failure; by itself it does not prove that nothing was done." : "";
    return `It has ended with status ${key.response_status}. Each retry gets that answer.${failed}`;
  }
  if (key.state !== "failed_retryable") return meanings[key.state];
  const why =
    key.release_basis === "declared"
      ? "An operator, or a setting, declares that the work was not done; that is no proof."
      : key.last_error_code === "resolved"
        ? "Evidence said that the work was not done: see below who gave it."
        : "The gateway knows that the work was not done.";
  return `${why} The next retry runs it.`;
}
