#pragma once

#include <array>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/live.hpp"

namespace idem::test {

/// The result of comparing the clients' answers with the executions.
struct Verdict {
  int keys = 0;
  int replayed = 0;  ///< Keys that ended with an answer that every later caller gets.
  int unknown = 0;   ///< Keys that ended as 409 `outcome_unknown`.
  std::vector<std::string> violations;

  void add(const Verdict& other);
};

/// True when an answer says how the operation ended or that nobody knows; false when it asks to
/// come back (409 `in_progress`, 503) or when none came.
bool is_definite(const Response& answer);

/// Keeps the answers that clients got while gateways died, and judges it against the provider's
/// ledger: at most one effect per key; exactly one where a client got a success; every success the
/// same bytes, before and after any number of crashes; no key that never gets a definite answer.
class Judge {
 public:
  /// A client is about to send this. The same key always comes with the same request.
  void sent(std::string_view key, const Request& request);
  /// Safe from any thread.
  void answered(std::string_view key, const Response& answer);

  /// Retries every key through the gateway at `address` until its answer is definite, and judges.
  Verdict conclude(std::string_view address, const Provider& provider);

 private:
  struct PerKey {
    Request request;
    std::set<std::string> success_bodies;
  };

  static void judge_key(const std::string& key, const PerKey& entry, std::string_view address,
                        int effects, Verdict& verdict);

  std::mutex mutex_;
  std::map<std::string, PerKey, std::less<>> keys_;
};

/// Answers small and large, in one piece and in many, so that "in the middle" has a middle.
inline constexpr std::array<std::string_view, 3> shapes{"", "size=200000", "chunked,size=200000"};

/// Settings under which a dead attempt is settled within seconds.
std::vector<std::string> short_lease();

/// A whole number from the environment.
int number_from(const char* variable, int otherwise);

/// The seed of this run: IDEM_SEED, or a fresh one. Printed with every verdict.
unsigned seed_of_this_run();

}  // namespace idem::test
