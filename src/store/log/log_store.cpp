#include "store/log/log_store.hpp"

#include "store/embedded/sharded_store.hpp"
#include "store/log/meta.hpp"
#include "store/log/open_store.hpp"

namespace idem {
namespace {

class LogMedium final : public embedded::Medium {
 public:
  explicit LogMedium(std::unique_ptr<segments::Database> db) : db_(std::move(db)) {}

  void begin(StoreTime) override { has_written_ = false; }
  bool has_written() const override { return has_written_ || db_->has_written(); }
  void commit() override {
    has_written_ = db_->has_written();
    db_->commit();
  }

  void put_highest_fence(Fence fence) override { meta_.put_number(segments::meta_fences, fence); }
  void put_clock_mark(const ClockMark& mark) override { meta_.put_clock_mark(mark); }
  void put_closed() override { meta_.put_number(segments::meta_open, 0); }

  std::optional<StoreError> take_damage() override { return db_->take_damage(); }

  void run(StoreTask& task, const Step&) override {
    task.refuse("the store has no transactions for services");
  }

  std::string what_is_lost() override { return db_->what_is_lost(); }
  void tidy() override {}
  void close() override { db_->note_clean_stop(); }

 private:
  std::unique_ptr<segments::Database> db_;
  segments::Meta meta_{*db_};
  bool has_written_ = false;
};

std::unique_ptr<embedded::LedgerStore> store_of(segments::OpenedStoreParts& opened,
                                                segments::OpenedShard& shard) {
  using Found = embedded::LedgerParts::Found;
  Found found = opened.was_cut_off ? Found::cut_off : Found::closed;
  if (opened.is_restored) found = Found::restored;
  return std::make_unique<embedded::LedgerStore>(
      embedded::LedgerParts{.identity = opened.identity,
                            .naming = opened.naming,
                            .clock = opened.clock,
                            .medium = std::make_unique<LogMedium>(std::move(shard.db)),
                            .table = std::move(shard.table),
                            .highest_fence = opened.highest_fence,
                            .noted_fence = shard.noted_fence,
                            .found = found,
                            .in_common = opened.in_common});
}

}  // namespace

std::expected<std::unique_ptr<Store>, StoreError> open_log(const std::string& path,
                                                           const IdentitySettings& settings,
                                                           const LogOptions& options) {
  auto opened = segments::open_store(path, settings, options);
  if (!opened) return std::unexpected(std::move(opened.error()));
  std::vector<std::unique_ptr<embedded::LedgerStore>> shards;
  for (auto& shard : opened->shards) shards.push_back(store_of(*opened, shard));
  if (shards.size() == 1) return std::move(shards.front());
  return std::make_unique<embedded::ShardedStore>(std::move(shards));
}

}  // namespace idem
