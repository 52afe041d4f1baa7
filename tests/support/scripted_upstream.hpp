#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/http_message.hpp"
#include "support/socket.hpp"

namespace idem::test {

/// A door that a test opens once; scripts wait in front of it.
class Gate {
 public:
  void open();
  /// False when nobody opened it in time.
  bool wait();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

/// The next reply of the scripts. The test's own thread changes it between requests.
class SharedText {
 public:
  void set(std::string text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }
  std::string get() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

class ScriptedUpstream;

/// One accepted connection, as a script sees it.
class UpstreamConnection {
 public:
  /// 0 for the first connection that was ever accepted.
  int index() const { return index_; }

  /// The next whole request; nothing when the other side closed first.
  std::optional<RequestMessage> read_request();
  /// The head of the next request, which stays unread; nothing when the other side closed first.
  std::optional<Head> peek_head();
  /// Waits until that many bytes of the next request are there; false when the other side closed.
  bool wait_for_bytes(std::size_t count);
  /// Waits for at least one more byte; false when the other side closed.
  bool read_some();
  /// A byte, a pause, a byte, ...: an upstream that is slow on purpose. False when the other side
  /// closed or sent something before the end.
  bool drip(std::string_view bytes, int pause_milliseconds);
  bool write(std::string_view bytes) { return socket_.send_all(bytes); }
  /// 200 with this body and the connection kept open.
  bool write_answer(std::string_view body = "ok");
  /// A request read from it directly is neither kept nor counted.
  Socket& socket() { return socket_; }
  void half_close() { socket_.half_close(); }
  void reset();
  void close();
  TlsLayer* tls() { return socket_.tls(); }

 private:
  friend class ScriptedUpstream;
  UpstreamConnection(ScriptedUpstream& owner, int fd, int index)
      : owner_(owner), socket_(fd), index_(index) {}

  ScriptedUpstream& owner_;
  Socket socket_;
  const int index_;
  std::string buffer_;
};

/// An HTTP server that does, on each connection, exactly what the test's script says. It counts
/// what reached it and keeps every byte.
class ScriptedUpstream {
 public:
  using Script = std::function<void(UpstreamConnection&)>;

  struct Options {
    bool keep = true;              ///< Whether received() is wanted.
    std::optional<TlsSide> tls{};  ///< Plain without.
  };
  explicit ScriptedUpstream(Script script) : ScriptedUpstream(std::move(script), Options{}) {}
  ScriptedUpstream(Script script, Options options);
  ~ScriptedUpstream();
  ScriptedUpstream(const ScriptedUpstream&) = delete;
  ScriptedUpstream& operator=(const ScriptedUpstream&) = delete;

  /// A script that answers every request with 200 until the other side closes.
  static void answer_all(UpstreamConnection& connection);

  const std::string& address() const { return address_; }
  /// From now on connections take little unread, so that a large request is really under way.
  void shrink_windows();
  int connections();
  /// Requests that arrived whole.
  int requests();
  /// Every byte of each connection, in the order of accepting.
  std::vector<std::string> received();
  /// Waits until that many scripts have returned and their connections are closed.
  bool wait_for_finished(int scripts);
  bool wait_for_requests(int count);

 private:
  friend class UpstreamConnection;
  void accept_all();
  void serve(UpstreamConnection& connection);
  void note_bytes(int index, std::string_view bytes);
  void note_request();
  bool wait_for(const int& counter, int value);

  Script script_;
  const Options options_;
  const std::shared_ptr<ssl_ctx_st> tls_;
  int listener_ = -1;
  std::string address_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> received_;
  int requests_ = 0;
  int finished_ = 0;
  bool stopping_ = false;
  std::list<UpstreamConnection> connections_;  // Owned here, used by one script's thread each.
  std::vector<std::thread> threads_;

  std::thread acceptor_;
};

}  // namespace idem::test
