#include "support/moved_clock.hpp"

#include "support/gateway_fixture.hpp"
#include "support/shared_store.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <atomic>
#include <cstdlib>

namespace idem::test {
namespace {

constexpr std::size_t bytes = 2 * sizeof(std::int64_t);

void add(std::int64_t& number, std::int64_t seconds) {
  std::atomic_ref(number).fetch_add(seconds * 1000, std::memory_order_relaxed);
}

}  // namespace

MovedClock::MovedClock() : file_(dir_.path() / "clock") {
  const int file = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, bytes) != 0) std::abort();
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (mapped == MAP_FAILED) std::abort();
  numbers_ = static_cast<std::int64_t*>(mapped);
}

MovedClock::~MovedClock() { ::munmap(numbers_, bytes); }

void MovedClock::move_also_under(const std::filesystem::path& store) {
  const auto* shared = shared_store_of(store);
  if (shared == nullptr || server_ || mysql_) return;
  if (!shared->mysql().empty()) {
    mysql_ = std::make_unique<MysqlSession>(shared->mysql());
    mysql_->run(
        "CREATE TABLE moved_clock (shift BIGINT NOT NULL) ENGINE=InnoDB;"
        "INSERT INTO moved_clock VALUES (0);"
        "CREATE OR REPLACE FUNCTION idem_now() RETURNS BIGINT NOT DETERMINISTIC READS SQL DATA"
        " RETURN (SELECT idem_micros() DIV 1000 + shift FROM moved_clock)");
  }
  if (shared->database().empty()) return;
  server_ = std::make_unique<Psql>(shared->database());
  server_->run(
      "CREATE TABLE moved_clock AS SELECT interval '0' AS shift;"
      "CREATE OR REPLACE FUNCTION idem.now() RETURNS timestamptz LANGUAGE sql VOLATILE"
      " RETURN (SELECT date_trunc('milliseconds', clock_timestamp() + shift) FROM "
      "public.moved_clock)");
}

void MovedClock::pass(std::int64_t seconds) {
  if (server_) {
    server_->run("UPDATE moved_clock SET shift = shift + interval '1 second' * " +
                 std::to_string(seconds));
  }
  if (mysql_) {
    mysql_->run("UPDATE moved_clock SET shift = shift + 1000 * " + std::to_string(seconds));
  }
  add(numbers_[0], seconds);
  add(numbers_[1], seconds);
}

void MovedClock::step_wall(std::int64_t seconds) { add(numbers_[0], seconds); }

}  // namespace idem::test
