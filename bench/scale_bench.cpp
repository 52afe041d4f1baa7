#include "core/record/store_clock.hpp"
#include "store/log/log_store.hpp"
#include "store/sqlite/sqlite_store.hpp"

#include <idem/fingerprint.hpp>
#include <idem/open_store.hpp>
#include <idem/store_wait.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <latch>
#include <utility>
#include <vector>

/// A store with more and more records: `scale_bench FOLDER|URL RECORDS...` fills an embedded store
/// in FOLDER, or a shared one at the URL with RECORDS in it replaced, for each number, then
/// measures them in turn, seven rounds, because no machine is quiet for long: ratios are to the
/// first number, of one round, and their median is printed. The clock under the stores is moved, so
/// that what is due a day later can be measured now.

namespace {

using namespace idem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t at_once = 64;
/// IDEM_SCALE_BODY bytes: fewer where the disk is too small for so many records.
const std::string answer_body = [] {
  const char* const bytes = std::getenv("IDEM_SCALE_BODY");
  return std::string(bytes == nullptr ? 200 : std::strtoull(bytes, nullptr, 10), 'x');
}();

std::atomic<std::int64_t> moved_by{0};

bool is_shared(const std::string& path) { return path.starts_with("postgres:"); }

/// A shared store's clock is a function of its database.
void move_clock_of(const std::string& url) {
  const std::string command = fmt::format(
      "psql -X -q '{}' -c \"CREATE OR REPLACE FUNCTION idem.now() RETURNS timestamptz LANGUAGE sql"
      " VOLATILE RETURN date_trunc('milliseconds', clock_timestamp() + interval '{} ms')\"",
      url, moved_by.load());
  if (std::system(command.c_str()) != 0) std::exit(1);
}

HostClock moved_clock() {
  HostClock host = this_host();
  host.uptime = [] { return uptime() + Millis(moved_by.load()); };
  host.wall = [] { return wall_time() + Millis(moved_by.load()); };
  return host;
}

/// Ids are digests in real life: spread over all there are.
RecordId id_of(std::uint64_t number) {
  RecordId id;
  std::uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u;
  mixed ^= mixed >> 32;
  std::memcpy(id.bytes.data(), &mixed, sizeof mixed);
  std::memcpy(id.bytes.data() + sizeof mixed, &number, sizeof number);
  return id;
}

Reserve reserve_of(std::uint64_t number, const Store& store) {
  Reserve verb;
  verb.id = id_of(number);
  verb.scope = "tenant-17";
  verb.operation = "POST /v1/payments";
  verb.fingerprints.resize(1);
  verb.token = random_token();
  verb.owner = "node-1";
  verb.lease = 60s;
  verb.retention = std::chrono::hours(24);
  verb.tombstone = std::chrono::hours(24);
  verb.generation = store.identity().generation;
  return verb;
}

/// Gives `step` the numbers from `first` on, `at_once` at a time; each says when it is done.
using Step = std::function<void(std::uint64_t number, std::function<void()> done)>;
double seconds_of(std::uint64_t first, std::uint64_t count, const Step& step,
                  std::size_t chains_at_once = at_once) {
  std::atomic<std::uint64_t> next{first};
  std::latch chains(static_cast<std::ptrdiff_t>(chains_at_once));
  std::function<void()> go_on = [&] {
    const std::uint64_t number = next.fetch_add(1);
    if (number >= first + count) return chains.count_down();
    step(number, go_on);
  };
  const auto start = Clock::now();
  for (std::size_t i = 0; i < chains_at_once; ++i) go_on();
  chains.wait();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Rates a second, one of each round.
struct Rates {
  std::vector<double> pairs, replays, sweeps;
};

constexpr std::string_view embedded_scheme = "embedded:";

/// Of a file, or of all in a folder.
std::uintmax_t bytes_at(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return std::filesystem::file_size(path);
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double median_ratio(const std::vector<double>& of, const std::vector<double>& to) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < of.size(); ++i) ratios.push_back(of[i] / to[i]);
  return median(std::move(ratios));
}

class Scale {
 public:
  Scale(std::string path, std::uint64_t records) : path_(std::move(path)), scale_(records) {
    open();
    fill_to(records, 4 * at_once);
    fmt::print(stderr, "filled {}\n", path_);
  }

  void measure() {
    rates_.pairs.push_back(fill_to(records_ + 20'000));
    rates_.replays.push_back(replays(100'000));
    rates_.sweeps.push_back(sweeps(5'000));
  }

  void print(const Rates& first) {
    const double open_seconds = reopen();
    fmt::print(
        "records={} reserve_complete_per_second={:.0f} reserve_complete_ratio={:.2f}"
        " replay_per_second={:.0f} replay_ratio={:.2f} sweep_per_second={:.0f}"
        " open_seconds={:.2f} file_mib={}\n",
        scale_, median(rates_.pairs), median_ratio(rates_.pairs, first.pairs),
        median(rates_.replays), median_ratio(rates_.replays, first.replays), median(rates_.sweeps),
        open_seconds,
        is_shared(path_)
            ? 0
            : bytes_at(path_.starts_with(embedded_scheme) ? path_.substr(embedded_scheme.size())
                                                          : path_) >>
                  20);
  }

  /// All of them expire; then so do their tombstones. Of each the first ones are timed.
  void measure_reap() {
    for (const char* what : {"answers", "tombstones"}) {
      move(25h);
      const double rate = lifecycle<Reap>(100'000);
      fmt::print("reap of {} with records={}: per_second={:.0f}\n", what, scale_, rate);
    }
  }

  const Rates& rates() const { return rates_; }

 private:
  void move(Millis length) {
    moved_by += length.count();
    if (is_shared(path_)) move_clock_of(path_);
  }

  void open() {
    if (is_shared(path_)) {
      auto shared = open_store(path_, {});
      if (!shared) {
        fmt::print(stderr, "{}\n", shared.error());
        std::exit(1);
      }
      store_ = std::move(*shared);
      return;
    }
    auto store = path_.starts_with(embedded_scheme)
                     ? open_log(path_.substr(embedded_scheme.size()), {}, {.host = moved_clock()})
                     : open_sqlite(path_, {}, {.host = moved_clock()});
    if (!store) {
      fmt::print(stderr, "{}\n", store.error().detail);
      std::exit(1);
    }
    store_ = std::move(*store);
  }

  double reopen() {
    store_.reset();
    const auto start = Clock::now();
    open();
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  /// Pairs a second.
  double fill_to(std::uint64_t records, std::size_t chains_at_once = at_once) {
    if (records <= records_) return 0;
    const std::uint64_t count = records - records_;
    const double seconds = seconds_of(
        records_, count,
        [this](std::uint64_t number, std::function<void()> done) {
          ask(*store_, reserve_of(number, *store_), [this, done = std::move(done)](auto outcome) {
            const auto& granted = std::get<Execute>(*outcome);
            Complete verb;
            verb.id = granted.id;
            verb.attempt = granted.attempt;
            verb.response = {201, {{"Content-Type", "application/json"}}, answer_body};
            ask(*store_, std::move(verb), [done = std::move(done)](auto reply) {
              if (!reply || reply->verdict != Verdict::done) std::abort();
              done();
            });
          });
        },
        chains_at_once);
    records_ = records;
    return static_cast<double>(count) / seconds;
  }

  /// Of others in each round.
  double replays(std::uint64_t count) {
    const std::uint64_t first = std::exchange(replays_from_, replays_from_ + count);
    const double seconds =
        seconds_of(first, count, [this](std::uint64_t number, std::function<void()> done) {
          const std::uint64_t any = number * 2'654'435'761u % records_;
          ask(*store_, reserve_of(any, *store_), [done = std::move(done)](auto outcome) {
            if (!outcome || !std::holds_alternative<Replay>(*outcome)) std::abort();
            done();
          });
        });
    return static_cast<double>(count) / seconds;
  }

  /// Of attempts that were cut off: their leases end, and each becomes unknown.
  double sweeps(std::uint64_t count) {
    seconds_of(sweeps_from_, count, [this](std::uint64_t number, std::function<void()> done) {
      ask(*store_, reserve_of(number, *store_), [done = std::move(done)](auto) { done(); });
    });
    sweeps_from_ += count;
    move(61s);
    return lifecycle<Sweep>(count);
  }

  /// A call ends after a while, also if all that it looked at had ended before: a shared store with
  /// millions of leases that are over gives many empty replies.
  template <class Verb>
  double lifecycle(std::uint64_t count) {
    const auto start = Clock::now();
    std::uint64_t done = 0;
    for (int empty = 0; done < count && empty < 10'000;) {
      const auto steps = ask_and_wait(*store_, Verb{limits_of_one_call});
      if (!steps) break;
      empty = steps->empty() ? empty + 1 : 0;
      done += steps->size();
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return static_cast<double>(done) / seconds;
  }

  static constexpr std::size_t limits_of_one_call = 256;

  std::string path_;
  std::uint64_t scale_;
  Rates rates_;
  std::unique_ptr<Store> store_;
  std::uint64_t records_ = 0;
  std::uint64_t replays_from_ = 0;
  std::uint64_t sweeps_from_ = std::uint64_t{1} << 40;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: scale_bench FOLDER RECORDS...\n");
    return 2;
  }
  std::vector<std::unique_ptr<Scale>> scales;
  for (int i = 2; i < argc; ++i) {
    std::string path = fmt::format("{}/{}.db", argv[1], argv[i]);
    if (is_shared(argv[1])) {
      path = argv[1];
      path.replace(path.find("RECORDS"), std::string_view("RECORDS").size(), argv[i]);
    }
    scales.push_back(std::make_unique<Scale>(path, std::strtoull(argv[i], nullptr, 10)));
  }
  for (int round = 0; round < 7; ++round) {
    for (const auto& scale : scales) scale->measure();
  }
  for (const auto& scale : scales) scale->print(scales.front()->rates());
  for (const auto& scale : scales) scale->measure_reap();
  return 0;
}
