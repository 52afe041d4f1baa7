#pragma once

#include "support/tls_layer.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
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
  leave,       ///< As cut_after, with all connections; further ones are cut until come_back().
  twice,       ///< It arrives twice; the first answer comes back.
  damage,      ///< A byte of the answer changes, and its checksum does not.
  hold,        ///< It is cut, and arrives later, at release().
};

/// Between a store and a server with DynamoDB's protocol.
class FaultProxy {
 public:
  /// `target`: http://HOST:PORT. `tls`: of its side towards the store; null: plain HTTP.
  explicit FaultProxy(const std::string& target, std::shared_ptr<ssl_ctx_st> tls = nullptr);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  std::string endpoint() const;

  /// The next `times` requests of this action ("UpdateItem") with `part` in their bodies meet it.
  /// `meanwhile`: called each time, once the request has been passed on if it is.
  void plan(const std::string& action, Mishap mishap, int times = 1, const std::string& part = {},
            std::function<void()> meanwhile = {});
  /// How many requests have met one.
  int met();
  /// How many requests of this action came.
  int came(const std::string& action);
  /// How many connections were cut before a request could be sent on them. Only with TLS does a
  /// store know that: the handshake fails.
  int turned_away();
  void come_back();
  /// Lets all held requests arrive; returns their answers' statuses.
  std::vector<int> release();

 private:
  struct Plan {
    std::string action;
    std::string part;
    Mishap mishap;
    int left;
    std::function<void()> meanwhile;
  };
  /// Towards the store.
  struct Client {
    int socket;
    std::unique_ptr<TlsLayer> tls{};

    long receive(char* to, std::size_t room) const;
    bool send_all(std::string_view bytes) const;
  };

  void accept_all();
  void serve(int client);
  bool answer(const Client& client, const std::string& request);
  /// The mishap of this request, and what happens meanwhile.
  std::optional<Plan> meet(const std::string& request);
  std::string pass_on(const std::string& request) const;

  std::shared_ptr<ssl_ctx_st> tls_;
  int target_port_ = 0;
  int listener_ = -1;
  int port_ = 0;
  bool is_stopping_ = false;
  bool is_away_ = false;
  int turned_away_ = 0;
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
