#include "cli/reconcile/reconcile_records.hpp"

#include "admin/keys_query.hpp"
#include "cli/commands/operator_command.hpp"
#include "cli/commands/tables.hpp"
#include "cli/reconcile/reconcile_export.hpp"
#include "compare/amount.hpp"
#include "core/bytes/base64.hpp"
#include "core/bytes/hex.hpp"
#include "core/bytes/rfc3339.hpp"
#include "core/json/scalars.hpp"
#include "core/record/stored_fence.hpp"
#include "json/writer.hpp"

#include <idem/foreign_call.hpp>

namespace idem::cli {
namespace {

using compare::Name;
using compare::Ours;
using json::Value;

std::optional<std::string> text_in(const Value& object, std::string_view name) {
  const Value* const member = object.find(name);
  const auto* text = member != nullptr ? std::get_if<std::string>(&member->is) : nullptr;
  return text != nullptr ? std::optional(*text) : std::nullopt;
}

std::uint64_t number_in(const Value& object, std::string_view name) {
  const Value* const member = object.find(name);
  if (member == nullptr) return 0;
  if (const auto* number = std::get_if<std::int64_t>(&member->is); number != nullptr) {
    return *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
  }
  const auto* number = std::get_if<std::uint64_t>(&member->is);
  return number != nullptr ? *number : 0;
}

StoreTime moment_in(const Value& object, std::string_view name) {
  return parse_rfc3339(text_in(object, name).value_or("")).value_or(StoreTime{});
}

std::optional<std::string> scalar_in(const std::string& body, const std::string& pointer) {
  const auto parsed = JsonPointer::parse(pointer);
  const auto found = parsed ? parsed->find(body) : std::nullopt;
  return found ? scalar_of(*found) : std::nullopt;
}

}  // namespace

OurRecords::OurRecords(const ReconcileOptions& options, Admin admin)
    : options_(options), admin_(std::move(admin)) {}

int OurRecords::malformed() const { return admin_.complain(malformed_answer); }

std::expected<Value, int> OurRecords::read(const std::string& target,
                                           const std::string* body) const {
  const auto answer = admin_.ask(target, body);
  if (!answer) return std::unexpected(answer.error());
  if (answer->status != 200) return std::unexpected(admin_.complain_about(*answer));
  auto value = json::parse(answer->body);
  if (!value) return std::unexpected(malformed());
  return std::move(*value);
}

std::string OurRecords::first_page() const {
  std::string target = "/v1/keys?limit=" + std::to_string(limits::list_page_max);
  add_parameter(target, "scope", options_.scope);
  add_parameter(target, "operation", options_.operation);
  const auto& rules = options_.rules;
  if (rules.from) add_parameter(target, "newer_than", to_rfc3339(*rules.from - rules.slack));
  if (rules.to) add_parameter(target, "older_than", to_rfc3339(*rules.to + rules.slack));
  if (rules.amount) add_parameter(target, "value", options_.our_amount);
  if (rules.currency) add_parameter(target, "value", options_.our_currency);
  if (options_.match_by == MatchBy::reference) {
    add_parameter(target, "value", options_.our_reference);
  }
  return target;
}

std::expected<void, int> OurRecords::list(compare::Comparison& into,
                                          const std::function<void(std::size_t)>& seen) {
  const std::string first = first_page();
  std::string target = first;
  std::size_t count = 0;
  for (;;) {
    const auto page = read(target, nullptr);
    if (!page) return std::unexpected(page.error());
    for (const Value& record : items_of(page->find("keys"))) {
      const auto ours = ours_of(record);
      if (!ours) return std::unexpected(malformed());
      if (!into.add(*ours, names_of(record, *ours))) {
        return std::unexpected(admin_.complain(
            "there are more records than one comparison can hold; compare a shorter period"));
      }
      ++count;
    }
    seen(count);
    const auto next = text_in(*page, "next");
    if (!next) return {};
    target = first;
    add_parameter(target, "cursor", *next);
  }
}

compare::Money OurRecords::money_of(const std::optional<std::string>& amount,
                                    const std::optional<std::string>& currency) const {
  compare::Money money;
  // A value that is no amount is kept as text: it equals no amount.
  if (options_.rules.amount && amount) {
    money.amount = compare::exact_amount(*amount).value_or(printable(*amount));
  }
  if (options_.rules.currency && currency) {
    money.currency = plain_currency(*currency).value_or("?");
  }
  return money;
}

std::optional<Ours> OurRecords::ours_of(const Value& record) const {
  const auto ref = parse_handle(text_in(record, "ref").value_or(""));
  const auto state = admin::parse_state(text_in(record, "state").value_or(""));
  if (!ref || !state) return std::nullopt;
  Ours ours{.ref = *ref,
            .state = *state,
            .fence = fence_from(number_in(record, "fence")),
            .status = static_cast<int>(number_in(record, "response_status")),
            .created_at = moment_in(record, "created_at"),
            .locked_until = moment_in(record, "locked_until")};
  ours.is_contested = text_of(record.find("contested")) == "yes";
  const Value* const values = record.find("values");
  ours.has_body = values != nullptr && std::holds_alternative<json::Object>(values->is);
  if (ours.has_body) {
    ours.money =
        money_of(text_in(*values, options_.our_amount), text_in(*values, options_.our_currency));
  }
  return ours;
}

std::vector<Name> OurRecords::names_of(const Value& record, const Ours& ours) const {
  switch (options_.match_by) {
    case MatchBy::key:
    case MatchBy::operation:
      return {ours.ref.bytes};
    case MatchBy::derived:
      return {compare::name_of(derived_key(ours.ref, options_.phase))};
    case MatchBy::reference:
      break;
  }
  std::optional<std::string> reference = text_in(record, "upstream_reference");
  if (!options_.our_reference.empty()) {
    const Value* const values = record.find("values");
    reference = values != nullptr ? text_in(*values, options_.our_reference) : std::nullopt;
  }
  if (!reference || reference->empty()) return {};
  return {compare::name_of(*reference)};
}

std::expected<std::vector<std::vector<Name>>, int> OurRecords::names_of(
    const std::vector<Key>& keys) const {
  json::Writer order;
  order.begin_object();
  order.name("keys");
  order.begin_array();
  for (const Key& one : keys) {
    order.begin_object();
    order.member("scope", one.scope);
    order.member("operation", options_.operation);
    order.member("key", one.key);
    order.end_object();
  }
  order.end_array();
  order.end_object();
  const std::string body = order.take();
  const auto answer = read("/v1/keys/refs", &body);
  if (!answer) return std::unexpected(answer.error());
  std::vector<std::vector<Name>> names;
  for (const Value& refs : items_of(answer->find("refs"))) {
    auto& of_one = names.emplace_back();
    for (const Value& ref : items_of(&refs)) {
      const auto* text = std::get_if<std::string>(&ref.is);
      const auto id = text != nullptr ? parse_handle(*text) : std::nullopt;
      if (id) of_one.push_back(id->bytes);
    }
  }
  if (names.size() != keys.size()) return std::unexpected(malformed());
  return names;
}

std::expected<std::optional<Ours>, int> OurRecords::find(const Name& ref) const {
  const auto answer = admin_.ask("/v1/keys/" + to_hex(ref), nullptr);
  if (!answer) return std::unexpected(answer.error());
  if (answer->status == 404) return std::nullopt;
  if (answer->status != 200) return std::unexpected(admin_.complain_about(*answer));
  const auto record = json::parse(answer->body);
  auto ours = record ? ours_of(*record) : std::nullopt;
  if (!ours) return std::unexpected(malformed());
  const Value* const response = record->find("response");
  const auto body = response != nullptr ? text_in(*response, "body_b64") : std::nullopt;
  const auto bytes = body ? from_base64(*body) : std::nullopt;
  ours->has_body = bytes && check_json(*bytes);
  if (ours->has_body) {
    ours->money =
        money_of(scalar_in(*bytes, options_.our_amount), scalar_in(*bytes, options_.our_currency));
  }
  return ours;
}

}  // namespace idem::cli
