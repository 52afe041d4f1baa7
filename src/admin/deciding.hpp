#pragma once

#include "admin/admin.hpp"
#include "admin/audit/audit_line.hpp"

#include <optional>
#include <string>

namespace idem::admin {

/// One decision and its two lines in the audit: the first before the decision is made, the second
/// behind it. Loop's thread only.
class Deciding {
 public:
  /// `signer`: who decides (OrderBody); `what` and `ref` as in AuditEntry.
  Deciding(AdminParts& parts, AuditEntry signer, std::string_view what, std::string ref)
      : parts_(parts), entry_(std::move(signer)) {
    entry_.what = std::string(what);
    entry_.ref = std::move(ref);
  }

  /// Notes who wants what, and what is there now. The answer if that could not be noted: then the
  /// decision must not be made.
  Task<std::optional<WireAnswer>> begin(std::string reason, std::string before);
  /// Notes what became of it.
  Task<void> end(std::string after);

 private:
  AdminParts& parts_;
  AuditEntry entry_;
  std::uint64_t intent_ = 0;
};

/// A record's state and its attempt, for `before` and `after`.
std::string state_text(const std::optional<Record>& record);
/// What came of a decision whose call failed.
std::string failure_text(const std::string& why);
/// The same of a call that may have been done all the same.
std::string doubt_text(const std::string& why);
/// The one of them that the store's error means.
std::string error_text(const StoreError& error);

}  // namespace idem::admin
