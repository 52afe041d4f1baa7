// Wrong: a key of 255 characters, as the profile allows, is refused, because the column has 64. Schemas that were
// made for UUIDs or hashes do this.
import Acp from "../right/acp.mjs";

export default class extends Acp {
  longest() {
    return 64;
  }
}
