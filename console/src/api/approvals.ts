// What the Admin API answers about orders that wait for other people (docs/openapi.yaml).
import type { KeySummary } from "./types";

export type ApprovalState = "waiting" | "deciding" | "decided" | "refused" | "rejected" | "expired" | "damaged";

export interface ApprovalSummary {
  approval: string;
  kind: "resolve" | "release" | "jobs" | "discard";
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

export interface WaitingOrder extends ApprovalSummary {
  order?: Record<string, unknown>;
  record?: KeySummary | null;
}

export const approvalStates: Record<ApprovalState, string> = {
  waiting: "It waits for another person.",
  deciding: "All approvals are given, and it is being carried out. If this stays, approve it once more: that finishes it.",
  decided: "It was carried out.",
  refused: "It was approved, and refused: what it is about had changed.",
  rejected: "A person rejected it, and nothing was done.",
  expired: "Nobody approved it in time, and nothing was done.",
  damaged: "Its lines in the store are not those that were written: nobody can approve it.",
};
