// Replies of a Redis, and values stored there. A reply is read whole or not at all, the same
// however its bytes arrive; values of any bytes are read or refused, and a value that is read is
// written to the same bytes.
#include "fuzz/check.hpp"
#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"
#include "store/record_rows.hpp"
#include "store/redis/resp.hpp"
#include "store/store_identity.hpp"

namespace idem::fuzz {
namespace {

using redis::Reply;

/// The reply as the server would write it.
void append(std::string& out, const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::nil:
      out += "$-1\r\n";
      return;
    case Reply::Kind::number:
      out += ":" + std::to_string(reply.number) + "\r\n";
      return;
    case Reply::Kind::error:
      out += "-" + reply.text + "\r\n";
      return;
    case Reply::Kind::text:
      out += "$" + std::to_string(reply.text.size()) + "\r\n" + reply.text + "\r\n";
      return;
    case Reply::Kind::list:
      out += "*" + std::to_string(reply.items.size()) + "\r\n";
      for (const Reply& item : reply.items) append(out, item);
  }
}

void check_replies(std::string_view input) {
  const ExactBytes bytes(input);
  std::string_view rest = bytes.view();
  for (;;) {
    const std::string_view before = rest;
    const auto reply = redis::take_reply(rest);
    if (!reply) {
      check(!reply.error().empty() && rest.size() == before.size(), "a refusal takes nothing");
      return;
    }
    if (!*reply) {
      check(rest.size() == before.size(), "what is not all there is not taken");
      return;
    }
    check(rest.size() < before.size() && before.ends_with(rest), "a reply is taken from the front");
    const std::string_view taken = before.substr(0, before.size() - rest.size());
    const ExactBytes cut(taken.substr(0, Pieces(taken).position(taken.size() - 1)));
    std::string_view part = cut.view();
    const auto early = redis::take_reply(part);
    check(early && !*early, "a part of a reply is none yet");
    std::string written;
    append(written, **reply);
    std::string_view again = written;
    const auto same = redis::take_reply(again);
    check(same && *same && again.empty(), "a reply can be written");
    std::string twice;
    append(twice, **same);
    check(written == twice, "and is the same then");
  }
}

void check_values(std::string_view input) {
  const ExactBytes bytes(input);
  const StoredRow row = parse_row(RecordId{}, bytes.view());
  if (row.record) {
    std::string written;
    append_row(row.version, *row.record, row.mark, written);
    const StoredRow again = parse_row(RecordId{}, written);
    check(again.record && again.mark == row.mark, "a record is read as it was written");
  }
  if (const auto answer = parse_answer_value(RecordId{}, bytes.view())) {
    const auto again = parse_answer_value(RecordId{}, to_answer_value(RecordId{}, *answer));
    check(again && *again == *answer, "an answer is read as it was written");
  }
  if (const auto line = parse_evidence_value(RecordId{}, bytes.view())) {
    const auto again = parse_evidence_value(RecordId{}, to_evidence_value(RecordId{}, *line));
    check(again && *again == *line, "a line of evidence is read as it was written");
  }
  if (const auto value = parse_identity_value(bytes.view())) {
    const auto again = parse_identity_value(to_identity_value(value->version, value->identity));
    check(again.has_value(), "an identity is read as it was written");
  }
}

}  // namespace

void redis_reply(std::string_view input) {
  check_replies(input);
  check_values(input);
}

}  // namespace idem::fuzz
