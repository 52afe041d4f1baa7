#include "store/log/running_section.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"
#include "core/record/stored_record_codec.hpp"
#include "store/log/keys.hpp"

#include <idem/assert.hpp>

namespace idem::segments {
namespace {

// A cell: the id, the place, a checksum over both; the record, which has its own.
constexpr std::size_t cell_head_bytes = sizeof(RecordId::bytes) + sizeof(std::uint64_t);
// More ran at once than any queue admits: its number is damaged.
constexpr std::uint32_t cells_max = 1U << 24U;
// In front of a section.
constexpr char some = 's';
constexpr char all_cells = 'a';

std::optional<embedded::RunningCells::Found> parse_cell(std::int64_t cell, std::string_view value) {
  if (value.size() < cell_head_bytes + checksum_bytes) return std::nullopt;
  const std::string_view head = value.substr(0, cell_head_bytes);
  const auto id = to_id(head.substr(0, sizeof(RecordId::bytes)));
  if (!id || !without_checksum(*id, value.substr(0, cell_head_bytes + checksum_bytes))) {
    return std::nullopt;
  }
  return embedded::RunningCells::Found{
      cell, *id, static_cast<std::int64_t>(ordered_at(head, sizeof(RecordId::bytes))),
      value.substr(cell_head_bytes + checksum_bytes)};
}

void append_cell(std::string& section, std::int64_t cell, std::string_view value) {
  const std::size_t at = section.size();
  section.resize(at + sizeof(std::uint32_t) + framed_bytes(value));
  ByteWriter out(section.data() + at);
  out.number(static_cast<std::uint32_t>(cell));
  out.framed(value);
}

}  // namespace

std::expected<void, std::string> RunningSection::apply(std::string_view section) {
  if (section.empty()) return {};
  if (section.front() == all_cells) cells_.clear();
  ByteReader in(section.substr(1));
  while (!in.is_at_end()) {
    const auto cell = in.number<std::uint32_t>();
    const std::string_view value = in.framed();
    const bool is_sound = cell > 0 && cell < cells_max && !in.is_cut_short() &&
                          (value.empty() || parse_cell(cell, value));
    if (!is_sound) {
      return std::unexpected(
          "the id of a running record is damaged: nobody knows which key it blocks");
    }
    if (cells_.size() < cell) cells_.resize(cell);
    cells_[cell - 1] = value;
  }
  return {};
}

void RunningSection::write(std::string& section, bool whole) {
  section += whole ? all_cells : some;
  if (whole) {
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (!cells_[i].empty()) append_cell(section, static_cast<std::int64_t>(i + 1), cells_[i]);
    }
  } else {
    for (const std::int64_t cell : changed_) {
      append_cell(section, cell, cells_[static_cast<std::size_t>(cell - 1)]);
    }
  }
  changed_.clear();
}

void RunningSection::visit(const See& see) const {
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (cells_[i].empty()) continue;
    const auto found = parse_cell(static_cast<std::int64_t>(i + 1), cells_[i]);
    IDEM_ASSERT(found.has_value());  // apply() has looked.
    see(*found);
  }
}

void RunningSection::read(const See& see) {
  visit(see);
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (cells_[i].empty()) free_.push(static_cast<std::int64_t>(i + 1));
  }
}

std::int64_t RunningSection::insert(const Record& record, std::int64_t place) {
  std::int64_t cell = 0;
  if (free_.empty()) {
    cells_.emplace_back();
    cell = static_cast<std::int64_t>(cells_.size());
  } else {
    cell = free_.top();
    free_.pop();
  }
  update(cell, record, place);
  return cell;
}

void RunningSection::update(std::int64_t cell, const Record& record, std::int64_t place) {
  std::string& bytes = cells_[static_cast<std::size_t>(cell - 1)];
  bytes.assign(bytes_of(record.id));
  append_ordered(bytes, static_cast<std::uint64_t>(place));
  append_checksum(record.id, bytes);
  encode_record(record, record_bytes_);
  bytes += record_bytes_;
  changed_.push_back(cell);
}

void RunningSection::erase(std::int64_t cell) {
  cells_[static_cast<std::size_t>(cell - 1)].clear();
  free_.push(cell);
  changed_.push_back(cell);
}

}  // namespace idem::segments
