#include "admin/outbox.hpp"

#include "admin/deciding.hpp"
#include "admin/outbox_json.hpp"
#include "admin/outbox_orders.hpp"
#include "admin/replies.hpp"
#include "core/bytes/hex.hpp"
#include "core/exchange/problem.hpp"

#include <idem/limits.hpp>
#include <idem/open_store.hpp>
#include <idem/worker_limits.hpp>

namespace idem::admin {
namespace {

constexpr std::string_view outbox = "/v1/outbox";
constexpr std::string_view dead_letters = "/v1/dlq";

bool is_under(std::string_view path, std::string_view folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

WireAnswer unavailable(std::string why) {
  return store_trouble({StoreError::Code::unavailable, std::move(why)});
}

/// Which dead letters an order is about.
std::string text_of(const DeadLetters& which) {
  if (!which.id.empty()) return which.id;
  std::string text = which.destination.empty() ? "" : "destination=" + which.destination;
  if (!which.type.empty()) text += (text.empty() ? "type=" : " type=") + which.type;
  return text.empty() ? "all" : text;
}

/// The messages by verdict: their number, and the first ids.
std::string came_of(const std::vector<Ordered>& ordered) {
  std::string text = std::to_string(ordered.size()) + " messages";
  for (const Ordered& one : ordered) {
    if (text.size() > limits::audit_text_bytes_max / 2) return text + " and more";
    text += ' ' + one.id + '=' + std::string(one.verdict);
  }
  return text;
}

WireAnswer no_such_message() {
  return to_answer({.code = ProblemCode::not_found, .detail = "No message has this id."});
}

}  // namespace

OutboxApi::OutboxApi(AdminParts& parts, Offload& offload, ApprovalsApi& approvals)
    : parts_(parts),
      offload_(offload),
      approvals_(approvals),
      transactions_(parts.store.transactions()) {}

Task<std::optional<std::vector<MessageCount>>> OutboxApi::count() {
  if (transactions_ == nullptr) co_return std::nullopt;
  using Counted = Outbox::Result<std::vector<MessageCount>>;
  std::function<Counted()> work = [this] { return Outbox(*transactions_).count(); };
  auto asking = run_offloaded(parts_.loop, offload_, work);
  auto&& counted = co_await asking;
  if (!counted) co_return std::nullopt;
  co_return std::move(*counted);
}

Task<WireAnswer> OutboxApi::answer_to(http::ServerStream& client, const Caller& caller) {
  if (transactions_ == nullptr) {
    co_return to_answer(
        {.code = ProblemCode::not_found,
         .detail = "This store has no outbox. " + stores_with_transactions() + " have one."});
  }
  const auto& head = client.head();
  const std::string target(head.origin_form);
  const std::string path = target.substr(0, target.find('?'));
  const std::string query = path.size() < target.size() ? target.substr(path.size() + 1) : "";
  const bool is_dead = is_under(path, dead_letters);
  const std::string_view folder = is_dead ? dead_letters : outbox;
  const std::string rest = path == folder ? std::string() : path.substr(folder.size() + 1);
  const auto dead = is_dead ? std::optional(MessageState::dead) : std::nullopt;
  if (rest.empty()) {
    auto page = co_await list(query, dead);
    co_return page;
  }
  if (!query.empty()) co_return invalid("This path has no parameters.");
  const bool is_order = is_dead ? rest == "redrive" || rest == "discard" : rest.ends_with("/retry");
  if (is_order) {
    auto answer = co_await order(client, rest, caller);
    co_return answer;
  }
  if (!parse_handle(rest)) co_return to_answer({.code = ProblemCode::not_found});
  auto page = co_await show(rest, caller.role);
  co_return page;
}

Task<WireAnswer> OutboxApi::list(std::string_view query, std::optional<MessageState> of) {
  auto filter = parse_messages_query(query, !of);
  if (!filter) co_return invalid(filter.error());
  if (of) filter->state = of;
  const std::size_t limit = filter->limit;
  // One more than the page shows: its presence means that there is another page.
  filter->limit = limit + 1;
  using Listed = Outbox::Result<std::vector<StoredMessage>>;
  std::function<Listed()> work = [this, filter = *filter] {
    return Outbox(*transactions_).list(filter);
  };
  auto asking = run_offloaded(parts_.loop, offload_, work);
  auto&& listed = co_await asking;
  if (!listed) co_return unavailable(listed.error());
  std::optional<std::int64_t> next;
  if (listed->size() > limit) {
    listed->resize(limit);
    next = listed->back().seq;
  }
  co_return json_answer(messages_page(*listed, next));
}

Task<Outbox::Result<std::optional<StoredMessage>>> OutboxApi::find(std::string id) {
  using Found = Outbox::Result<std::optional<StoredMessage>>;
  std::function<Found()> work = [this, id] { return Outbox(*transactions_).find(id); };
  auto asking = run_offloaded(parts_.loop, offload_, work);
  auto&& found = co_await asking;
  co_return std::move(found);
}

Task<WireAnswer> OutboxApi::show(std::string id, Role role) {
  auto finding = find(std::move(id));
  const auto found = co_await finding;
  if (!found) co_return unavailable(found.error());
  if (!*found) co_return no_such_message();
  co_return json_answer(message_page(**found, bodies_for(role)));
}

Task<WireAnswer> OutboxApi::order(http::ServerStream& client, std::string what,
                                  const Caller& caller) {
  auto reading = read_order(parts_, client, caller);
  const auto received = co_await reading;
  if (!received) co_return received.error();
  const std::string_view text = received->body;
  if (what == "redrive") {
    auto deciding = decide("redrive", parse_redrive(text), &Outbox::redrive, *received);
    auto answer = co_await deciding;
    co_return answer;
  }
  if (what == "discard") {
    auto answer = co_await discard(*received);
    co_return answer;
  }
  auto answer = co_await retry(what.substr(0, what.find('/')), *received);
  co_return answer;
}

Task<WireAnswer> OutboxApi::decide(const ApprovalRequest& /*request*/, const OrderBody& order) {
  auto answer = co_await discard(order);
  co_return answer;
}

Task<WireAnswer> OutboxApi::discard(const OrderBody& received) {
  auto order = parse_discard(received.body);
  if (order && !order->dry_run) {
    order->reason += received.note();
    auto gating = in_place_of(*order, received);
    auto instead = co_await gating;
    if (instead) co_return std::move(*instead);
  }
  auto deciding = decide("discard", std::move(order), &Outbox::discard, received);
  auto answer = co_await deciding;
  co_return answer;
}

// What several people have looked at is one message: several ones are a job's, which knows each.
Task<std::optional<WireAnswer>> OutboxApi::in_place_of(const Discard& order,
                                                       const OrderBody& received) {
  const bool must_wait = approvals_.must_wait(ApprovalKind::discard, received);
  if (!must_wait && !received.approved) co_return std::nullopt;
  if (order.which.id.empty()) {
    co_return to_answer({.code = ProblemCode::state_refused,
                         .detail = "A discard needs approvals here: name one message by its id, or "
                                   "discard all that match as a job."});
  }
  auto finding = find(order.which.id);
  const auto found = co_await finding;
  if (!found) co_return unavailable(found.error());
  if (!*found) co_return no_such_message();
  const StoredMessage& message = **found;
  const std::string seen = std::string(name_of(message.state)) +
                           " attempts=" + std::to_string(message.attempts) +
                           " last_error=" + message.last_error;
  if (received.approved) {
    if (message.history.contains(", approval " + received.approved->id + ")")) {
      co_return json_answer(message_page(message, Bodies::shown));
    }
    if (seen != received.approved->seen) co_return changed_since(received, seen);
    co_return std::nullopt;
  }
  const unsigned needs = parts_.login.approvals().of(ApprovalKind::discard);
  auto asking =
      approvals_.ask({ApprovalKind::discard, needs, order.which.id, seen, order.reason}, received);
  auto answer = co_await asking;
  co_return answer;
}

Task<WireAnswer> OutboxApi::retry(std::string id, const OrderBody& received) {
  if (!parse_handle(id)) co_return invalid("The id of a message has 32 hexadecimal digits.");
  auto looking = find(id);
  const auto before = co_await looking;
  if (!before) co_return unavailable(before.error());
  Deciding deciding(parts_, received.signer, "outbox.retry", id);
  auto beginning = deciding.begin({}, *before ? std::string(name_of((*before)->state)) : "none");
  auto not_noted = co_await beginning;
  if (not_noted) co_return std::move(*not_noted);
  std::function<Outbox::Result<bool>()> work = [this, id] {
    return Outbox(*transactions_).hasten(id);
  };
  auto asking = run_offloaded(parts_.loop, offload_, work);
  const auto& hastened = co_await asking;
  auto ending = deciding.end(!hastened   ? doubt_text(hastened.error())
                             : *hastened ? "waiting, due now"
                                         : "refused: it does not wait");
  co_await ending;
  if (!hastened) co_return unavailable(hastened.error());
  parts_.log(LogLevel::info, "outbox_retry",
             {{"message", id}, {"source", received.decider}, {"done", *hastened ? "yes" : "no"}});
  if (*hastened) {
    auto page = co_await show(id, Role::operates);
    co_return page;
  }
  auto finding = find(std::move(id));
  const auto found = co_await finding;
  if (!found) co_return unavailable(found.error());
  if (!*found) co_return no_such_message();
  const StoredMessage& message = **found;
  co_return to_answer(
      {.code = ProblemCode::state_refused,
       .detail = message.state == MessageState::waiting
                     ? "The message is being sent; wait for the result."
                     : "The message is " + std::string(name_of(message.state)) +
                           ". A retry hastens a waiting message only; redrive a dead letter."});
}

template <class Order>
Task<WireAnswer> OutboxApi::decide(std::string_view event, std::expected<Order, std::string> order,
                                   Verb<Order> verb, const OrderBody& received) {
  if (!order) co_return invalid(order.error());
  const std::string& source = received.decider;
  const std::string reason = order->reason;
  const bool dry_run = order->dry_run;
  order->reason = source + ": " + reason;
  using Done = Outbox::Result<std::vector<Ordered>>;
  std::function<Done()> work = [this, verb, order = *order] {
    Outbox messages(*transactions_);
    return (messages.*verb)(order);
  };
  std::optional<Deciding> deciding;
  if (!dry_run) {
    deciding.emplace(parts_, received.signer, "dlq." + std::string(event), text_of(order->which));
    std::string before = "dead";
    if constexpr (requires { order->nothing_there; }) {
      if (order->nothing_there) before += ", nothing there";
    }
    auto beginning = deciding->begin(reason, std::move(before));
    auto not_noted = co_await beginning;
    if (not_noted) co_return std::move(*not_noted);
  }
  auto asking = run_offloaded(parts_.loop, offload_, work);
  const auto& done = co_await asking;
  if (deciding) {
    auto ending = deciding->end(done ? came_of(*done) : doubt_text(done.error()));
    co_await ending;
  }
  if (!done) co_return unavailable(done.error());
  if (!dry_run) log_order(event, source, reason, *done);
  if (received.approved && done->empty()) {
    // The next look says what became of the message; the approvals for it are there.
    co_return unavailable(
        "Nothing was discarded: another order has the message, or has changed it "
        "since. Approve once more.");
  }
  co_return json_answer(ordered_page(*done, dry_run));
}

void OutboxApi::log_order(std::string_view event, const std::string& source,
                          const std::string& reason, const std::vector<Ordered>& ordered) {
  std::size_t refused = 0;
  for (const Ordered& one : ordered) refused += one.verdict == "may_have_arrived" ? 1 : 0;
  parts_.log(LogLevel::info, event,
             {{"source", source},
              {"reason", reason},
              {"messages", ordered.size() - refused},
              {"refused", refused}});
}

}  // namespace idem::admin
