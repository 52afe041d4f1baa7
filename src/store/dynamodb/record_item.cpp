#include "store/dynamodb/record_item.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"
#include "core/record/stored_fence.hpp"
#include "store/dynamodb/dynamodb_limits.hpp"

#include <algorithm>

namespace idem::dynamodb {
namespace {

using transitions::Write;

std::string_view whole_attribute(char kind) {
  return kind == 'a' ? attribute::answer : attribute::request;
}
std::string_view pieces_attribute_of(char kind) {
  if (kind == 'e') return attribute::evidence_pieces;
  return kind == 'a' ? attribute::answer_pieces : attribute::request_pieces;
}

std::size_t bytes_in(const BytesList& lines) {
  std::size_t sum = 0;
  for (const std::string& line : lines) sum += line.size();
  return sum;
}

/// The last moment at which a write of this record may have begun that makes it.
StoreTime begun_at(const Record& record) {
  const auto micros = std::chrono::microseconds(stored_fence(record.fence()));
  const StoreTime granted(std::chrono::duration_cast<Millis>(micros));
  return std::max(record.created_at, granted);
}

}  // namespace

std::string framed(const BytesList& lines) {
  std::string out;
  for (const std::string& line : lines) {
    const std::size_t before = out.size();
    out.resize(before + framed_bytes(line));
    ByteWriter(out.data() + before).framed(line);
  }
  return out;
}

BytesList parse_framed(std::string_view bytes) {
  BytesList lines;
  ByteReader in(bytes);
  while (!in.is_at_end() && !in.is_cut_short()) lines.emplace_back(in.framed());
  return lines;
}

ItemState state_of(const Item& item) {
  ItemState state;
  state.version = item.bytes(attribute::version);
  state.has_record = item.has(attribute::row);
  state.fence = static_cast<Fence>(item.number(attribute::fence).value_or(0));
  state.evidence = item.list(attribute::evidence);
  state.evidence_bytes = bytes_in(state.evidence);
  state.answer = parse_refs(item.bytes(attribute::answer_pieces));
  state.request = parse_refs(item.bytes(attribute::request_pieces));
  state.older_evidence = parse_refs(item.bytes(attribute::evidence_pieces));
  return state;
}

RecordUpdate::RecordUpdate(const RecordWrite& write, const ItemState& seen,
                           const RowVersion& version, StoreTime now)
    : update_(record_key(write.id)), older_evidence_(seen.older_evidence) {
  if (seen.version.empty()) {
    update_.if_absent();
  } else {
    update_.if_equal(attribute::version, Bytes{seen.version});
  }
  const bool is_gone = write.change.write == Write::erase;
  if (is_gone) {
    for (const PieceRef& ref : seen.answer) dropped_.emplace_back('a', ref);
    for (const PieceRef& ref : seen.request) dropped_.emplace_back('q', ref);
    const bool is_young = now - begun_at(*write.before) < limits::dynamodb_blank_time;
    is_erase_ = !is_young && !seen.has_log() && write.evidence.empty();
    if (is_erase_) return;
  }
  update_.set(attribute::version, Bytes{std::string(bytes_of(version))});
  if (is_gone) {
    write_blank(write, seen, now);
  } else if (write.change.write != Write::none) {
    write_record(write, seen, version);
  }
  write_evidence(write, seen);
}

void RecordUpdate::write_record(const RecordWrite& write, const ItemState& seen,
                                const RowVersion& version) {
  const Record& record = *write.after;
  const bool is_new = write.change.write == Write::insert;
  const bool answers = write.change.response || is_new;
  std::string row;
  append_row(version, record, answers ? mark_of(record.response) : seen.mark, row);
  update_.set(attribute::row, Bytes{std::move(row)});
  update_.remove(attribute::fence);
  set_places(update_, record);
  if (answers) {
    std::optional<std::string> answer;
    if (record.response) answer = to_answer_value(record.id, *record.response);
    write_part('a', std::move(answer), seen.answer);
  }
  if (write.change.request || is_new) {
    std::optional<std::string> request = record.stored_request;
    if (request) append_checksum(record.id, *request);
    write_part('q', std::move(request), seen.request);
  }
}

// The record goes, and the item stays for its log, or until no write of the record can be under way
// any more: a late one that found no item would bring it back, with a fence that was granted.
void RecordUpdate::write_blank(const RecordWrite& write, const ItemState& seen, StoreTime now) {
  for (const auto name :
       {attribute::row, attribute::answer, attribute::answer_pieces, attribute::request,
        attribute::request_pieces, attribute::claims, attribute::claimable_at}) {
    update_.remove(name);
  }
  const Fence fence = std::max<Fence>(stored_fence(write.before->fence()), seen.fence);
  update_.set(attribute::fence, static_cast<std::int64_t>(fence));
  if (seen.has_log() || !write.evidence.empty()) {
    update_.remove(attribute::due).remove(attribute::due_at);
    return;
  }
  const StoreTime until = now + limits::dynamodb_blank_time;
  update_.set(attribute::due, list_part(list_of_blanks, write.id.bytes.back() % list_parts));
  update_.set(attribute::due_at, until.time_since_epoch().count());
}

void RecordUpdate::write_part(char kind, std::optional<std::string> bytes,
                              const std::vector<PieceRef>& before) {
  for (const PieceRef& ref : before) dropped_.emplace_back(kind, ref);
  if (bytes && bytes->size() > limits::dynamodb_inline_bytes_max) {
    update_.remove(whole_attribute(kind));
    large_.push_back({kind, std::move(*bytes)});
    return;
  }
  update_.remove(pieces_attribute_of(kind));
  if (bytes) {
    update_.set(whole_attribute(kind), Bytes{std::move(*bytes)});
  } else {
    update_.remove(whole_attribute(kind));
  }
}

void RecordUpdate::write_evidence(const RecordWrite& write, const ItemState& seen) {
  if (write.evidence.empty()) return;
  BytesList lines;
  for (const EvidenceEntry& entry : write.evidence) {
    lines.push_back(to_evidence_value(write.id, entry));
  }
  if (seen.evidence_bytes + bytes_in(lines) <= limits::dynamodb_inline_log_bytes_max) {
    update_.append(attribute::evidence, lines);
    return;
  }
  BytesList all = seen.evidence;
  all.insert(all.end(), lines.begin(), lines.end());
  update_.remove(attribute::evidence);
  large_.push_back({'e', framed(all)});
}

void RecordUpdate::name_pieces(char kind, const PieceRef& ref) {
  std::vector<PieceRef> refs{ref};
  if (kind == 'e') {
    older_evidence_.push_back(ref);
    refs = older_evidence_;
  }
  update_.set(pieces_attribute_of(kind), Bytes{to_bytes(refs)});
}

}  // namespace idem::dynamodb
