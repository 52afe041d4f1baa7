#include "store/redis/url.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/percent.hpp"
#include "store/file_access.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <utility>

namespace idem::redis {
namespace {

struct Scheme {
  std::string_view name;
  Layout layout;
  bool tls;
};
constexpr std::array schemes{Scheme{"redis://", Layout::one, false},
                             Scheme{"rediss://", Layout::one, true},
                             Scheme{"redis+cluster://", Layout::cluster, false},
                             Scheme{"rediss+cluster://", Layout::cluster, true},
                             Scheme{"redis+sentinel://", Layout::sentinel, false},
                             Scheme{"rediss+sentinel://", Layout::sentinel, true}};

constexpr std::uint16_t sentinel_port = 26379;
constexpr std::size_t prefix_bytes_max = 64;
constexpr std::size_t hosts_max = 64;

using Problem = std::optional<std::string>;

template <class T>
std::optional<T> number(std::string_view digits) {
  T value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_whole = error == std::errc() && end == digits.data() + digits.size();
  return is_whole && !digits.empty() ? std::optional(value) : std::nullopt;
}

std::expected<std::string, std::string> first_line_of(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::unexpected(why_no_line(path, errno));
  while (line.ends_with('\r')) line.pop_back();
  if (line.empty()) return std::unexpected("the file " + path + " begins with an empty line");
  return line;
}

Problem read_login(std::string_view text, Login& login) {
  const auto colon = text.find(':');
  const auto user = percent_decoded(text.substr(0, colon));
  const auto password =
      colon == text.npos ? std::string() : percent_decoded(text.substr(colon + 1));
  if (!user || !password) return "the user or the password is not percent-encoded as it should be";
  if (colon == text.npos) return "a user without a password; write USER:PASSWORD@";
  login = {*user, *password};
  return std::nullopt;
}

Problem read_hosts(std::string_view text, Url& url) {
  const auto port = url.layout == Layout::sentinel ? sentinel_port : Address{}.port;
  while (!text.empty()) {
    auto address = parse_address(take_until(text, ','), port);
    if (!address) return std::move(address.error());
    url.hosts.push_back(std::move(*address));
  }
  if (url.hosts.empty()) return "no host";
  if (url.hosts.size() > hosts_max) return "too many hosts";
  if (url.layout == Layout::one && url.hosts.size() > 1) {
    return "several hosts; write redis+cluster:// or redis+sentinel:// where they belong together";
  }
  return std::nullopt;
}

Problem read_database(std::string_view text, Url& url) {
  if (text.empty()) return std::nullopt;
  const auto database = number<int>(text);
  if (!database || *database < 0) return "the database is no number";
  if (url.layout == Layout::cluster && *database != 0) return "a cluster has no databases";
  url.database = *database;
  return std::nullopt;
}

Problem read_path(std::string_view text, Url& url) {
  if (url.layout == Layout::sentinel) {
    const auto master = percent_decoded(take_until(text, '/'));
    if (!master || master->empty()) return "no name of a master; write redis+sentinel://HOST/NAME";
    url.master = *master;
  }
  return read_database(text, url);
}

bool is_good_prefix(const std::string& prefix) {
  // Braces would move the tag by which a cluster places keys.
  return !prefix.empty() && prefix.size() <= prefix_bytes_max &&
         std::ranges::all_of(prefix, [](char c) { return c > ' ' && c < 0x7f; }) &&
         prefix.find_first_of("{}") == prefix.npos;
}

Problem read_password(const std::string& path, Login& login) {
  auto password = first_line_of(path);
  if (!password) return std::move(password.error());
  login.password = std::move(*password);
  return std::nullopt;
}

Problem read_option(const std::string& name, std::string value, Url& url) {
  if (name == "password_file") return read_password(value, url.login);
  if (name == "sentinel_password_file") return read_password(value, url.sentinel_login);
  if (name == "prefix") {
    if (!is_good_prefix(value)) return "the prefix must be 1 to 64 visible characters, no braces";
    url.prefix = std::move(value);
    return std::nullopt;
  }
  const std::pair<std::string_view, std::string*> files[] = {{"ca_file", &url.tls.ca_file},
                                                             {"cert_file", &url.tls.cert_file},
                                                             {"key_file", &url.tls.key_file}};
  for (const auto& [known, into] : files) {
    if (name != known) continue;
    if (!url.tls.on) return name + " needs rediss";
    *into = std::move(value);
    return std::nullopt;
  }
  const bool is_a_name =
      std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  // Otherwise it may be the rest of a password with a question mark in it.
  return is_a_name ? "the option '" + name + "' does not exist"
                   : "the text after the question mark is no option; write a question mark of a "
                     "password as %3F";
}

Problem read_options(std::string_view text, Url& url) {
  while (!text.empty()) {
    std::string_view option = take_until(text, '&');
    const auto name = percent_decoded(take_until(option, '='));
    const auto value = percent_decoded(option);
    if (!name || !value) return "an option is not percent-encoded as it should be";
    if (auto problem = read_option(*name, *value, url)) return problem;
  }
  if (url.tls.cert_file.empty() != url.tls.key_file.empty()) {
    return "cert_file and key_file belong together";
  }
  return std::nullopt;
}

}  // namespace

std::expected<Address, std::string> parse_address(std::string_view text, std::uint16_t port) {
  Address address{.port = port};
  std::string_view host = text;
  if (text.starts_with('[')) {
    host.remove_prefix(1);
    const auto end = host.find(']');
    if (end == host.npos) return std::unexpected("an address in brackets has no end");
    text = host.substr(end + 1);
    host = host.substr(0, end);
    if (!text.empty() && text.front() != ':') return std::unexpected("no port behind a bracket");
    if (!text.empty()) text.remove_prefix(1);
  } else {
    host = take_until(text, ':');
  }
  if (!text.empty()) {
    const auto given = number<std::uint16_t>(text);
    if (!given || *given == 0) return std::unexpected("a port is no number from 1 to 65535");
    address.port = *given;
  }
  const auto name = percent_decoded(host);
  if (!name || name->empty()) return std::unexpected("an empty or badly encoded host");
  address.host = *name;
  return address;
}

std::string place_of(const Url& url) {
  std::string place;
  for (const Address& address : url.hosts) {
    place += (place.empty() ? "" : ",") + address.host + ':' + std::to_string(address.port);
  }
  if (!url.master.empty()) place += '/' + url.master;
  return place + '/' + std::to_string(url.database) + " prefix=" + url.prefix;
}

std::expected<Url, std::string> parse_url(std::string_view text) {
  const auto scheme =
      std::ranges::find_if(schemes, [&](const Scheme& s) { return text.starts_with(s.name); });
  if (scheme == schemes.end()) return std::unexpected("no URL of a Redis");
  Url url{.layout = scheme->layout, .tls = {.on = scheme->tls}};
  text.remove_prefix(scheme->name.size());
  const auto options_at = text.find('?');
  const auto options = options_at == text.npos ? std::string_view() : text.substr(options_at + 1);
  std::string_view path = text.substr(0, options_at);
  std::string_view authority = take_until(path, '/');
  Problem problem;
  if (const auto at = authority.rfind('@'); at != authority.npos) {
    problem = read_login(authority.substr(0, at), url.login);
    authority.remove_prefix(at + 1);
  }
  if (!problem) problem = read_hosts(authority, url);
  if (!problem) problem = read_path(path, url);
  if (!problem) problem = read_options(options, url);
  if (problem) return std::unexpected(std::move(*problem));
  return url;
}

}  // namespace idem::redis
