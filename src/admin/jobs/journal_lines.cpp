#include "admin/jobs/journal_lines.hpp"

#include "loop/store_link.hpp"

#include <idem/job_limits.hpp>
#include <idem/limits.hpp>

namespace idem::admin {
namespace {

using Code = StoreError::Code;

}  // namespace

StoreTask<ReadLines::Reply> read_lines(Loop& loop, Store& store, std::string journal,
                                       std::uint64_t after, std::size_t limit) {
  StoreCall call = ReadLines{std::move(journal), after, limit};
  auto asking = ask_store(loop, store, call);
  auto result = co_await asking;
  if (!result) co_return std::unexpected(std::move(result.error()));
  co_return std::get<ReadLines::Reply>(std::move(*result));
}

// A lost reply leaves a doubt, which ends once the journal has a line of that number: then this
// append succeeded or never will. Until then the same bytes are sent again, so that the line is
// there once, whichever of the calls wrote it.
StoreTask<bool> append_line(Loop& loop, Store& store, std::string journal, std::uint64_t behind,
                            std::string line, JournalLine& appended) {
  StoreError doubt;
  for (int tries = 0; tries < limits::job_append_tries_max; ++tries) {
    StoreCall call = AppendLine{journal, behind, line};
    auto asking = ask_store(loop, store, call);
    const auto result = co_await asking;
    const auto* const reply = result ? &std::get<AppendLine::Reply>(*result) : nullptr;
    if (reply != nullptr && reply->appended) {
      appended = {.seq = reply->last, .at = reply->now, .bytes = line};
      co_return true;
    }
    if (!result && result.error().code != Code::in_doubt) {
      // Without an earlier doubt, nothing was written.
      if (tries == 0) co_return std::unexpected(result.error());
      doubt = result.error();
    } else if (!result) {
      doubt = result.error();
    } else if (tries == 0) {
      co_return false;
    }
    auto looking = read_lines(loop, store, journal, behind, 1);
    const auto there = co_await looking;
    if (there && !there->lines.empty()) {
      const JournalLine& found = there->lines.front();
      if (found.bytes != line) co_return false;
      appended = found;
      co_return true;
    }
    if (!there) doubt = there.error();
    auto pausing = loop.sleep(limits::store_repeat_interval);
    co_await pausing;
  }
  doubt.code = Code::in_doubt;
  co_return std::unexpected(std::move(doubt));
}

}  // namespace idem::admin
