#pragma once

#include "store/log/segments.hpp"

#include <functional>

namespace idem::segments {

/// A version's bytes: the id, the record, and the answer's head and body.
struct Version {
  std::string_view bytes;  ///< All of it.
  std::string_view id;
  std::string_view record;
  std::string_view answer;  ///< Empty: it has none.
  std::string_view body;
};
/// The version that `bytes` begin with, whatever comes behind it. None: they are too few, or none.
std::optional<Version> version_in(std::string_view bytes);

/// Empties files of versions most of which are not present any more: copies those that are to where
/// new versions go. A file in which something cannot be read stays as it is.
class Compaction {
 public:
  explicit Compaction(Database& db, Segments& segments) : db_(db), segments_(segments) {}

  bool has_work() const noexcept { return goes_on_ || segments_.has_changed_much(); }
  /// Reads about so many bytes, and shows each version in them with its place. `move` copies it if
  /// it is a present one; false: it cannot be read.
  using Move = std::function<bool(const Version& version, std::int64_t place)>;
  void step(std::size_t bytes, const Move& move);

 private:
  void give_up();

  Database& db_;
  Segments& segments_;
  std::optional<std::uint32_t> file_;  ///< The one that is being emptied.
  bool goes_on_ = false;               ///< Until no file is worth it.
  std::uint64_t at_ = 0;
  std::uint64_t size_ = 0;
  std::set<std::uint32_t> left_;  ///< Cannot be read to the end, or were emptied already.
  std::string bytes_;
};

}  // namespace idem::segments
