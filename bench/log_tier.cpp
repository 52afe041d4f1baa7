#include "log_tier.hpp"

#include "core/record/stored_record_codec.hpp"
#include "core/record/stored_response_codec.hpp"
#include "core/transitions/transitions.hpp"
#include "store/call_queue.hpp"

#include <idem/fingerprint.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>
#include <unordered_map>

namespace idem::bench {
namespace {

/// Written over, never grown: a sync then has no new length to make durable.
constexpr std::int64_t segment_bytes = std::int64_t{1} << 30;

struct Hash {
  std::size_t operator()(const RecordId& id) const noexcept {
    std::size_t hash = 0;
    std::copy_n(id.bytes.begin(), sizeof hash, reinterpret_cast<std::uint8_t*>(&hash));
    return hash;
  }
};

class LogTier final : public Store {
 public:
  explicit LogTier(const std::string& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (file_ < 0) fail("open");
    const std::string zeros(1 << 20, '\0');
    for (std::int64_t at = 0; at < segment_bytes; at += 1 << 20) {
      if (::pwrite(file_, zeros.data(), zeros.size(), at) < 0) fail("write");
    }
    if (::fsync(file_) != 0) fail("fsync");
    random_bytes(identity_.secret);
    thread_ = std::jthread([this] { run(); });
  }
  ~LogTier() override {
    queue_.close();
    thread_.join();
    ::close(file_);
  }

  void call(StoreCall what, StoreCompletion done) override {
    queue_.push(std::move(what), std::move(done));
  }
  void watch(std::shared_ptr<Watcher>) override {}
  const Identity& identity() const noexcept override { return identity_; }

 private:
  [[noreturn]] static void fail(const char* what) {
    std::perror(what);
    std::abort();
  }

  void run() {
    std::vector<StoreResult> results;
    for (;;) {
      auto batch = queue_.take(true);
      results.clear();
      ahead_.clear();
      for (auto& queued : batch.calls) results.push_back(step(queued.call));
      commit();
      for (std::size_t i = 0; i < results.size(); ++i) {
        batch.calls[i].done(std::move(results[i]));
        batch.calls[i].done = nullptr;
      }
      if (batch.last) break;
    }
  }

  StoreResult step(StoreCall& call) {
    const auto now = std::chrono::floor<Millis>(std::chrono::system_clock::now());
    if (auto* reserve = std::get_if<Reserve>(&call)) {
      if (settled_.contains(reserve->id)) std::abort();  // Of fresh keys only.
      std::optional<Record> record;
      auto step = transitions::reserve(record, *reserve, reserve->fingerprints, now, fences_);
      append(*record);
      running_.insert_or_assign(reserve->id, std::move(*record));
      return std::move(step.outcome);
    }
    auto& complete = std::get<Complete>(call);
    const auto found = running_.find(complete.id);
    if (found == running_.end()) std::abort();
    std::optional<Record> record = std::move(found->second);
    running_.erase(found);
    auto step = transitions::complete(record, complete, now);
    settled_.emplace(complete.id, end_ + static_cast<std::int64_t>(ahead_.size()));
    append(*record);
    return step.outcome;
  }

  void append(const Record& record) {
    encode_record(record, bytes_);
    ahead_.append(reinterpret_cast<const char*>(record.id.bytes.data()), record.id.bytes.size());
    append_sized(bytes_);
    if (!record.response) return;
    encode_answer(*record.response, bytes_);
    append_sized(bytes_);
    append_sized(record.response->body);
  }

  void append_sized(std::string_view part) {
    const auto size = static_cast<std::uint32_t>(part.size());
    ahead_.append(reinterpret_cast<const char*>(&size), sizeof size);
    ahead_ += part;
  }

  void commit() {
    if (ahead_.empty()) return;
    if (end_ + static_cast<std::int64_t>(ahead_.size()) > segment_bytes) end_ = 0;
    if (::pwrite(file_, ahead_.data(), ahead_.size(), end_) < 0) fail("write");
    if (::fdatasync(file_) != 0) fail("fdatasync");
    end_ += static_cast<std::int64_t>(ahead_.size());
  }

  int file_;
  Identity identity_{.generation = 1};
  CallQueue queue_;
  transitions::FenceCounter fences_;
  std::map<RecordId, Record> running_;
  std::unordered_map<RecordId, std::int64_t, Hash> settled_;
  std::string ahead_;
  std::string bytes_;
  std::int64_t end_ = 0;
  std::jthread thread_;
};

}  // namespace

std::unique_ptr<Store> open_log_tier(const std::string& path) {
  return std::make_unique<LogTier>(path);
}

}  // namespace idem::bench
