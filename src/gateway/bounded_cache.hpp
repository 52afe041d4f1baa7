#pragma once

#include <idem/record.hpp>

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace idem::gateway {

/// Results that are valid for a while. At most `entries_max`; beyond it the oldest goes. Names
/// should be keyed digests, so that no client chooses their order. One thread.
template <class Value>
class BoundedCache {
 public:
  explicit BoundedCache(std::size_t entries_max) : entries_max_(entries_max) {}

  std::optional<Value> find(const std::string& name, MonotonicTime now) const {
    const auto found = entries_.find(name);
    if (found == entries_.end() || now >= found->second.until) return std::nullopt;
    return found->second.value;
  }

  void put(const std::string& name, Value value, MonotonicTime until) {
    const auto [place, is_new] = entries_.insert_or_assign(name, Entry{std::move(value), until});
    if (!is_new) return;
    order_.push_back(name);
    if (order_.size() <= entries_max_) return;
    entries_.erase(order_.front());
    order_.pop_front();
  }

  void clear() {
    entries_.clear();
    order_.clear();
  }
  std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    Value value;
    MonotonicTime until;
  };
  std::size_t entries_max_;
  std::map<std::string, Entry> entries_;
  std::deque<std::string> order_;  ///< By when they were first put in.
};

}  // namespace idem::gateway
