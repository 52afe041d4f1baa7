#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "crash/judge.hpp"
#include "support/async.hpp"

namespace idem::test {

struct KeyHistory {
  Request request;
  Response accepted;  ///< The last 202; status 0 where none came.
};

/// The clients' requests, and their answers.
class Traffic {
 public:
  void sent(const std::string& key, const Request& request) {
    const std::lock_guard lock(mutex_);
    keys_.try_emplace(key, KeyHistory{.request = request, .accepted = {}});
  }
  void answered(const std::string& key, Response answer) {
    const std::lock_guard lock(mutex_);
    if (answer.status == 202) keys_.at(key).accepted = std::move(answer);
  }
  const std::map<std::string, KeyHistory>& keys() const { return keys_; }

 private:
  std::mutex mutex_;
  std::map<std::string, KeyHistory> keys_;
};

struct AsyncOutcome {
  bool killed = false;
  int accepted = 0;
  int completed = 0;
  int unknown = 0;
  std::vector<std::string> violations{};

  void add(const AsyncOutcome& other);
};

/// Each key that was accepted must end by itself, completed or unknown; a retry must get the same;
/// and no key may have two effects, nor a success without one.
void judge(const Traffic& traffic, std::string_view address, const Provider& provider,
           AsyncOutcome& outcome);

}  // namespace idem::test
