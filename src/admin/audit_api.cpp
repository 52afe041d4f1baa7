#include "admin/audit_api.hpp"

#include "admin/audit_json.hpp"
#include "admin/replies.hpp"
#include "loop/store_link.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

namespace idem::admin {

Task<WireAnswer> AuditApi::answer_to(http::ServerStream& client) {
  const std::string target(client.head().origin_form);
  const std::string path = target.substr(0, target.find('?'));
  const std::string query = path.size() < target.size() ? target.substr(path.size() + 1) : "";
  if (path.ends_with("/verify")) {
    auto expected = parse_verify_query(query);
    if (!expected) co_return invalid(expected.error());
    auto answer = co_await verify(std::move(*expected));
    co_return answer;
  }
  const bool is_raw = path.ends_with("/lines");
  auto asked = parse_audit_query(query, !is_raw);
  if (!asked) co_return invalid(asked.error());
  if (is_raw) {
    auto answer = co_await lines(std::move(*asked));
    co_return answer;
  }
  auto answer = co_await list(std::move(*asked));
  co_return answer;
}

Task<std::expected<ReadLines::Reply, StoreError>> AuditApi::read(std::uint64_t after,
                                                                 std::size_t limit) {
  StoreCall call = ReadLines{std::string(audit_journal), after, limit};
  auto asking = ask_store(parts_.loop, parts_.store, call);
  auto result = co_await asking;
  if (!result) co_return std::unexpected(std::move(result.error()));
  co_return std::get<ReadLines::Reply>(std::move(*result));
}

// A filter may leave out most lines: a page then ends early, and `next` goes on behind the last
// line that was looked at.
Task<WireAnswer> AuditApi::list(AuditQuery query) {
  std::vector<ShownLine> shown;
  std::uint64_t at = query.after;
  std::uint64_t last = at + 1;
  const std::uint64_t until = at + limits::audit_scan_lines_max;
  while (at < last && at < until && shown.size() < query.limit) {
    auto reading = read(at, limits::list_page_max);
    const auto page = co_await reading;
    if (!page) co_return store_trouble(page.error());
    last = page->last;
    if (page->lines.empty()) break;
    for (const JournalLine& line : page->lines) {
      at = line.seq;
      ShownLine one{line.seq, parse_audit_line(line.bytes)};
      const AuditEntry none{.what = "unreadable"};
      if (!query.is_meant(one.is ? one.is->entry : none)) continue;
      shown.push_back(std::move(one));
      if (shown.size() == query.limit) break;
    }
  }
  const auto next = at < last ? std::optional(at) : std::nullopt;
  co_return json_answer(audit_page(shown, next));
}

Task<WireAnswer> AuditApi::lines(AuditQuery query) {
  auto reading = read(query.after, query.limit);
  const auto page = co_await reading;
  if (!page) co_return store_trouble(page.error());
  std::optional<std::uint64_t> next;
  if (!page->lines.empty() && page->lines.back().seq < page->last) next = page->lines.back().seq;
  const std::string begins = first_link(parts_.store.identity().scope_secret);
  co_return json_answer(audit_lines_page(begins, page->lines, next));
}

// Page by page, so that memory is bounded and other requests have their turns.
Task<WireAnswer> AuditApi::verify(std::optional<ExpectedLine> expected) {
  const Identity& identity = parts_.store.identity();
  std::vector<Secret> secrets = identity.older;
  secrets.push_back(identity.secret);
  AuditChain chain(first_link(identity.scope_secret), secrets);
  if (expected) chain.expect(std::move(*expected));
  for (std::uint64_t at = 0;;) {
    auto reading = read(at, limits::journal_read_lines_max);
    const auto page = co_await reading;
    if (!page) co_return store_trouble(page.error());
    for (const JournalLine& line : page->lines) chain.see(line.seq, line.bytes, line.is_damaged);
    if (page->lines.empty() || page->lines.back().seq >= page->last) break;
    at = page->lines.back().seq;
  }
  co_return json_answer(audit_verdict(chain.verdict()));
}

}  // namespace idem::admin
