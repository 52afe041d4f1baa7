#pragma once

#include "store/sql_server/waiting.hpp"

#include <idem/record.hpp>
#include <idem/store.hpp>

#include <deque>
#include <set>
#include <string>
#include <vector>

/// The calls that wait for a connection. On the loop's thread only.
namespace idem::mysql {

using sql_server::Waiting;

/// `records`: steps over named records, many in one transaction. `finds`: many in one statement.
/// `others`: each on its own.
enum class Lane : std::uint8_t { records, finds, others };
Lane lane_of(const StoreCall& call) noexcept;

/// The records that a call of Lane::records may read or change.
std::vector<RecordId> records_of(const StoreCall& call);

/// The reserve in a call that may make a record; null: it makes none.
const Reserve* reserve_in(const StoreCall& call) noexcept;
/// Whether no other transaction may count a new key of the reserve's scope meanwhile: the number or
/// the rate of its keys is limited.
bool counts_alone(const Reserve& reserve) noexcept;

class Lanes {
 public:
  void add(Waiting waiting);
  /// In front of the others.
  void put_back(std::vector<Waiting> calls);

  /// What one batch has until its end.
  struct Taken {
    std::vector<RecordId> records;
    std::vector<std::string> scopes;  ///< Those in which it counts alone.
  };

  /// What one connection does next; empty: there is nothing, or other connections have all of the
  /// waiting calls' records or scopes. Owners' verbs come first, so that no settling write waits
  /// behind new work. What the batch has stays taken until free().
  std::vector<Waiting> take(Lane lane);
  static Taken taken_by(const std::vector<Waiting>& batch);
  void free(const Taken& taken);

  std::size_t size() const noexcept;

 private:
  using Calls = std::deque<Waiting>;
  Calls& of(const StoreCall& call) noexcept;
  void take_from(Calls& calls, std::size_t most, std::vector<Waiting>& batch, std::size_t& bytes);
  static std::vector<Waiting> take_first(Calls& calls, std::size_t most);

  Calls owners_;
  Calls others_of_records_;
  Calls finds_;
  Calls others_;
  std::set<RecordId> taken_;
  std::set<std::string, std::less<>> taken_scopes_;
};

}  // namespace idem::mysql
