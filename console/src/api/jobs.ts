// What the Admin API answers about jobs (docs/openapi.yaml).
import { get, post, query } from "./client";
import type { KeysPage } from "./types";

export type What = "keys.resolve" | "keys.release" | "dlq.redrive" | "dlq.discard";
export type JobState = "waiting" | "running" | "cancelling" | "cancelled" | "ended" | "damaged";

export interface Job {
  job: string;
  what: What;
  state: JobState;
  count: number;
  done: number;
  refused: number;
  left: number;
  rate: number;
  who: string;
  reason: string;
  match: Record<string, string>;
  as: "completed" | "failed_retryable" | null;
  made_at: string | null;
  ended_at: string | null;
  cancelled_by: string | null;
  trouble: string | null;
}

export interface JobsPage {
  jobs: Job[];
  next: string | null;
}

export interface JobResult {
  ref: string;
  fence: number | null;
  verdict: string;
  state: string;
}

export interface JobResultsPage {
  results: JobResult[];
  next: number | null;
}

export interface Preview {
  count: number;
  /** false: more match than one job may have. */
  is_exact: boolean;
  examples: string[];
}

export type Match = Record<string, string>;

export const preview = (what: What, match: Match): Promise<Preview> =>
  post<Preview>("/v1/jobs/preview", { what, match });

/** Pages of a thousand records: as many as the command line reads. */
const pages_max = 10;

/** From when no attempt of the records that match can send any more; null: none has a lease. */
export async function lastLeaseEnd(match: Match): Promise<string | null> {
  let last: string | null = null;
  let cursor: string | null = "";
  for (let page = 0; page < pages_max && cursor !== null; ++page) {
    const read: KeysPage = await get(`/v1/keys${query({ ...match, limit: 1_000, cursor })}`);
    for (const { locked_until: end } of read.keys) {
      if (end !== null && (last === null || Date.parse(end) > Date.parse(last))) last = end;
    }
    cursor = read.next;
  }
  return last;
}
