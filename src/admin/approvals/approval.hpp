#pragma once

#include "admin/login/approval_settings.hpp"

#include <idem/journal.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Decisions that need more than one person.
namespace idem::admin {

/// "resolve", "release", "jobs", "discard".
std::string_view name_of(ApprovalKind kind) noexcept;

/// A login that has given its approval, or asked.
struct Approver {
  std::string who{};
  std::string role{};
  std::string login{};
  std::string peer{};
};

/// The first line: what is asked for, and what was there then.
struct ApprovalRequest {
  std::string id{};
  ApprovalKind kind = ApprovalKind::resolve;
  unsigned needs = 2;
  Approver by{};
  std::string ref{};    ///< The record; empty: the order names no single one.
  std::string seen{};   ///< What the order is about, as it was; the decision needs the same.
  std::string order{};  ///< The body of the request.
  std::string reason{};
  /// Before anything was read for the order: what is observed later, nobody had seen.
  StoreTime given_at{};
};

/// How an approval ended.
enum class ApprovalEnd : std::uint8_t { decided, refused, rejected };
std::string_view name_of(ApprovalEnd end) noexcept;

std::string write_request(const ApprovalRequest& request);
std::string write_approve(const Approver& by, std::string_view reason);
/// From here on the decision is being made.
std::string write_deciding(std::string_view who);
/// `status`: of the answer to the order; 0: it was rejected.
std::string write_end(ApprovalEnd end, std::string_view who, int status, std::string_view text);

/// What the lines of an approval say together. A damaged line, and one that does not belong there,
/// is trouble: then nothing is decided by it.
class ApprovalFold {
 public:
  /// A line that was seen before changes nothing.
  void see(const JournalLine& line);
  void set_now(StoreTime now) { now_ = std::max(now_, now); }

  std::uint64_t last() const { return last_; }
  const std::string& trouble() const { return trouble_; }
  const std::optional<ApprovalRequest>& request() const { return request_; }
  StoreTime asked_at() const { return asked_at_; }
  StoreTime ends_at() const;
  /// The one who asked, and those who approved.
  const std::vector<std::string>& given_by() const { return given_by_; }
  bool has_given(std::string_view who) const;
  bool is_enough() const { return request_ && given_by_.size() >= request_->needs; }
  /// Since when the decision is being made.
  const std::optional<StoreTime>& deciding_since() const { return deciding_since_; }
  bool is_being_decided() const;
  bool has_expired() const;
  const std::optional<ApprovalEnd>& end() const { return end_; }
  const std::string& ended_by() const { return ended_by_; }
  const std::string& end_text() const { return end_text_; }

  /// "waiting", "deciding", "decided", "refused", "rejected", "expired" or "damaged".
  std::string_view state() const;

 private:
  std::string take(std::string_view bytes, StoreTime at);

  std::uint64_t last_ = 0;
  std::string trouble_;
  std::optional<ApprovalRequest> request_;
  StoreTime asked_at_{};
  StoreTime now_{};
  std::vector<std::string> given_by_;
  std::optional<StoreTime> deciding_since_;
  std::optional<ApprovalEnd> end_;
  std::string ended_by_;
  std::string end_text_;
};

inline constexpr std::string_view approval_journals = "approval/";

}  // namespace idem::admin
