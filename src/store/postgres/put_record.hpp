#pragma once

#include "store/postgres/statements.hpp"

namespace idem::postgres {

/// Whether a statement may have it beside others. Not those whose commit waits for the disk.
bool goes_with_others(const PutRecord& verb) noexcept;
/// Of its request, its answer and its evidence.
std::size_t payload_of(const PutRecord& verb) noexcept;

/// One call, or several that go with others: all of one generation, each of another record.
Statement ask_puts(std::span<const PutRecord* const> calls);
/// In the order of the calls; none where the rows lack one.
std::vector<std::optional<CallResult>> results_of_puts(std::size_t calls, const Rows& rows);

}  // namespace idem::postgres
