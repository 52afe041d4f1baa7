#pragma once

#include "core/exchange/explanation.hpp"
#include "metrics/shard.hpp"

#include <idem/console_limits.hpp>

#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem::metrics {

/// A request whose key had a record already, and what it got.
struct Retry {
  std::uint64_t number = 0;  ///< Of one thread: 1, 2, 3 and so on.
  std::chrono::system_clock::time_point at{};
  RecordId id{};
  Outcome outcome = Outcome::replay;
  int status = 0;  ///< 0: the client left before.
  std::string scope{};
  std::string route{};
  std::string client{};
  /// Of a misuse: in which parts it differs from the request that made the record, masked. Only
  /// some of many are compared.
  std::vector<Explanation::Difference> differences{};
  std::string why{};  ///< How the differences were found, or why there are none.
};

/// The newest retries of this process, in memory. Those that got an answer or had to wait do not
/// displace the others. Safe from any thread.
class Retries {
 public:
  /// One retry, as it is answered; the texts are copied.
  struct Seen {
    RecordId id{};
    Outcome outcome = Outcome::replay;
    int status = 0;
    std::string_view scope{};
    std::string_view route{};
    std::string_view client{};
  };
  /// Answers its number, for differ().
  std::uint64_t note(const Seen& seen);
  /// In which parts the misuse with this number differs; nothing where it is displaced by now. On
  /// the thread that noted it.
  void differ(std::uint64_t number, std::vector<Explanation::Difference> differences,
              std::string why);

  struct Which {
    std::optional<RecordId> id{};
    std::optional<Outcome> outcome{};
  };
  /// The newest first.
  std::vector<Retry> newest(const Which& which, std::size_t most) const;

 private:
  /// The last so many, in places that are used again: a retry allocates nothing, as a rule.
  class Ring {
   public:
    Retry& next();
    template <class Use>
    void each(Use use) const {
      for (const Retry& one : kept_) use(one);
    }
    Retry* numbered(std::uint64_t number);

   private:
    std::vector<Retry> kept_;
    std::size_t next_ = 0;
  };
  // Threads that serve at the same time seldom have the same one.
  struct alignas(64) Stripe {
    mutable std::mutex mutex;
    std::uint64_t noted = 0;
    Ring harmless;
    Ring others;
  };
  Stripe& mine() noexcept;

  std::array<Stripe, limits::retries_stripes> stripes_;
};

}  // namespace idem::metrics
