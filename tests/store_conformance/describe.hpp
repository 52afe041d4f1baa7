#pragma once

#include <idem/store.hpp>

#include <string>

/// Replies and records as text: what two stores answered is equal when the texts are.
namespace idem::test {

std::string describe(const Record& record);
std::string describe(const std::optional<Record>& record);
std::string describe(const ReserveOutcome& outcome);
std::string describe(const OwnerReply& reply);
std::string describe(const StoreResult& result);

}  // namespace idem::test
