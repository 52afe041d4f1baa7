#include "support/scripted_upstream.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include "support/process.hpp"

namespace idem::test {

void Gate::open() {
  const std::lock_guard lock(mutex_);
  open_ = true;
  changed_.notify_all();
}

bool Gate::wait() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return open_; });
}

bool UpstreamConnection::read_some() {
  std::string fresh;
  if (socket_.receive(fresh) != Socket::Received::bytes) return false;
  owner_.note_bytes(index_, fresh);
  buffer_ += fresh;
  return true;
}

std::optional<RequestMessage> UpstreamConnection::read_request() {
  for (;;) {
    if (auto request = parse_request(buffer_)) {
      buffer_.erase(0, request->bytes);
      owner_.note_request();
      return request;
    }
    if (!read_some()) return std::nullopt;
  }
}

std::optional<Head> UpstreamConnection::peek_head() {
  for (;;) {
    if (auto head = parse_head(buffer_)) return head;
    if (!read_some()) return std::nullopt;
  }
}

bool UpstreamConnection::wait_for_bytes(std::size_t count) {
  while (buffer_.size() < count) {
    if (!read_some()) return false;
  }
  return true;
}

bool UpstreamConnection::drip(std::string_view bytes, int pause_milliseconds) {
  for (const char& byte : bytes) {
    if (socket_.readable_within(pause_milliseconds)) return false;
    if (!write({&byte, 1})) return false;
  }
  return true;
}

bool UpstreamConnection::write_answer(std::string_view body) {
  return write("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
}

// The descriptor changes under the owner's lock, because its destructor looks at it.
void UpstreamConnection::reset() {
  const std::lock_guard lock(owner_.mutex_);
  socket_.reset();
}

void UpstreamConnection::close() {
  const std::lock_guard lock(owner_.mutex_);
  socket_.close();
}

ScriptedUpstream::ScriptedUpstream(Script script, Options options)
    : script_(std::move(script)),
      options_(std::move(options)),
      tls_(options_.tls ? make_tls_server(*options_.tls) : nullptr),
      listener_(listen_anywhere()),
      address_(local_address(listener_)),
      acceptor_([this] { accept_all(); }) {}

ScriptedUpstream::~ScriptedUpstream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    // Wakes accept() and every script that is blocked in a read.
    ::shutdown(listener_, SHUT_RDWR);
    for (auto& connection : connections_) {
      if (connection.socket_.open()) ::shutdown(connection.socket_.fd(), SHUT_RDWR);
    }
  }
  acceptor_.join();
  for (auto& thread : threads_) thread.join();
  ::close(listener_);
}

void ScriptedUpstream::shrink_windows() {
  const int bytes = 128 * 1024;
  ::setsockopt(listener_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

void ScriptedUpstream::answer_all(UpstreamConnection& connection) {
  while (const auto request = connection.read_request()) {
    if (request->method() == "HEAD") {
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    } else {
      connection.write_answer();
    }
  }
}

void ScriptedUpstream::accept_all() {
  for (;;) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock(mutex_);
    if (fd >= 0 && stopping_) ::close(fd);
    if (fd < 0 || stopping_) return;
    const int index = static_cast<int>(received_.size());
    received_.emplace_back();
    connections_.push_back(UpstreamConnection(*this, fd, index));
    threads_.emplace_back([this, &connection = connections_.back()] { serve(connection); });
  }
}

void ScriptedUpstream::serve(UpstreamConnection& connection) {
  // Without a handshake nobody is there to follow the script.
  if (!tls_ || connection.socket_.secure_as_server(tls_.get())) script_(connection);
  const std::lock_guard lock(mutex_);
  connection.socket_.close();
  connection.buffer_ = {};
  ++finished_;
  changed_.notify_all();
}

void ScriptedUpstream::note_bytes(int index, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (options_.keep) received_[static_cast<std::size_t>(index)] += bytes;
}

void ScriptedUpstream::note_request() {
  const std::lock_guard lock(mutex_);
  ++requests_;
  changed_.notify_all();
}

int ScriptedUpstream::connections() {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(received_.size());
}

int ScriptedUpstream::requests() {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::vector<std::string> ScriptedUpstream::received() {
  const std::lock_guard lock(mutex_);
  return received_;
}

bool ScriptedUpstream::wait_for(const int& counter, int value) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return counter >= value; });
}

bool ScriptedUpstream::wait_for_finished(int scripts) { return wait_for(finished_, scripts); }
bool ScriptedUpstream::wait_for_requests(int count) { return wait_for(requests_, count); }

}  // namespace idem::test
