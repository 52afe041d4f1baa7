#include "admin/jobs_api.hpp"

#include "admin/deciding.hpp"
#include "admin/jobs_json.hpp"
#include "admin/orders.hpp"
#include "admin/paging.hpp"
#include "admin/replies.hpp"
#include "core/bytes/digests.hpp"
#include "core/bytes/hex.hpp"
#include "core/record/store_clock.hpp"

#include <idem/job_limits.hpp>
#include <idem/limits.hpp>

namespace idem::admin {
namespace {

using Code = StoreError::Code;

constexpr std::string_view jobs_path = "/v1/jobs";

WireAnswer no_such_job() {
  return to_answer({.code = ProblemCode::not_found, .detail = "No job has this id."});
}

/// The count that the operator has to confirm.
WireAnswer other_count(std::uint64_t expected, std::size_t count) {
  WireAnswer answer =
      state_refused("Now " + std::to_string(count) + " match, not " + std::to_string(expected) +
                    ". Nothing was begun; look again, and expect this number.");
  answer.body.insert(answer.body.rfind('}'), ",\"count\":" + std::to_string(count));
  return answer;
}

std::string digest_of(const std::vector<JobTarget>& targets) {
  std::string all;
  for (const JobTarget& one : targets) {
    all += to_hex(one.id.bytes) + ' ' + std::to_string(one.fence) + '\n';
  }
  return to_hex(sha256(all));
}

/// What one decision of the job is. None: no approval is for it alone.
std::optional<ApprovalKind> kind_of(JobWhat what) {
  switch (what) {
    case JobWhat::resolve:
      return ApprovalKind::resolve;
    case JobWhat::release:
      return ApprovalKind::release;
    case JobWhat::discard:
      return ApprovalKind::discard;
    case JobWhat::redrive:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

JobsApi::JobsApi(AdminParts& parts, metrics::Shard& shard, Offload& offload,
                 ApprovalsApi& approvals)
    : parts_(parts),
      offload_(offload),
      approvals_(approvals),
      journals_(parts.loop, parts.store),
      decisions_({.loop = parts.loop,
                  .store = parts.store,
                  .offload = offload,
                  .shard = shard,
                  .grace = parts.evidence_grace,
                  .log = parts.log}),
      runner_({.loop = parts.loop,
               .store = parts.store,
               .journals = journals_,
               .decisions = decisions_,
               .audit = parts.audit,
               .draining = parts.draining,
               .log = parts.log}) {}

Task<WireAnswer> JobsApi::answer_to(http::ServerStream& client, const Caller& caller) {
  const auto& head = client.head();
  const std::string target(head.origin_form);
  const std::string path = target.substr(0, target.find('?'));
  const std::string query = path.size() < target.size() ? target.substr(path.size() + 1) : "";
  const bool is_get = head.method == "GET";
  const std::string rest = path == jobs_path ? "" : path.substr(jobs_path.size() + 1);
  if (is_get && rest.empty()) {
    auto page = co_await list(query);
    co_return page;
  }
  const std::string id = rest.substr(0, rest.find('/'));
  const std::string what = rest.substr(std::min(id.size() + 1, rest.size()));
  const bool has_id = !rest.empty() && rest != "preview";
  if (has_id && !parse_handle(id)) {
    co_return invalid("The id of a job has 32 hexadecimal digits in lower case.");
  }
  if (is_get && what == "results") {
    auto page = co_await results(id, query);
    co_return page;
  }
  if (!query.empty()) co_return invalid("This path has no parameters.");
  if (is_get) {
    auto page = co_await show(id);
    co_return page;
  }
  if (rest == "preview") {
    if (!is_json(head)) co_return invalid("Content-Type must be application/json.", 415);
    auto body = co_await client.read_body(limits::admin_body_bytes_max, parts_.spill);
    if (!body) co_return to_answer(http::problem_of(body.error()));
    auto previewing = preview(std::string(body->bytes()));
    auto page = co_await previewing;
    co_return page;
  }
  auto reading = read_order(parts_, client, caller);
  const auto order = co_await reading;
  if (!order) co_return order.error();
  auto deciding = has_id ? cancel(id, *order) : make(*order);
  auto answer = co_await deciding;
  co_return answer;
}

// ---- reading ----

Task<WireAnswer> JobsApi::list(std::string query) {
  const auto paging =
      parse_paging(query, "cursor", limits::jobs_page_max / 5, limits::jobs_page_max);
  if (!paging) co_return invalid(paging.error());
  if (!paging->cursor.empty() && !parse_handle(paging->cursor)) {
    co_return invalid("cursor: must be the \"next\" of an earlier answer");
  }
  auto listing = journals_.list(paging->cursor, paging->limit);
  const auto page = co_await listing;
  if (!page) co_return store_trouble(page.error());
  std::vector<std::shared_ptr<const JobFold>> jobs;
  for (const std::string& id : page->ids) {
    auto reading = journals_.summary(id);
    const auto job = co_await reading;
    if (!job) co_return store_trouble(job.error());
    const bool is_shown = *job != nullptr && (*job)->definition() &&
                          ((*job)->has_begun() || !(*job)->trouble().empty());
    if (is_shown) jobs.push_back(*job);
  }
  co_return json_answer(jobs_page(jobs, page->next));
}

Task<std::expected<std::shared_ptr<JobFold>, WireAnswer>> JobsApi::find(std::string id) {
  auto reading = journals_.read(id);
  auto job = co_await reading;
  if (!job) co_return std::unexpected(store_trouble(job.error()));
  const bool is_damaged = *job != nullptr && !(*job)->trouble().empty();
  if (is_damaged && !(*job)->definition()) {
    co_return std::unexpected(state_refused("The job is damaged: " + (*job)->trouble() + "."));
  }
  const bool is_there =
      *job != nullptr && (*job)->definition() && ((*job)->has_begun() || is_damaged);
  if (!is_there) co_return std::unexpected(no_such_job());
  co_return std::move(*job);
}

Task<WireAnswer> JobsApi::show(std::string id) {
  auto finding = find(std::move(id));
  const auto job = co_await finding;
  if (!job) co_return job.error();
  co_return json_answer(job_page(**job));
}

Task<WireAnswer> JobsApi::results(std::string id, std::string query) {
  const auto paging =
      parse_paging(query, "after", limits::list_page_default, limits::list_page_max);
  if (!paging) co_return invalid(paging.error());
  std::size_t after = 0;
  if (!paging->cursor.empty()) {
    const auto number = whole_number(paging->cursor, limits::job_records_max);
    if (!number) co_return invalid("after: " + number.error());
    after = *number;
  }
  auto finding = find(std::move(id));
  const auto job = co_await finding;
  if (!job) co_return job.error();
  co_return json_answer(job_results_page(**job, after, paging->limit));
}

Task<WireAnswer> JobsApi::preview(std::string body) {
  auto asking = journals_.now();
  const auto now = co_await asking;
  if (!now) co_return store_trouble(now.error());
  const auto request = parse_job_preview(body, *now, parts_.parse_duration);
  if (!request) co_return invalid(request.error());
  auto finding = find_targets(parts_.loop, parts_.store, offload_, request->search);
  const auto matched = co_await finding;
  if (!matched) co_return store_trouble(matched.error());
  co_return json_answer(job_preview(matched->targets, matched->is_whole));
}

// ---- deciding ----

Task<std::expected<Matched, WireAnswer>> JobsApi::match(const JobRequest& request) {
  auto finding = find_targets(parts_.loop, parts_.store, offload_, request.search);
  auto matched = co_await finding;
  if (!matched) co_return std::unexpected(store_trouble(matched.error()));
  if (!matched->is_whole) {
    co_return std::unexpected(state_refused(
        "More match than the " + std::to_string(limits::job_records_max) +
        " that one job may have, or too many had to be read. Nothing was begun; narrow "
        "the filter."));
  }
  if (matched->targets.size() != request.expected) {
    co_return std::unexpected(other_count(request.expected, matched->targets.size()));
  }
  co_return std::move(*matched);
}

Task<WireAnswer> JobsApi::decide(const ApprovalRequest& request, const OrderBody& order) {
  auto looking = made_before(request.id);
  auto before = co_await looking;
  if (before) co_return std::move(*before);
  auto making = make(order);
  auto answer = co_await making;
  if (answer.status < 400 || answer.status >= 500) co_return answer;
  // Another process, which was thought dead, may have begun it meanwhile: then others match now.
  auto looking_again = made_before(request.id);
  auto behind = co_await looking_again;
  co_return behind ? std::move(*behind) : std::move(answer);
}

Task<std::optional<WireAnswer>> JobsApi::made_before(std::string id) {
  // Twice, because the marker that is gone may be that of a job which has begun and ended since.
  for (const bool is_last : {false, true}) {
    auto reading = journals_.read(id);
    const auto job = co_await reading;
    if (!job) co_return store_trouble(job.error());
    const bool is_there = *job != nullptr;
    if (is_there && (*job)->has_begun()) co_return json_answer(job_page(**job));
    if (is_there && !(*job)->trouble().empty()) {
      co_return store_trouble({Code::damaged, "job " + id + ": " + (*job)->trouble()});
    }
    if (is_last && is_there) {
      co_return state_refused(
          "The writing of the job was interrupted. Nothing was begun; order anew.");
    }
    if (is_last) break;
    auto asking = journals_.open_for(id);
    const auto open = co_await asking;
    if (!open) co_return store_trouble(open.error());
    if (!*open) continue;
    // Its writer may begin it at any moment, or has ended: then its lines are dropped.
    co_return store_trouble({Code::unavailable,
                             "The job is being written down; look whether it has begun, and "
                             "approve once more after 5 minutes if it has not."});
  }
  co_return std::nullopt;
}

Task<WireAnswer> JobsApi::make(const OrderBody& received) {
  auto asking = journals_.now();
  auto now = co_await asking;
  if (!now) co_return store_trouble(now.error());
  // Ages count back from the moment at which the number of records was seen.
  if (received.approved) now = received.approved->given_at;
  auto request = parse_job(received.body, *now, parts_.parse_duration);
  if (!request) co_return invalid(request.error());
  // Of an approved order this was looked at when it was given.
  if (request->observed_at && !received.approved) {
    const auto why_not = why_incomparable(*request->observed_at, *now, wall_time());
    if (why_not) co_return invalid("/order" + *why_not);
  }
  auto counting = journals_.open_jobs();
  const auto open = co_await counting;
  if (!open) co_return store_trouble(open.error());
  if (open->size() >= limits::jobs_open_max) {
    const std::string why =
        std::to_string(open->size()) +
        " jobs are open, and more are not begun; wait for one to end, or cancel it.";
    // The approvals stay good for a job that only has to wait.
    if (received.approved) co_return store_trouble({Code::unavailable, why});
    co_return state_refused(why);
  }
  auto beginning = begin(std::move(*request), received, *now);
  auto answer = co_await beginning;
  co_return answer;
}

// A job is no way around the approvals that a single decision needs.
Task<std::optional<WireAnswer>> JobsApi::in_place_of(const JobRequest& request,
                                                     const Matched& matched, StoreTime now,
                                                     const OrderBody& received) {
  const std::string seen = std::string(name_of(request.order.what)) + " of " +
                           std::to_string(matched.targets.size()) +
                           " records, records_sha256=" + digest_of(matched.targets);
  if (received.approved) {
    if (seen != received.approved->seen) co_return changed_since(received, seen);
    co_return std::nullopt;
  }
  const ApprovalSettings& needed = parts_.login.approvals();
  unsigned needs = needed.of(ApprovalKind::jobs);
  if (const auto kind = kind_of(request.order.what)) needs = std::max(needs, needed.of(*kind));
  if (needs <= 1) co_return std::nullopt;
  auto asking = approvals_.ask({.kind = ApprovalKind::jobs,
                                .needs = needs,
                                .seen = seen,
                                .reason = request.order.reason,
                                .given_at = now},
                               received);
  auto answer = co_await asking;
  co_return answer;
}

Task<WireAnswer> JobsApi::begin(JobRequest request, const OrderBody& received, StoreTime now) {
  auto matching = match(request);
  auto matched = co_await matching;
  if (!matched) co_return matched.error();
  auto gating = in_place_of(request, *matched, now, received);
  auto instead = co_await gating;
  if (instead) co_return std::move(*instead);
  request.order.reason += received.note();
  auto beginning = begin_with(std::move(request), received, now, std::move(*matched));
  auto answer = co_await beginning;
  co_return answer;
}

Task<WireAnswer> JobsApi::begin_with(JobRequest request, const OrderBody& received, StoreTime now,
                                     Matched matched) {
  const AuditEntry& signer = received.signer;
  const StoreTime looked_at = request.observed_at.value_or(now);
  JobDefinition definition{.id = received.approved ? received.approved->id : new_job_id(now),
                           .by = {signer.who, signer.role, signer.login, signer.peer},
                           .order = std::move(request.order),
                           .count = matched.targets.size(),
                           .observed_at = looked_at,
                           .grace = parts_.evidence_grace};
  const std::string id = definition.id;
  const std::string reason = definition.order.reason;
  const std::string what(name_of(definition.order.what));
  Deciding deciding(parts_, signer, "jobs.begin", id);
  auto noting =
      deciding.begin(reason, what + " of " + std::to_string(definition.count) +
                                 " records, records_sha256=" + digest_of(matched.targets));
  auto not_noted = co_await noting;
  if (not_noted) co_return std::move(*not_noted);
  auto writing = journals_.begin(std::move(definition), matched.targets);
  const auto job = co_await writing;
  auto ending = deciding.end(job ? "begun" : error_text(job.error()));
  co_await ending;
  parts_.log(job ? LogLevel::info : LogLevel::warning, "job_begun",
             {{"job", id},
              {"what", what},
              {"records", matched.targets.size()},
              {"source", received.decider},
              {"reason", reason},
              {"done", job ? "yes" : "no"}});
  if (!job) {
    StoreError error = job.error();
    error.detail += " (job " + id + "; if it has begun, idem jobs list shows it)";
    co_return store_trouble(error);
  }
  runner_.look_at(id);
  WireAnswer answer = json_answer(job_page(**job));
  answer.status = 202;
  answer.headers.push_back({"Location", std::string(jobs_path) + '/' + id});
  co_return answer;
}

Task<WireAnswer> JobsApi::cancel(std::string id, const OrderBody& received) {
  const auto reason = parse_job_reason(received.body);
  if (!reason) co_return invalid(reason.error());
  auto reading = journals_.read(id);
  const auto found = co_await reading;
  if (!found) co_return store_trouble(found.error());
  const std::shared_ptr<JobFold>& job = *found;
  const bool is_damaged = job != nullptr && !job->trouble().empty();
  if (is_damaged && job->lacks_a_secret()) {
    co_return state_refused("Not cancelled: " + job->trouble() + ".");
  }
  if (is_damaged) {
    auto closing = close_damaged(id, *reason, job->trouble(), received);
    auto answer = co_await closing;
    co_return answer;
  }
  if (job == nullptr || !job->has_begun()) co_return no_such_job();
  if (job->end()) co_return state_refused("The job has ended.");
  Deciding deciding(parts_, received.signer, "jobs.cancel", id);
  auto noting = deciding.begin(*reason, "done=" + std::to_string(job->done()) +
                                            " refused=" + std::to_string(job->refused()) +
                                            " left=" + std::to_string(job->left()));
  auto not_noted = co_await noting;
  if (not_noted) co_return std::move(*not_noted);
  std::string after;
  std::optional<StoreError> failure;
  for (int tries = 0; after.empty() && tries < limits::audit_tries_max; ++tries) {
    if (job->end() || !job->trouble().empty()) {
      after = job->end() ? "refused: the job has ended" : "refused: " + job->trouble();
      break;
    }
    if (job->cancel()) after = "cancelled";
    if (!after.empty()) break;
    auto appending = journals_.append(job, id, write_line(JobCancel{received.signer.who, *reason}));
    const auto appended = co_await appending;
    if (appended && *appended) after = "cancelled";
    if (!appended) {
      failure = appended.error();
      break;
    }
  }
  if (after.empty()) {
    after = failure ? error_text(*failure) : failure_text("the job keeps writing its results");
  }
  auto ending = deciding.end(after);
  co_await ending;
  parts_.log(LogLevel::info, "job_cancel",
             {{"job", id}, {"source", received.decider}, {"reason", *reason}, {"result", after}});
  if (failure) co_return store_trouble(*failure);
  if (after != "cancelled") co_return state_refused("Not cancelled: " + after + ".");
  runner_.look_at(id);
  co_return json_answer(job_page(*job));
}

// No process goes on with such a job, and none reads a line behind the damaged one. Without its
// marker it holds no place among the open ones.
Task<WireAnswer> JobsApi::close_damaged(std::string id, std::string reason, std::string trouble,
                                        const OrderBody& received) {
  Deciding deciding(parts_, received.signer, "jobs.cancel", id);
  auto noting = deciding.begin(reason, "damaged: " + trouble);
  auto not_noted = co_await noting;
  if (not_noted) co_return std::move(*not_noted);
  auto closing = journals_.close(id);
  const auto closed = co_await closing;
  const std::string after = closed ? "closed: it is damaged" : error_text(closed.error());
  auto ending = deciding.end(after);
  co_await ending;
  parts_.log(LogLevel::info, "job_cancel",
             {{"job", id}, {"source", received.decider}, {"reason", reason}, {"result", after}});
  if (!closed) co_return store_trouble(closed.error());
  co_return state_refused(
      "The job is damaged (" + trouble +
      "), so no process goes on with it. The evidence of its records names what was decided. It is "
      "closed, and holds no place among the open jobs.");
}

}  // namespace idem::admin
