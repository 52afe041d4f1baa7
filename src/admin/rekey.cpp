#include "admin/rekey.hpp"

#include "admin/deciding.hpp"
#include "admin/json_members.hpp"
#include "admin/order_body.hpp"
#include "admin/order_reading.hpp"
#include "admin/replies.hpp"
#include "core/bytes/hex.hpp"
#include "core/record/scope_key_line.hpp"
#include "json/writer.hpp"
#include "loop/store_link.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

namespace idem::admin {
namespace {

using Verdict = Resolve::Verdict;

/// First pages of records, then pages of keys of scopes.
struct Page {
  std::string after;  ///< A record's handle, or a journal's name; empty: the beginning.
  std::uint64_t checked = 0;
  std::uint64_t changed = 0;
  std::uint64_t waiting = 0;  ///< Their request runs, or they changed meanwhile: another run.
  std::vector<RecordId> damaged;
  std::uint64_t keys_checked = 0;
  std::uint64_t keys_changed = 0;
  std::vector<std::string> damaged_keys;
  std::string next;  ///< Empty: there is no more.
};

Read<Page> parse_page(std::string_view body) {
  const auto object = read_object(body, {"after", "by"});
  if (!object) return std::unexpected(object.error());
  Page page;
  if (object->find("after") == nullptr) return page;
  const auto text = read_text(*object, "after", limits::journal_name_bytes_max);
  if (!text) return std::unexpected(text.error());
  const bool is_of_keys = *text == scope_key_journals || number_of_scope_key(*text);
  if (!is_of_keys && !parse_handle(*text)) {
    return wrong("/after", "must be the `next` of the page before");
  }
  page.after = *text;
  return page;
}

std::string page_json(const Page& page) {
  json::Writer out;
  out.begin_object();
  out.member("checked", page.checked);
  out.member("changed", page.changed);
  out.member("waiting", page.waiting);
  out.name("damaged");
  out.begin_array();
  for (const RecordId& id : page.damaged) out.text(to_hex(id.bytes));
  out.end_array();
  out.member("keys_checked", page.keys_checked);
  out.member("keys_changed", page.keys_changed);
  out.name("damaged_keys");
  out.begin_array();
  for (const std::string& journal : page.damaged_keys) out.text(journal);
  out.end_array();
  write_text_or_null(out, "next", page.next);
  out.end_object();
  return out.take() + "\n";
}

/// One record after the other: it must not delay requests.
Task<std::expected<void, StoreError>> bring(AdminParts& parts, RecordId id, Page& page) {
  Reseal verb;
  verb.id = id;
  StoreCall call = std::move(verb);
  auto asking = ask_store(parts.loop, parts.store, call);
  const auto result = co_await asking;
  ++page.checked;
  if (!result) {
    if (result.error().code != StoreError::Code::damaged) {
      co_return std::unexpected(result.error());
    }
    page.damaged.push_back(id);
    co_return std::expected<void, StoreError>();
  }
  const auto verdict = std::get<Resolve::Reply>(*result).verdict;
  page.changed += verdict == Verdict::done ? 1 : 0;
  page.waiting += verdict == Verdict::too_early || verdict == Verdict::superseded ? 1 : 0;
  co_return std::expected<void, StoreError>();
}

std::string came_of(const Page& page) {
  return "checked " + std::to_string(page.checked) + ", changed " + std::to_string(page.changed) +
         ", damaged " + std::to_string(page.damaged.size());
}

Task<std::expected<void, StoreError>> bring_records(AdminParts& parts, Page& page) {
  StoreCall list = List{.after = parse_handle(page.after), .limit = limits::rekey_page};
  auto listing = ask_store(parts.loop, parts.store, list);
  const auto listed = co_await listing;
  if (!listed) co_return std::unexpected(listed.error());
  const auto& records = std::get<std::vector<Record>>(*listed);
  for (const Record& record : records) {
    auto bringing = bring(parts, record.id, page);
    const auto done = co_await bringing;
    if (!done) co_return std::unexpected(done.error());
  }
  const bool is_last = records.size() < limits::rekey_page;
  page.next = is_last ? std::string(scope_key_journals) : to_hex(records.back().id.bytes);
  co_return std::expected<void, StoreError>();
}

/// Each key gets a line under the newest secret, unless its last one is.
Task<std::expected<void, StoreError>> bring_keys(AdminParts& parts, Page& page) {
  const std::string behind = page.after == scope_key_journals ? std::string() : page.after;
  StoreCall list = ListJournals{std::string(scope_key_journals), behind, limits::rekey_page};
  auto listing = ask_store(parts.loop, parts.store, list);
  const auto listed = co_await listing;
  if (!listed) co_return std::unexpected(listed.error());
  const auto& keys = std::get<std::vector<JournalSummary>>(*listed);
  for (const JournalSummary& one : keys) {
    ++page.keys_checked;
    StoreCall call = AppendLine{one.name, one.last, {}};
    auto asking = ask_store(parts.loop, parts.store, call);
    const auto done = co_await asking;
    if (done) {
      page.keys_changed += std::get<AppendLine::Reply>(*done).appended ? 1 : 0;
    } else if (done.error().code == StoreError::Code::damaged) {
      page.damaged_keys.push_back(one.name);
    } else {
      co_return std::unexpected(done.error());
    }
  }
  if (keys.size() == limits::rekey_page) page.next = keys.back().name;
  co_return std::expected<void, StoreError>();
}

/// Brings one page. Error: the answer.
Task<std::expected<void, WireAnswer>> bring_page(AdminParts& parts, Page& page) {
  // Of no record: whether this process could do it at all.
  StoreCall nothing = Reseal{};
  auto probing = ask_store(parts.loop, parts.store, nothing);
  const auto probed = co_await probing;
  if (!probed && probed.error().code == StoreError::Code::refused) {
    co_return std::unexpected(
        to_answer({.code = ProblemCode::state_refused,
                   .detail = "This process has no encryption.secret_files."}));
  }
  if (!probed) co_return std::unexpected(store_trouble(probed.error()));
  auto bringing = page.after.starts_with(scope_key_journals) ? bring_keys(parts, page)
                                                             : bring_records(parts, page);
  const auto brought = co_await bringing;
  if (!brought) co_return std::unexpected(store_trouble(brought.error()));
  co_return std::expected<void, WireAnswer>();
}

}  // namespace

// The audit has the first page of a run: with it an operator decides.
Task<WireAnswer> rekey(AdminParts& parts, http::ServerStream& client, const Caller& caller,
                       std::optional<RekeyRun>& run) {
  if (client.head().origin_form.find('?') != std::string_view::npos) {
    co_return invalid("This path has no parameters.");
  }
  auto reading = read_order(parts, client, caller);
  const auto order = co_await reading;
  if (!order) co_return order.error();
  auto page = parse_page(order->body);
  if (!page) co_return invalid(page.error());
  Deciding deciding(parts, order->signer, "store.rekey", {});
  const bool begins =
      page->after.empty() || !run || run->next != page->after || run->decider != order->decider;
  run.reset();
  if (begins) {
    auto beginning = deciding.begin({}, {});
    auto not_noted = co_await beginning;
    if (not_noted) co_return std::move(*not_noted);
    parts.log(LogLevel::info, "rekey_began", {{"source", order->decider}});
  }
  auto bringing = bring_page(parts, *page);
  const auto brought = co_await bringing;
  if (begins) {
    auto ending =
        deciding.end(brought ? "first page: " + came_of(*page) : failure_text("see the answer"));
    co_await ending;
  }
  if (!brought) co_return brought.error();
  if (!page->next.empty()) run = RekeyRun{page->next, order->decider};
  if (page->next.empty()) parts.log(LogLevel::info, "rekey_ended", {{"source", order->decider}});
  co_return json_answer(page_json(*page));
}

}  // namespace idem::admin
