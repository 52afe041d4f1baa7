// What the Admin API answers (docs/openapi.yaml).

export type Role = "viewer" | "support" | "operator";
export type State =
  | "pending"
  | "in_progress"
  | "completed"
  | "failed_retryable"
  | "unknown"
  | "expired";
export const states: readonly State[] = [
  "unknown",
  "in_progress",
  "pending",
  "failed_retryable",
  "completed",
  "expired",
];

export interface Session {
  name: string | null;
  role: Role;
  login: string;
  csrf: string | null;
}

export interface Problem {
  code: string;
  title: string;
  status: number;
  detail?: string;
  verdict?: string;
  counts_from?: string;
  count?: number;
  state?: State;
  token_file?: string;
}

export type Counts = Record<State, number>;

export interface Availability {
  up: boolean;
  last_answer_seconds: number | null;
  failures: number;
  last_failure: { seconds: number; reason: string; detail: string } | null;
}

export interface Status {
  ok: boolean;
  troubles: { code: string; detail: string }[];
  version: string;
  draining: boolean;
  store: { up: boolean; detail?: string; keys: Counts | null };
  upstream: Availability | null;
  authorizer: Availability | null;
  providers: (Availability & { name: string })[];
  unknown: { count: number; oldest_seconds: number; for_people: number | null } | null;
  contested: number | null;
  leases_overdue: number | null;
  seen_all: boolean;
  seen_all_completed: boolean;
  unsettled_attempts: number;
  reap_oldest_due_seconds: number | null;
  outbox: { destination: string; waiting: number; oldest_seconds: number; dead: number }[] | null;
}

export interface KeySummary {
  ref: string;
  scope: string;
  operation: string;
  state: State;
  fence: number;
  contested: boolean;
  created_at: string | null;
  changed_at: string | null;
  locked_until: string | null;
  completed_at: string | null;
  expires_at: string | null;
  provider: string;
  release_basis: "proven" | "declared" | null;
  last_error_code: string;
  reconcile_after: string | null;
  reconcile_attempts: number;
  upstream_reference: string;
  response_status: number | null;
}

export interface KeysPage {
  keys: KeySummary[];
  next: string | null;
  counts: Counts;
  now: string;
}

export interface Evidence {
  fence: number;
  source: string;
  evidence: string | null;
  reason: string;
  before: State | null;
  after: State | null;
  applied: boolean;
  observed_at: string | null;
  recorded_at: string | null;
}

/** An order that waits for other people. */
export interface Approval {
  approval: string;
}

export interface Key extends KeySummary {
  tombstone_until: string | null;
  owner: string;
  dispatched: boolean;
  lease_policy: "unknown" | "resume" | "rerun";
  recovery_point: string;
  request_stored: boolean;
  trace_id: string | null;
  trace_link: string | null;
  request_fingerprint: string;
  upstream_link: string | null;
  response: {
    status: number;
    headers: [string, string][] | null;
    body_stored: boolean;
    body_b64: string | null;
  } | null;
  evidence: Evidence[];
  evidence_damaged?: string;
}

export interface AuditLine {
  seq: number;
  at: string;
  who: string;
  role: string;
  login: string;
  peer: string;
  what: string;
  ref: string;
  reason: string;
  before: string;
  after: string;
  /** Of an outcome; null: an intent. */
  of: number | null;
  hash: string;
}

export interface AuditPage {
  audit: AuditLine[];
  next: string | null;
}

export interface AuditVerdict {
  lines: number;
  /** null: the chain is whole. */
  first_bad: number | null;
  why: string | null;
  last: { seq: number; hash: string } | null;
}

export interface SettingsDifference {
  changes: { name: string; before: string; after: string; needs_restart: boolean; records: string }[];
  /** Why a reload would be refused as a whole. */
  refused: string | null;
}
