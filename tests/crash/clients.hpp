#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "crash/judge.hpp"

namespace idem::test {

/// Where the gateway is at the moment; clients wait here while there is none.
class Whereabouts {
 public:
  void publish(std::string address);
  void end();
  bool is_over();
  /// Empty once it is over.
  std::string wait();
  /// Counts a request on its way; kill moments are chosen by this count.
  void count_request();
  void wait_for_requests(int more);
  /// Until so many were on their way since the beginning.
  void wait_for_total(int requests);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string address_;
  bool ended_ = false;
  int requests_ = 0;
};

/// A client until it is over: new keys, and one time in three an old one, some of which lost their
/// answer in a crash. Neighbours share every second key, so that duplicates race each other, too.
void run_client(int client, unsigned seed, Whereabouts& whereabouts, Judge& judge);

}  // namespace idem::test
