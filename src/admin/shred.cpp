#include "admin/shred.hpp"

#include "admin/deciding.hpp"
#include "admin/order_body.hpp"
#include "admin/order_reading.hpp"
#include "admin/replies.hpp"
#include "core/record/scope_key_line.hpp"
#include "json/writer.hpp"
#include "loop/store_link.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>

namespace idem::admin {
namespace {

struct ShredOrder {
  std::string scope;
  std::string reason;
  std::optional<std::uint64_t> key;  ///< Of the second step: the number of the new key.
};

Read<ShredOrder> parse_shred_order(std::string_view body) {
  const auto object = read_object(body, {"scope", "reason", "key", "by"});
  if (!object) return std::unexpected(object.error());
  ShredOrder order;
  auto scope = read_text(*object, "scope", limits::scope_bytes_max);
  if (!scope) return std::unexpected(scope.error());
  auto reason = read_reason(*object);
  if (!reason) return std::unexpected(reason.error());
  order.scope = std::move(*scope);
  order.reason = std::move(*reason);
  const Value* const member = object->find("key");
  if (member == nullptr) return order;
  const auto* const number = std::get_if<std::int64_t>(&member->is);
  if (number == nullptr || *number < 2) {
    return wrong("/key", "must be the `key` of the first step's answer");
  }
  order.key = static_cast<std::uint64_t>(*number);
  return order;
}

/// What a step did: `shredded` or `waiting`.
struct Step {
  bool is_done = false;
  std::uint64_t key = 0;
  std::uint64_t deleted = 0;
  Millis wait{};
};

std::string page_of(const ShredOrder& order, const Step& step) {
  json::Writer out;
  out.begin_object();
  out.member("scope", order.scope);
  out.member("state", step.is_done ? "shredded" : "waiting");
  out.member("key", step.key);
  out.member("deleted", step.deleted);
  out.member("wait_ms", static_cast<std::uint64_t>(step.wait.count()));
  // A key that a process has in memory, and what it has opened last by it.
  out.member("readable_ms",
             static_cast<std::uint64_t>(Millis(2 * limits::scope_keys_life).count()));
  out.end_object();
  return out.take() + "\n";
}

std::string text_of(const Step& step) {
  const std::string key = "key " + std::to_string(step.key);
  if (!step.is_done) return key + " seals; those before it are deleted by the second step";
  return "deleted " + std::to_string(step.deleted) + " before " + key;
}

using Stepped = std::expected<Step, WireAnswer>;

/// One order; refers to what outlives its task.
class Shredding {
 public:
  Shredding(AdminParts& parts, const ShredOrder& order)
      : parts_(parts), order_(order), prefix_(scope_key_prefix(order.scope)) {}

  Task<Stepped> run() {
    // Of no record: whether this process could make a key at all.
    StoreCall nothing = Reseal{};
    auto probing = ask_store(parts_.loop, parts_.store, nothing);
    const auto probed = co_await probing;
    if (!probed && probed.error().code == StoreError::Code::refused) {
      co_return std::unexpected(state_refused("This process has no encryption.secret_files."));
    }
    if (!probed) co_return std::unexpected(store_trouble(probed.error()));
    auto listing = list();
    auto trouble = co_await listing;
    if (trouble) co_return std::unexpected(std::move(*trouble));
    if (keys_.empty()) {
      co_return std::unexpected(state_refused(
          "The store has no key of this scope, so nothing was sealed under one. Nothing "
          "was done."));
    }
    auto stepping = order_.key ? finish() : begin();
    auto stepped = co_await stepping;
    co_return stepped;
  }

 private:
  using Trouble = std::optional<WireAnswer>;

  Task<Trouble> list() {
    StoreCall call = ListJournals{prefix_, {}, limits::scope_keys_alive_max + 1};
    auto asking = ask_store(parts_.loop, parts_.store, call);
    auto listed = co_await asking;
    if (!listed) co_return store_trouble(listed.error());
    keys_ = std::get<std::vector<JournalSummary>>(std::move(*listed));
    co_return std::nullopt;
  }

  /// How long the key with this number has been there.
  /// How long ago it was made. Its last line counts: a rekey may have written it anew.
  Task<std::expected<Millis, WireAnswer>> age_of(std::uint64_t number) {
    auto reading = line_of(number, 1);
    const auto first = co_await reading;
    if (!first) co_return std::unexpected(first.error());
    auto reading_last = line_of(number, first->last);
    const auto last = co_await reading_last;
    if (!last) co_return std::unexpected(last.error());
    const JournalLine& line = last->lines.front();
    if (line.is_damaged) {
      co_return std::unexpected(
          state_refused("The key " + std::to_string(number) + " of the scope " +
                        (line.why.empty() ? "is damaged" : line.why) + ". Nothing was deleted."));
    }
    co_return last->now - first->lines.front().at;
  }

  /// One line at least.
  Task<std::expected<ReadLines::Reply, WireAnswer>> line_of(std::uint64_t number,
                                                            std::uint64_t seq) {
    StoreCall call = ReadLines{scope_key_journal(prefix_, number), seq - 1, 1};
    auto asking = ask_store(parts_.loop, parts_.store, call);
    const auto read = co_await asking;
    if (!read) co_return std::unexpected(store_trouble(read.error()));
    const auto& reply = std::get<ReadLines::Reply>(*read);
    if (reply.lines.empty()) {
      co_return std::unexpected(state_refused("The store has no such key of this scope."));
    }
    co_return reply;
  }

  Task<Stepped> begin() {
    const std::uint64_t newest = number_of_scope_key(keys_.back().name).value_or(0);
    if (keys_.size() >= limits::scope_keys_alive_max) {
      co_return std::unexpected(state_refused(
          "Too many shreds of this scope were begun and not finished: finish the last "
          "one, with key " +
          std::to_string(newest) + "."));
    }
    const Step step{false, newest + 1, 0, limits::scope_key_shred_wait};
    StoreCall call = AppendLine{scope_key_journal(prefix_, step.key), 0, {}};
    auto asking = ask_store(parts_.loop, parts_.store, call);
    const auto made = co_await asking;
    if (!made) co_return std::unexpected(store_trouble(made.error()));
    if (!std::get<AppendLine::Reply>(*made).appended) {
      co_return std::unexpected(state_refused("Another shred of this scope has just begun."));
    }
    co_return step;
  }

  Task<Stepped> finish() {
    auto aging = age_of(*order_.key);
    const auto age = co_await aging;
    if (!age) co_return std::unexpected(age.error());
    Step step{false, *order_.key, 0, Millis(limits::scope_key_shred_wait) - *age};
    if (step.wait > Millis(0)) co_return step;
    step.wait = Millis(0);
    // A rekey may append to one meanwhile; it is found again.
    for (int tries = 0; tries < limits::scope_keys_read_tries_max; ++tries) {
      const auto is_older = [&](const JournalSummary& one) {
        return number_of_scope_key(one.name).value_or(*order_.key) < *order_.key;
      };
      std::erase_if(keys_, [&](const JournalSummary& one) { return !is_older(one); });
      step.is_done = keys_.empty();
      if (step.is_done) co_return step;
      for (const JournalSummary& one : keys_) {
        StoreCall call = DropJournal{one.name, one.last};
        auto asking = ask_store(parts_.loop, parts_.store, call);
        const auto dropped = co_await asking;
        if (!dropped) co_return std::unexpected(store_trouble(dropped.error()));
        step.deleted += std::get<DropJournal::Reply>(*dropped).dropped ? 1 : 0;
      }
      auto listing = list();
      auto trouble = co_await listing;
      if (trouble) co_return std::unexpected(std::move(*trouble));
    }
    co_return std::unexpected(state_refused("Keys of this scope keep changing; repeat this."));
  }

  AdminParts& parts_;
  const ShredOrder& order_;
  const std::string prefix_;
  std::vector<JournalSummary> keys_;  ///< The oldest first.
};

}  // namespace

Task<WireAnswer> shred(AdminParts& parts, http::ServerStream& client, const Caller& caller) {
  if (client.head().origin_form.find('?') != std::string_view::npos) {
    co_return invalid("This path has no parameters.");
  }
  auto reading = read_order(parts, client, caller);
  const auto received = co_await reading;
  if (!received) co_return received.error();
  const auto order = parse_shred_order(received->body);
  if (!order) co_return invalid(order.error());
  Deciding deciding(parts, received->signer, "store.shred", order->scope);
  auto beginning = deciding.begin(order->reason, {});
  auto not_noted = co_await beginning;
  if (not_noted) co_return std::move(*not_noted);
  Shredding shredding(parts, *order);
  auto running = shredding.run();
  const auto step = co_await running;
  const auto problem = step ? nullptr : step.error().problem;
  const std::string after =
      step ? text_of(*step) : failure_text(problem ? problem->detail : "see the answer");
  auto ending = deciding.end(after);
  co_await ending;
  parts.log(step ? LogLevel::info : LogLevel::warning, "shred",
            {{"scope", order->scope}, {"source", received->decider}, {"outcome", after}});
  if (!step) co_return step.error();
  co_return json_answer(page_of(*order, *step));
}

}  // namespace idem::admin
