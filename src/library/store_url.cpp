#include "library/store_url.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/percent.hpp"
#include "library/hybrid_url.hpp"

#include <idem/open_store.hpp>

#include <algorithm>
#include <filesystem>

namespace idem::inline v0_1 {
namespace {

namespace fs = std::filesystem;

std::string from(const std::string& folder, std::string_view path) {
  return (fs::path(folder) / path).lexically_normal().string();
}

/// "system" is libpq's name for the machine's certificates; an engine's key has a colon.
bool is_relative_file(const KnownKind& kind, std::string_view name, const std::string& value) {
  return std::ranges::find(kind.files, name) != kind.files.end() && !value.empty() &&
         !value.starts_with('/') && value != "system" && value.find(':') == value.npos;
}

/// Of a `url` with percent-encoded NAME=VALUE pairs behind its question mark.
std::string with_absolute_options(const KnownKind& kind, const std::string& url,
                                  const std::string& folder) {
  const auto mark = url.find('?');
  if (mark == url.npos) return url;
  std::string out = url.substr(0, mark + 1);
  for (std::size_t at = mark + 1; at <= url.size();) {
    const auto end = std::min(url.find('&', at), url.size());
    const auto equals = std::min(url.find('=', at), end);
    const std::string name = url.substr(at, equals - at);
    const auto value = equals < end ? percent_decoded(url.substr(equals + 1, end - equals - 1))
                                    : std::optional<std::string>();
    if (value && is_relative_file(kind, name, *value)) {
      out += name + '=' + percent_encoded(from(folder, *value));
    } else {
      out += url.substr(at, end - at);
    }
    if (end < url.size()) out += '&';
    at = end + 1;
  }
  return out;
}

std::string form_to_write(const KnownKind& kind) {
  std::string text = "write " + std::string(kind.forms.front());
  if (kind.is_path()) return text;
  if (kind.forms.size() == 1) return text + ", in small letters and with //";
  for (const auto form : kind.forms.subspan(1)) {
    text += (form == kind.forms.back() ? " or " : ", ") + std::string(form);
  }
  return text;
}

}  // namespace

std::string_view path_of(const KnownKind& kind, std::string_view url) noexcept {
  return url.substr(kind.schemes.front().size());
}

std::optional<std::string> why_no_store_path(const KnownKind& kind, std::string_view path) {
  const std::string text(path);
  const std::string scheme = scheme_of(kind);
  const bool is_file = !kind.is_directory;
  const std::string example = scheme + (is_file ? "./idem.db" : "./idem.store");
  if (path.empty())
    return scheme + " names no path; write " + usual_form(kind) + ", such as " + example;
  if (path == ":memory:") {
    return scheme +
           ":memory: would be a file of that name; write memory: for a store that keeps "
           "nothing";
  }
  if (path.starts_with("//")) {
    // In a URL the part behind // is a host.
    return scheme + " has a path and no host; write " + scheme + text.substr(2);
  }
  if (path.starts_with("file:")) {
    return scheme + " has a path and no URI; write " + scheme + text.substr(5, text.find('?') - 5);
  }
  if (path.find('?') != path.npos) {
    return scheme + " has no options; write " + scheme + text.substr(0, text.find('?'));
  }
  if (is_file && path.ends_with('/')) {
    return scheme + text + " names a directory; write a file's path, such as " + scheme + text +
           "idem.db";
  }
  return std::nullopt;
}

std::optional<std::string> what_was_meant(std::string_view url) {
  const auto colon = url.find(':');
  const std::string scheme = lower_case(url.substr(0, colon));
  const bool is_in_small_letters = url.starts_with(scheme);
  if (scheme == "memory" || url == ":memory:") return "write memory:";
  for (const KnownKind& kind : known_kinds()) {
    const auto begins = [&](std::string_view mistaken) { return scheme.starts_with(mistaken); };
    const bool is_its_own = !is_in_small_letters && scheme + ':' == kind.schemes.front();
    if (is_its_own && kind.is_path()) return form_to_write(kind) + ", in small letters";
    if (std::ranges::any_of(kind.mistaken, begins)) return form_to_write(kind);
  }
  if (!is_in_small_letters && scheme == "hybrid") {
    return "write hybrid:?truth=URL&fast=URL, in small letters";
  }
  const bool is_path = colon == url.npos && url.find_first_of("./") != url.npos;
  if (is_path || scheme == "file" || scheme == "sqlite3") {
    return "a path is written sqlite:PATH, such as sqlite:./idem.db, or embedded:PATH";
  }
  return std::nullopt;
}

// Does not look at the disk: some files exist only under their absolute paths.
std::string absolute_store_url(const std::string& url, const std::string& folder) {
  if (const KnownKind* const known = known_kind_of(url)) {
    if (!known->is_path()) return with_absolute_options(*known, url, folder);
    const auto path = path_of(*known, url);
    return why_no_store_path(*known, path) ? url : scheme_of(*known) + from(folder, path);
  }
  if (!is_hybrid_url(url)) return url;
  const auto parts = parse_hybrid_url(url);
  if (!parts) return url;
  const std::string truth = absolute_store_url(parts->truth, folder);
  const std::string fast = absolute_store_url(parts->fast, folder);
  if (truth == parts->truth && fast == parts->fast) return url;
  return "hybrid:?truth=" + percent_encoded(truth) + "&fast=" + percent_encoded(fast);
}

}  // namespace idem::inline v0_1
