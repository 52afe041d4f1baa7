#include "check/api.hpp"
#include "check/patience.hpp"

namespace idem::check {
namespace {

void remove_all(std::string& text, const std::string& part) {
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at)) {
    text.erase(at, part.size());
  }
}

/// What the API added to what it was sent.
std::string own_part(const Order& order, const Answer& answer) {
  std::string body = answer.body;
  for (const std::string* const part : {&order.key, &order.unique, &order.amount}) {
    remove_all(body, *part);
  }
  return body;
}

}  // namespace

std::expected<Answer, std::string> Api::send_once(const Request& request) {
  auto connection = connect();
  if (!connection) return std::unexpected(connection.error());
  std::string seen;
  if (auto sent = connection->send(request.bytes(origin_.authority()), spec_.timeout); !sent) {
    return std::unexpected(sent.error());
  }
  return connection->read(spec_.timeout, seen);
}

/// False: the file says the form, or all were refused.
bool Api::takes_next_key_form() {
  if (spec_.key_form || key_form_ == KeyForm::uuid) return false;
  key_form_ = key_form_ == KeyForm::string ? KeyForm::bare : KeyForm::uuid;
  choose_mark();
  return true;
}

std::expected<Api::Tried, std::string> Api::try_order() {
  std::string refusal;
  for (int pauses = 0;;) {
    const Order one = order();
    const auto before = effects();
    if (!before) return std::unexpected(before.error());
    take_turn();
    const Request request = build(one);
    if (is_dry()) {
      return Tried{one, pretended("the first of all requests", request.bytes(origin_.authority()))};
    }
    auto answer = send_once(request);
    note_end(answer.has_value());
    if (!answer) return std::unexpected(secrets_.in_sentence(answer.error()));
    if (is_rate_limited(*answer, spec_.profile) && pauses < pauses_max) {
      ++pauses;
      slow_down(pause_after(*answer));
      continue;
    }
    if (answer->is_success()) {
      if (spec_.effects) {
        if (auto learned = learn_lag(*before); !learned) return std::unexpected(learned.error());
      }
      return Tried{one, std::move(*answer)};
    }
    // The first refusal says most: later forms are guesses.
    if (refusal.empty()) refusal = std::to_string(answer->status) + ' ' + answer->body;
    if (answer->is_refusal() && takes_next_key_form()) continue;
    return std::unexpected("the API answered the request of the file with " +
                           secrets_.in_sentence(refusal));
  }
}

std::expected<void, std::string> Api::calibrate() {
  const auto one = try_order();
  if (!one) return std::unexpected(one.error());
  if (is_dry()) return {};
  const auto other = try_order();
  if (!other) return std::unexpected(other.error());
  learn_difference(*one, *other);
  return {};
}

std::string Api::id_of(const Answer& answer) const {
  const bool is_field = has_location_as_id_ || !spec_.resource_header.empty();
  if (is_field) {
    const std::string* const value =
        answer.find(has_location_as_id_ ? "Location" : spec_.resource_header);
    return value == nullptr ? std::string() : *value;
  }
  if (!spec_.resource || !check_json(answer.body)) return {};
  const auto found = spec_.resource->find(answer.body);
  return found ? scalar_of(*found).value_or("") : "";
}

void Api::learn_difference(const Tried& one, const Tried& other) {
  const auto has_ids = [&] {
    const std::string id = id_of(one.answer);
    return !id.empty() && id != id_of(other.answer) && !id_of(other.answer).empty();
  };
  difference_ = Difference::id;
  if (has_ids()) return;
  const bool is_said = spec_.resource || !spec_.resource_header.empty();
  has_location_as_id_ = true;
  if (has_ids()) return;
  has_location_as_id_ = false;
  const bool differs = own_part(one.order, one.answer) != own_part(other.order, other.answer);
  difference_ = differs && !is_said ? Difference::body : Difference::none;
}

}  // namespace idem::check
