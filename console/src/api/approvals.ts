// What the Admin API answers about orders that wait for other people (docs/openapi.yaml).
import type { KeySummary } from "./types";

export type ApprovalState = "waiting" | "deciding" | "decided" | "refused" | "rejected" | "expired" | "damaged";
export type ApprovalKind = "resolve" | "release" | "jobs" | "discard";

export interface ApprovalSummary {
  approval: string;
  kind: ApprovalKind;
  state: ApprovalState;
  needs: number;
  given: number;
  given_by: string[];
  reason: string;
  /** The record or the message. */
  ref: string | null;
  /** What the order is about, as it was when it was asked for. */
  seen: string;
  asked_at: string;
  ends_at: string;
  ended_by: string | null;
  outcome: string | null;
}

export interface ApprovalsPage {
  approvals: ApprovalSummary[];
  next: string | null;
}

/** The order itself, as it was sent; of a job it has that about each record in it. */
export interface OrderBody {
  fence?: number;
  as?: "completed" | "failed_retryable";
  evidence?: string;
  observed_at?: string;
  response?: { status?: number; headers?: [string, string][]; body_b64?: string };
  reason?: string;
  id?: string;
  nothing_there?: boolean;
  what?: string;
  match?: Record<string, string | boolean>;
  order?: OrderBody;
  expected?: number;
  rate?: number;
  by?: string;
  dry_run?: boolean;
}

export interface WaitingOrder extends ApprovalSummary {
  order?: OrderBody;
  record?: KeySummary | null;
}

export const approvalStates: Record<ApprovalState, string> = {
  waiting: "It waits for another person, and nothing is done yet.",
  deciding:
    "All approvals are given, and a process carries the order out. If this stays, approve it once more: that " +
    "finishes it, and does nothing twice.",
  decided: "It was carried out.",
  refused: "It was approved, and refused: what it is about had changed, or did not allow it.",
  rejected: "A person rejected it, and nothing was done.",
  expired: "Nobody approved it in time, and nothing was done.",
  damaged: "Its lines in the store are not those that were written: nobody can approve it.",
};
