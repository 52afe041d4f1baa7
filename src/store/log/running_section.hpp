#pragma once

#include "store/embedded/running_cells.hpp"

#include <expected>
#include <optional>
#include <queue>
#include <string>
#include <vector>

namespace idem::segments {

/// The running records, as the log has them: each frame has the cells that its commit changed, and
/// now and then one has all of them, so that a start need not read the log from its beginning. A
/// freed cell is used again, the lowest first, so that there are as many as ever ran at once.
class RunningSection final : public embedded::RunningCells {
 public:
  /// Of a start: what a frame says. The error is a sentence.
  std::expected<void, std::string> apply(std::string_view section);

  /// Appends what changed since the last call to `section`; `whole`: all cells.
  void write(std::string& section, bool whole);
  bool has_changed() const noexcept { return !changed_.empty(); }

  /// Shows each, and keeps nothing: for a start that counts the records.
  void visit(const See& see) const;

  void read(const See& see) override;
  std::int64_t insert(const Record& record, std::int64_t place) override;
  void update(std::int64_t cell, const Record& record, std::int64_t place) override;
  void erase(std::int64_t cell) override;
  void flush() override {}

 private:
  /// Of cell 1 and on; empty: free.
  std::vector<std::string> cells_;
  std::vector<std::int64_t> changed_;
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free_;
  std::string record_bytes_;
};

}  // namespace idem::segments
