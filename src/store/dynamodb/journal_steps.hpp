#pragma once

#include "store/dynamodb/client.hpp"
#include "store/record_rows.hpp"

#include <idem/journal.hpp>

#include <functional>

/// The verbs of journals. A journal is an item, its head, that has the number of its lines and the
/// last line itself; the lines before lie in items of their own. So one conditional write appends a
/// line, however many appenders there are: each first copies the last line to its own item, which
/// anyone may do twice. A dropped journal's head says so until its lines are gone. Loop's thread
/// only.
namespace idem::dynamodb {

class JournalSteps {
 public:
  using Now = std::function<std::optional<StoreTime>()>;

  JournalSteps(Client& client, RowVersions& versions, Now now)
      : client_(client), versions_(versions), now_(std::move(now)) {}

  Task<StoreResult> append(AppendLine verb);
  Task<StoreResult> read(ReadLines verb);
  Task<StoreResult> list(ListJournals verb);
  Task<StoreResult> drop(DropJournal verb);

 private:
  struct Head {
    std::string version{};  ///< Empty: there is none.
    std::string lines{};    ///< Names the partition of its lines.
    std::uint64_t last = 0;
    std::uint64_t bytes = 0;
    std::string tail{};  ///< The last line, as stored.
    bool is_dropped = false;
  };
  using HeadResult = std::expected<Head, NoReply>;

  static Head parse_head(const Item& item);
  /// The head of a journal that is there; a dropped one's lines are removed first.
  Task<HeadResult> head_of(std::string journal);
  Task<std::expected<void, NoReply>> end_drop(std::string journal, Head head);
  /// After a refused append: whether an earlier try of it was done, and its answer lost.
  Task<StoreResult> after_refusal(AppendLine verb, std::string version, bool was_in_doubt,
                                  StoreTime now);

  Client& client_;
  RowVersions& versions_;
  Now now_;
};

}  // namespace idem::dynamodb
