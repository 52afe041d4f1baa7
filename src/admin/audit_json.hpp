#pragma once

#include "admin/audit/audit_chain.hpp"

#include <idem/journal.hpp>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace idem::admin {

/// A line of a page; a line that is none of an audit has no `is`.
struct ShownLine {
  std::uint64_t seq = 0;
  std::optional<AuditLine> is;
};
/// `next`: where the next page begins; none: there is no other page now.
std::string audit_page(std::span<const ShownLine> lines, std::optional<std::uint64_t> next);
/// The lines as they lie in the store, for a verification elsewhere.
std::string audit_lines_page(std::string_view first_link, std::span<const JournalLine> lines,
                             std::optional<std::uint64_t> next);
std::string audit_verdict(const AuditChain::Verdict& verdict);

}  // namespace idem::admin
