#pragma once

#include "store/change_notifier.hpp"
#include "store/postgres/change_poller.hpp"
#include "store/postgres/days.hpp"
#include "store/postgres/lanes.hpp"
#include "store/postgres/opening.hpp"
#include "store/postgres/statements.hpp"

#include <future>
#include <memory>
#include <vector>

namespace idem::postgres {

/// Sends the waiting calls of each lane over that lane's connection and hands out the results. On
/// the loop's thread only.
class CallScheduler final : Timed {
 public:
  CallScheduler(Loop& loop, std::string uri, ChangeNotifier& changes);
  ~CallScheduler() override;

  /// Connects, sets up or checks the database, and begins to serve. The loop's first coroutine.
  /// `opened` is shared, because its waiter may leave while the value is being set.
  using Opening = std::shared_ptr<std::promise<std::expected<Identity, std::string>>>;
  Task<void> open(IdentitySettings settings, PostgresOptions options, Opening opened);

  void add(Waiting waiting);
  std::size_t waiting() const noexcept { return lanes_.size() + later_.size(); }
  void wake_all();
  /// The result of a call in a caller's own transaction, which is committed.
  void note_result(const StoreCall& call, const CallResult& result);
  /// Valid once it is open.
  const Uuid& store_id() const noexcept { return store_id_; }
  const std::shared_ptr<Lineage>& lineage() const noexcept { return lineage_; }

  /// Finishes the waiting calls, then calls `done`.
  void close(std::function<void()> done);
  static void end_thread() noexcept {}

 private:
  struct Worker {
    Worker(Loop& loop, const std::string& uri, Lane of) : lane(of), connection(loop, uri) {}
    Lane lane;
    Connection connection;
    std::int64_t timeline = 0;   ///< Of its server.
    std::uint64_t compared = 0;  ///< `doubts_` when its store was compared last.
    std::optional<Resumption<bool>> parked{};
  };
  void tick(MonotonicTime now) override;
  Task<void> serve(Worker& worker);
  Task<void> park(Worker& worker);
  void wake(Worker& worker);
  /// Connects, unless the connection is open, and compares its store. False: the server is out of
  /// reach, now or at a recent try, or the store is another one.
  Task<bool> reach(Worker& worker);
  /// Whether the server of the open connection is still what a start accepts, and holds the store.
  Task<std::expected<void, std::string>> compare(Worker& worker);
  Task<void> work(Worker& worker, std::vector<Waiting> batch);
  Task<void> ask_alone(Connection& connection, Waiting waiting);
  /// on_failure(), with the holder of a lock that was not free for so long that the calls fail.
  Task<void> fail(Connection& connection, std::vector<Waiting> batch, Failure failure);
  Task<void> ask_adopt(Connection& connection, Waiting waiting);

  bool is_idle() const noexcept;
  void end_if_idle();
  void finish(Waiting& waiting, CallResult result);
  void refuse(std::vector<Waiting> batch, StoreError::Code code, const std::string& why);
  void on_failure(Connection& connection, std::vector<Waiting> batch, const Failure& failure);
  void on_lost(std::vector<Waiting> batch, const Failure& failure);
  void ask_later(Waiting waiting);

  std::string uri_;
  ChangeNotifier& changes_;
  Lanes lanes_;
  std::vector<sql_server::Later> later_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Days days_;
  std::optional<ChangePoller> poller_;

  IdentitySettings settings_;
  Uuid store_id_{};
  std::shared_ptr<Lineage> lineage_ = std::make_shared<Lineage>();
  /// Failures that another store may have caused, and moments at which the server's settings are
  /// looked at again: then each connection's server and store are compared before its next use.
  std::uint64_t doubts_ = 0;
  MonotonicTime compare_at_ = MonotonicTime::max();
  std::uint64_t leases_ended_ = 0;
  bool out_of_reach_ = false;
  std::string why_out_of_reach_;
  MonotonicTime retry_at_{};
  Millis backoff_{};

  std::function<void()> closed_;
  bool ending_ = false;
  std::size_t serving_ = 0;
};

}  // namespace idem::postgres
