#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "crash/judge.hpp"
#include "support/async.hpp"

namespace idem::test {

struct Heard {
  Request request;
  Response accepted;  ///< The last 202; status 0 where none came.
};

/// What clients sent, and what they were told.
class Told {
 public:
  void sent(const std::string& key, const Request& request) {
    const std::lock_guard lock(mutex_);
    keys_.try_emplace(key, Heard{.request = request, .accepted = {}});
  }
  void heard(const std::string& key, Response answer) {
    const std::lock_guard lock(mutex_);
    if (answer.status == 202) keys_.at(key).accepted = std::move(answer);
  }
  const std::map<std::string, Heard>& keys() const { return keys_; }

 private:
  std::mutex mutex_;
  std::map<std::string, Heard> keys_;
};

struct AsyncOutcome {
  bool killed = false;
  int accepted = 0;
  int completed = 0;
  int unknown = 0;
  std::vector<std::string> violations{};

  void add(const AsyncOutcome& other);
};

/// Each key that was accepted must end by itself, completed or unknown; a retry must hear the same;
/// and no key may have two effects, nor a success without one.
void judge(const Told& told, std::string_view address, const Provider& provider,
           AsyncOutcome& outcome);

}  // namespace idem::test
