#pragma once

#include "admin/audit/audit_chain.hpp"

#include <expected>
#include <istream>
#include <string>
#include <vector>

/// The file of `idem audit export`: JSON lines. The first names the chain: {"idem_audit":1,
/// "begins":...}; each other one has a line of the audit as it lies in the store:
/// {"seq":...,"line":...}.
namespace idem::cli {

std::string export_head(const std::string& begins);
std::string export_line(std::uint64_t seq, const std::string& line);

/// Checks an exported file. The error says why it is no such file.
std::expected<admin::AuditChain::Verdict, std::string> verify_export(
    std::istream& in, const std::vector<Secret>& secrets,
    std::optional<admin::ExpectedLine> expected);

}  // namespace idem::cli
