#pragma once

#include "admin/admin.hpp"
#include "loop/offload.hpp"

#include <idem/outbox.hpp>

namespace idem::admin {

/// `/v1/outbox`, `/v1/dlq` and what is under them. Loop's thread only; the database is asked on
/// another one.
class OutboxApi {
 public:
  /// `parts` outlives it.
  OutboxApi(const AdminParts& parts, Offload& offload);

  static bool is_its(std::string_view path) noexcept;
  Task<void> serve(http::ServerStream& client);

  /// For the metrics; none: there is no outbox, or it cannot be asked.
  Task<std::optional<std::vector<MessageCount>>> count();

 private:
  Task<Answer> answer_to(http::ServerStream& client);
  Task<Answer> list(std::string_view query, std::optional<MessageState> of);
  Task<Answer> show(std::string id);
  Task<Answer> order(http::ServerStream& client, std::string what);
  Task<Answer> retry(std::string id, std::string source);
  Task<Answer> redrive(std::string_view body, std::string source);
  Task<Answer> discard(std::string_view body, std::string source);
  void log_order(std::string_view event, const std::string& source, const std::string& reason,
                 const std::vector<Ordered>& ordered);

  const AdminParts& parts_;
  Offload& offload_;
  Transactions* transactions_;
};

}  // namespace idem::admin
