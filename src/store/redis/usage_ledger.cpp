#include "store/redis/usage_ledger.hpp"

#include <cstdlib>

namespace idem::redis {

Task<std::optional<StoreError>> UsageLedger::look_at(std::string scope, Quota quota) {
  for (;;) {
    const UsageView::Need need = view_.need(scope, quota);
    if (need == UsageView::Need::none) co_return std::nullopt;
    if (need == UsageView::Need::read) {
      Task<std::optional<StoreError>> reading = read(scope);
      co_return co_await std::move(reading);
    }
    Task<void> pausing = client_.pause();
    co_await std::move(pausing);
  }
}

Task<std::optional<StoreError>> UsageLedger::read(const std::string& scope) {
  const UsageChange before = view_.begin_reading(scope);
  std::vector<Question> questions;
  for (std::size_t i = 0; i < bucket_count; ++i) {
    std::string command;
    CommandWriter(command, 4)
        .add("HMGET")
        .add(names_.bucket(i).tag + std::string(usage_hash))
        .add(counter_of_active(scope))
        .add(counter_of_bytes(scope));
    questions.push_back({names_.bucket(i).slot, std::move(command)});
  }
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  UsageChange sum;
  for (const QuestionResult& reply : all) {
    if (!reply) {
      view_.end_reading(scope, before, std::nullopt);
      co_return to_store_error(reply.error());
    }
    sum.active += std::strtoll(reply->at(0).text.c_str(), nullptr, 10);
    sum.bytes += std::strtoll(reply->at(1).text.c_str(), nullptr, 10);
  }
  view_.end_reading(scope, before, sum);
  co_return std::nullopt;
}

}  // namespace idem::redis
