#include "store/postgres/owner_fields.hpp"

#include "core/record/stored_response_codec.hpp"
#include "store/postgres/statements.hpp"

#include <idem/assert.hpp>

namespace idem::postgres {
namespace {

struct FieldsOf {
  OwnerFields operator()(const Dispatched& verb) const {
    return {.verb = "dispatched", .id = verb.id, .attempt = verb.attempt};
  }
  OwnerFields operator()(const Renew& verb) const {
    return {.verb = "renew", .id = verb.id, .attempt = verb.attempt, .lease = verb.lease};
  }
  OwnerFields operator()(const Advance& verb) const {
    return {.verb = "advance",
            .id = verb.id,
            .attempt = verb.attempt,
            .recovery_point = verb.recovery_point};
  }
  OwnerFields operator()(const Complete& verb) const {
    OwnerFields fields{.verb = "complete",
                       .id = verb.id,
                       .attempt = verb.attempt,
                       .head = std::string(),
                       .body = verb.response.body,
                       .reference = verb.upstream_reference};
    encode_answer(verb.response, *fields.head);
    return fields;
  }
  OwnerFields operator()(const Release& verb) const {
    return {.verb = "release",
            .id = verb.id,
            .attempt = verb.attempt,
            .basis = name_of(verb.basis),
            .error_code = verb.error_code,
            .retry_in = verb.retry_in};
  }
  OwnerFields operator()(const MarkUnknown& verb) const {
    return {.verb = "mark_unknown",
            .id = verb.id,
            .attempt = verb.attempt,
            .reference = verb.upstream_reference,
            .error_code = verb.error_code,
            .reconcile_in = verb.reconcile_in};
  }
  template <class Verb>
  OwnerFields operator()(const Verb&) const {
    IDEM_ASSERT(!"not an owner's verb");
    return {};
  }
};

}  // namespace

const RecordId& id_of_owners(const StoreCall& call) {
  return std::visit(
      [](const auto& verb) -> const RecordId& {
        if constexpr (requires { verb.attempt; }) return verb.id;
        IDEM_ASSERT(!"not an owner's verb");
        static constexpr RecordId none;
        return none;
      },
      call);
}

OwnerFields owner_fields(const StoreCall& call) { return std::visit(FieldsOf(), call); }

}  // namespace idem::postgres
