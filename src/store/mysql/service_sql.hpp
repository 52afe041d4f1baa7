#pragma once

#include <idem/transaction.hpp>

#include <expected>
#include <span>
#include <string>
#include <string_view>

struct st_mysql_res;

/// The statements of services: their values, their rows, and what they do to a transaction.
namespace idem::mysql {

/// `sql` with a literal for each `$n` outside of texts, names and comments, so that a statement
/// takes one round trip. The literals hold no quote and no backslash, so no character set and no
/// sql_mode of the session changes what they are. The error is a sentence.
std::expected<std::string, std::string> with_values(std::string_view sql,
                                                    std::span<const SqlValue> values);
/// One such literal. The error is a sentence.
std::expected<std::string, std::string> literal_of(const SqlValue& value);

/// All rows of a result, which is read to its end.
SqlRows to_sql_rows(st_mysql_res* result);

/// The command of a statement that ends the transaction or begins one, or that the server commits
/// before it runs it; empty: it does not.
std::string transaction_command(std::string_view sql);
/// The command of a statement that begins or ends a transaction, or locks tables until another one
/// ends that; empty: it does not.
std::string transaction_end(std::string_view sql);
/// It reads or changes rows and nothing else. Any other statement may run one that ends the
/// transaction: a procedure, a text that is executed, a setting.
bool is_plain(std::string_view sql);
/// More than one statement: the second one would not be looked at.
bool has_several_statements(std::string_view sql);

}  // namespace idem::mysql
