#pragma once

#include <idem/store.hpp>

namespace idem::sql_server {

/// A call that the scheduler has.
struct Waiting {
  StoreCall call;
  StoreCompletion done;
  MonotonicTime since;
  /// It was sent once, and the connection was lost before the reply.
  bool in_doubt = false;
  /// A batch with it was refused, or waited for a lock: it is sent alone, so that it fails or holds
  /// up no other call.
  bool alone = false;
};

/// A call that is asked again at its moment.
struct Later {
  MonotonicTime due;
  Waiting waiting;
};

/// The result of one call.
struct CallResult {
  StoreResult result;
  /// Another transaction has the record, and the result only says so.
  bool held = false;
  bool ended_lease = false;  ///< A reserve that met an expired lease and ended it.
};

}  // namespace idem::sql_server
