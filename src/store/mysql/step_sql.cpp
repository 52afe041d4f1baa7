#include "store/mysql/step_sql.hpp"

#include "core/bytes/hex.hpp"
#include "core/record/stored_fence.hpp"
#include "core/record/stored_response_codec.hpp"

#include <idem/assert.hpp>

#include <fmt/format.h>

namespace idem::mysql {
namespace {

std::string hex(std::string_view bytes) { return "_binary x'" + hex_of(bytes) + '\''; }

template <std::size_t N>
std::string hex(const std::array<std::uint8_t, N>& bytes) {
  return fmt::format("_binary x'{}'", to_hex(bytes));
}

std::string prefix_of(std::string_view database) {
  return database.empty() ? std::string() : fmt::format("{}.", database);
}

/// The last arguments of idem_step_row(), by their meaning.
struct Step {
  std::string_view verb;
  std::string point = "''";
  std::string head = "NULL";
  std::string body = "NULL";
  std::string reference = "''";
  std::string error = "''";
  std::string reconcile_in = "NULL";
};

std::string row_sql(std::string_view database, bool must, const RecordId& id,
                    const AttemptRef& attempt, const Step& step) {
  return fmt::format("CALL {}idem_step_row({:d}, '{}', {}, {}, {}, {}, {}, {}, {}, {}, {})",
                     prefix_of(database), must, step.verb, hex(id.bytes),
                     stored_fence(attempt.fence), hex(attempt.token.bytes), step.point, step.head,
                     step.body, step.reference, step.error, step.reconcile_in);
}

std::string fingerprints_of(const Reserve& reserve) {
  std::string text("_binary x'");
  for (const Fingerprint& one : reserve.fingerprints) {
    text += fmt::format("{:08x}{}", one.version, to_hex(one.digest));
  }
  return text += '\'';
}

}  // namespace

std::string admit_sql(std::string_view database, const RecordId& id, const AttemptRef& attempt) {
  return row_sql(database, false, id, attempt, {.verb = "admit"});
}

std::string reserve_sql(std::string_view database, const Reserve& reserve) {
  return fmt::format(
      "CALL {}idem_reserve_step({}, {}, {}, {}, {}, {}, {}, {}, {}, {:d}, {}, {}, {}, {}, 0)",
      prefix_of(database), hex(reserve.id.bytes), reserve.generation, hex(reserve.scope),
      hex(reserve.operation), fingerprints_of(reserve), hex(reserve.token.bytes),
      hex(reserve.owner), reserve.lease.count(), static_cast<int>(reserve.lease_policy),
      reserve.dispatched, reserve.retention.count(), reserve.tombstone.count(),
      hex(reserve.provider), hex(reserve.sealed_key));
}

std::string step_sql(std::string_view database, const StoreCall& step) {
  if (const auto* complete = std::get_if<Complete>(&step)) {
    std::string head;
    encode_answer(complete->response, head);
    return row_sql(database, true, complete->id, complete->attempt,
                   {.verb = "complete",
                    .head = hex(head),
                    .body = hex(complete->response.body),
                    .reference = hex(complete->upstream_reference)});
  }
  if (const auto* advance = std::get_if<Advance>(&step)) {
    return row_sql(database, true, advance->id, advance->attempt,
                   {.verb = "advance", .point = hex(advance->recovery_point)});
  }
  const auto* const unknown = std::get_if<MarkUnknown>(&step);
  IDEM_ASSERT(unknown != nullptr);
  return row_sql(
      database, true, unknown->id, unknown->attempt,
      {.verb = "mark_unknown",
       .reference = hex(unknown->upstream_reference),
       .error = hex(unknown->error_code),
       .reconcile_in = unknown->reconcile_in ? fmt::format("{}", unknown->reconcile_in->count())
                                             : std::string("NULL")});
}

}  // namespace idem::mysql
