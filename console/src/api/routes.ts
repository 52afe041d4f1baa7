// What the Admin API answers about routes, shadow and explanations (docs/openapi.yaml).
import type { KeySummary } from "./types";

export interface EffectiveSetting {
  name: string;
  /** As YAML; null: there is none. */
  value: string | null;
  origin: "route" | "defaults" | "settings" | "built in";
  /** A place in the file, a flag or a variable; null: built in. */
  place: string | null;
  help: string;
}

export interface StatusMeaning {
  first: number;
  last: number;
  outcome: "stored" | "released" | "unknown";
  origin: string;
}

export interface Route {
  route: string;
  /** Empty: all. */
  methods: string[];
  path: string;
  enforce: "on" | "shadow";
  settings: EffectiveSetting[];
  answers: StatusMeaning[];
  answers_with_retry_after: StatusMeaning[];
}

export interface Quotas {
  settings: EffectiveSetting[];
  since: string;
  /** null: all tenants without a row of their own. */
  tenants: { scope: string | null; refused: number; last_at: string }[];
}

export interface Routes {
  routes: Route[];
  quotas: Quotas;
}

export interface ShadowCounts {
  requests: number;
  first: number;
  duplicates: number;
  not_kept: number;
  misuse: number;
  missing_key: number;
  bad_key: number;
  missing_scope: number;
  refused: number;
  races: number;
  unknown_retries: number;
  expired: number;
  not_observed: number;
  /** A part of `first`. */
  unknown: number;
}

export interface ShadowTenant extends ShadowCounts {
  scope: string | null;
  clients: (ShadowCounts & { client: string })[];
}

export interface ShadowExample {
  kind: string;
  at: string;
  scope: string | null;
  client: string;
  operation_ref: string | null;
  method: string;
  path: string;
  key_bytes: number;
  why: string | null;
}

export interface ShadowRoute extends ShadowCounts {
  route: string;
  enforce: "on" | "shadow";
  mode: "conflict" | "wait";
  since: string;
  not_observed_by: Record<"busy" | "memory" | "upload" | "not_sent" | "store" | "store_slow", number>;
  not_settled: number;
  tenants: ShadowTenant[];
  /** Absent for a viewer. */
  examples?: ShadowExample[];
}

export interface ShadowReport {
  since: string;
  under_way: number;
  routes: ShadowRoute[];
}

export interface Question {
  method: string;
  target: string;
  headers: [string, string][];
  body_b64: string;
  scope?: string;
}

export interface Explanation {
  route: string | null;
  enforce: "on" | "shadow";
  scope: string | null;
  operation: string | null;
  key: { field: string; syntax: "quoted" | "bare"; bytes: number } | null;
  operation_ref: string | null;
  outcome: "execute" | "replay" | "in_progress" | "misuse" | "unknown" | "expired" | "refused" | "pass";
  why: string;
  answer: { status: number | null; code: string | null; retry: string | null };
  record: KeySummary | null;
  fingerprint: { matches: boolean | null; counted: string[]; left_out: string[]; form: string } | null;
  differences: { part: string; stored: string; sent: string }[];
}
