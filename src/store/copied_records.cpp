#include "store/copied_records.hpp"

#include "core/record/stored_record_codec.hpp"
#include "core/record/stored_response_codec.hpp"
#include "store/record_rows.hpp"

#include <idem/limits.hpp>

#include <string>

namespace idem {
namespace {

constexpr std::size_t listed_at_once = 1'000;

template <class Verb>
std::vector<Verb> verbs_of(const std::vector<RecordId>& ids) {
  std::vector<Verb> verbs;
  for (const RecordId& id : ids) verbs.push_back({id});
  return verbs;
}

}  // namespace

void even_out(Record& record) {
  if (record.state == State::expired && record.charged != 0) {
    record.charged = limits::tombstone_charge;
  }
}

Digest digest_of(const Held& held) {
  const Record& record = *held.record;
  FramedDigest digest;
  std::string bytes;
  encode_record(record, bytes);
  digest.add(bytes);
  digest.add(record.stored_request.value_or(std::string()));
  bytes.clear();
  if (record.response) encode_answer(*record.response, bytes);
  digest.add(bytes);
  digest.add(record.response ? std::string_view(record.response->body) : std::string_view());
  for (const EvidenceEntry& entry : held.evidence) {
    digest.add(to_evidence_value(record.id, entry));
  }
  return digest.finish();
}

Reading::Reading(Store& store, const char* which, const std::vector<RecordId>& ids)
    : which_(which),
      count_(ids.size()),
      records_(store, verbs_of<Find>(ids)),
      evidence_(store, verbs_of<ReadEvidence>(ids)) {}

Holding Reading::wait() {
  auto records = records_.wait();
  auto evidence = evidence_.wait();
  std::vector<Held> all(count_);
  for (std::size_t i = 0; i < count_; ++i) {
    if (!records[i]) return copy_failed(which_, records[i].error());
    if (!evidence[i]) return copy_failed(which_, evidence[i].error());
    all[i] = {std::move(*records[i]), std::move(*evidence[i])};
    if (!all[i].record) continue;
    even_out(*all[i].record);
    all[i].digest = digest_of(all[i]);
  }
  return all;
}

std::expected<std::optional<RecordId>, CopyError> Ids::first() {
  if (at_ == page_.size() && !is_last_) {
    auto page =
        ask_and_wait(store_, List{.after = after_, .limit = listed_at_once, .damaged = true});
    if (!page) return copy_failed(which_, page.error());
    page_.clear();
    for (const Record& record : *page) page_.push_back(record.id);
    at_ = 0;
    is_last_ = page_.empty();
    if (!is_last_) after_ = page_.back();
  }
  return at_ == page_.size() ? std::nullopt : std::optional(page_[at_]);
}

}  // namespace idem
