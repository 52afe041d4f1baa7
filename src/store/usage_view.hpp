#pragma once

#include "core/transitions/quota.hpp"

#include <optional>
#include <string>
#include <unordered_map>

/// The scopes' usage of their quotas, as far as one process of several knows it: the store's
/// counters, read from time to time, plus the steps that this process has begun since. It sees
/// other processes' records at its next reading only, and counts a rate for itself alone. One
/// thread uses it.
namespace idem {

class UsageView {
 public:
  /// What has to happen before the usage of a scope can be judged.
  enum class Need : std::uint8_t { none, read, wait };
  /// read: the caller reads the counters, between begin_reading() and end_reading(). wait: the
  /// scope is unread, and another caller is reading it.
  Need need(const std::string& scope, const Quota& quota);

  /// Give what this returns to end_reading().
  UsageChange begin_reading(const std::string& scope);
  /// `counters`: as read; none: they could not be read.
  void end_reading(const std::string& scope, const UsageChange& before,
                   std::optional<UsageChange> counters);

  Usage of(const std::string& scope) const;

  /// Counts a change from its decision on, so that concurrent calls see it.
  void begin(const std::string& scope, const UsageChange& change);
  void end(const std::string& scope, const UsageChange& change, bool is_written);

 private:
  struct Entry {
    Usage usage{};
    UsageChange written{};  ///< Sum of all written changes, since this entry exists.
    UsageChange begun{};    ///< Sum of all begun changes, without those that failed.
    MonotonicTime read_at{};
    bool is_known = false;
    bool is_reading = false;
  };

  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace idem
