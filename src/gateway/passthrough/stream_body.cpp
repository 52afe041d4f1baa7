#include "gateway/passthrough/stream_body.hpp"

namespace idem::gateway {

bool is_stream(const http::ResponseHead& head, const http::BodyReader& body) noexcept {
  if (body.finished()) return false;
  for (const auto& field : head.fields) {
    if (field.known != http::FieldName::content_type) continue;
    auto type = field.value.substr(0, field.value.find(';'));
    while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.remove_suffix(1);
    if (http::same_name(type, "text/event-stream")) return true;
    if (http::same_name(type, "multipart/x-mixed-replace")) return true;
  }
  return false;
}

Task<StreamEnd> stream_body(http::ServerStream& client, http::UpstreamCall& call,
                            Millis upstream_timeout, Onlooker* onlooker) {
  const bool endless = is_stream(call.head(), call.body());
  const http::ServerStream::CutAtDrain cut(client, endless ? &call.wire() : nullptr);
  bool sent = true;
  while (sent) {
    if (endless && client.draining()) {
      client.abort_stream();
      co_return StreamEnd::stopped;
    }
    if (!call.sent_elsewhere()) {
      call.wire().read_deadline(MonotonicClock::now() + upstream_timeout);
    }
    const auto piece = co_await call.next_piece();
    // The deadline is the upstream's, so a slow client does not use it up.
    if (!call.sent_elsewhere()) call.wire().no_read_deadline();
    if (!piece) {
      if (onlooker != nullptr) {
        const bool timeout = piece.error().trouble == http::BodyReader::Trouble::timeout;
        onlooker->lost(timeout ? Onlooker::Loss::timeout : Onlooker::Loss::cut);
      }
      client.abort_stream();
      co_return endless&& client.draining() ? StreamEnd::stopped : StreamEnd::broken;
    }
    if (onlooker != nullptr) {
      if (client.body_finished()) onlooker->request_whole();
      onlooker->answer_piece(piece->size(), piece->empty() || call.body().finished());
    }
    if (piece->empty()) break;
    sent = co_await client.stream_piece(*piece);
  }
  if (sent) {
    co_await client.end_stream();
    co_return StreamEnd::whole;
  }
  client.abort_stream();  // A client that reads until the close must see no proper end.
  co_return StreamEnd::client_left;
}

}  // namespace idem::gateway
