#include "cli/commands/audit_export.hpp"

#include "json/value.hpp"
#include "json/writer.hpp"

namespace idem::cli {
namespace {

constexpr std::string_view head_name = "idem_audit";

const std::string* exported_text(const json::Value& object, std::string_view name) {
  const auto* const member = object.find(name);
  return member ? std::get_if<std::string>(&member->is) : nullptr;
}

std::optional<std::int64_t> exported_number(const json::Value& object, std::string_view name) {
  const auto* const member = object.find(name);
  const auto* const number = member ? std::get_if<std::int64_t>(&member->is) : nullptr;
  return number != nullptr && *number > 0 ? std::optional(*number) : std::nullopt;
}

}  // namespace

std::string export_head(const std::string& begins) {
  json::Writer out;
  out.begin_object();
  out.member(head_name, 1);
  out.member("begins", begins);
  out.end_object();
  return out.take() + "\n";
}

std::string export_line(std::uint64_t seq, const std::string& line) {
  json::Writer out;
  out.begin_object();
  out.member("seq", seq);
  out.member("line", line);
  out.end_object();
  return out.take() + "\n";
}

std::expected<admin::AuditChain::Verdict, std::string> verify_export(
    std::istream& in, const std::vector<Secret>& secrets,
    std::optional<admin::ExpectedLine> expected) {
  std::string text;
  const bool has_head = static_cast<bool>(std::getline(in, text));
  const auto head = json::parse(text);
  const auto* const begins = has_head && head ? exported_text(*head, "begins") : nullptr;
  if (begins == nullptr || exported_number(*head, head_name) != 1) {
    return std::unexpected(std::string("is no file of idem audit export"));
  }
  admin::AuditChain chain(*begins, secrets);
  if (expected) chain.expect(std::move(*expected));
  std::size_t number = 1;
  while (std::getline(in, text)) {
    ++number;
    const auto parsed = json::parse(text);
    const auto seq = parsed ? exported_number(*parsed, "seq") : std::nullopt;
    const auto* const line = parsed ? exported_text(*parsed, "line") : nullptr;
    if (!seq || line == nullptr) {
      return std::unexpected("line " + std::to_string(number) + " is no line of idem audit export");
    }
    chain.see(static_cast<std::uint64_t>(*seq), *line);
  }
  if (in.bad()) return std::unexpected(std::string("cannot be read to its end"));
  return chain.verdict();
}

}  // namespace idem::cli
