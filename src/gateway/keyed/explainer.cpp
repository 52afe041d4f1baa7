#include "gateway/keyed/explainer.hpp"

#include "core/exchange/error_form.hpp"
#include "core/record/store_clock.hpp"
#include "core/transitions/foresight.hpp"
#include "gateway/auth/authority.hpp"
#include "gateway/forward.hpp"
#include "gateway/keyed/async_request.hpp"
#include "gateway/keyed/explained_fingerprint.hpp"
#include "gateway/keyed/explained_head.hpp"
#include "gateway/keyed/judged_key.hpp"
#include "gateway/keyed/keyed_exchange.hpp"
#include "gateway/keyed/reserve.hpp"
#include "gateway/keyed/shadow_record.hpp"
#include "gateway/way_in.hpp"
#include "http/server_stream.hpp"
#include "loop/store_link.hpp"

#include <algorithm>

namespace idem::gateway {
namespace {

using ForeseenOutcome = Explanation::Outcome;

/// How the exchange would go on.
struct Course {
  std::optional<WireAnswer> answer;  ///< None: the upstream is asked.
  bool waits = false;
};

/// To the first step that is not the store's.
Course course_of(Exchange& exchange, StoreResult result, MonotonicTime now) {
  Course course;
  ExchangeAction action = exchange.on(StoreAnswered{std::move(result)}, now);
  if (auto* wait = std::get_if<WaitFor>(&action)) {
    course.waits = true;
    const MonotonicTime until = wait->until;
    action = exchange.on(WaitOver{}, until);
  }
  if (auto* answer = std::get_if<AnswerClient>(&action)) course.answer = std::move(answer->answer);
  return course;
}

/// One request on its way. Each step that decides returns true.
class Case {
 public:
  Case(Loop& loop, Store& store, ScopeReader& scopes, SharedSettings settings,
       const RequestInQuestion& request)
      : loop_(loop),
        store_(store),
        scopes_(scopes),
        settings_(std::move(settings)),
        request_(request),
        text_(request),
        head_(text_.head()),
        form_(unrouted_form(settings_->routes)) {}

  Task<Explained> run() {
    if (!decided_by_head() && !decided_by_scope()) {
      auto deciding = decide();
      auto decided = co_await std::move(deciding);
      if (!decided) {
        co_return std::unexpected(NotExplained{.store = std::move(decided.error())});
      }
    }
    for (const std::string& sentence : notes_) out_.why += (out_.why.empty() ? "" : " ") + sentence;
    co_return std::move(out_);
  }

 private:
  using Done = std::expected<void, StoreError>;

  /// In the order of the gateway's way with a keyed request.
  Task<Done> decide() {
    JudgedKey judged = judge_key(head_, *settings_, *route_, wall_time());
    if (judged.key) note_key(*judged.key);
    if (judged.is_refused) {
      refuse(to_answer(*judged.new_key_rejection));
      co_return Done();
    }
    if (judged.new_key_rejection) {
      auto looking = existing_key(loop_, store_, head_, *settings_, *route_, scope_);
      auto existing = co_await std::move(looking);
      if (!existing) co_return std::unexpected(std::move(existing.error()));
      if (!*existing) {
        refuse_new_key(*judged.new_key_rejection);
        co_return Done();
      }
      judged.key = std::move(**existing);
      note_key(*judged.key);
    }
    if (request_.body.size() > route_->request_body_bytes_max) {
      refuse(to_answer(http::problem_of(http::body_too_large)));
      co_return Done();
    }
    const Problem* const rejection =
        judged.new_key_rejection ? &*judged.new_key_rejection : nullptr;
    const RequestParts parts{scope_, *out_.operation, *judged.key, request_.body, rejection};
    auto deciding = by_record(parts);
    auto decided = co_await std::move(deciding);
    co_return decided;
  }

  bool decided_by_head() {
    if (const auto parsed = text_.parse(); !parsed) {
      return refuse(to_answer(http::problem_of(parsed.error())));
    }
    if (own_path(head_) != OwnPath::none) {
      return pass("The gateway answers this path itself; nothing reaches the upstream.");
    }
    const WayIn way = way_in(head_, *settings_);
    if (way.kind == WayIn::Kind::loops) return refuse(to_answer(loop_problem()));
    route_ = way.route;
    form_ = error_form_of(route_->answers.preset);
    out_.route = route_->label();
    out_.in_shadow = route_->in_shadow();
    if (way.kind == WayIn::Kind::refused) {
      return refuse(to_answer(http::problem_of(way.refusal)));
    }
    out_.operation = route_->operation(head_.method, http::path_of(head_.origin_form));
    if (way.kind == WayIn::Kind::passes) {
      return pass(carries_key(head_, *settings_)
                      ? "The method is safe, so its key is not looked at."
                      : "The request has no key, and this route and method need none.");
    }
    if (out_.in_shadow) {
      note(
          "The route is in shadow: the request passes as it came. This is what enforce: on would "
          "do, by what was observed of earlier requests.");
    }
    if (const auto refusal = refused_by_head(head_, *settings_, *route_)) {
      return refuse(to_answer(http::problem_of(*refusal)));
    }
    return false;
  }

  bool decided_by_scope() {
    const ScopeSource& source = settings_->scope;
    if (request_.scope) {
      scope_ = *request_.scope;
      note("The scope is the one that was named beside the request.");
    } else {
      const auto read = scopes_.read(head_, std::nullopt, *settings_);
      if (!read) {
        refuse(scope_missing(*settings_, read.error()));
        if (source.kind == ScopeSource::Kind::mtls) {
          note("The scope comes from the client's certificate, which is not known here: name it.");
        }
        return true;
      }
      scope_ = *read;
      if (!source.trusted_proxies.empty()) {
        note("The field " + source.name + " counts only from a trusted proxy.");
      }
    }
    out_.scope = scope_;
    if (!settings_->authorize) return false;
    if (auto refused = refused_unasked(head_)) return refuse(*refused);
    note("The authoriser was not asked: it may refuse this caller.");
    return false;
  }

  void note_key(std::string_view key) {
    for (const auto& field : head_.fields) {
      if (!is_key_field(field.name, *settings_)) continue;
      const bool is_quoted = field.value.starts_with('"');
      out_.key = {std::string(field.name), is_quoted ? "quoted" : "bare", key.size()};
    }
  }

  void refuse_new_key(const Problem& problem) {
    refuse(to_answer(problem));
    const auto key = read_key(head_, *settings_, KeyOptions{});
    if (!key) return;
    note_key(*key);
    out_.id =
        possible_ids(head_, store_.identity(), *settings_, *route_, scope_, *key, route_->enforce)
            .front();
    note("The key has no record.");
  }

  Task<Done> by_record(RequestParts parts) {
    const Identity& identity = store_.identity();
    auto reserve = make_reserve(head_, parts, identity, *settings_, *route_);
    if (!reserve) {
      refuse(to_answer(http::problem_of(reserve.error())));
      co_return Done();
    }
    out_.id = reserve->id;
    out_.fingerprint = explained_fingerprint(request_, head_, *settings_, *route_);
    const bool async = !out_.in_shadow && is_async(head_, *route_);
    const auto exchange = make_exchange(head_, parts, std::move(*reserve), identity, *settings_,
                                        *route_, async, ExchangeSettings{}.look_again, {});
    const MonotonicTime started = MonotonicClock::now();
    ExchangeAction first = exchange->start(started);
    const StoreCall call = std::move(std::get<Ask>(first).call);
    const auto* accept = std::get_if<Accept>(&call);
    auto reading = read_records(accept != nullptr ? accept->as : std::get<Reserve>(call));
    auto read = co_await std::move(reading);
    if (!read) co_return read;
    Foreseen foreseen = foresee(call, table_, now_);
    if (out_.in_shadow && foreseen.result) {
      foreseen.result = as_enforced(std::get<ReserveOutcome>(std::move(*foreseen.result)));
    }
    judge(foreseen);
    const Course course = course_of(*exchange, std::move(foreseen.result), started);
    if (course.answer) note_answer(*course.answer);
    const bool is_said_there = out_.outcome == ForeseenOutcome::refused || out_.why.empty();
    if (is_said_there && course.answer && course.answer->problem) {
      out_.why = course.answer->problem->detail;
    }
    if (course.waits) note("The request waits for it first, for its time at most.");
    if (out_.outcome == ForeseenOutcome::misuse) compare();
    if (out_.outcome == ForeseenOutcome::execute && settings_->quota) {
      note("The quota of the scope was not looked at.");
    }
    co_return Done();
  }

  /// Into table_, with the store's clock.
  Task<Done> read_records(const Reserve& names) {
    StoreCall count = Count{};
    auto counting = ask_store(loop_, store_, count);
    auto counted = co_await counting;
    if (!counted) co_return std::unexpected(std::move(counted.error()));
    now_ = std::get<Census>(*counted).now;
    std::vector<RecordId> ids{names.id};
    for (const OtherName& other : names.also) ids.push_back(other.id);
    for (const RecordId& id : ids) {
      StoreCall find = Find{id};
      auto asking = ask_store(loop_, store_, find);
      auto found = co_await asking;
      if (!found && found.error().code != StoreError::Code::damaged) {
        co_return std::unexpected(std::move(found.error()));
      }
      if (!found) {
        table_.put(id, std::unexpected(std::move(found.error())));
      } else {
        table_.put(id, std::get<std::optional<Record>>(std::move(*found)));
      }
    }
    co_return Done();
  }

  void judge(const Foreseen& foreseen) {
    if (!foreseen.result) {  // Damaged, or refused by every store.
      out_.outcome = ForeseenOutcome::refused;
      out_.why = foreseen.result.error().detail;
      if (foreseen.result.error().record) out_.id = foreseen.result.error().record;
      return;
    }
    std::visit([&](const auto& outcome) { judge(outcome, foreseen.write); },
               std::get<ReserveOutcome>(*foreseen.result));
  }

  /// The record of an outcome, as it was found.
  void found(const RecordId& id) {
    out_.id = id;
    auto row = table_.load(id, RecordTable::Parts::all, now_);
    if (row && *row) out_.record = std::move((*row)->record);
    if (out_.record && out_.fingerprint) out_.fingerprint->matches = true;
  }

  void judge(const Execute& execute, const RecordWrite&) {
    found(execute.id);
    out_.outcome = ForeseenOutcome::execute;
    if (!out_.record) {
      out_.why = "The key has no record: the request is sent to the upstream, once.";
    } else if (out_.record->state == State::failed_retryable) {
      out_.why = "An earlier attempt ended without running: the request is sent to the upstream.";
    } else {
      out_.why =
          "The lease of an earlier attempt is over, and this route runs such a request again.";
    }
  }

  void judge(const Pending& pending, const RecordWrite& write) {
    found(pending.id);
    const bool is_stored_now = write.after && write.change.request;
    out_.outcome = is_stored_now ? ForeseenOutcome::execute : ForeseenOutcome::in_progress;
    if (is_stored_now) {
      out_.why = out_.record ? "An earlier attempt ended without running: the request is stored, "
                               "to be sent later."
                             : "The key has no record: the request is stored, to be sent later.";
    } else {
      out_.why = "The request is stored already and waits to be sent, or is being sent.";
    }
  }

  void judge(const Replay& replay, const RecordWrite&) {
    found(replay.id);
    out_.outcome = ForeseenOutcome::replay;
    out_.why = replay.response.body_stored
                   ? "The operation has completed: the stored answer is given again."
                   : "The operation has completed, and the body of its answer was not kept.";
  }

  void judge(const InProgress& running, const RecordWrite&) {
    found(running.id);
    out_.outcome = ForeseenOutcome::in_progress;
    out_.why = "An attempt with this key is running, and its lease holds.";
  }

  void judge(const KeyMisuse& misuse, const RecordWrite&) {
    found(misuse.id);
    out_.outcome = ForeseenOutcome::misuse;
    if (out_.fingerprint) {
      out_.fingerprint->matches = misuse.is_other ? std::optional(false) : std::nullopt;
    }
    if (misuse.is_other) {
      out_.why = "The key was used for another request: the fingerprints differ.";
    }
  }

  void judge(const Unknown& unknown, const RecordWrite&) {
    found(unknown.id);
    out_.outcome = ForeseenOutcome::unknown;
    out_.why =
        "An earlier attempt was sent, and nothing shows how it ended: it is not run again until "
        "evidence settles it.";
  }

  void judge(const Expired& expired, const RecordWrite&) {
    found(expired.id);
    out_.outcome = ForeseenOutcome::expired;
    out_.why = "The operation completed, and its answer is no longer kept: it is not run again.";
  }

  void judge(const QuotaExceeded&, const RecordWrite&) { out_.outcome = ForeseenOutcome::refused; }

  void compare() {
    if (!out_.record) return;
    auto compared = compared_parts(head_, request_.body, *out_.record, store_.identity(),
                                   *settings_, *route_, limits::digest_on_loop_bytes_max);
    out_.differences = std::move(compared.differences);
    note(std::move(compared.why));
  }

  bool pass(std::string why) {
    out_.outcome = ForeseenOutcome::pass;
    out_.why = std::move(why);
    return true;
  }

  bool refuse(const WireAnswer& answer) {
    out_.outcome = ForeseenOutcome::refused;
    out_.why = answer.problem ? answer.problem->detail : "";
    note_answer(answer);
    return true;
  }

  /// As the route writes it.
  void note_answer(const WireAnswer& answer) {
    out_.answer.status = answer.status;
    if (!answer.problem) return;
    if (form_ == ErrorForm::stripe) out_.answer.status = in_stripe_form(answer, false).status;
    const ProblemKind& kind = kind_of(answer.problem->code);
    out_.answer.code = kind.name;
    out_.answer.retry = name_of(answer.problem->retry.value_or(kind.retry));
  }

  void note(std::string sentence) { notes_.push_back(std::move(sentence)); }

  Loop& loop_;
  Store& store_;
  ScopeReader& scopes_;
  const SharedSettings settings_;
  const RequestInQuestion& request_;
  ExplainedHead text_;
  const http::RequestHead& head_;
  ErrorForm form_;
  const Route* route_ = nullptr;
  std::string scope_;
  SnapshotTable table_;
  StoreTime now_{};
  Explanation out_;
  std::vector<std::string> notes_;  ///< What cannot be known, for `why`.
};

}  // namespace

Task<Explained> Explainer::explain(SharedSettings settings, const RequestInQuestion& request) {
  if (auto wrong = ExplainedHead::why_not(request)) {
    co_return std::unexpected(NotExplained{.wrong = std::move(*wrong)});
  }
  Case one(loop_, store_, scopes_, std::move(settings), request);
  auto explained = co_await one.run();
  co_return explained;
}

}  // namespace idem::gateway
