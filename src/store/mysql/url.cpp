#include "store/mysql/url.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/percent.hpp"
#include "store/file_access.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>

namespace idem::mysql {
namespace {

constexpr std::string_view scheme = "mysql://";
constexpr std::size_t hosts_max = 64;
// Of MySQL and MariaDB.
constexpr std::size_t database_bytes_max = 64;

using Problem = std::optional<std::string>;

Problem read_credentials(std::string_view text, Url& url) {
  const auto user = percent_decoded(take_until(text, ':'));
  const auto password = percent_decoded(text);
  if (!user || !password) return "the user or the password is not percent-encoded as it should be";
  if (user->empty()) return "no user; write mysql://USER@HOST/DATABASE";
  url.user = *user;
  url.password = *password;
  return std::nullopt;
}

Problem read_host(std::string_view text, Url& url) {
  Host host;
  std::string_view name = text;
  std::string_view port;
  const bool is_bracketed = text.starts_with('[');
  const auto colon = is_bracketed ? text.find("]:") : text.rfind(':');
  if (colon != text.npos) {
    const std::size_t end = is_bracketed ? colon + 1 : colon;
    name = text.substr(0, end);
    port = text.substr(end + 1);
    const auto [rest, error] = std::from_chars(port.data(), port.data() + port.size(), host.port);
    if (error != std::errc() || rest != port.data() + port.size() || host.port == 0) {
      return "a port is no number from 1 to 65535";
    }
  }
  if (is_bracketed) {
    if (!name.ends_with(']')) return "an address in brackets has no end";
    name = name.substr(1, name.size() - 2);
  }
  const auto decoded = percent_decoded(name);
  if (!decoded || decoded->empty()) return "an empty or badly encoded host";
  host.name = *decoded;
  url.hosts.push_back(std::move(host));
  return std::nullopt;
}

Problem read_database(std::string_view text, Url& url) {
  const auto name = percent_decoded(text);
  if (!name || name->empty()) return "no database; write mysql://USER@HOST/DATABASE";
  if (name->size() > database_bytes_max || name->find('\0') != name->npos) {
    return "the database's name is too long";
  }
  url.database = *name;
  return std::nullopt;
}

Problem read_password_file(const std::string& path, Url& url) {
  errno = 0;
  std::ifstream file(path);
  if (!std::getline(file, url.password)) return why_no_line(path, errno);
  if (url.password.ends_with('\r')) url.password.pop_back();
  if (url.password.empty()) return "the file " + path + " begins with an empty line";
  return std::nullopt;
}

Problem read_option(std::string_view option, Url& url) {
  const auto name = percent_decoded(take_until(option, '='));
  const auto value = percent_decoded(option);
  if (!name || !value) return "an option is not percent-encoded as it should be";
  if (*name == "password_file") return read_password_file(*value, url);
  std::string* const into = *name == "ca_file"     ? &url.ca_file
                            : *name == "cert_file" ? &url.cert_file
                            : *name == "key_file"  ? &url.key_file
                                                   : nullptr;
  if (into != nullptr) {
    if (value->empty()) return *name + " names no file";
    *into = *value;
    return std::nullopt;
  }
  const bool is_a_name =
      std::ranges::all_of(*name, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  // Otherwise it may be the rest of a password with a question mark in it.
  return is_a_name ? "the option '" + *name + "' does not exist"
                   : "the text after the question mark is no option; write a question mark of a "
                     "password as %3F";
}

Problem read_options(std::string_view text, Url& url) {
  while (!text.empty()) {
    if (auto problem = read_option(take_until(text, '&'), url)) return problem;
  }
  if (url.cert_file.empty() != url.key_file.empty()) {
    return "cert_file and key_file belong together";
  }
  if (!url.cert_file.empty() && url.ca_file.empty()) {
    return "cert_file needs ca_file: without it any server could be the one that is answered";
  }
  return std::nullopt;
}

Problem read_all(std::string_view text, Url& url) {
  std::string_view path = take_until(text, '?');
  const std::string_view options = text;
  std::string_view authority = take_until(path, '/');
  const auto at = authority.rfind('@');
  if (at == authority.npos) return "no user; write mysql://USER@HOST/DATABASE";
  if (auto problem = read_credentials(authority.substr(0, at), url)) return problem;
  authority.remove_prefix(at + 1);
  if (authority.empty()) return "no host";
  while (!authority.empty()) {
    if (auto problem = read_host(take_until(authority, ','), url)) return problem;
  }
  if (url.hosts.size() > hosts_max) return "too many hosts";
  if (auto problem = read_database(path, url)) return problem;
  return read_options(options, url);
}

}  // namespace

std::expected<Url, std::string> parse_url(std::string_view text) {
  if (!text.starts_with(scheme)) return std::unexpected("no URL of a MySQL or MariaDB");
  Url url;
  if (auto problem = read_all(text.substr(scheme.size()), url)) {
    return std::unexpected(std::move(*problem));
  }
  return url;
}

std::string place_of(const Url& url, const Host& host) {
  return host.name + ":" + std::to_string(host.port) + "/" + url.database;
}

}  // namespace idem::mysql
