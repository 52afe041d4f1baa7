#include "admin/audit/audit_chain.hpp"

#include "core/bytes/hex.hpp"

#include <algorithm>
#include <charconv>

namespace idem::admin {
namespace {

std::string of_an_unknown_secret(std::string_view id) {
  return "its hash was made with the secret " + std::string(id) + ", which is not here";
}

}  // namespace

std::optional<ExpectedLine> parse_expected_line(std::string_view text) {
  ExpectedLine line;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, line.seq);
  if (error != std::errc{} || line.seq == 0 || rest == end || *rest != ':') return std::nullopt;
  line.hash = std::string(rest + 1, end);
  if (!from_hex<32>(line.hash)) return std::nullopt;
  return line;
}

AuditChain::AuditChain(std::string first_link, const std::vector<Secret>& secrets)
    : link_(std::move(first_link)) {
  for (const Secret& secret : secrets) secrets_.emplace(secret_id(secret), secret);
}

std::string AuditChain::what_is_wrong(std::uint64_t seq, const std::optional<AuditLine>& line,
                                      std::string_view bytes) {
  const std::uint64_t next = seen_.last + 1;
  if (seq != next) return "the line " + std::to_string(next) + " is missing";
  if (!line) return "it is no line of an audit";
  if (line->seq != seq) return "it was written as line " + std::to_string(line->seq);
  if (line->prev != link_) {
    return seq == 1 ? "it is the first line of another store"
                    : "it does not follow from the line before it: one of the two was changed, or "
                      "a line between them was removed";
  }
  const auto secret = secrets_.find(line->secret);
  if (secret == secrets_.end()) {
    if (seen_.proven_from) return of_an_unknown_secret(line->secret) + ": nothing proves it";
    if (!unproved_) unproved_.emplace(seq, line->secret);
    return {};
  }
  if (!is_made_by(bytes, secret->second)) return "its hash does not fit: it was changed";
  unproved_.reset();  // This line follows from all before it.
  if (!seen_.proven_from) seen_.proven_from = seq;
  return {};
}

void AuditChain::see(std::uint64_t seq, std::string_view bytes, bool is_damaged) {
  ++seen_.lines;
  const auto line = parse_audit_line(bytes);
  if (!seen_.first_bad) {
    std::string why = is_damaged ? "its checksum in the store does not fit: it was changed there"
                                 : what_is_wrong(seq, line, bytes);
    const bool is_expected = expected_ && expected_->seq == seq;
    if (why.empty() && is_expected && line->hash != expected_->hash) {
      why = "it is another line than the expected one";
    }
    if (!why.empty()) {
      seen_.first_bad = std::min(seq, seen_.last + 1);
      seen_.why = std::move(why);
    }
  }
  link_ = link_of(bytes);
  seen_.last = seq;
  seen_.hash = line ? line->hash : std::string();
}

AuditChain::Verdict AuditChain::verdict() const {
  Verdict verdict = seen_;
  const auto complain = [&](std::uint64_t seq, std::string why) {
    if (verdict.first_bad && *verdict.first_bad <= seq) return;
    verdict.first_bad = seq;
    verdict.why = std::move(why);
  };
  if (unproved_) {
    complain(unproved_->first,
             of_an_unknown_secret(unproved_->second) + ", and no later line proves it");
  }
  if (expected_ && expected_->seq > seen_.last) {
    complain(seen_.last + 1, "the lines from here to the expected line " +
                                 std::to_string(expected_->seq) + " are missing");
  }
  return verdict;
}

}  // namespace idem::admin
