#include "core/record/scope_key_line.hpp"

#include "core/bytes/digests.hpp"

#include <idem/record.hpp>

#include <algorithm>
#include <charconv>

namespace idem {
namespace {

constexpr std::size_t digest_digits = 64;
/// So that the order of names is that of numbers.
constexpr std::size_t number_digits = 10;
constexpr char line_version = 1;

}  // namespace

std::string scope_key_prefix(std::string_view scope) {
  return std::string(scope_key_journals) + to_hex(sha256(scope)) + '/';
}

std::string scope_key_journal(std::string_view prefix, std::uint64_t number) {
  std::string digits = std::to_string(number);
  digits.insert(0, number_digits - std::min(number_digits, digits.size()), '0');
  return std::string(prefix) + digits;
}

std::string_view prefix_of_scope_key(std::string_view journal) {
  constexpr std::size_t size = scope_key_journals.size() + digest_digits + 1;
  const bool is_one = journal.starts_with(scope_key_journals) &&
                      journal.size() == size + number_digits && journal[size - 1] == '/';
  return is_one ? journal.substr(0, size) : std::string_view();
}

std::optional<std::uint64_t> number_of_scope_key(std::string_view journal) {
  const std::string_view prefix = prefix_of_scope_key(journal);
  if (prefix.empty()) return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = journal.data() + journal.size();
  const auto [rest, error] = std::from_chars(journal.data() + prefix.size(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

std::string ScopeKeyLine::text() const {
  const auto view = [](const auto& bytes) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  std::string out(1, line_version);
  out += view(key.bytes);
  for (const KeyName& name : former) out += view(name);
  return out;
}

std::optional<ScopeKeyLine> ScopeKeyLine::parse(std::string_view text) {
  ScopeKeyLine line;
  const std::size_t names_at = 1 + line.key.bytes.size();
  if (text.size() < names_at || text[0] != line_version) return std::nullopt;
  if ((text.size() - names_at) % KeyName{}.size() != 0) return std::nullopt;
  text.substr(1).copy(reinterpret_cast<char*>(line.key.bytes.data()), line.key.bytes.size());
  for (std::size_t at = names_at; at < text.size(); at += KeyName{}.size()) {
    KeyName& name = line.former.emplace_back();
    text.substr(at).copy(reinterpret_cast<char*>(name.data()), name.size());
  }
  return line;
}

}  // namespace idem
