#pragma once

#include "loop/loop.hpp"

#include <idem/store.hpp>

#include <expected>
#include <string>

namespace idem::admin {

template <class T>
using StoreTask = Task<std::expected<T, StoreError>>;

/// Appends a line behind the number `behind`, and says in `appended` what lies there then. False:
/// another process has appended a line there. The call goes out before the first wait. After the
/// error `in_doubt` the line may be there, now or later. All references outlive the task.
StoreTask<bool> append_line(Loop& loop, Store& store, std::string journal, std::uint64_t behind,
                            std::string line, JournalLine& appended);

StoreTask<ReadLines::Reply> read_lines(Loop& loop, Store& store, std::string journal,
                                       std::uint64_t after, std::size_t limit);

}  // namespace idem::admin
