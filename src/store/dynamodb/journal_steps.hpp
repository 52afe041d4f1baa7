#pragma once

#include "store/dynamodb/client.hpp"
#include "store/record_rows.hpp"

#include <idem/journal.hpp>

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

/// The verbs of journals. A journal is an item, its head, that has the number of its lines and the
/// last line itself; the lines before lie in items of their own. So one conditional write appends a
/// line, however many appenders there are: each first copies the last line to its own item, which
/// anyone may do twice. Lines that come at once are appended by one write of the head, too: all but
/// the last lie in their items before it, where none may lie yet, and nobody reads them until the
/// head counts them. A dropped journal's head says so until its lines are gone. Loop's thread only.
namespace idem::dynamodb {

class JournalSteps {
 public:
  using Now = std::function<std::optional<StoreTime>()>;

  JournalSteps(Client& client, RowVersions& versions, Now now)
      : client_(client), versions_(versions), now_(std::move(now)) {}

  /// In the order of the calls about one journal.
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

  /// An append that waits for its turn.
  struct Waiting {
    AppendLine verb;
    Resumption<StoreResult> done;
  };
  using Group = std::vector<Waiting>;

  static Head parse_head(const Item& item);
  /// The head of a journal that is there; a dropped one's lines are removed first.
  Task<HeadResult> head_of(std::string journal);
  Task<std::expected<void, NoReply>> end_drop(std::string journal, Head head);
  /// One for each journal that has appends waiting, until there are none.
  Task<void> append_all(std::string journal);
  /// The first ones that follow each other.
  static Group take_group(std::deque<Waiting>& waiting, std::size_t most);
  /// By one write of the head. The reply is the last one's, or the error of all; none: an item of
  /// one of them has another line already.
  Task<std::optional<StoreResult>> append_at_once(const Group& group);
  Task<std::expected<bool, NoReply>> write_lines(const Group& group, const Head& head,
                                                 std::string lines, RowVersion version,
                                                 StoreTime now);
  /// After a refused append: whether an earlier try of it was done, and its answer lost. `last`:
  /// the number of its last line.
  Task<StoreResult> after_refusal(const AppendLine& first, std::uint64_t last, std::string version,
                                  bool was_in_doubt, StoreTime now);

  Client& client_;
  RowVersions& versions_;
  Now now_;
  std::map<std::string, std::deque<Waiting>> waiting_;  ///< By journal; each has an append_all().
};

}  // namespace idem::dynamodb
