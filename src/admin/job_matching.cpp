#include "admin/job_matching.hpp"

#include "core/bytes/hex.hpp"
#include "loop/store_link.hpp"

#include <idem/job_limits.hpp>
#include <idem/limits.hpp>
#include <idem/open_store.hpp>
#include <idem/outbox.hpp>
#include <idem/transaction.hpp>

namespace idem::admin {
namespace {

using MatchResult = std::expected<Matched, StoreError>;

bool is_meant(const Record& record, const JobSearch& search) {
  const KeysQuery& keys = search.keys;
  if (keys.created_from && record.created_at < *keys.created_from) return false;
  if (keys.contested && !record.is_contested) return false;
  if (!record.fence() || *record.fence() == 0) return false;
  const bool has_error = record.response && record.response->status >= 500;
  return search.what != JobWhat::release || has_error;
}

Task<MatchResult> find_records(Loop& loop, Store& store, JobSearch search) {
  Matched matched;
  std::size_t searched = 0;
  List page = search.keys.list;
  page.limit = limits::list_page_max;
  for (;;) {
    StoreCall call = page;
    auto asking = ask_store(loop, store, call);
    auto listed = co_await asking;
    if (!listed) co_return std::unexpected(std::move(listed.error()));
    const auto& records = std::get<std::vector<Record>>(*listed);
    for (const Record& record : records) {
      if (!is_meant(record, search)) continue;
      if (matched.targets.size() == limits::job_records_max) {
        matched.is_whole = false;
        co_return matched;
      }
      matched.targets.push_back({record.id, *record.fence()});
    }
    searched += records.size();
    if (records.size() < limits::list_page_max) co_return matched;
    if (searched >= limits::job_searched_max) {
      matched.is_whole = false;
      co_return matched;
    }
    page.after = records.back().id;
  }
}

Task<MatchResult> find_messages(Loop& loop, Store& store, Offload& offload, JobSearch search) {
  Transactions* const transactions = store.transactions();
  if (transactions == nullptr) {
    co_return std::unexpected(
        StoreError{StoreError::Code::refused,
                   "this store has no outbox; " + stores_with_transactions() + " have one"});
  }
  Matched matched;
  MessageFilter filter{.state = MessageState::dead,
                       .destination = search.destination,
                       .limit = limits::list_page_max};
  using Listed = Outbox::Result<std::vector<StoredMessage>>;
  for (std::size_t searched = 0; searched < limits::job_searched_max;) {
    std::function<Listed()> work = [transactions, filter] {
      return Outbox(*transactions).list(filter);
    };
    auto asking = run_offloaded(loop, offload, work);
    const auto& listed = co_await asking;
    if (!listed) {
      co_return std::unexpected(StoreError{StoreError::Code::unavailable, listed.error()});
    }
    for (const StoredMessage& one : *listed) {
      if (!search.type.empty() && one.message.type != search.type) continue;
      const auto id = parse_handle(one.id);
      if (!id) continue;
      if (matched.targets.size() == limits::job_records_max) {
        matched.is_whole = false;
        co_return matched;
      }
      matched.targets.push_back({*id, 0});
    }
    if (listed->size() < filter.limit) co_return matched;
    searched += listed->size();
    filter.after = listed->back().seq;
  }
  matched.is_whole = false;
  co_return matched;
}

}  // namespace

Task<MatchResult> find_targets(Loop& loop, Store& store, Offload& offload, JobSearch search) {
  const bool is_about_records = is_about_keys(search.what);
  auto finding = is_about_records ? find_records(loop, store, std::move(search))
                                  : find_messages(loop, store, offload, std::move(search));
  auto found = co_await finding;
  co_return found;
}

}  // namespace idem::admin
