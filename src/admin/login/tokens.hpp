#pragma once

#include "admin/login/role.hpp"
#include "admin/login/small_file.hpp"
#include "core/bytes/digests.hpp"

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem::admin {

/// A token of the tokens file, which has a digest of it and never the token: NAME ROLE SHA-256
/// MADE_AT, one a line. A token has 256 random bits, so that a plain digest can not be reversed.
struct TokenEntry {
  std::string name;
  Role role{};
  Digest digest{};      ///< SHA-256 of the token's characters.
  std::string made_at;  ///< RFC 3339, for people.
};

/// A new token: `idem_` and 64 hexadecimal digits.
std::string make_token();
/// Whether the text has the form of make_token().
bool is_token(std::string_view text) noexcept;

/// The entries of a tokens file. An error names the line: a login never works by a line that was
/// meant otherwise. Empty lines and those with `#` in front are comments.
std::expected<std::vector<TokenEntry>, std::string> parse_tokens(std::string_view content);

/// Adds an entry with a new token and returns the token, which nobody can read again. The error
/// says why not: the name is taken, or is no operator's name, or the file cannot be written.
std::expected<std::string, std::string> add_token(const std::string& path, const std::string& name,
                                                  Role role, const std::string& made_at,
                                                  Owner owner = Owner::self);
/// False: no entry has this name.
std::expected<bool, std::string> revoke_token(const std::string& path, std::string_view name,
                                              Owner owner = Owner::self);
/// Without the file: none.
std::expected<std::vector<TokenEntry>, std::string> read_tokens(const std::string& path,
                                                                Owner owner = Owner::self);

/// Null: no entry has this token.
const TokenEntry* find_token(const std::vector<TokenEntry>& entries, const Digest& token) noexcept;

/// The tokens file of a running process, read again when it changes: who removes a line revokes
/// its token at once. While the file cannot be read, no token of it is good. One thread.
class TokenFile {
 public:
  explicit TokenFile(std::string path) : path_(std::move(path)) {}

  /// As the file is now. Valid until the next call.
  const std::vector<TokenEntry>& entries();
  /// Why the file could not be read; empty: it could, or there is none.
  const std::string& trouble() const noexcept { return trouble_; }

 private:
  void read_again();

  std::string path_;
  std::optional<FileVersion> version_;
  bool reads_on_ = true;  ///< The last attempt did not get so far as to the content.
  std::vector<TokenEntry> entries_;
  std::string trouble_;
};

/// The operator's token that a process makes when no other login is configured, in a file that
/// only its user can read. Who removes the file revokes it at once. One thread.
class OperatorToken {
 public:
  /// Reads the token, or makes one where there is no file. The error names the file: others may
  /// read it, it holds no token, or it cannot be written.
  static std::expected<OperatorToken, std::string> open(std::string path);

  /// SHA-256 of the token, as the file is now. None: it holds no token, or cannot be read.
  std::optional<Digest> digest();
  const std::string& path() const noexcept { return path_; }

 private:
  OperatorToken(std::string path, SmallFile file);

  std::string path_;
  std::optional<FileVersion> version_;
  std::optional<Digest> digest_;
};

}  // namespace idem::admin
