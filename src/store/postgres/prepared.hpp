#pragma once

#include "store/postgres/values.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace idem::postgres {

/// Whose statement it is, and when a session prepares it.
enum class Kept : std::uint8_t {
  never,
  ours,     ///< One of Idem's own: at its first use.
  service,  ///< A service's: at its second use.
};

/// The prepared statements of one session, by text and types of parameters.
///
/// A service's statement is prepared only if it returns no rows. If the columns of its rows changed
/// (a new one behind `SELECT *`), the server would fail the statement, and with it a healthy
/// transaction. A changed type of a parameter shows as an error: then the statement is forgotten,
/// and analysed again the next time.
class Prepared {
 public:
  struct Name {
    std::string text;  ///< Empty: not to be prepared.
    bool is_known = false;
  };
  /// The name to use now.
  Name name_of(std::string_view sql, const std::vector<std::uint32_t>& types, Kept kept);
  void was_prepared(const Name& name) { known_.insert(name.text); }
  /// The statement returned no columns, so it may be prepared the next time.
  void answered_no_rows(std::string_view sql, const std::vector<std::uint32_t>& types);
  void forget(const Name& name);
  void forget_services();
  /// The unused names that the server may still have; forgets them.
  std::vector<std::string> take_left_over() { return std::exchange(left_over_, {}); }
  void clear();

 private:
  std::map<std::string, std::string, std::less<>> ours_;      ///< Text to name.
  std::map<std::string, std::string, std::less<>> services_;  ///< Text and types to name.
  std::set<std::string, std::less<>> asked_;                  ///< Likewise; used once.
  std::set<std::string, std::less<>> known_;                  ///< Names that the server has.
  std::vector<std::string> left_over_;
  std::uint64_t next_ = 0;
};

}  // namespace idem::postgres
