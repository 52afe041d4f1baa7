#include "admin/login/token_reading.hpp"

#include "loop/deadline.hpp"

#include <idem/health_limits.hpp>

namespace idem::admin {

/// A request that waits for the files, until they are read or its time is over.
struct TokenReading::Looking {
  std::optional<Resumption<bool>> waiting;

  void end() {
    if (!waiting) return;
    Resumption<bool> woken = std::move(*waiting);
    waiting.reset();
    woken(true);
  }
};

KnownTokens TokenReading::Files::read() {
  KnownTokens known;
  if (has_tokens_file) {
    known.entries = tokens.entries();
    known.trouble = tokens.trouble();
  }
  if (own) known.own = own->digest();
  return known;
}

TokenReading::TokenReading(const std::string& tokens_file, std::optional<OperatorToken> own)
    : files_(std::make_shared<Files>(TokenFile(tokens_file), std::move(own), !tokens_file.empty())),
      known_(files_->read()),
      has_files_(!tokens_file.empty() || files_->own) {}

bool TokenReading::hangs() const noexcept {
  return under_way_ > 0 && MonotonicClock::now() - since_ >= Millis(limits::token_read_max);
}

Task<void> TokenReading::look(Loop& loop) {
  if (!has_files_ || hangs()) co_return;
  const auto looking = std::make_shared<Looking>();
  // Held by the job alone, so that the job's end is the end of what waits for it.
  const std::weak_ptr<Looking> seen = looking;
  const auto start = [&](Resumption<bool> woken) {
    looking->waiting.emplace(std::move(woken));
    begin(loop, looking);
  };
  const Deadline deadline(loop, MonotonicClock::now() + Millis(limits::token_read_max),
                          [&loop, seen] {
                            loop.post([seen] {
                              if (const auto late = seen.lock()) late->end();
                            });
                          });
  auto waiting = suspend<bool>(start);
  co_await waiting;
}

void TokenReading::begin(Loop& loop, const std::shared_ptr<Looking>& looking) {
  if (under_way_++ == 0) since_ = MonotonicClock::now();
  thread_.post([self = weak_from_this(), files = files_, &loop, looking]() mutable {
    KnownTokens read = files->read();
    loop.post(
        [self = std::move(self), read = std::move(read), looking = std::move(looking)]() mutable {
          if (const auto reading = self.lock()) {
            reading->known_ = std::move(read);
            --reading->under_way_;
            reading->since_ = MonotonicClock::now();
          }
          looking->end();
        });
  });
}

}  // namespace idem::admin
