// GET /v1/retries (docs/openapi.yaml).

export type RetryOutcome = "replay" | "in_progress" | "key_misuse" | "failed_retry" | "unknown" | "expired";

export interface Retry {
  at: string;
  ref: string;
  outcome: RetryOutcome;
  /** 0: the client left before. */
  status: number;
  scope: string;
  route: string;
  client: string | null;
  /** Masked. */
  differences: { part: string; stored: string; sent: string }[];
  why: string | null;
}

export interface RetriesPage {
  retries: Retry[];
}

/** What a retry met. */
export const outcomes: Record<RetryOutcome, string> = {
  key_misuse: "misuse: another request under the key, refused",
  unknown: "refused: it is unknown whether the first one ran",
  expired: "refused: the answer is no longer kept",
  in_progress: "met a running attempt",
  failed_retry: "ran, for the attempt before had not",
  replay: "got the stored answer",
};
