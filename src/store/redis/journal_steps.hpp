#pragma once

#include "store/redis/retrying_client.hpp"

#include <idem/journal.hpp>

#include <functional>

/// The verbs of journals. All journals share a hash tag, so that one script can list them: they
/// grow by what people decide, not by requests. Loop's thread only.
namespace idem::redis {

class JournalSteps {
 public:
  /// `clock`: a test's, in place of the servers'; or empty.
  JournalSteps(RetryingClient& client, const Names& names, std::function<StoreTime()> clock)
      : client_(client), names_(names), clock_(std::move(clock)) {}

  Task<StoreResult> append(AppendLine verb);
  Task<StoreResult> read(ReadLines verb);
  Task<StoreResult> list(ListJournals verb);
  Task<StoreResult> drop(DropJournal verb);

 private:
  StoreTime moment_of(const Reply& reply) const;

  RetryingClient& client_;
  const Names& names_;
  std::function<StoreTime()> clock_;
};

}  // namespace idem::redis
