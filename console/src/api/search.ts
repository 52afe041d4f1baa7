// What GET /v1/keys answers to a search for a value (docs/openapi.yaml).
import type { KeysPage, KeySummary } from "./types";

export interface Searched {
  configured: boolean;
  since: string | null;
  requests: string[];
  answers: string[];
  earlier_settings: boolean;
  days: number;
  more: boolean;
  unreadable: number;
}

export interface FoundKey extends KeySummary {
  /** "trace_id", "upstream_reference", "request /order_id", "answer /id". */
  found_by?: string[];
}

export interface FoundPage extends KeysPage {
  keys: FoundKey[];
  /** Only of a search for a value. */
  search?: Searched;
}
