#include "library/guard_rules.hpp"
#include "library/misuse.hpp"
#include "store/known_kinds.hpp"

#include <idem/store_wait.hpp>

/// Checks of a guard's options and of its callers. Each message says what to write instead.
namespace idem {
namespace library {
namespace {

thread_local bool in_work = false;

}  // namespace

InWork::InWork() : no_waiting_(use_the_transaction) { in_work = true; }
InWork::~InWork() { in_work = false; }
bool InWork::is_now() noexcept { return in_work; }

void refuse_resume(std::string_view whose, const GuardOptions& options) {
  // A handler does not know how far the attempt before it came; phases do.
  if (options.after_crash != LeasePolicy::resume) return;
  misused(std::string(whose) + " of \"" + options.operation +
          "\": after_crash = resume is for a PhasedGuard; write unknown, or rerun for a "
          "handler that does nothing but commit()");
}

}  // namespace library

namespace {

/// A sentence; empty: the options are valid.
std::string what_is_wrong(const GuardOptions& options) {
  if (options.lease <= Millis{0}) return "lease is 0: say how long an execution may go unrenewed";
  if (options.run_max <= Millis{0}) return "run_max is 0: say how long a handler may run";
  if (options.retention <= Millis{0}) return "retention is 0: say how long to keep an answer";
  if (options.tombstone < Millis{0}) return "tombstone is negative: write 0 for none";
  if (options.wait < Millis{0}) return "wait is negative: write 0 for an answer at once";
  if (options.key_fields.empty()) {
    return "key_fields is empty: name the field that carries the key, Idempotency-Key";
  }
  if (options.formerly.size() > limits::former_operations_max) {
    return "formerly has too many names: leave out those without records";
  }
  const auto rule = check_rule(options.fingerprint);
  return rule ? std::string() : "fingerprint: " + rule.error();
}

}  // namespace

Guard::Rules::Rules(std::string_view whose, Engine& engine, GuardOptions options)
    : whose_(whose),
      parts_(library::parts_of(whose, engine)),
      life_(parts_.life),
      options_(std::move(options)) {
  const auto refuse = [&](const std::string& why) {
    library::misused(std::string(whose) + " of \"" + options_.operation + "\": " + why);
  };
  if (const auto why = what_is_wrong(options_); !why.empty()) refuse(why);
  auto former = FormerNames::parse(options_.formerly);
  if (!former) refuse(former.error());
  former_ = std::move(*former);
  life_->guards.fetch_add(1);
}

Transactions& Guard::Rules::transactions_for(std::string_view what) const {
  auto* const transactions = parts_.store->transactions();
  if (transactions == nullptr) {
    library::misused(std::string(what) +
                     ": this store has no transactions that could hold your rows; open a " +
                     listed(&KnownKind::has_transactions, scheme_of, " or ") +
                     " store, or answer with a Response and no commit()");
  }
  return *transactions;
}

void Guard::Rules::expect_handler(bool is_there) const {
  if (is_there) return;
  library::misused(std::string(whose_) + " of \"" + options_.operation +
                   "\": the handler is null; pass the function that does the work");
}

std::optional<Response> Guard::Rules::refused_here(Blocks blocks) const {
  if (life_->is_over.load()) {
    // The engine's log may be destroyed with it.
    library::log_or_stderr({})(
        LogLevel::error, "guard_without_engine",
        {{"guard", std::string(whose_)},
         {"what_to_do",
          "its engine is gone: declare the engine before its guards, so that it is "
          "destroyed after them"}});
    return library::store_unavailable();
  }
  if (library::InWork::is_now()) return called_from_work();
  if (const auto why = why_not_to_wait(); blocks == Blocks::yes && !why.empty()) {
    parts_.options.log(LogLevel::error, "guard_called_on_store_thread",
                       {{"why", std::string(why)}});
    return library::store_unavailable();
  }
  return std::nullopt;
}

// A wait would be for the thread or connection that the caller holds.
Response Guard::Rules::called_from_work() const {
  parts_.options.log(LogLevel::error, "guard_called_from_work",
                     {{"why", std::string(library::use_the_transaction)}});
  return library::store_unavailable();
}

}  // namespace idem
