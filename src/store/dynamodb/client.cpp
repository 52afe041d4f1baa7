#include "store/dynamodb/client.hpp"

#include "json/writer.hpp"
#include "store/dynamodb/dynamodb_limits.hpp"
#include "store/dynamodb/table.hpp"

#include <boost/crc.hpp>

#include <algorithm>

namespace idem::dynamodb {
namespace {

using Code = StoreError::Code;

std::uint32_t crc32_of(const std::string& bytes) {
  boost::crc_32_type sum;
  sum.process_bytes(bytes.data(), bytes.size());
  return sum.checksum();
}

/// "com.amazonaws.dynamodb.v20120810#ThrottlingException" → "ThrottlingException".
std::string type_in(const json::Value& body) {
  const json::Value* const found = body.find("__type");
  const auto* const text = found != nullptr ? std::get_if<std::string>(&found->is) : nullptr;
  return text != nullptr ? text->substr(text->find('#') + 1) : std::string();
}

std::string message_in(const json::Value& body) {
  for (const std::string_view name : {"message", "Message"}) {
    const json::Value* const found = body.find(name);
    const auto* const text = found != nullptr ? std::get_if<std::string>(&found->is) : nullptr;
    if (text != nullptr) return *text;
  }
  return {};
}

bool is_one_of(std::string_view type, std::initializer_list<std::string_view> types) {
  return std::ranges::find(types, type) != types.end();
}

/// The service refused it for now; nothing was done.
bool is_throttled(std::string_view type) {
  return is_one_of(type, {"ProvisionedThroughputExceededException", "ThrottlingException",
                          "RequestLimitExceeded", "LimitExceededException",
                          "TransactionConflictException", "TransactionInProgressException"});
}

bool is_about_credentials(std::string_view type) {
  return is_one_of(type, {"UnrecognizedClientException", "ExpiredTokenException", "ExpiredToken",
                          "InvalidClientTokenId"});
}

/// What the request holds is larger than the service ever takes (an item of 400 KB, a key of 2,048
/// or 1,024 bytes); its other complaints about requests say that the table is another one.
bool is_too_large(std::string_view type, std::string_view message) {
  return type == "ValidationException" && message.contains("xceeded the ");
}

constexpr std::string_view condition_failed = "ConditionalCheckFailedException";

}  // namespace

Client::Client(Loop& loop, Url url, CredentialChain::Environment environment)
    : loop_(loop),
      url_(std::move(url)),
      transfers_(loop, url_.ca_file),
      credentials_(loop, transfers_, url_.profile, std::move(environment)),
      random_(std::random_device{}()) {}

Task<void> Client::pause() {
  Task<void> sleeping = loop_.sleep(limits::store_repeat_interval);
  co_await std::move(sleeping);
}

Task<ReplyResult> Client::ask(Question question, bool* was_in_doubt) {
  return ask_until(std::move(question), {.was_in_doubt = was_in_doubt});
}

Task<ReplyResult> Client::ask_once(Question question) {
  return ask_until(std::move(question), {.may_repeat = false});
}

Task<void> Client::take_place() {
  if (places_ > 0) {
    --places_;
    co_return;
  }
  const auto start = [this](Resumption<bool> turn) { waiting_.push_back(std::move(turn)); };
  auto waiting = suspend<bool>(start);
  co_await waiting;
}

void Client::give_place() {
  if (waiting_.empty()) {
    ++places_;
    return;
  }
  // Posted: this step belongs to the coroutine that gives its place.
  loop_.post([turn = std::move(waiting_.front())]() mutable { turn(true); });
  waiting_.pop_front();
}

Task<HttpResult> Client::send(const Question& question, NoReply& none) {
  Task<CredentialsResult> getting = credentials_.get();
  const CredentialsResult credentials = co_await std::move(getting);
  if (!credentials) {
    none.why = credentials.error();
    co_return std::unexpected(HttpFailure{false, none.why});
  }
  HttpRequest request{.url = url_.endpoint + "/", .body = question.body};
  request.patience = limits::dynamodb_answer_max;
  request.is_trusted_system = false;
  request.headers = {"Content-Type: application/x-amz-json-1.0",
                     "X-Amz-Target: DynamoDB_20120810." + question.action};
  if (!credentials->session_token.empty()) {
    request.headers.push_back("X-Amz-Security-Token: " + credentials->session_token);
  }
  request.signing =
      Signing{"aws:amz:" + url_.region + ":dynamodb", credentials->key_id, credentials->secret};
  Task<HttpResult> sending = transfers_.ask(std::move(request));
  HttpResult answer = co_await std::move(sending);
  if (answer && answer->date) clock_.observe(*answer->date, answer->sent, answer->received);
  co_return answer;
}

Client::Judged Client::judge(const HttpFailure& failure) const {
  Judged judged;
  judged.none.why = "the store cannot be reached: " + failure.why;
  judged.is_in_doubt = failure.was_sent;
  // What was never sent fails at once: callers do not wait for a service that is down.
  judged.after = failure.was_sent ? After::repeat : After::give_up;
  return judged;
}

Client::Judged Client::judge(const HttpAnswer& answer, const json::Value* body) {
  Judged judged;
  const std::string type = body != nullptr ? type_in(*body) : std::string();
  judged.none.type = type;
  judged.none.why = "the store answers: " + (type.empty() ? std::to_string(answer.status) : type);
  const std::string message = body != nullptr ? message_in(*body) : std::string();
  if (!message.empty()) judged.none.why += ": " + message.substr(0, 300);
  if (is_too_large(type, message)) judged.none.code = Code::unstorable;
  if (is_throttled(type)) {
    judged.after = After::repeat;
  } else if (is_about_credentials(type)) {
    credentials_.reject();
    judged.after = After::repeat;
  } else if (answer.status >= 500 || body == nullptr) {
    // The service says that such a write may have been done.
    judged.is_in_doubt = true;
    judged.after = After::repeat;
  }
  return judged;
}

Task<ReplyResult> Client::ask_until(Question question, Terms terms) {
  MonotonicTime until = MonotonicTime::max();
  bool in_doubt = false;
  for (int tries = 0;; ++tries) {
    NoReply none;
    if (!terms.is_ahead) {
      Task<void> taking = take_place();
      co_await std::move(taking);
    }
    if (terms.may_send && !terms.may_send()) {
      if (!terms.is_ahead) give_place();
      none.code = in_doubt ? Code::in_doubt : Code::unavailable;
      none.why = "it was not sent in time";
      none.was_kept_back = true;
      co_return std::unexpected(std::move(none));
    }
    // Time counts from the first try on, not from a place in the queue.
    if (tries == 0) until = MonotonicClock::now() + limits::store_repeat_max;
    Task<HttpResult> sending = send(question, none);
    HttpResult answer = co_await std::move(sending);
    if (!terms.is_ahead) give_place();
    Judged judged;
    if (!answer) {
      judged = judge(answer.error());
      // After an earlier try that is in doubt, only a later one tells what became of it.
      if (in_doubt) judged.after = After::repeat;
      if (!none.why.empty()) judged.none.why = none.why;
    } else {
      const bool is_whole = !answer->crc32 || *answer->crc32 == crc32_of(answer->body);
      auto body = is_whole ? json::parse(answer->body) : std::unexpected(json::ParseError{});
      if (body && answer->status == 200) co_return Reply{std::move(*body)};
      if (body && type_in(*body) == condition_failed) co_return Reply{std::move(*body), true};
      judged = judge(*answer, body ? &*body : nullptr);
    }
    in_doubt |= judged.is_in_doubt;
    if (in_doubt && terms.was_in_doubt != nullptr) *terms.was_in_doubt = true;
    if (in_doubt) judged.none.code = Code::in_doubt;
    const bool is_over = is_closed() || MonotonicClock::now() >= until;
    const bool may_go_on = terms.may_repeat || !in_doubt;
    if (judged.after == After::give_up || is_over || !may_go_on) {
      co_return std::unexpected(std::move(judged.none));
    }
    // Full jitter: clients that were refused together do not come back together.
    const Millis most =
        std::min(Millis(limits::dynamodb_backoff_max),
                 Millis(limits::dynamodb_backoff_first) * (1 << std::min(tries, 6)));
    std::uniform_int_distribution<Millis::rep> any(0, most.count());
    Task<void> sleeping = loop_.sleep(Millis(any(random_)));
    co_await std::move(sleeping);
  }
}

Task<void> Client::ask_into(std::vector<Question>& questions, std::size_t first, std::size_t step,
                            std::vector<ReplyResult>& into, Gathering& gathering) {
  for (std::size_t i = first; i < questions.size(); i += step) {
    Task<ReplyResult> asking = ask(std::move(questions[i]));
    into[i] = co_await std::move(asking);
  }
  gathering.one_done(loop_);
}

Task<std::vector<ReplyResult>> Client::ask_all(std::vector<Question> questions) {
  std::vector<ReplyResult> replies(questions.size());
  const std::size_t lanes = std::min(questions.size(), limits::dynamodb_questions_at_once);
  Gathering gathering{lanes};
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    loop_.spawn(ask_into(questions, lane, lanes, replies, gathering));
  }
  Task<void> waiting = gathering.all();
  co_await std::move(waiting);
  co_return replies;
}

// No coroutines: the request is made before they return, so the caller's update may be a temporary.
Task<ReplyResult> Client::write(const Update& update, bool* was_in_doubt, MaySend may_send) {
  return ask_until({"UpdateItem", update.to_request(url_.table)},
                   {.was_in_doubt = was_in_doubt, .may_send = std::move(may_send)});
}

Task<ReplyResult> Client::erase(const Update& condition, bool* was_in_doubt) {
  return ask_until({"DeleteItem", condition.to_request(url_.table)},
                   {.was_in_doubt = was_in_doubt});
}

Question Client::reading(const Key& key) const {
  json::Writer out;
  out.begin_object();
  out.member("TableName", url_.table);
  out.name("Key");
  out.json(to_json(key));
  out.flag("ConsistentRead", true);
  out.end_object();
  return {"GetItem", out.take()};
}

Task<std::expected<std::optional<Item>, NoReply>> Client::read(Key key, bool is_ahead) {
  Task<ReplyResult> asking = ask_until(reading(key), {.is_ahead = is_ahead});
  const ReplyResult reply = co_await std::move(asking);
  if (!reply) co_return std::unexpected(reply.error());
  const json::Value* const found = reply->body.find("Item");
  if (found == nullptr) co_return std::nullopt;
  co_return Item::parse(*found);
}

StoreError unknown_time() {
  return {Code::unavailable, "the service has not shown its time yet: its answers have no Date"};
}

}  // namespace idem::dynamodb
