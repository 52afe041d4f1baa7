#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace idem::test {

/// What happens to a request on its way.
enum class Mishap : std::uint8_t {
  throttle,    ///< 400 ThrottlingException; it is not passed on.
  fail,        ///< 500 InternalServerError; it is not passed on.
  fail_after,  ///< It is passed on, and answered with 500 all the same.
  cut_before,  ///< The connection is cut; it is not passed on.
  cut_after,   ///< It is passed on, and then the connection is cut.
  twice,       ///< It arrives twice; the first answer comes back.
  damage,      ///< A byte of the answer changes, and its checksum does not.
  hold,        ///< It is cut, and arrives later, at release().
};

/// Between a store and a server with DynamoDB's protocol.
class FaultProxy {
 public:
  /// `target`: http://HOST:PORT
  explicit FaultProxy(const std::string& target);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  std::string endpoint() const;

  /// The next `times` requests of this action ("UpdateItem") with `part` in their bodies meet it.
  void plan(const std::string& action, Mishap mishap, int times = 1, const std::string& part = {});
  /// How many requests have met one.
  int met();
  /// How many requests of this action came.
  int came(const std::string& action);
  /// Lets all held requests arrive; returns their answers' statuses.
  std::vector<int> release();

 private:
  struct Plan {
    std::string action;
    std::string part;
    Mishap mishap;
    int left;
  };

  void accept_all();
  void serve(int client);
  bool answer(int client, const std::string& request);
  std::string pass_on(const std::string& request) const;

  std::string host_;
  int target_port_ = 0;
  int listener_ = -1;
  int port_ = 0;
  bool is_stopping_ = false;
  std::mutex mutex_;
  std::list<Plan> plans_;
  std::map<std::string, int> came_;
  std::vector<std::string> held_;
  std::vector<int> clients_;
  int met_ = 0;
  std::vector<std::thread> servers_;
  std::thread acceptor_;
};

}  // namespace idem::test
