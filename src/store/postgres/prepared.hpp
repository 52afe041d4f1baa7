#pragma once

#include "store/postgres/values.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace idem::postgres {

/// Who keeps asking a statement, and so, whether a session shall prepare it.
enum class Kept : std::uint8_t {
  never,
  ours,     ///< One of our own few: from its first time.
  service,  ///< A service's: from its second time.
};

/// What one session has prepared, by a statement's text and the types of its parameters.
///
/// A service's statement is prepared only where it answers no rows: of rows whose shape has changed
/// (a column more behind `SELECT *`) the server would fail the statement, and with it a transaction
/// that is none the worse. What else may have changed under it, a parameter's type, shows as an
/// error: it is forgotten then, and analysed anew the next time.
class Prepared {
 public:
  struct Name {
    std::string text;  ///< Empty: not to be prepared.
    bool is_known = false;
  };
  /// How to ask it now.
  Name name_of(std::string_view sql, const std::vector<std::uint32_t>& types, Kept kept);
  void was_prepared(const Name& name) { known_.insert(name.text); }
  /// It answered without columns, so that it may be prepared the next time.
  void answered_no_rows(std::string_view sql, const std::vector<std::uint32_t>& types);
  void forget(const Name& name);
  void forget_services();
  /// The names that the server may still hold, though nobody asks for them any more; then
  /// forgotten.
  std::vector<std::string> take_left_over() { return std::exchange(left_over_, {}); }
  void clear();

 private:
  std::map<std::string, std::string, std::less<>> ours_;      ///< Text to name.
  std::map<std::string, std::string, std::less<>> services_;  ///< Text and types to name.
  std::set<std::string, std::less<>> asked_;                  ///< Likewise; asked once.
  std::set<std::string, std::less<>> known_;                  ///< Names that the server has.
  std::vector<std::string> left_over_;
  std::uint64_t next_ = 0;
};

}  // namespace idem::postgres
