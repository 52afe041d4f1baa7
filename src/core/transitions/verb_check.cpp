#include "core/transitions/verb_check.hpp"

#include "core/transitions/journals.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem {
namespace {

using Complaint = std::optional<std::string>;

bool is_length(Millis length) { return length > Millis(0) && length <= limits::duration_max; }

Complaint bad_lease(Millis lease) {
  if (is_length(lease)) return std::nullopt;
  return "a lease of " + std::to_string(lease.count()) + " ms";
}

Complaint bad_delay(Millis delay) {
  if (delay >= Millis(0) && delay <= limits::duration_max) return std::nullopt;
  return "a delay of " + std::to_string(delay.count()) + " ms";
}

Complaint bad_response(const StoredResponse& response) {
  if (response.status >= 100 && response.status <= 999) return std::nullopt;
  return "a response of status " + std::to_string(response.status);
}

/// The checks that Reserve and Accept share.
Complaint bad_record(const Reserve& verb) {
  if (verb.fingerprints.empty()) return "a reserve without a fingerprint";
  if (!is_length(verb.retention)) {
    return "a retention of " + std::to_string(verb.retention.count()) + " ms";
  }
  if (verb.tombstone < Millis(0) || verb.tombstone > limits::duration_max) {
    return "a tombstone of " + std::to_string(verb.tombstone.count()) + " ms";
  }
  return std::nullopt;
}

Complaint bad_journal(std::string_view name) {
  if (name.empty() || name.size() > limits::journal_name_bytes_max) {
    return "a journal's name of " + std::to_string(name.size()) + " bytes";
  }
  const auto is_plain = [](char c) { return c > 0x20 && c < 0x7f && c != '\\'; };
  if (!std::ranges::all_of(name, is_plain)) return "a journal's name that is no plain ASCII";
  return std::nullopt;
}

/// The stores count lines in 63 bits.
Complaint bad_seq(std::uint64_t seq) {
  constexpr std::uint64_t end = std::uint64_t{1} << 62;
  if (seq < end) return std::nullopt;
  return "the number " + std::to_string(seq) + " of a line";
}

struct Check {
  Complaint operator()(const Reserve& verb) const {
    auto bad = bad_lease(verb.lease);
    return bad ? bad : bad_record(verb);
  }
  Complaint operator()(const Accept& verb) const { return bad_record(verb.as); }
  Complaint operator()(const Claim& verb) const { return bad_lease(verb.lease); }
  Complaint operator()(const Renew& verb) const { return bad_lease(verb.lease); }
  Complaint operator()(const Complete& verb) const { return bad_response(verb.response); }
  Complaint operator()(const Release& verb) const { return bad_delay(verb.retry_in); }
  Complaint operator()(const MarkUnknown& verb) const {
    return verb.reconcile_in ? bad_delay(*verb.reconcile_in) : std::nullopt;
  }
  Complaint operator()(const Resolve& verb) const {
    auto bad = bad_delay(verb.grace);
    if (!bad && verb.response) bad = bad_response(*verb.response);
    return bad;
  }
  Complaint operator()(const Reschedule& verb) const {
    return verb.reconcile_in ? bad_delay(*verb.reconcile_in) : std::nullopt;
  }
  Complaint operator()(const Reseal& verb) const {
    if (verb.response.has_value() == verb.request.has_value())
      return "no new form of one part; does it have encryption.secret_files?";
    return verb.response ? bad_response(*verb.response) : std::nullopt;
  }
  Complaint operator()(const PutRecord& verb) const {
    if (verb.ends && !verb.record) return "the end of an attempt without its record";
    if (!verb.record) return std::nullopt;
    if (verb.record->id != verb.id) return "a record of another id";
    return verb.record->response ? bad_response(*verb.record->response) : std::nullopt;
  }
  Complaint operator()(const AppendLine& verb) const {
    if (verb.line.size() > limits::journal_line_bytes_max) {
      return "a line of " + std::to_string(verb.line.size()) + " bytes";
    }
    auto bad = bad_journal(verb.journal);
    return bad ? bad : bad_seq(verb.behind);
  }
  Complaint operator()(const ReadLines& verb) const {
    auto bad = bad_journal(verb.journal);
    return bad ? bad : bad_seq(verb.after);
  }
  Complaint operator()(const ListJournals& verb) const {
    auto bad = verb.prefix.empty() ? std::nullopt : bad_journal(verb.prefix);
    return bad || verb.after.empty() ? bad : bad_journal(verb.after);
  }
  Complaint operator()(const DropJournal& verb) const {
    if (verb.journal.starts_with(kept_journals)) {
      return "an order to drop the journal " + verb.journal + ", which is kept for good";
    }
    auto bad = bad_journal(verb.journal);
    return bad ? bad : bad_seq(verb.last);
  }
  template <class Verb>
  Complaint operator()(const Verb&) const {
    return std::nullopt;
  }
};

}  // namespace

std::optional<std::string> what_is_wrong(const StoreCall& call) {
  return std::visit(Check(), call);
}

void drop_zero_fence(StoreCall& call) noexcept {
  const auto drop = [](std::optional<Fence>& fence) {
    if (fence == Fence{0}) fence.reset();
  };
  std::visit(
      [&](auto& verb) {
        if constexpr (requires { verb.attempt.fence; }) drop(verb.attempt.fence);
        if constexpr (requires { verb.fence; }) drop(verb.fence);
      },
      call);
}

}  // namespace idem
