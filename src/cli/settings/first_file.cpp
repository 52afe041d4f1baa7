#include "cli/settings/first_file.hpp"

#include "config/words.hpp"
#include "core/bytes/percent.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace idem::cli {
namespace {

using config::Setting;
using config::Shape;

constexpr std::size_t columns_max = 100;

constexpr std::string_view head =
    "The settings of an Idem gateway. `idem config check --config FILE` says what is wrong with "
    "them, `idem config docs` describes all of them, and `idem config schema` prints a JSON Schema "
    "for editors. A flag or an IDEM_* variable wins over this file. A relative path is relative to "
    "the file's folder.\n"
    "A name directly behind a # is a setting with its default. To change it, remove that #, and "
    "the one before the name of its section.";

/// Written even if they are not given: every gateway has to choose them.
constexpr std::array<std::string_view, 6> always_written{"listen", "admin",      "upstream.url",
                                                         "store",  "scope.from", "defaults.preset"};

/// Written as comments unless they are given: they have a default that many change later.
constexpr std::array<std::string_view, 15> written_as_comments{"upstream.timeout",
                                                               "migrate",
                                                               "log_format",
                                                               "log_requests",
                                                               "key.time",
                                                               "key.forward",
                                                               "defaults.mode",
                                                               "defaults.enforce",
                                                               "defaults.require_key",
                                                               "defaults.lease",
                                                               "defaults.retention",
                                                               "defaults.tombstone",
                                                               "limits.request_body",
                                                               "limits.response_body",
                                                               "limits.wait_max"};

constexpr std::string_view example_of_routes =
    "\n"
    "# Settings for some requests; the first route whose match fits applies. Records are stored\n"
    "# under a route's name: keep it when the path changes.\n"
    "#routes:\n"
    "  #- name: create-payment\n"
    "    #match: { methods: [POST], path: /v1/payments }\n"
    "    #mode: wait\n"
    "  #- name: quotes\n"
    "    #match: { methods: [POST], path: \"/v1/quotes/{id}\" }\n"
    "    #require_key: false\n";

template <std::size_t Count>
bool is_among(const std::array<std::string_view, Count>& paths, std::string_view path) {
  return std::ranges::find(paths, path) != paths.end();
}

bool is_active(const Setting& setting) {
  return is_among(always_written, setting.path) || config::given_at(setting) != nullptr;
}

/// Whether a user name with a password stands in an authority of `text`. A password may hold any
/// character, so everything up to the @ counts.
bool has_password_in_authority(std::string_view text) {
  constexpr std::string_view mark = "://";
  for (auto at = text.find(mark); at != text.npos; at = text.find(mark, at)) {
    at += mark.size();
    const auto rest = text.substr(at, text.find(mark, at) - at);
    const auto user_end = rest.find('@');
    if (user_end != rest.npos && rest.substr(0, user_end).contains(':')) return true;
  }
  return false;
}

/// What the table does not say of the setting. A store's depends on whether its URL has a password.
std::string advice_for(const Setting& setting) {
  if (setting.path == "admin") return "`idem status` and `idem keys` ask there; keep clients away.";
  if (setting.path == "defaults.preset") {
    return "Choose what a plain 500 of the API means. ietf: it may have done the work, so the key "
           "does not run again until evidence settles it; stripe: the 500 is the answer, and "
           "retries get it; lenient: nothing was done, and a retry runs again.";
  }
  if (setting.path != "store") return {};
  std::string advice =
      "In production also write `store_id: ID` with the id from the first start's log line "
      "store_opened: then the gateway refuses another store, or a new one in place of a lost one, "
      "where each key would run again.";
  const auto& url = std::get<Given*>(setting.slot)->text;
  if (!holds_password(url)) return advice;
  const bool is_libpq = url.starts_with("postgres");
  return advice + "\nThis URL holds a password, so only the owner may read this file. The option " +
         (is_libpq ? "passfile" : "password_file") +
         " of the URL names a file with the password instead.";
}

/// `text` as comment lines that begin with `indent` spaces.
std::string as_comment(std::string_view text, std::size_t indent) {
  std::string out;
  const std::string begin = std::string(indent, ' ') + '#';
  for (const auto paragraph : config::split(text, '\n')) {
    std::string line = begin;
    for (const auto word : config::split(paragraph, ' ')) {
      if (line.size() > begin.size() && line.size() + 1 + word.size() > columns_max) {
        out += line + '\n';
        line = begin;
      }
      line += ' ' + std::string(word);
    }
    out += line + '\n';
  }
  return out;
}

std::string comment_of(const Setting& setting, std::size_t indent) {
  std::string text(setting.help);
  if (setting.shape.kind == Shape::Kind::word) {
    text += " (" + config::alternatives(config::split(setting.shape.words, '|')) + ')';
  }
  const auto advice = advice_for(setting);
  return as_comment(advice.empty() ? text : text + ".\n" + advice, indent);
}

/// "name: value", without a section; empty: it has no value.
std::string line_of(const Setting& setting) {
  if (setting.shape.kind == Shape::Kind::store) {  // to_yaml() would leave out its password.
    return std::string(setting.path) + ": " +
           config::yaml_text(std::get<Given*>(setting.slot)->text);
  }
  std::string lines = config::to_yaml(std::span(&setting, 1), 0);
  if (lines.empty()) return {};
  lines.pop_back();
  const auto last = lines.rfind('\n');
  if (last != lines.npos) lines.erase(0, last + 1);
  return lines.substr(lines.find_first_not_of(' '));
}

/// The lines that open the sections of `path` which are not open since the setting before it.
std::string open_sections(std::string_view path, std::string_view before,
                          const std::vector<Setting>& table) {
  std::string out;
  std::size_t indent = 0;
  std::size_t begin = 0;
  for (auto dot = path.find('.'); dot != path.npos; dot = path.find('.', begin)) {
    const auto section = path.substr(0, dot + 1);
    if (!before.starts_with(section)) {
      const bool is_used = std::ranges::any_of(table, [&](const Setting& setting) {
        return setting.path.starts_with(section) && is_active(setting);
      });
      out += (indent == 0 ? "\n" : "") + std::string(indent, ' ') + (is_used ? "" : "#") +
             std::string(path.substr(begin, dot - begin)) + ":\n";
    }
    begin = dot + 1;
    indent += 2;
  }
  return out;
}

}  // namespace

bool holds_password(const std::string& store_url) {
  // The URLs in a hybrid's one may be percent-encoded.
  const auto decoded = percent_decoded(store_url);
  if (!decoded) return true;
  return has_password_in_authority(store_url) || has_password_in_authority(*decoded) ||
         decoded->contains("password=");
}

bool is_of_first_file(const Setting& setting) {
  return is_among(always_written, setting.path) || setting.path == "upstream.ca" ||
         setting.path.starts_with("scope.") || setting.path.starts_with("tls.");
}

std::string first_file(GatewayFlags flags) {
  const auto table = settings_of(flags);
  std::string out = as_comment(head, 0);
  std::string_view before;
  for (const auto& setting : table) {
    if (!is_active(setting) && !is_among(written_as_comments, setting.path)) continue;
    const auto line = line_of(setting);
    if (line.empty()) continue;
    const auto depth = static_cast<std::size_t>(std::ranges::count(setting.path, '.'));
    const std::size_t indent = 2 * depth;
    out += depth == 0 ? "\n" : open_sections(setting.path, before, table);
    out += comment_of(setting, indent) + std::string(indent, ' ') +
           (is_active(setting) ? "" : "#") + line + '\n';
    before = setting.path;
  }
  return out + std::string(example_of_routes);
}

std::vector<std::string> misread_settings(const std::string& text, const std::string& path,
                                          GatewayFlags given) {
  Complaints complaints;
  const auto document = config::read_yaml(text, path, complaints);
  if (!document) return complaints.lines();
  GatewayFlags read;
  const auto after = settings_of(read);
  config::read_map(*document, after, complaints);
  const auto before = settings_of(given);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto* const place = config::given_at(before[i]);
    if (place == nullptr || config::same_value(before[i], after[i])) continue;
    complaints.add(*place, "a file cannot hold this value as it is; write another one");
  }
  return complaints.lines();
}

}  // namespace idem::cli
