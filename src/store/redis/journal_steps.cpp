#include "store/redis/journal_steps.hpp"

#include "store/redis/scripts.hpp"

#include <idem/limits.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace idem::redis {
namespace {

using Code = StoreError::Code;

std::uint64_t count_of(const Reply& reply) { return static_cast<std::uint64_t>(reply.number); }

StoreTime to_moment(const std::string& digits) {
  return StoreTime(Millis(std::strtoll(digits.c_str(), nullptr, 10)));
}

StoreResult lost(const std::string& journal) {
  return std::unexpected(StoreError{Code::damaged, "the store has lost the lines of the journal " +
                                                       journal + ", or evicted them"});
}

StoreResult unknown_reply() {
  return std::unexpected(StoreError{Code::in_doubt, "the store's reply is unknown"});
}

/// As journal_append.lua writes it: moment, checksum and line, with spaces between them.
JournalLine parse_line(const std::string& journal, std::uint64_t seq, const std::string& value) {
  constexpr std::size_t sum_digits = 16;
  JournalLine line{seq, {}, value, true};
  const std::size_t first = value.find(' ');
  if (first == std::string::npos || value.size() < first + sum_digits + 2) return line;
  const std::string moment = value.substr(0, first);
  line.at = to_moment(moment);
  line.bytes = value.substr(first + sum_digits + 2);
  const std::string sum = sha1_of(fmt::format("{} {} {} {}", journal, seq, moment, line.bytes));
  line.is_damaged = value.compare(first + 1, sum_digits, sum, 0, sum_digits) != 0 ||
                    value[first + 1 + sum_digits] != ' ';
  return line;
}

}  // namespace

StoreTime JournalSteps::moment_of(const Reply& reply) const {
  return clock_ ? clock_() : StoreTime(Millis(reply.at(1).number));
}

Task<StoreResult> JournalSteps::append(AppendLine verb) {
  Question question{names_.journals().slot, {}};
  const auto at = verb.at || !clock_ ? verb.at : std::optional(clock_());
  const std::string moment = at ? std::to_string(at->time_since_epoch().count()) : std::string();
  scripts()
      .journal_append.call(question.command, names_.journals().tag, 4)
      .add(verb.journal)
      .add(std::to_string(verb.behind))
      .add(verb.line)
      .add(moment);
  Task<QuestionResult> asking = client_.ask_once(std::move(question));
  const QuestionResult reply = co_await std::move(asking);
  if (!reply) co_return std::unexpected(to_store_error(reply.error()));
  const std::string& what = reply->at(0).text;
  AppendLine::Reply made{false, count_of(reply->at(2)), moment_of(*reply)};
  if (what == "appended") {
    made.appended = true;
    made.now = to_moment(reply->at(3).text);
    co_return StoreReply(made);
  }
  if (what == "behind") co_return StoreReply(made);
  if (what == "lost") co_return lost(verb.journal);
  co_return unknown_reply();
}

Task<StoreResult> JournalSteps::read(ReadLines verb) {
  Question question{names_.journals().slot, {}};
  scripts()
      .journal_read.call(question.command, names_.journals().tag, 4)
      .add(verb.journal)
      .add(std::to_string(verb.after))
      .add(std::to_string(std::min(verb.limit, limits::journal_read_lines_max)))
      .add(std::to_string(limits::journal_read_bytes_max));
  Task<QuestionResult> asking = client_.ask(std::move(question));
  const QuestionResult reply = co_await std::move(asking);
  if (!reply) co_return std::unexpected(to_store_error(reply.error()));
  const std::string& what = reply->at(0).text;
  if (what == "lost") co_return lost(verb.journal);
  if (what != "lines") co_return unknown_reply();
  ReadLines::Reply read{{}, count_of(reply->at(2)), moment_of(*reply)};
  for (const Reply& line : reply->at(3).items) {
    const std::uint64_t seq = verb.after + read.lines.size() + 1;
    read.lines.push_back(parse_line(verb.journal, seq, line.text));
  }
  co_return StoreReply(std::move(read));
}

Task<StoreResult> JournalSteps::list(ListJournals verb) {
  Question question{names_.journals().slot, {}};
  std::string from = "-";
  if (verb.after >= verb.prefix && !verb.after.empty()) {
    from = "(" + verb.after;
  } else if (!verb.prefix.empty()) {
    from = "[" + verb.prefix;
  }
  scripts()
      .journal_list.call(question.command, names_.journals().tag, 2)
      .add(from)
      .add(std::to_string(std::min(verb.limit, limits::journal_read_lines_max)));
  Task<QuestionResult> asking = client_.ask(std::move(question));
  const QuestionResult reply = co_await std::move(asking);
  if (!reply) co_return std::unexpected(to_store_error(reply.error()));
  if (reply->at(0).text != "names") co_return unknown_reply();
  std::vector<JournalSummary> found;
  const auto& items = reply->at(2).items;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    if (!items[i].text.starts_with(verb.prefix)) break;
    char* rest = nullptr;
    const std::uint64_t last = std::strtoull(items[i + 1].text.c_str(), &rest, 10);
    found.push_back({items[i].text, last, std::strtoull(rest, nullptr, 10)});
  }
  co_return StoreReply(std::move(found));
}

Task<StoreResult> JournalSteps::drop(DropJournal verb) {
  Question question{names_.journals().slot, {}};
  scripts()
      .journal_drop.call(question.command, names_.journals().tag, 2)
      .add(verb.journal)
      .add(std::to_string(verb.last));
  Task<QuestionResult> asking = client_.ask_once(std::move(question));
  const QuestionResult reply = co_await std::move(asking);
  if (!reply) co_return std::unexpected(to_store_error(reply.error()));
  const std::string& what = reply->at(0).text;
  if (what != "dropped" && what != "behind") co_return unknown_reply();
  const DropJournal::Reply dropped{what == "dropped", count_of(reply->at(2))};
  co_return StoreReply(dropped);
}

}  // namespace idem::redis
