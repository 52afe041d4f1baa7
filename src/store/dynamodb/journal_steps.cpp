#include "store/dynamodb/journal_steps.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"
#include "core/bytes/digests.hpp"
#include "core/bytes/hex.hpp"
#include "store/dynamodb/dynamodb_limits.hpp"
#include "store/dynamodb/query.hpp"
#include "store/dynamodb/table.hpp"

#include <algorithm>
#include <cstdlib>

namespace idem::dynamodb {
namespace {

using Code = StoreError::Code;

constexpr std::string_view heads = "j";
constexpr std::string_view last_number = "n";
constexpr std::string_view all_bytes = "b";
constexpr std::string_view lines_name = "g";
constexpr std::string_view dropped_mark = "z";
constexpr std::size_t line_version_bytes = std::tuple_size_v<RowVersion>;
constexpr std::size_t line_head_bytes = line_version_bytes + sizeof(std::uint64_t);

Key head_key(const std::string& journal) { return {std::string(heads), journal}; }

std::string number_bytes(std::uint64_t seq) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>((seq >> shift) & 0xFF);
  return bytes;
}
std::uint64_t sequence_in(std::string_view bytes) {
  std::uint64_t seq = 0;
  for (const char byte : bytes) seq = seq << 8 | static_cast<std::uint8_t>(byte);
  return seq;
}

std::string lines_partition(std::string_view name) { return 'l' + hex_of(name); }

/// Where the line lies is a part of what its checksum covers.
std::string place_of(const std::string& journal, std::uint64_t seq) {
  return number_bytes(seq) + journal;
}

/// The version of the append, its moment (64 bits), the line, the checksum.
std::string encode(const std::string& journal, std::uint64_t seq, const RowVersion& version,
                   StoreTime now, const std::string& line) {
  std::string out(line_head_bytes, '\0');
  ByteWriter to(out.data());
  to.bytes(version);
  to.number(to_bits(now));
  out += line;
  append_checksum(RecordId{}, out, place_of(journal, seq));
  return out;
}

JournalLine decode(const std::string& journal, std::uint64_t seq, std::string_view bytes) {
  JournalLine line{seq, {}, std::string(bytes), true};
  const auto sound = without_checksum(RecordId{}, bytes, place_of(journal, seq));
  if (bytes.size() < line_head_bytes + checksum_bytes) return line;
  const auto moment = ByteReader(bytes.substr(line_version_bytes)).number<std::uint64_t>();
  line.at = from_bits(moment);
  line.is_damaged = !sound;
  line.bytes = bytes.substr(line_head_bytes, bytes.size() - line_head_bytes - checksum_bytes);
  return line;
}

StoreResult failed(const NoReply& none) { return std::unexpected(to_store_error(none)); }

StoreResult lost(const std::string& journal) {
  return std::unexpected(
      StoreError{Code::damaged, "the store has lost lines of the journal " + journal});
}

}  // namespace

JournalSteps::Head JournalSteps::parse_head(const Item& item) {
  Head head;
  head.version = item.bytes(attribute::version);
  head.lines = item.bytes(lines_name);
  head.last = static_cast<std::uint64_t>(item.number(last_number).value_or(0));
  head.bytes = static_cast<std::uint64_t>(item.number(all_bytes).value_or(0));
  head.tail = item.bytes(attribute::value);
  head.is_dropped = item.has(dropped_mark);
  return head;
}

Task<JournalSteps::HeadResult> JournalSteps::head_of(std::string journal) {
  for (int tries = 0; tries < limits::compare_and_set_races_max; ++tries) {
    auto reading = client_.read(head_key(journal));
    const auto item = co_await std::move(reading);
    if (!item) co_return std::unexpected(item.error());
    if (!*item) co_return Head{};
    Head head = parse_head(**item);
    if (!head.is_dropped) co_return head;
    auto ending = end_drop(journal, std::move(head));
    const auto ended = co_await std::move(ending);
    if (!ended) co_return std::unexpected(ended.error());
  }
  co_return std::unexpected(NoReply{Code::unavailable, "other writers keep changing this journal"});
}

Task<std::expected<void, NoReply>> JournalSteps::end_drop(std::string journal, Head head) {
  for (;;) {
    Query query(client_.table());
    query.flag("ConsistentRead", true).project("#s");
    query.name("#p", attribute::partition).name("#s", attribute::sort);
    query.value(":p", lines_partition(head.lines)).where("#p = :p");
    Task<ReplyResult> asking = client_.ask(query.finish());
    const ReplyResult reply = co_await std::move(asking);
    if (!reply) co_return std::unexpected(reply.error());
    const Page page = parse_page(*reply);
    if (page.items.empty()) break;
    std::vector<Question> questions;
    for (const Item& line : page.items) {
      const Update gone({lines_partition(head.lines), std::string(line.bytes(attribute::sort))});
      questions.push_back({"DeleteItem", gone.to_request(client_.table())});
    }
    auto erasing = client_.ask_all(std::move(questions));
    const auto all = co_await std::move(erasing);
    for (const ReplyResult& one : all) {
      if (!one) co_return std::unexpected(one.error());
    }
  }
  Update gone(head_key(journal));
  gone.if_equal(attribute::version, Bytes{head.version});
  Task<ReplyResult> erasing = client_.erase(gone);
  const ReplyResult reply = co_await std::move(erasing);
  if (!reply) co_return std::unexpected(reply.error());
  co_return std::expected<void, NoReply>();
}

Task<StoreResult> JournalSteps::append(AppendLine verb) {
  const std::string journal = verb.journal;
  const bool is_first = !waiting_.contains(journal);
  const auto start = [&](Resumption<StoreResult> done) {
    waiting_[journal].push_back({std::move(verb), std::move(done)});
  };
  auto waiting = suspend<StoreResult>(start);
  // Posted: what comes in the same turn goes with it.
  if (is_first) client_.loop().post([this, journal] { client_.loop().spawn(append_all(journal)); });
  co_return co_await waiting;
}

Task<void> JournalSteps::append_all(std::string journal) {
  std::deque<Waiting>& waiting = waiting_[journal];
  std::size_t alone = 0;  // Appends whose places have lines that no head counts.
  while (!waiting.empty()) {
    Group group = take_group(waiting, alone > 0 ? 1 : limits::dynamodb_lines_at_once);
    auto appending = append_at_once(group);
    auto result = co_await std::move(appending);
    if (!result) alone = group.size();
    const auto* reply = result && *result ? std::get_if<AppendLine::Reply>(&**result) : nullptr;
    // If the first one does not follow the last line, a later one may.
    const std::size_t answered = !result                                ? 0
                                 : reply != nullptr && !reply->appended ? 1
                                                                        : group.size();
    for (std::size_t i = group.size(); i-- > answered;) waiting.push_front(std::move(group[i]));
    if (answered > 0 && alone > 0) --alone;
    for (std::size_t i = 0; i < answered; ++i) {
      StoreResult own = *result;
      if (reply != nullptr && reply->appended) {
        own = AppendLine::Reply{true, group[i].verb.behind + 1, reply->now};
      }
      client_.loop().post([done = std::move(group[i].done), own = std::move(own)]() mutable {
        done(std::move(own));
      });
    }
  }
  waiting_.erase(journal);
}

JournalSteps::Group JournalSteps::take_group(std::deque<Waiting>& waiting, std::size_t most) {
  Group group;
  do {
    group.push_back(std::move(waiting.front()));
    waiting.pop_front();
  } while (group.size() < most && !waiting.empty() &&
           waiting.front().verb.behind == group.back().verb.behind + 1);
  return group;
}

Task<std::optional<StoreResult>> JournalSteps::append_at_once(const Group& group) {
  const AppendLine& first = group.front().verb;
  const AppendLine& last = group.back().verb;
  auto reading = head_of(first.journal);
  const HeadResult head = co_await std::move(reading);
  if (!head) co_return failed(NoReply{Code::unavailable, head.error().why});
  const auto now = now_();
  if (!now) co_return StoreResult(std::unexpected(unknown_time()));
  if (head->last != first.behind) {
    co_return StoreResult(StoreReply(AppendLine::Reply{false, head->last, *now}));
  }
  const RowVersion version = versions_.next();
  std::string lines = head->lines;
  if (lines.empty()) lines = bytes_of(versions_.next());
  auto writing_lines = write_lines(group, *head, lines, version, *now);
  const auto written = co_await std::move(writing_lines);
  if (!written) co_return failed(NoReply{Code::unavailable, written.error().why});
  if (!*written) co_return std::nullopt;
  const std::uint64_t seq = last.behind + 1;
  Update update(head_key(first.journal));
  if (head->version.empty()) {
    update.if_absent();
  } else {
    update.if_equal(attribute::version, Bytes{head->version});
  }
  std::size_t size = head->bytes;
  for (const Waiting& one : group) size += one.verb.line.size();
  update.set(attribute::version, Bytes{std::string(bytes_of(version))})
      .set(lines_name, Bytes{lines})
      .set(last_number, static_cast<std::int64_t>(seq))
      .set(all_bytes, static_cast<std::int64_t>(size))
      .set(attribute::value,
           Bytes{encode(last.journal, seq, version, last.at.value_or(*now), last.line)});
  bool was_in_doubt = false;
  Task<ReplyResult> writing = client_.write(update, &was_in_doubt);
  const ReplyResult reply = co_await std::move(writing);
  if (!reply) co_return failed(reply.error());
  if (!reply->is_refused) co_return StoreResult(StoreReply(AppendLine::Reply{true, seq, *now}));
  auto judging = after_refusal(first, seq, std::string(bytes_of(version)), was_in_doubt, *now);
  co_return co_await std::move(judging);
}

// The last line so far is the same for everyone who copies it. A further one may be another
// writer's, or be left by one that ended before its head: such a line is never written over here,
// and the append that comes to its place does it, once a head counts its own line.
Task<std::expected<bool, NoReply>> JournalSteps::write_lines(const Group& group, const Head& head,
                                                             std::string lines, RowVersion version,
                                                             StoreTime now) {
  const std::string partition = lines_partition(lines);
  std::vector<Question> questions;
  if (head.last > 0) {
    Update copy({partition, number_bytes(head.last)});
    copy.set(attribute::value, Bytes{head.tail});
    questions.push_back({"UpdateItem", copy.to_request(client_.table())});
  }
  for (std::size_t i = 0; i + 1 < group.size(); ++i) {
    const AppendLine& one = group[i].verb;
    const std::uint64_t seq = one.behind + 1;
    Update line({partition, number_bytes(seq)});
    line.if_absent().set(attribute::value,
                         Bytes{encode(one.journal, seq, version, one.at.value_or(now), one.line)});
    questions.push_back({"UpdateItem", line.to_request(client_.table())});
  }
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  bool is_free = true;
  for (const ReplyResult& one : all) {
    if (!one) co_return std::unexpected(one.error());
    is_free &= !one->is_refused;
  }
  co_return is_free;
}

Task<StoreResult> JournalSteps::after_refusal(const AppendLine& first, std::uint64_t last,
                                              std::string version, bool was_in_doubt,
                                              StoreTime now) {
  const std::uint64_t behind = first.behind;
  auto reading = head_of(first.journal);
  const HeadResult head = co_await std::move(reading);
  const StoreError doubt{Code::in_doubt, "the answer to an append to a journal was lost"};
  if (!head) {
    if (was_in_doubt) co_return std::unexpected(doubt);
    co_return failed(NoReply{Code::unavailable, head.error().why});
  }
  const AppendLine::Reply done{true, last, now};
  if (head->version == version) co_return StoreReply(done);
  if (!was_in_doubt) co_return StoreReply(AppendLine::Reply{false, head->last, now});
  if (head->last <= behind) {
    // It was not done, unless the journal was dropped and begun anew since.
    if (head->last == behind && head->last > 0) {
      co_return StoreReply(AppendLine::Reply{false, head->last, now});
    }
    co_return std::unexpected(doubt);
  }
  // The one that appended this number wrote over what others had left in its item.
  std::string line = head->tail;
  if (head->last > behind + 1) {
    auto asking = client_.read({lines_partition(head->lines), number_bytes(behind + 1)});
    const auto item = co_await std::move(asking);
    if (!item || !*item) co_return std::unexpected(doubt);
    line = (*item)->bytes(attribute::value);
  }
  if (line.starts_with(version)) co_return StoreReply(done);
  co_return StoreReply(AppendLine::Reply{false, head->last, now});
}

Task<StoreResult> JournalSteps::read(ReadLines verb) {
  auto reading = head_of(verb.journal);
  const HeadResult head = co_await std::move(reading);
  if (!head) co_return failed(head.error());
  const auto now = now_();
  if (!now) co_return std::unexpected(unknown_time());
  ReadLines::Reply found{{}, head->last, *now};
  const std::size_t most = std::min(verb.limit, limits::journal_read_lines_max);
  std::size_t bytes = 0;
  bool is_full = most == 0;
  const auto add = [&](std::uint64_t seq, std::string_view stored) {
    JournalLine line = decode(verb.journal, seq, stored);
    bytes += line.bytes.size();
    is_full = !found.lines.empty() && bytes > limits::journal_read_bytes_max;
    if (is_full) return;
    found.lines.push_back(std::move(line));
    is_full = found.lines.size() == most;
  };
  std::uint64_t at = verb.after;
  while (!is_full && at + 1 < head->last) {
    Query query(client_.table());
    query.flag("ConsistentRead", true);
    query.name("#p", attribute::partition).name("#s", attribute::sort);
    query.value(":p", lines_partition(head->lines)).value(":s", Bytes{number_bytes(at)});
    query.where("#p = :p AND #s > :s");
    Task<ReplyResult> asking = client_.ask(query.finish());
    const ReplyResult reply = co_await std::move(asking);
    if (!reply) co_return failed(reply.error());
    const Page page = parse_page(*reply);
    const std::uint64_t before = at;
    for (const Item& item : page.items) {
      const std::uint64_t seq = sequence_in(item.bytes(attribute::sort));
      if (is_full || seq >= head->last) break;
      if (seq != at + 1) co_return lost(verb.journal);
      at = seq;
      add(seq, item.bytes(attribute::value));
    }
    if (at == before) co_return lost(verb.journal);
  }
  if (!is_full && at + 1 == head->last) add(head->last, head->tail);
  co_return StoreReply(std::move(found));
}

Task<StoreResult> JournalSteps::list(ListJournals verb) {
  std::vector<JournalSummary> found;
  const std::size_t most = std::min(verb.limit, limits::journal_read_lines_max);
  bool is_over = most == 0;
  std::string from;
  while (!is_over) {
    Query query(client_.table());
    query.flag("ConsistentRead", true).project("#s, #n, #b, #z").from(from);
    query.name("#p", attribute::partition).name("#s", attribute::sort).name("#n", last_number);
    query.name("#b", all_bytes).name("#z", dropped_mark).value(":p", std::string(heads));
    if (!verb.after.empty() && verb.after >= verb.prefix) {
      query.value(":s", Bytes{verb.after}).where("#p = :p AND #s > :s");
    } else if (!verb.prefix.empty()) {
      query.value(":s", Bytes{verb.prefix}).where("#p = :p AND #s >= :s");
    } else {
      query.where("#p = :p");
    }
    Task<ReplyResult> asking = client_.ask(query.finish());
    const ReplyResult reply = co_await std::move(asking);
    if (!reply) co_return failed(reply.error());
    Page page = parse_page(*reply);
    for (const Item& item : page.items) {
      const std::string name(item.bytes(attribute::sort));
      is_over = !name.starts_with(verb.prefix) || found.size() == most;
      if (is_over) break;
      const Head head = parse_head(item);
      if (!head.is_dropped) found.push_back({name, head.last, head.bytes});
    }
    from = std::move(page.next);
    is_over = is_over || from.empty();
  }
  co_return StoreReply(std::move(found));
}

Task<StoreResult> JournalSteps::drop(DropJournal verb) {
  auto reading = head_of(verb.journal);
  HeadResult head = co_await std::move(reading);
  if (!head) co_return failed(NoReply{Code::unavailable, head.error().why});
  if (head->last != verb.last) co_return StoreReply(DropJournal::Reply{false, head->last});
  if (head->version.empty()) co_return StoreReply(DropJournal::Reply{true, 0});
  const std::string version(bytes_of(versions_.next()));
  Update update(head_key(verb.journal));
  update.if_equal(attribute::version, Bytes{head->version})
      .set(attribute::version, Bytes{version})
      .set(dropped_mark, std::int64_t{1})
      .remove(attribute::value);
  bool was_in_doubt = false;
  Task<ReplyResult> writing = client_.write(update, &was_in_doubt);
  const ReplyResult reply = co_await std::move(writing);
  if (!reply) co_return failed(reply.error());
  if (!reply->is_refused) {
    head->version = version;
    auto ending = end_drop(verb.journal, std::move(*head));
    const auto ended = co_await std::move(ending);
    if (!ended) co_return std::unexpected(StoreError{Code::in_doubt, ended.error().why});
    co_return StoreReply(DropJournal::Reply{true, 0});
  }
  // Another appender or dropper came first; or an earlier try of this one, whose answer was lost:
  // then its lines go now.
  auto looking = head_of(verb.journal);
  const HeadResult now = co_await std::move(looking);
  if (!now) {
    co_return std::unexpected(
        StoreError{was_in_doubt ? Code::in_doubt : Code::unavailable, now.error().why});
  }
  co_return StoreReply(DropJournal::Reply{now->last == 0, now->last});
}

}  // namespace idem::dynamodb
