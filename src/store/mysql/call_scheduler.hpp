#pragma once

#include "store/change_notifier.hpp"
#include "store/mysql/change_poller.hpp"
#include "store/mysql/lanes.hpp"
#include "store/mysql/opening.hpp"
#include "store/mysql/record_batch.hpp"
#include "store/mysql/servers.hpp"

#include <functional>
#include <future>
#include <memory>
#include <vector>

namespace idem::mysql {

/// Sends the waiting calls over the store's connections, and hands out the results. Connections of
/// one lane take turns: while one waits for its commit, the next batch gathers and is sent over
/// another. On the loop's thread only.
class CallScheduler final : Timed {
 public:
  CallScheduler(Loop& loop, const Url& url, ChangeNotifier& changes);
  ~CallScheduler() override;

  /// Connects, sets up or checks the database, and begins to serve. The loop's first coroutine.
  /// `opened` is shared, because its waiter may leave while the value is being set.
  using Opening = std::shared_ptr<std::promise<std::expected<Identity, std::string>>>;
  Task<void> open(IdentitySettings settings, MysqlOptions options, Opening opened);

  void add(Waiting waiting) { lanes_.add(std::move(waiting)); }
  std::size_t waiting() const noexcept { return lanes_.size() + later_.size(); }
  void wake_all();
  /// The result of a call in a caller's own transaction, which is committed.
  void note_result(const StoreCall& call, const CallResult& result);
  /// Valid once it is open.
  const StoreId& store_id() const noexcept { return servers_.store_id(); }
  const std::shared_ptr<ServerInUse>& in_use() const noexcept { return servers_.in_use(); }

  /// Finishes the waiting calls, then calls `done`.
  void close(std::function<void()> done);
  /// The client library keeps something for each thread.
  static void end_thread() noexcept;

 private:
  struct Worker {
    Worker(Loop& loop, const Url& url, Lane of) : lane(of), link(loop, url) {}
    Lane lane;
    Link link;
    std::optional<Resumption<bool>> parked{};
  };
  void tick(MonotonicTime now) override;
  Task<void> serve(Worker& worker);
  Task<void> park(Worker& worker);
  void wake(Worker& worker);
  Task<void> work(Worker& worker, std::vector<Waiting> batch);
  Task<void> work_on_records(Worker& worker, std::vector<Waiting> batch);
  Task<void> work_on_finds(Worker& worker, std::vector<Waiting> batch);
  Task<void> work_on_one(Worker& worker, Waiting waiting);
  Task<Committed> ask_one(Worker& worker, StoreCall& call);
  Task<Committed> claim(Worker& worker, const StoreCall& call);
  Task<Committed> lifecycle(Worker& worker, Due what, StoreCall one, std::size_t limit);
  Task<Committed> count(Worker& worker);
  Task<void> tidy(Worker& worker);
  Task<Committed> adopt(Worker& worker, const AdoptRoutes& verb);
  Terms terms_of(Worker& worker);

  bool is_idle() const noexcept;
  void end_if_idle();
  void finish(Waiting& waiting, CallResult result);
  void refuse(std::vector<Waiting> batch, StoreError::Code code, const std::string& why);
  void on_undone(Worker& worker, std::vector<Waiting> batch, const Undone& undone);
  void on_lost(std::vector<Waiting> batch, const Failure& failure);
  void ask_later(Waiting waiting);
  void ask_again(std::vector<Waiting> batch, const Failure& failure);

  Url url_;
  ChangeNotifier& changes_;
  Servers servers_;
  Lanes lanes_;
  std::vector<sql_server::Later> later_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::optional<ChangePoller> poller_;

  IdentitySettings settings_;
  Fence last_fence_ = 0;
  std::uint64_t leases_ended_ = 0;
  MonotonicTime compare_at_ =
      MonotonicTime::max();  ///< When each connection's server is looked at again.
  MonotonicTime tidy_at_{};
  std::optional<Census> census_;  ///< The last one.
  MonotonicTime count_at_{};      ///< Until then it is the answer.

  std::function<void()> closed_;
  bool ending_ = false;
  std::size_t serving_ = 0;
};

}  // namespace idem::mysql
