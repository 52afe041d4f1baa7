#pragma once

#include "store_conformance/harness.hpp"

#include <idem/transaction.hpp>

namespace idem::test {

/// A work of any form, under an attempt that was granted before.
template <class Work>
InTransaction under(const Execute& run, Work work) {
  return {std::nullopt, run.id, run.attempt, std::move(work)};
}

/// Books a payment, and answers with its name.
inline std::optional<StoreCall> pay(Transaction& transaction, const std::string& payment,
                                    const RecordId& id, const Attempt& attempt) {
  transaction.run("INSERT INTO payments (id, amount) VALUES ($1, $2)",
                  {payment, std::int64_t{1250}});
  return Complete{id, attempt, answer(201, payment), "ref-" + payment};
}
inline auto pays(std::string payment) {
  return [payment = std::move(payment)](Transaction& transaction, const RecordId& id,
                                        const Attempt& attempt) {
    return pay(transaction, payment, id, attempt);
  };
}

inline constexpr const char* payments_table =
    "CREATE TABLE payments (id VARCHAR(255) PRIMARY KEY, amount INTEGER NOT NULL)";

/// How many rows a table has.
inline std::int64_t rows_in(Transactions& transactions, const std::string& table = "payments") {
  const auto rows = transactions.run("SELECT count(*) FROM " + table);
  if (rows && rows->size() == 1) return std::get<std::int64_t>(rows->front().front());
  ADD_FAILURE() << (rows ? "no count" : rows.error());
  return -1;
}

inline std::string name_of(TransactionEnd::How how) {
  static constexpr const char* names[] = {"committed", "rolled_back", "superseded",
                                          "not_run",   "in_doubt",    "unavailable"};
  return names[static_cast<std::size_t>(how)];
}

}  // namespace idem::test

namespace idem {
inline void PrintTo(TransactionEnd::How how, std::ostream* out) { *out << test::name_of(how); }
}  // namespace idem
