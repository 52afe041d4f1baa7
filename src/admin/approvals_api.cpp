#include "admin/approvals_api.hpp"

#include "admin/deciding.hpp"
#include "admin/job_orders.hpp"
#include "admin/jobs/job.hpp"
#include "admin/keys_json.hpp"
#include "admin/paging.hpp"
#include "admin/replies.hpp"
#include "core/bytes/hex.hpp"
#include "core/bytes/rfc3339.hpp"
#include "json/writer.hpp"
#include "loop/store_link.hpp"

#include <idem/job_limits.hpp>
#include <idem/limits.hpp>

namespace idem::admin {
namespace {

constexpr std::string_view approvals_path = "/v1/approvals";

std::string approval_journal(std::string_view id) {
  return std::string(approval_journals) + std::string(id);
}

WireAnswer nobody(const OrderBody& order) {
  return to_answer(
      {.code = ProblemCode::role_missing,
       .detail = "This needs the login of a person, and " + order.signer.login + " names none."});
}

Approver approver_of(const AuditEntry& signer) {
  return {signer.who, signer.role, signer.login, signer.peer};
}

/// Whether the login proves a name: any other is only claimed.
bool names_a_person(const OrderBody& order) {
  return !order.signer.who.empty() && order.signer.login != "operator_token";
}

WireAnswer elsewhere() {
  return store_trouble(
      {StoreError::Code::unavailable, "Another process makes the decision; look again."});
}

std::string how_many(const ApprovalFold& fold) {
  return "given by " + std::to_string(fold.given_by().size()) + " of " +
         std::to_string(fold.request()->needs);
}

/// What an answer that is no success says.
std::string text_of(const WireAnswer& answer) {
  return answer.problem ? answer.problem->detail : std::to_string(answer.status);
}

std::string what_is_asked(const ApprovalRequest& request) {
  return std::string(name_of(request.kind)) + (request.ref.empty() ? "" : " " + request.ref);
}

void write_approval(json::Writer& out, const ApprovalFold& fold) {
  const ApprovalRequest& request = *fold.request();
  out.member("approval", request.id);
  out.member("kind", name_of(request.kind));
  out.member("state", fold.state());
  out.member("needs", request.needs);
  out.member("given", fold.given_by().size());
  out.name("given_by");
  out.begin_array();
  for (const std::string& who : fold.given_by()) out.text(who);
  out.end_array();
  out.member("reason", request.reason);
  out.name("ref");
  if (request.ref.empty()) {
    out.null();
  } else {
    out.text(request.ref);
  }
  out.member("seen", request.seen);
  out.member("asked_at", to_rfc3339(fold.asked_at()));
  out.member("ends_at", to_rfc3339(fold.ends_at()));
  out.name("ended_by");
  if (fold.end()) {
    out.text(fold.ended_by());
  } else {
    out.null();
  }
  out.name("outcome");
  if (fold.end()) {
    out.text(fold.end_text());
  } else {
    out.null();
  }
}

}  // namespace

WireAnswer changed_since(const OrderBody& order, const std::string& now) {
  return state_refused("What was seen when this was asked for has changed: then " +
                       order.approved->seen + ", now " + now +
                       ". Nothing was done; look, and order anew.");
}

bool ApprovalsApi::must_wait(ApprovalKind kind, const OrderBody& order) const {
  return !order.approved && parts_.login.approvals().of(kind) > 1;
}

Task<WireAnswer> ApprovalsApi::answer_to(http::ServerStream& client, const Caller& caller) {
  const auto& head = client.head();
  const std::string target(head.origin_form);
  const std::string path = target.substr(0, target.find('?'));
  const std::string query = path.size() < target.size() ? target.substr(path.size() + 1) : "";
  if (path == approvals_path) {
    auto page = co_await list(query);
    co_return page;
  }
  if (!query.empty()) co_return invalid("This path has no parameters.");
  const std::string rest = path.substr(approvals_path.size() + 1);
  const std::string id = rest.substr(0, rest.find('/'));
  const bool approves = rest.ends_with("/approve");
  if (!parse_handle(id)) {
    co_return invalid("The id of an approval has 32 hexadecimal digits in lower case.");
  }
  if (head.method == "GET") {
    auto page = co_await show(id);
    co_return page;
  }
  auto reading = read_order(parts_, client, caller);
  const auto order = co_await reading;
  if (!order) co_return order.error();
  auto deciding = approves ? approve(id, *order) : reject(id, *order);
  auto answer = co_await deciding;
  co_return answer;
}

// ---- the journal ----

StoreTask<ApprovalsApi::Fold> ApprovalsApi::read(std::string id) {
  const auto fold = std::make_shared<ApprovalFold>();
  for (;;) {
    auto reading = read_lines(parts_.loop, parts_.store, approval_journal(id), fold->last(),
                              limits::journal_read_lines_max);
    const auto page = co_await reading;
    if (!page) co_return std::unexpected(page.error());
    for (const JournalLine& line : page->lines) fold->see(line);
    fold->set_now(page->now);
    if (page->lines.empty() || page->last <= fold->last()) co_return fold;
  }
}

Task<std::expected<ApprovalsApi::Fold, WireAnswer>> ApprovalsApi::find(std::string id) {
  auto reading = read(std::move(id));
  const auto fold = co_await reading;
  if (!fold) co_return std::unexpected(store_trouble(fold.error()));
  if ((*fold)->last() == 0) {
    co_return std::unexpected(
        to_answer({.code = ProblemCode::not_found, .detail = "No approval has this id."}));
  }
  if (!(*fold)->request()) {
    co_return std::unexpected(
        state_refused("The approval is damaged, so nothing was done: " + (*fold)->trouble()));
  }
  co_return *fold;
}

/// False: another process or request has appended; `fold` does not know what.
StoreTask<bool> ApprovalsApi::append(Fold fold, std::string id, std::string line) {
  JournalLine appended;
  auto appending = append_line(parts_.loop, parts_.store, approval_journal(id), fold->last(),
                               std::move(line), appended);
  const auto done = co_await appending;
  if (done && *done) fold->see(appended);
  co_return done;
}

Task<void> ApprovalsApi::drop_old(StoreTime now) {
  StoreCall call = ListJournals{std::string(approval_journals),
                                approval_journal(job_id_before(now - limits::approval_kept)),
                                limits::approvals_page_max};
  auto asking = ask_store(parts_.loop, parts_.store, call);
  const auto listed = co_await asking;
  if (!listed) co_return;
  const auto old = std::get<std::vector<JournalSummary>>(*listed);
  for (const JournalSummary& one : old) {
    StoreCall drop = DropJournal{one.name, one.last};
    auto dropping = ask_store(parts_.loop, parts_.store, drop);
    const auto dropped = co_await dropping;
    if (!dropped) co_return;
  }
}

// ---- reading ----

Task<WireAnswer> ApprovalsApi::page(Fold fold, int status) {
  const ApprovalRequest& request = *fold->request();
  std::optional<Record> record;
  if (const auto id = parse_handle(request.ref)) {
    StoreCall call = Find{*id};
    auto asking = ask_store(parts_.loop, parts_.store, call);
    const auto found = co_await asking;
    if (!found) co_return store_trouble(found.error());
    record = std::get<std::optional<Record>>(*found);
  }
  json::Writer out;
  out.begin_object();
  write_approval(out, *fold);
  out.name("order");
  out.json(request.order);
  out.name("record");
  if (record) {
    out.json(key_summary(*record));
  } else {
    out.null();
  }
  out.end_object();
  WireAnswer answer = json_answer(out.take() + '\n');
  answer.status = status;
  co_return answer;
}

Task<WireAnswer> ApprovalsApi::show(std::string id) {
  auto finding = find(std::move(id));
  const auto fold = co_await finding;
  if (!fold) co_return fold.error();
  auto showing = page(*fold, 200);
  auto answer = co_await showing;
  co_return answer;
}

Task<WireAnswer> ApprovalsApi::list(std::string query) {
  const auto paging =
      parse_paging(query, "cursor", limits::approvals_page_max / 5, limits::approvals_page_max);
  if (!paging) co_return invalid(paging.error());
  if (!paging->cursor.empty() && !parse_handle(paging->cursor)) {
    co_return invalid("cursor: must be the \"next\" of an earlier answer");
  }
  const std::string behind =
      paging->cursor.empty() ? std::string() : approval_journal(paging->cursor);
  StoreCall call = ListJournals{std::string(approval_journals), behind, paging->limit + 1};
  auto asking = ask_store(parts_.loop, parts_.store, call);
  const auto listed = co_await asking;
  if (!listed) co_return store_trouble(listed.error());
  auto names = std::get<std::vector<JournalSummary>>(*listed);
  const bool has_more = names.size() > paging->limit;
  if (has_more) names.resize(paging->limit);
  json::Writer out;
  out.begin_object();
  out.name("approvals");
  out.begin_array();
  for (const JournalSummary& one : names) {
    auto reading = read(one.name.substr(approval_journals.size()));
    const auto fold = co_await reading;
    if (!fold) co_return store_trouble(fold.error());
    if (!(*fold)->request()) continue;
    out.begin_object();
    write_approval(out, **fold);
    out.end_object();
  }
  out.end_array();
  out.name("next");
  if (has_more) {
    out.text(names.back().name.substr(approval_journals.size()));
  } else {
    out.null();
  }
  out.end_object();
  co_return json_answer(out.take() + '\n');
}

// ---- asking ----

Task<WireAnswer> ApprovalsApi::ask(Subject subject, const OrderBody& order) {
  if (!names_a_person(order)) co_return nobody(order);
  if (order.body.size() > limits::approval_order_bytes_max) {
    co_return invalid("An order that needs approvals has at most " +
                      std::to_string(limits::approval_order_bytes_max) + " bytes.");
  }
  StoreCall count = Count{};
  auto counting = ask_store(parts_.loop, parts_.store, count);
  const auto counted = co_await counting;
  if (!counted) co_return store_trouble(counted.error());
  const StoreTime now = std::get<Census>(*counted).now;
  auto dropping = drop_old(now);
  co_await dropping;
  const std::string id = new_job_id(now);
  const ApprovalRequest request{.id = id,
                                .kind = subject.kind,
                                .needs = subject.needs,
                                .by = approver_of(order.signer),
                                .ref = subject.ref,
                                .seen = subject.seen,
                                .order = order.body,
                                .reason = subject.reason,
                                .given_at = subject.given_at.value_or(now)};
  Deciding deciding(parts_, order.signer, "approvals.ask", id);
  auto beginning = deciding.begin(subject.reason, subject.seen);
  auto not_noted = co_await beginning;
  if (not_noted) co_return std::move(*not_noted);
  const auto fold = std::make_shared<ApprovalFold>();
  auto appending = append(fold, id, write_request(request));
  const auto appended = co_await appending;
  auto ending = deciding.end(!appended   ? error_text(appended.error())
                             : *appended ? what_is_asked(request) + " waits for approvals"
                                         : "refused: another approval has this id");
  co_await ending;
  if (!appended) co_return store_trouble(appended.error());
  if (!*appended) co_return state_refused("Another approval has this id; order again.");
  parts_.log(LogLevel::info, "approval_asked",
             {{"approval", id},
              {"kind", std::string(name_of(request.kind))},
              {"ref", request.ref},
              {"source", order.decider}});
  auto showing = page(fold, 202);
  auto answer = co_await showing;
  if (answer.status == 202) {
    answer.headers.push_back({"Location", std::string(approvals_path) + '/' + id});
  }
  co_return answer;
}

// ---- deciding ----

bool ApprovalsApi::is_being_decided(const ApprovalFold& fold, const std::string& id) const {
  if (deciding_.contains(id)) return true;
  // Of a store that only this process uses, another decider is a process that has ended.
  return fold.is_being_decided() && !parts_.store.asked();
}

Task<WireAnswer> ApprovalsApi::approve(std::string id, const OrderBody& received) {
  const auto reason = parse_job_reason(received.body);
  if (!reason) co_return invalid(reason.error());
  if (!names_a_person(received)) co_return nobody(received);
  auto finding = find(id);
  const auto found = co_await finding;
  if (!found) co_return found.error();
  const Fold& fold = *found;
  const std::string state(fold->state());
  if (state != "waiting" && state != "deciding") {
    const std::string why = fold->trouble().empty() ? "" : " (" + fold->trouble() + ")";
    co_return state_refused("The approval is " + state + why + ", so nothing was done.");
  }
  if (is_being_decided(*fold, id))
    co_return state_refused("The decision is being made; look again.");
  if (fold->is_enough()) {
    auto finishing = finish(fold, id, *reason, received);
    auto answer = co_await finishing;
    co_return answer;
  }
  auto giving = give(fold, id, *reason, received);
  auto not_given = co_await giving;
  if (not_given) co_return std::move(*not_given);
  auto making = fold->is_enough() ? decide(fold, id, received) : page(fold, 200);
  auto answer = co_await making;
  co_return answer;
}

// The approvals are there, and what became of the decision is not known.
Task<WireAnswer> ApprovalsApi::finish(Fold fold, std::string id, std::string reason,
                                      const OrderBody& received) {
  Deciding deciding(parts_, received.signer, "approvals.approve", id);
  auto beginning = deciding.begin(std::move(reason), "deciding, " + how_many(*fold));
  auto not_noted = co_await beginning;
  if (not_noted) co_return std::move(*not_noted);
  auto making = decide(fold, id, received);
  auto made = co_await making;
  auto ending = deciding.end(fold->end() ? "finished: " + std::string(name_of(*fold->end())) +
                                               ", " + fold->end_text()
                                         : "not finished: " + text_of(made));
  co_await ending;
  co_return made;
}

/// The answer if the approval could not be given.
Task<std::optional<WireAnswer>> ApprovalsApi::give(Fold fold, std::string id, std::string reason,
                                                   const OrderBody& received) {
  const std::string& who = received.signer.who;
  if (fold->has_given(who)) {
    co_return state_refused(
        who + " has given the approval already; it needs the login of another person.");
  }
  Deciding deciding(parts_, received.signer, "approvals.approve", id);
  auto beginning = deciding.begin(reason, how_many(*fold));
  auto not_noted = co_await beginning;
  if (not_noted) co_return not_noted;
  auto appending = append(fold, id, write_approve(approver_of(received.signer), reason));
  const auto appended = co_await appending;
  const bool is_given = appended && *appended && fold->has_given(who);
  auto ending = deciding.end(is_given    ? "given"
                             : !appended ? error_text(appended.error())
                                         : "refused: it has changed or is over");
  co_await ending;
  if (!appended) co_return store_trouble(appended.error());
  if (!is_given)
    co_return state_refused("The approval has changed meanwhile, or is over; look again.");
  co_return std::nullopt;
}

// Who appends the line may make the decision. After a crash another one appends a further line and
// makes it, unless the evidence, the history or the job says that it was made.
Task<WireAnswer> ApprovalsApi::decide(Fold fold, std::string id, const OrderBody& received) {
  auto appending = append(fold, id, write_deciding(received.signer.who));
  const auto appended = co_await appending;
  if (!appended) co_return store_trouble(appended.error());
  if (!*appended) co_return state_refused("Another one makes the decision; look again.");
  const ApprovalRequest& request = *fold->request();
  std::string others;
  for (const std::string& who : fold->given_by()) {
    if (who != request.by.who) others += (others.empty() ? "" : ", ") + who;
  }
  AuditEntry signer;
  signer.who = request.by.who;
  signer.role = request.by.role;
  signer.login = request.by.login;
  signer.peer = request.by.peer;
  const OrderBody order{
      .body = request.order,
      .decider = "operator:" + request.by.who,
      .signer = std::move(signer),
      .approved = Approved{id, request.seen, request.given_at, others},
  };
  deciding_.insert(id);
  auto making = decide_(request, order);
  auto made = co_await making;
  deciding_.erase(id);
  auto ending = end(fold, id, received, std::move(made));
  auto answer = co_await ending;
  co_return answer;
}

Task<WireAnswer> ApprovalsApi::end(Fold fold, std::string id, const OrderBody& received,
                                   WireAnswer made) {
  // Whether the decision was made is not known: it stays to be finished.
  if (made.status >= 500) co_return made;
  const bool is_made = made.status < 300;
  const std::string text = is_made ? "done" : text_of(made);
  const auto how = is_made ? ApprovalEnd::decided : ApprovalEnd::refused;
  for (int tries = 0; tries < limits::audit_tries_max; ++tries) {
    auto appending = append(fold, id, write_end(how, received.signer.who, made.status, text));
    const auto appended = co_await appending;
    if (!appended) co_return store_trouble(appended.error());
    if (*appended) {
      parts_.log(is_made ? LogLevel::info : LogLevel::warning, "approval_ended",
                 {{"approval", id},
                  {"how", std::string(name_of(how))},
                  {"source", received.decider},
                  {"outcome", text}});
      if (!is_made) co_return made;
      auto showing = page(fold, 200);
      auto answer = co_await showing;
      co_return answer;
    }
    // Another process took this one for dead.
    auto reading = read(id);
    auto now = co_await reading;
    if (!now) co_return store_trouble(now.error());
    *fold = std::move(**now);
    if (fold->state() != "deciding") break;
    // What this process did not do, the other one may be doing.
    if (!is_made) co_return elsewhere();
  }
  if (fold->state() == "deciding") co_return elsewhere();
  if (fold->end() == ApprovalEnd::decided) {
    auto showing = page(fold, 200);
    auto answer = co_await showing;
    co_return answer;
  }
  co_return state_refused("The approval is " + std::string(fold->state()) + ": " +
                          (fold->trouble().empty() ? fold->end_text() : fold->trouble()) +
                          (is_made ? ". The decision was made all the same." : ""));
}

Task<WireAnswer> ApprovalsApi::reject(std::string id, const OrderBody& received) {
  const auto reason = parse_job_reason(received.body);
  if (!reason) co_return invalid(reason.error());
  auto finding = find(id);
  const auto found = co_await finding;
  if (!found) co_return found.error();
  const Fold& fold = *found;
  if (fold->state() != "waiting") {
    co_return state_refused("The approval is " + std::string(fold->state()) +
                            ", so nothing was done.");
  }
  Deciding deciding(parts_, received.signer, "approvals.reject", id);
  auto beginning = deciding.begin(*reason, fold->request()->seen);
  auto not_noted = co_await beginning;
  if (not_noted) co_return std::move(*not_noted);
  auto appending =
      append(fold, id, write_end(ApprovalEnd::rejected, received.signer.who, 0, *reason));
  const auto appended = co_await appending;
  auto ending = deciding.end(!appended   ? error_text(appended.error())
                             : *appended ? "rejected"
                                         : "refused: it has changed");
  co_await ending;
  if (!appended) co_return store_trouble(appended.error());
  if (!*appended) co_return state_refused("The approval has changed meanwhile; look again.");
  auto showing = page(fold, 200);
  auto answer = co_await showing;
  co_return answer;
}

}  // namespace idem::admin
