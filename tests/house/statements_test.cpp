#include "house/sources.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <set>

/// What the program's own SQL and its public functions must say, so that nobody is misled.
namespace idem::test {
namespace {

/// The texts between quotes, neighbours joined, comments left out.
std::vector<std::string> literals_of(const std::string& code) {
  std::vector<std::string> found;
  std::size_t end_of_last = std::string::npos;
  const auto add = [&](std::string text, std::size_t begin, std::size_t end) {
    const bool is_neighbour =
        end_of_last != std::string::npos &&
        code.substr(end_of_last, begin - end_of_last).find_first_not_of(" \n\\") ==
            std::string::npos;
    if (is_neighbour) {
      found.back() += text;
    } else {
      found.push_back(std::move(text));
    }
    end_of_last = end;
  };
  for (std::size_t at = 0; at < code.size(); ++at) {
    if (code.compare(at, 2, "//") == 0) {
      at = std::min(code.find('\n', at), code.size());
    } else if (code.compare(at, 2, "R\"") == 0) {
      const auto open = code.find('(', at);
      const std::string close = ")" + code.substr(at + 2, open - at - 2) + "\"";
      const auto end = code.find(close, open);
      add(code.substr(open + 1, end - open - 1), at, end + close.size());
      at = end + close.size() - 1;
    } else if (code[at] == '"') {
      std::size_t end = at + 1;
      while (end < code.size() && code[end] != '"') end += code[end] == '\\' ? 2 : 1;
      add(code.substr(at + 1, end - at - 1), at, end + 1);
      at = end;
    } else if (code[at] == '\'' && at + 2 < code.size()) {
      if (code[at + 2] == '\'') at += 2;
    }
  }
  return found;
}

/// Types that a statement names without a schema, other than those that are grammar.
std::vector<std::string> types_on_the_path(const std::string& sql) {
  static const std::set<std::string> grammar{"bigint",  "int",  "integer", "smallint",
                                             "boolean", "real", "numeric", "interval"};
  static const std::regex cast(R"re(::\s*("?\w+"?)(\.)?)re");
  std::vector<std::string> found;
  for (std::sregex_iterator at(sql.begin(), sql.end(), cast), end; at != end; ++at) {
    if (!(*at)[2].matched && !grammar.contains((*at)[1])) found.push_back((*at)[1]);
  }
  return found;
}

TEST(HouseStatements, the_scanner_finds_what_it_is_to_find) {
  const std::string code =
      "f(\"SELECT $1::text,\"  // \"::x\"\n);\n g('\"', \"$2::bigint,\"\n  \" a::\"\n \"oid\","
      " R\"(b::pg_catalog.text, c::name)\");";
  std::vector<std::string> types;
  for (const std::string& sql : literals_of(code)) {
    const auto more = types_on_the_path(sql);
    types.insert(types.end(), more.begin(), more.end());
  }
  EXPECT_EQ(types, (std::vector<std::string>{"text", "oid", "name"}));
}

// A domain of that name in a schema of another role's ran its CHECK with the gateway's rights.
TEST(HouseStatements, V03_no_statement_of_the_program_looks_for_a_type_on_the_path) {
  std::size_t statements = 0;
  for (const char* const folder : {"src/store/postgres", "src/library", "examples"}) {
    for (const auto& file : sources(folder)) {
      for (const std::string& sql : literals_of(read_file(file))) {
        static const std::regex is_sql("SELECT|INSERT|UPDATE|DELETE|VALUES|FROM|::bigint");
        if (!std::regex_search(sql, is_sql)) continue;
        ++statements;
        for (const std::string& type : types_on_the_path(sql)) {
          ADD_FAILURE() << file << ": write ::pg_catalog." << type << " in: " << sql;
        }
      }
    }
  }
  EXPECT_GT(statements, 50U);
}

// ---- public functions ----

std::string without_comments(const std::string& code) {
  return std::regex_replace(code, std::regex("//[^\n]*|#[^\n]*"), "");
}

TEST(HouseStatements, no_result_of_a_public_function_may_be_dropped_without_a_warning) {
  static const std::regex returns(
      R"re((?:^|[;{}:>])\s*(\[\[nodiscard\]\]\s+)?)re"
      R"re((?:(?:virtual|inline|static|constexpr)\s+)*)re"
      R"re((?:std::expected<|Result<)[^;{}()]*(?:\([^()]*\)[^;{}()]*)?>\s+(\w+)\()re");
  std::size_t seen = 0;
  std::set<std::string> marked;
  for (const auto& file : sources("include/idem")) {
    const std::string code = without_comments(read_file(file));
    for (std::sregex_iterator at(code.begin(), code.end(), returns), end; at != end; ++at) {
      ++seen;
      if ((*at)[2] == "run_internal") continue;  // Only for the library itself.
      EXPECT_TRUE((*at)[1].matched) << file << ": mark " << (*at)[2] << "() as [[nodiscard]]";
    }
    static const std::regex classes(R"re((?:struct|class) \[\[nodiscard\]\] (\w+))re");
    for (std::sregex_iterator at(code.begin(), code.end(), classes), end; at != end; ++at) {
      marked.insert((*at)[1]);
    }
  }
  EXPECT_GT(seen, 20U);
  // Also behind a co_await, where only the class can say so.
  for (const char* const name : {"Outcome", "Response", "NotCommitted", "TransactionEnd",
                                 "StoreError", "PostgresError", "KeyError", "JsonError"}) {
    EXPECT_TRUE(marked.contains(name)) << name;
  }
}

}  // namespace
}  // namespace idem::test
