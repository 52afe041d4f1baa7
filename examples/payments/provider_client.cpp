#include "provider_client.hpp"

#include "core/json/place.hpp"
#include "json/value.hpp"

#include <httplib.h>

namespace payments {
namespace {

namespace json = idem::json;

/// One connection for each call: a pooled one might send a request a second time by itself.
httplib::Client connect(const std::string& url, idem::Millis timeout) {
  httplib::Client client(url);
  // Connecting, writing and reading follow one another: together they end within `timeout`.
  client.set_connection_timeout(timeout / 4);
  client.set_write_timeout(timeout / 4);
  client.set_read_timeout(timeout / 4);
  client.set_keep_alive(false);
  return client;
}

/// Before the first byte of the request.
bool was_never_sent(httplib::Error error) {
  return error == httplib::Error::Connection || error == httplib::Error::ConnectionTimeout ||
         error == httplib::Error::BindIPAddress;
}

}  // namespace

std::string provider_id(const std::string& answer) {
  const auto parsed = json::parse(answer);
  const json::Value* const id = parsed ? parsed->find("id") : nullptr;
  const auto* const text = id != nullptr ? std::get_if<std::string>(&id->is) : nullptr;
  return text != nullptr ? *text : std::string();
}

idem::ForeignCall ProviderClient::call(
    std::string path, std::function<std::string(const idem::PhaseCall&)> body_of) const {
  idem::ForeignCall made;
  made.timeout = timeout_;
  made.send = [*this, path, body_of](const idem::PhaseCall& call) {
    return send(call, path, body_of(call));
  };
  if (is_ == Provider::deduplicates) made.repetition.deduplicates = std::chrono::hours(24);
  if (is_ == Provider::can_be_asked) {
    made.repetition.lookup = [*this, path](const idem::PhaseCall& call) {
      return look_up(call, path);
    };
    made.repetition.lookup_grace = std::chrono::milliseconds(100);  // It lists a charge at once.
  }
  return made;
}

idem::CallEnd ProviderClient::send(const idem::PhaseCall& call, const std::string& path,
                                   const std::string& body) const {
  auto client = connect(url_, timeout_);
  const httplib::Headers fields{{"Idempotency-Key", call.key}};
  const auto answer = client.Post(path, fields, body, "application/json");
  if (!answer) {
    const std::string why = httplib::to_string(answer.error());
    if (was_never_sent(answer.error())) return idem::CallNotDone{why};
    return idem::CallAmbiguous{why};
  }
  const int status = answer->status;
  if (status >= 200 && status < 300) {
    return idem::CallAnswered{answer->body, provider_id(answer->body)};
  }
  if (status == 402) return idem::CallAnswered{answer->body};  // Declined, for good.
  const std::string why = "the provider answered " + std::to_string(status);
  // 429, and an error in our own request: nothing was charged. 409 means that a call of ours is
  // under way, and after a 5xx it is not known whether there is a charge.
  if (status >= 400 && status < 500 && status != 408 && status != 409) {
    return idem::CallNotDone{why};
  }
  return idem::CallAmbiguous{why};
}

idem::LookedUp ProviderClient::look_up(const idem::PhaseCall& call, const std::string& path) const {
  auto client = connect(url_, timeout_);
  const auto answer = client.Get(path + "?key=" + call.key);
  if (!answer || answer->status != 200) return idem::CannotTell{"the provider cannot be asked"};
  const auto parsed = json::parse(answer->body);
  if (!parsed) return idem::CannotTell{"the provider's list is no JSON"};
  const json::Value* const member = parsed->find(path.substr(1));
  const auto* const list = member != nullptr ? std::get_if<json::Array>(&member->is) : nullptr;
  if (list == nullptr) return idem::CannotTell{"there is no list"};
  if (list->empty()) return idem::NothingThere{};
  // As the provider wrote it: the answer that the call would have had.
  const std::string first(*idem::json_at(answer->body, path + "/0"));
  return idem::CallAnswered{first, provider_id(first)};
}

}  // namespace payments
