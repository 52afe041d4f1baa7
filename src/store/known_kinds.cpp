#include "store/known_kinds.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace idem {

// Weak: their addresses are null where the program was linked without them.
extern "C" {
[[gnu::weak]] extern const StoreKind idem_kind_sqlite;
[[gnu::weak]] extern const StoreKind idem_kind_embedded;
[[gnu::weak]] extern const StoreKind idem_kind_postgres;
[[gnu::weak]] extern const StoreKind idem_kind_mysql;
[[gnu::weak]] extern const StoreKind idem_kind_redis;
[[gnu::weak]] extern const StoreKind idem_kind_dynamodb;
}

namespace {

template <std::size_t Count>
using Words = std::array<std::string_view, Count>;

constexpr Words<1> sqlite_schemes{"sqlite:"};
constexpr Words<1> sqlite_forms{"sqlite:PATH"};

constexpr Words<1> embedded_schemes{"embedded:"};
constexpr Words<1> embedded_forms{"embedded:PATH"};
constexpr Words<2> embedded_mistaken{"log", "rocksdb"};

constexpr Words<2> postgres_schemes{"postgres://", "postgresql://"};
constexpr Words<1> postgres_forms{"postgres://USER@HOST/DATABASE"};
constexpr Words<1> postgres_mistaken{"postgres"};
constexpr Words<6> postgres_files{"sslrootcert", "sslcert",   "sslkey",
                                  "sslcrl",      "sslcrldir", "passfile"};  // libpq's parameters.

constexpr Words<1> mysql_schemes{"mysql://"};
constexpr Words<1> mysql_forms{"mysql://USER@HOST/DATABASE"};
constexpr Words<2> mysql_mistaken{"mysql", "mariadb"};
constexpr Words<4> mysql_files{"password_file", "ca_file", "cert_file", "key_file"};

constexpr Words<6> redis_schemes{"redis://",          "rediss://",         "redis+cluster://",
                                 "rediss+cluster://", "redis+sentinel://", "rediss+sentinel://"};
constexpr Words<4> redis_forms{"redis://HOST", "rediss://HOST", "redis+cluster://HOST,HOST/",
                               "redis+sentinel://HOST,HOST/MASTER"};
constexpr Words<1> redis_mistaken{"redis"};
constexpr Words<5> redis_files{"password_file", "sentinel_password_file", "ca_file", "cert_file",
                               "key_file"};

constexpr Words<1> dynamodb_schemes{"dynamodb://"};
constexpr Words<1> dynamodb_forms{"dynamodb://TABLE?region=REGION"};
constexpr Words<1> dynamodb_mistaken{"dynamo"};
constexpr Words<1> dynamodb_files{"ca_file"};

// In the order in which texts name them.
constinit const std::array kinds{
    KnownKind{.name = "sqlite",
              .title = "SQLite",
              .schemes = sqlite_schemes,
              .forms = sqlite_forms,
              .mistaken = {},
              .files = {},
              .linked = &idem_kind_sqlite,
              .has_transactions = true,
              .has_schema = true},
    KnownKind{.name = "embedded",
              .title = "the embedded store",
              .schemes = embedded_schemes,
              .forms = embedded_forms,
              .mistaken = embedded_mistaken,
              .files = {},
              .linked = &idem_kind_embedded,
              .is_directory = true},
    KnownKind{.name = "postgres",
              .title = "PostgreSQL",
              .schemes = postgres_schemes,
              .forms = postgres_forms,
              .mistaken = postgres_mistaken,
              .files = postgres_files,
              .linked = &idem_kind_postgres,
              .has_transactions = true,
              .has_schema = true,
              .may_be_truth = true},
    KnownKind{.name = "mysql",
              .title = "MySQL",
              .schemes = mysql_schemes,
              .forms = mysql_forms,
              .mistaken = mysql_mistaken,
              .files = mysql_files,
              .linked = &idem_kind_mysql,
              .has_transactions = true,
              .has_schema = true,
              .may_be_truth = true},
    KnownKind{.name = "redis",
              .title = "Redis",
              .schemes = redis_schemes,
              .forms = redis_forms,
              .mistaken = redis_mistaken,
              .files = redis_files,
              .linked = &idem_kind_redis,
              .marks_dispatch_apart = true,
              .may_be_fast = true},
    KnownKind{.name = "dynamodb",
              .title = "DynamoDB",
              .schemes = dynamodb_schemes,
              .forms = dynamodb_forms,
              .mistaken = dynamodb_mistaken,
              .files = dynamodb_files,
              .linked = &idem_kind_dynamodb},
};

}  // namespace

std::string scheme_of(const KnownKind& kind) { return std::string(kind.schemes.front()); }
std::string usual_form(const KnownKind& kind) { return std::string(kind.forms.front()); }
std::string title_of(const KnownKind& kind) { return std::string(kind.title); }

std::span<const KnownKind> known_kinds() noexcept { return kinds; }

const KnownKind* known_kind_of(std::string_view url) noexcept {
  const auto has = [&](const KnownKind& kind) {
    return std::ranges::any_of(kind.schemes, [&](auto scheme) { return url.starts_with(scheme); });
  };
  const auto found = std::ranges::find_if(kinds, has);
  return found == kinds.end() ? nullptr : &*found;
}

std::optional<std::string> path_in(std::string_view url) {
  const KnownKind* const kind = known_kind_of(url);
  if (kind == nullptr || !kind->is_path()) return std::nullopt;
  return std::string(url.substr(kind->schemes.front().size()));
}

std::string listed(bool KnownKind::* has, std::string (*text)(const KnownKind&),
                   std::string_view before_last) {
  std::vector<std::string> texts;
  for (const KnownKind& kind : kinds) {
    if (has == nullptr || kind.*has) texts.push_back(text(kind));
  }
  std::string all;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) all += i + 1 == texts.size() ? before_last : ", ";
    all += texts[i];
  }
  return all;
}

}  // namespace idem
