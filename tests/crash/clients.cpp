#include "crash/clients.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <random>

namespace idem::test {

void Whereabouts::publish(std::string address) {
  const std::lock_guard lock(mutex_);
  address_ = std::move(address);
  changed_.notify_all();
}

void Whereabouts::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool Whereabouts::is_over() {
  const std::lock_guard lock(mutex_);
  return ended_;
}

std::string Whereabouts::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ || !address_.empty(); });
  return ended_ ? std::string{} : address_;
}

void Whereabouts::count_request() {
  const std::lock_guard lock(mutex_);
  ++requests_;
  changed_.notify_all();
}

void Whereabouts::wait_for_requests(int more) {
  std::unique_lock lock(mutex_);
  const int target = requests_ + more;
  changed_.wait_for(lock, patience, [&] { return requests_ >= target; });
}

void Whereabouts::wait_for_total(int requests) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] { return requests_ >= requests; });
}

void run_client(int client, unsigned seed, Whereabouts& whereabouts, Judge& judge) {
  std::mt19937 random(seed + static_cast<unsigned>(client) * 104729U);
  int next = 0;
  for (;;) {
    const auto address = whereabouts.wait();
    if (address.empty()) return;
    Connection connection(address);
    for (bool alive = connection.open(); alive;) {
      const bool old = next > 0 && random() % 3 == 0;
      const int number = old ? static_cast<int>(random() % static_cast<unsigned>(next)) : next++;
      const int owner = number % 2 == 0 ? client : client / 2;
      const auto key = fmt::format("{}-{}-{}", number % 2 == 0 ? "own" : "shared", owner, number);
      const auto request = charge(key);
      judge.sent(key, request);
      whereabouts.count_request();
      const auto answer = connection.exchange(request);
      judge.answered(key, answer);
      // While the store is down each answer takes no time, and each key has to be judged later.
      if (answer.status == 503) ::poll(nullptr, 0, 10);
      alive = answer.status != 0 && !whereabouts.is_over();
    }
    if (whereabouts.wait() == address) ::poll(nullptr, 0, 1);  // Its death is not yet known.
  }
}

}  // namespace idem::test
