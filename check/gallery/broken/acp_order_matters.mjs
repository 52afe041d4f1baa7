// Wrong for this profile, where equality is that of the JSON: the fingerprint is a hash of the bytes, so a client that
// serialises its retry anew gets a conflict. Most middlewares do this; most clients send the same bytes again.
import Acp from "../right/acp.mjs";

export default class extends Acp {
  identity({ method, path, query, body }) {
    return [method, path, query, body.toString("base64")];
  }
}
