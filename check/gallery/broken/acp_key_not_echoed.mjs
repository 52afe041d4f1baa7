// Wrong for this profile: no answer names its key, so a client of many requests cannot match the two by it. Middlewares
// that only read the header do this.
import Acp from "../right/acp.mjs";

export default class extends Acp {
  echo() {
    return {};
  }
}
