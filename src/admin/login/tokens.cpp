#include "admin/login/tokens.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/hex.hpp"

#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>

#include <algorithm>
#include <filesystem>

namespace idem::admin {
namespace {

constexpr std::string_view prefix = "idem_";

std::string_view without_end(std::string_view text) noexcept {
  while (text.ends_with('\n') || text.ends_with('\r') || text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// The next part before a blank.
std::string_view next_part(std::string_view& line) noexcept {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const auto part = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(part.size());
  return part;
}

std::expected<TokenEntry, std::string> parse_entry(std::string_view line) {
  const auto name = next_part(line);
  const auto role = parse_role(next_part(line));
  const auto digest = from_hex<sizeof(Digest)>(next_part(line));
  const auto made_at = next_part(line);
  if (!is_token_name(name)) return std::unexpected("the name has 1 to 64 visible characters");
  if (!role) return std::unexpected("the role is viewer, support or operator");
  if (!digest) {
    return std::unexpected("the digest of the token has 64 hexadecimal digits in lower case");
  }
  if (!next_part(line).empty()) {
    return std::unexpected("a line has a name, a role, a digest and a time, and nothing else");
  }
  return TokenEntry{std::string(name), *role, *digest, std::string(made_at)};
}

std::string line_of(const TokenEntry& entry) {
  return entry.name + ' ' + std::string(name_of(entry.role)) + ' ' + to_hex(entry.digest) + ' ' +
         entry.made_at + '\n';
}

constexpr std::string_view head =
    "# Tokens of the admin API: name, role, SHA-256 of the token, time. Remove a line to revoke "
    "it.\n";

std::expected<std::string, std::string> content_of(const std::string& path, Owner owner) {
  auto file = read_small_file(path, Others::may_read, limits::admin_tokens_bytes_max, owner);
  if (!file) return std::unexpected(std::move(file.error()));
  return *file ? std::move((*file)->content) : std::string();
}

std::expected<std::vector<TokenEntry>, std::string> entries_in(const std::string& path,
                                                               std::string_view content) {
  auto entries = parse_tokens(content);
  if (!entries) return std::unexpected(path + ": " + entries.error());
  return entries;
}

/// The file that a symbolic link stands for: other processes read that one.
std::string real_path(const std::string& path) {
  std::error_code error;
  auto real = std::filesystem::weakly_canonical(path, error);
  return error ? path : real.string();
}

}  // namespace

std::string make_token() {
  std::string token(prefix);
  for (int half = 0; half < 2; ++half) token += to_hex(random_token().bytes);
  return token;
}

bool is_token(std::string_view text) noexcept {
  return text.starts_with(prefix) && from_hex<32>(text.substr(prefix.size())).has_value();
}

std::expected<std::vector<TokenEntry>, std::string> parse_tokens(std::string_view content) {
  std::vector<TokenEntry> entries;
  for (std::size_t number = 1; !content.empty(); ++number) {
    const auto line = without_end(take_until(content, '\n'));
    if (line.empty() || line.starts_with('#')) continue;
    auto entry = parse_entry(line);
    const auto located = [&](std::string_view why) {
      return std::unexpected("line " + std::to_string(number) + ": " + std::string(why));
    };
    if (!entry) return located(entry.error());
    const auto is_same = [&](const auto& one) { return one.name == entry->name; };
    if (std::ranges::any_of(entries, is_same)) return located("an earlier line has this name");
    entries.push_back(std::move(*entry));
  }
  return entries;
}

std::expected<std::vector<TokenEntry>, std::string> read_tokens(const std::string& path,
                                                                Owner owner) {
  auto content = content_of(path, owner);
  if (!content) return std::unexpected(std::move(content.error()));
  return entries_in(path, *content);
}

std::expected<std::string, std::string> add_token(const std::string& link, const std::string& name,
                                                  Role role, const std::string& made_at,
                                                  Owner owner) {
  if (!is_token_name(name)) {
    return std::unexpected("a name has 1 to 64 visible characters of ASCII, and no # in front");
  }
  const std::string path = real_path(link);
  const auto lock = FileLock::hold(path, owner);
  if (!lock) return std::unexpected(lock.error());
  auto content = content_of(path, owner);
  if (!content) return std::unexpected(std::move(content.error()));
  const auto entries = entries_in(path, *content);
  if (!entries) return std::unexpected(entries.error());
  const auto is_same = [&](const auto& one) { return one.name == name; };
  if (std::ranges::any_of(*entries, is_same)) {
    return std::unexpected("there is a token of this name; revoke it first, or choose another");
  }
  std::string token = make_token();
  if (content->empty()) *content = head;
  if (!content->ends_with('\n')) *content += '\n';
  *content += line_of({name, role, sha256(token), made_at});
  if (content->size() > limits::admin_tokens_bytes_max) {
    return std::unexpected("there are too many tokens; revoke some");
  }
  const auto written = replace_small_file(path, Others::may_read, *content, owner);
  if (!written) return std::unexpected(written.error());
  return token;
}

std::expected<bool, std::string> revoke_token(const std::string& link, std::string_view name,
                                              Owner owner) {
  const std::string path = real_path(link);
  const auto lock = FileLock::hold(path, owner);
  if (!lock) return std::unexpected(lock.error());
  const auto content = content_of(path, owner);
  if (!content) return std::unexpected(content.error());
  if (const auto entries = entries_in(path, *content); !entries) {
    return std::unexpected(entries.error());
  }
  std::string kept;
  std::string_view rest = *content;
  while (!rest.empty()) {
    const auto line = rest.substr(0, std::min(rest.find('\n'), rest.size() - 1) + 1);
    rest.remove_prefix(line.size());
    auto parts = without_end(line);
    const bool is_entry = !parts.empty() && !parts.starts_with('#');
    if (!is_entry || next_part(parts) != name) kept += line;
  }
  if (kept.size() == content->size()) return false;
  const auto written = replace_small_file(path, Others::may_read, kept, owner);
  if (!written) return std::unexpected(written.error());
  return true;
}

void TokenFile::read_again() {
  const auto version = version_of(path_);
  if (version == version_ && !reads_on_) return;
  entries_.clear();
  trouble_.clear();
  reads_on_ = false;
  version_ = version;
  auto file = read_small_file(path_, Others::may_read, limits::admin_tokens_bytes_max);
  if (!file) {
    reads_on_ = true;
    trouble_ = std::move(file.error());
    return;
  }
  if (!*file) return;
  version_ = (*file)->version;
  auto entries = entries_in(path_, (*file)->content);
  if (entries) {
    entries_ = std::move(*entries);
  } else {
    trouble_ = std::move(entries.error());
  }
}

const std::vector<TokenEntry>& TokenFile::entries() {
  read_again();
  return entries_;
}

// Digests are compared: the time of a comparison tells nothing about a token.
const TokenEntry* find_token(const std::vector<TokenEntry>& entries, const Digest& token) noexcept {
  const auto found = std::ranges::find(entries, token, &TokenEntry::digest);
  return found == entries.end() ? nullptr : &*found;
}

OperatorToken::OperatorToken(std::string path, SmallFile file)
    : path_(std::move(path)), version_(file.version), digest_(sha256(without_end(file.content))) {}

std::expected<OperatorToken, std::string> OperatorToken::open(std::string path) {
  if (!version_of(path)) {
    const auto made = make_small_file(path, Others::may_nothing, make_token() + '\n');
    if (!made) return std::unexpected(made.error());
  }
  auto file = read_small_file(path, Others::may_nothing, limits::admin_token_file_bytes_max);
  if (!file) return std::unexpected(std::move(file.error()));
  if (!*file || !is_token(without_end((*file)->content))) {
    return std::unexpected(path + ": holds no token of the admin API; remove the file");
  }
  return OperatorToken(std::move(path), std::move(**file));
}

std::optional<Digest> OperatorToken::digest() {
  const auto version = version_of(path_);
  if (version != version_ || !digest_) {
    version_ = version;
    digest_.reset();
    const auto file =
        read_small_file(path_, Others::may_nothing, limits::admin_token_file_bytes_max);
    const bool is_good = file && *file && is_token(without_end((*file)->content));
    if (is_good) {
      version_ = (*file)->version;
      digest_ = sha256(without_end((*file)->content));
    }
  }
  return digest_;
}

}  // namespace idem::admin
