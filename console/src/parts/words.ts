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

export const count = (number: number): string => number.toLocaleString("en");

/** What a state means for the money, in one sentence. */
export const meanings: Record<State, string> = {
  unknown: "The work may have run. Nothing runs again until evidence settles it.",
  in_progress: "An attempt runs now.",
  pending: "The request is stored and runs soon.",
  failed_retryable: "Released. The next retry runs.",
  completed: "Done. Each retry gets the stored answer.",
  expired: "The answer's retention is over. The key is refused until it is forgotten.",
};

/** The same of one record: a release is proven, or declared. */
export function meaningOf(key: { state: State; release_basis: "proven" | "declared" | null }): string {
  if (key.state !== "failed_retryable") return meanings[key.state];
  return key.release_basis === "proven"
    ? "Released: it is proven that the work was not done. The next retry runs."
    : "Released: an operator, or a setting, declares that the work was not done. That is no proof. The next retry runs.";
}
