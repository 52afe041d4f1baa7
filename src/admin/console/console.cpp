#include "admin/console/console.hpp"

#include "admin/console/console_files.hpp"
#include "admin/replies.hpp"

#include <algorithm>

namespace idem::admin {
namespace {

constexpr std::string_view policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace

std::optional<WireAnswer> console_answer(std::string_view method, std::string_view target) {
  const auto path = target.substr(0, target.find('?'));
  if (path != "/" && !path.starts_with("/assets/")) return std::nullopt;
  if (method != "GET" && method != "HEAD") return not_allowed("GET, HEAD");
  const auto files = console_files();
  const auto found = std::ranges::find(files, path, &ConsoleFile::path);
  if (found == files.end()) {
    return to_answer({.code = ProblemCode::not_found,
                      .detail = files.empty()
                                    ? "This program was built without the console: Node's npm was "
                                      "missing (scripts/need-console)."
                                    : "The console has no such file."});
  }
  WireAnswer answer{200, {}, std::string(found->gzip)};
  // The names of the others change with their content.
  const char* const caching = path == "/" ? "no-cache" : "public, max-age=31536000, immutable";
  const std::pair<const char*, std::string_view> fields[] = {
      {"Content-Type", found->media_type},
      {"Content-Encoding", "gzip"},
      {"Cache-Control", caching},
      {"Content-Security-Policy", policy},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"}};
  for (const auto& [name, value] : fields) answer.headers.push_back({name, std::string(value)});
  return answer;
}

}  // namespace idem::admin
