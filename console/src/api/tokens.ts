// What the Admin API answers about tokens (docs/openapi.yaml).
import type { Role } from "./types";

export interface TokensList {
  tokens: { name: string; role: Role; made_at: string }[];
}

/** The answer to an order to make one: the only one that has the token itself. */
export interface MadeToken {
  name: string;
  role: Role;
  token: string;
}
