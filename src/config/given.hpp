#pragma once

#include <string>
#include <utility>
#include <vector>

/// Settings as texts, each with the place that a complaint about it names.
namespace idem::config {

/// A flag, a variable, or a line and column of a file.
struct Place {
  std::string source{};  ///< "--lease", "IDEM_LEASE", or the file's name.
  int line = 0;          ///< From 1; 0: not in a file.
  int column = 0;        ///< From 1, in characters.

  bool in_file() const noexcept { return line > 0; }
  /// "--lease", or "FILE:LINE:COLUMN".
  std::string text() const;
};

/// One value. If it is not given, it is the default, with the place where it could be given.
struct Given {
  std::string text{};
  Place place{};
  bool given = false;
};

struct GivenList {
  std::vector<Given> items{};
  Place place{};
  bool given = false;
};

struct GivenMap {
  std::vector<std::pair<Given, Given>> items{};
  Place place{};
  bool given = false;
};

/// All complaints about the settings, each with its place, so that one run reports all.
class Complaints {
 public:
  /// `sentence` says what is wrong and what to write; it repeats no secret.
  void add(const Place& place, std::string sentence);

  bool empty() const noexcept { return all_.empty(); }
  /// "PLACE: sentence", ordered by line and column; at most limits::config_complaints_max, then the
  /// number of the others.
  std::vector<std::string> lines() const;

 private:
  struct Complaint {
    Place place;
    std::string sentence;
  };
  std::vector<Complaint> all_;
};

}  // namespace idem::config
