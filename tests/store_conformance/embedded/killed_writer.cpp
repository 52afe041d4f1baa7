#include "store_conformance/embedded/killed_writer.hpp"

#include "store/sqlite/sqlite_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>

namespace idem::test {
namespace {

constexpr int callers = 16;
constexpr int said_on = 3;  ///< The file descriptor.

RecordId killed_key(std::uint64_t number) {
  RecordId id;
  std::uint64_t mixed = number * 0x9e3779b97f4a7c15U;
  mixed ^= mixed >> 29U;
  std::memcpy(id.bytes.data(), &mixed, sizeof mixed);
  std::memcpy(id.bytes.data() + sizeof mixed, &number, sizeof number);
  return id;
}

/// Runs of records expire at once, and so leave files that nothing is in any more; of other runs
/// most do, and leave files that are copied together. The first ones of a life stay.
bool is_brief(std::uint64_t number) {
  const std::uint64_t run = number / 400 % 4;
  return run == 1 || (run == 2 && number % 4 != 0);
}

Reserve numbered_reserve(std::uint64_t number, int token_number) {
  Reserve verb = a_reserve(1, token_number);
  verb.id = killed_key(number);
  verb.generation = 1;
  if (is_brief(number)) verb.retention = verb.tombstone = Millis(1);
  return verb;
}

std::string numbered_answer(std::uint64_t number) {
  return fmt::format("{:0>{}}", number, 1 + number * 37 % 900);
}

}  // namespace

std::vector<KilledWriter::Said> KilledWriter::parse(const std::string& said) {
  std::vector<Said> all(said.size() / sizeof(Said));
  // An empty vector has no place to copy to.
  if (!all.empty()) std::memcpy(all.data(), said.data(), all.size() * sizeof(Said));
  return all;
}

std::expected<std::unique_ptr<Store>, StoreError> KilledWriter::try_open(const std::string& path) {
  const LogSizes sizes{.segment_bytes = segment_bytes_,
                       .cache_bytes = 1UL << 20U,
                       .buffer_bytes = static_cast<std::size_t>(2 * segment_bytes_)};
  if (kind_ == "sqlite") return open_sqlite(path, test_settings(), {.host = clock.host()});
  return open_log(path, test_settings(), {.host = clock.host(), .sizes = sizes, .shards = shards_});
}

std::unique_ptr<Store> KilledWriter::open(const std::string& path) {
  auto store = try_open(path);
  EXPECT_TRUE(store) << store.error().detail;
  return store ? std::move(*store) : nullptr;
}

void KilledWriter::write_on(const std::string& path, std::uint64_t first) {
  auto store = open(path);
  if (!store) ::_exit(1);
  std::atomic<std::uint64_t> next{first};
  const auto say = [](char what, std::uint64_t number) {
    const Said said{what, number};
    if (::write(said_on, &said, sizeof said) != sizeof said) ::_exit(1);
  };
  std::function<void()> pair = [&] {
    const std::uint64_t number = next.fetch_add(1);
    ask(*store, numbered_reserve(number, 1), [&, number](auto outcome) {
      if (!outcome || !is<Execute>(*outcome)) ::_exit(1);
      say('r', number);
      // Some stay running, so that a start has to end them.
      if (number % 97 == 0) return pair();
      ask(*store, a_complete(std::get<Execute>(*outcome), answer(201, numbered_answer(number))),
          [&, number](auto reply) {
            if (!reply || reply->verdict != Verdict::done) ::_exit(1);
            say('c', number);
            pair();
          });
    });
  };
  const auto end = ask_and_wait(*store, ReadLines{"audit", 0, 0});
  if (!end) ::_exit(1);
  std::uint64_t line = end->last;
  for (int i = 0; i < callers; ++i) pair();
  for (int i = 0;; ++i) {
    const auto appended =
        ask_and_wait(*store, AppendLine{"audit", line, numbered_answer(line + 1)});
    if (!appended || !appended->appended) ::_exit(1);
    say('j', ++line);
    // The clock is each process's own: the next one's must be ahead of this one's.
    if (i < a_life / Millis(1) - 1) clock.advance(Millis(1));
    (void)ask_and_wait(*store, Sweep{64});
    (void)ask_and_wait(*store, Reap{64});
  }
}

void KilledWriter::write_as_ordered() {
  const char* const order = std::getenv("IDEM_KILLED_WRITER");
  if (order == nullptr) GTEST_SKIP() << "it is a part of other tests";
  std::istringstream in(order);
  std::uint64_t first = 0;
  std::string path;
  in >> kind_ >> segment_bytes_ >> first >> path;
  const auto life = static_cast<std::uint32_t>(first / keys_of_a_life);
  if (kind_ == "sharded") shards_ = 1 + life % 4;
  // Its clock begins where the one of the test stands.
  clock.advance(a_life * static_cast<int>(life));
  write_on(path, first);
}

std::vector<KilledWriter::Said> KilledWriter::run_and_kill(
    const std::string& path, std::uint64_t first, int said_before,
    const std::vector<std::string>& environment) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  // A program anew: threads, such as RocksDB's, do not survive a fork.
  const std::string order = fmt::format("{} {} {} {}", kind_, segment_bytes_, first, path);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], said_on);
    ::setenv("IDEM_KILLED_WRITER", order.c_str(), 1);
    for (const std::string& one : environment) ::putenv(const_cast<char*>(one.c_str()));
    ::execl("/proc/self/exe", "writer", "--gtest_filter=KilledWriter.DISABLED_writer",
            "--gtest_also_run_disabled_tests", nullptr);
    ::_exit(1);
  }
  ::close(ends[1]);
  std::vector<Said> all;
  Said said{};
  bool is_killed = false;
  while (::read(ends[0], &said, sizeof said) == sizeof said) {
    all.push_back(said);
    said_so_far_ = all.size();
    if (!is_killed && static_cast<int>(all.size()) >= said_before) {
      ::kill(child, SIGKILL);
      is_killed = true;
    }
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
  return all;
}

std::string KilledWriter::first_loss(Store& store, const std::vector<Said>& all) {
  std::map<std::uint64_t, char> last;
  std::uint64_t lines = 0;
  for (const Said& said : all) {
    if (said.what == 'j') {
      lines = std::max(lines, said.number);
    } else {
      last[said.number] = said.what;
    }
  }
  const auto read = ask_and_wait(store, ReadLines{"audit", lines == 0 ? 0 : lines - 1, 1});
  if (!read) return read.error().detail;
  if (read->last < lines) return fmt::format("line {} of the journal is lost", lines);
  if (lines > 0 && (read->lines.empty() || read->lines[0].bytes != numbered_answer(lines))) {
    return fmt::format("line {} of the journal is another one", lines);
  }
  for (const auto& [number, what] : last) {
    if (is_brief(number)) continue;  // Perhaps reaped by now.
    const auto outcome = ask_and_wait(store, numbered_reserve(number, 2));
    ++judged_;
    if (!outcome) return fmt::format("{}: {}", number, outcome.error().detail);
    if (is<Execute>(*outcome)) return fmt::format("{} runs again after '{}'", number, what);
    if (what != 'c') continue;
    if (!is<Replay>(*outcome)) return fmt::format("{}: {}", number, describe(*outcome));
    if (std::get<Replay>(*outcome).response.body != numbered_answer(number)) {
      return fmt::format("{}: has another answer", number);
    }
  }
  return {};
}

/// What the processes that are killed run.
TEST_F(KilledWriter, DISABLED_writer) { write_as_ordered(); }

}  // namespace idem::test
