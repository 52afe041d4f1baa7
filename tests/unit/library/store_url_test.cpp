#include <idem/open_store.hpp>

#include <gtest/gtest.h>

/// URLs of stores: what is refused says what to write, and no path depends on where a process is
/// started.
namespace idem::test {
namespace {

TEST(StoreUrl, a_wrong_form_is_refused_with_the_form_to_write) {
  const std::pair<const char*, const char*> wrong[] = {
      {"sqlite://./x.db", "write sqlite:./x.db"},
      {"sqlite:///var/lib/x.db", "write sqlite:/var/lib/x.db"},
      {"sqlite://x.db", "write sqlite:x.db"},
      {"sqlite::memory:", "write memory:"},
      {"sqlite:", "write sqlite:PATH"},
      {"sqlite:file:x.db?mode=ro", "write sqlite:x.db"},
      {"sqlite:x.db?cache=shared", "write sqlite:x.db"},
      {"sqlite:data/", "sqlite:data/idem.db"},
      {"SQLite:x.db", "sqlite:PATH"},
      {"sqlite3:x.db", "sqlite:PATH"},
      {"file:x.db", "sqlite:PATH"},
      {"./idem.db", "sqlite:PATH"},
      {"/var/lib/idem.db", "sqlite:PATH"},
      {"memory", "write memory:"},
      {"memory://", "write memory:"},
      {":memory:", "write memory:"},
      {"postgres:idem", "write postgres://USER@HOST/DATABASE"},
      {"postgresql:/idem", "write postgres://USER@HOST/DATABASE"},
      {"Postgres://db/idem", "write postgres://USER@HOST/DATABASE"},
      {"redis:localhost", "write redis://HOST"},
      {"redis-cluster://a,b", "redis+cluster://"},
      {"hybrid:truth=postgres://db/i&fast=redis://r", "write hybrid:?truth="},
      {"Hybrid:?truth=postgres://db/i&fast=redis://r", "hybrid:?truth="},
      {"hybrid:?truth=redis://r&fast=redis://r",
       "its truth is a postgres://... or a mysql://... and its fast a redis://..."},
      {"hybrid:?truth=postgres://db/i&fast=mysql://db/i", "and its fast a redis://..."},
      {"mysql:idem", "write mysql://USER@HOST/DATABASE"},
      {"MySQL://db/idem", "write mysql://USER@HOST/DATABASE"},
      {"mariadb://db/idem", "write mysql://USER@HOST/DATABASE"},
      {"DynamoDB://table", "write dynamodb://TABLE?region=REGION"},
      {"dynamo://table", "write dynamodb://TABLE?region=REGION"},
      {"embedded:", "embedded: names no path; write embedded:PATH, such as embedded:./idem.store"},
      {"embedded:///var/idem.store", "write embedded:/var/idem.store"},
      {"embedded:file:x", "write embedded:x"},
      {"embedded:x?cache=1", "embedded: has no options"},
      {"Embedded:x", "write embedded:PATH, in small letters"},
      {"log:x", "write embedded:PATH"},
      {"rocksdb://x", "write embedded:PATH"},
      {"oracle://db/idem",
       "is no store of this version; write sqlite:PATH, embedded:PATH, "
       "postgres://USER@HOST/DATABASE, "
       "mysql://USER@HOST/DATABASE, redis://HOST, dynamodb://TABLE?region=REGION, "
       "hybrid:?truth=URL&fast=URL or memory:"},
  };
  for (const auto& [url, what_to_write] : wrong) {
    const auto known = check_store_url(url);
    ASSERT_FALSE(known) << url;
    EXPECT_NE(known.error().find(what_to_write), std::string::npos) << url << ": " << known.error();
  }
  for (const char* const right :
       {"memory:", "embedded:x", "embedded:./x/", "embedded:/x", "sqlite:x.db", "sqlite:./x.db",
        "sqlite:/x.db", "sqlite:../a b/x.db", "postgres://db/idem",
        "postgresql:///idem?host=/run/postgresql", "redis://h", "mysql://u@db/idem",
        "mysql://u@a:1,b:2/idem", "dynamodb://idem?region=eu-central-1",
        "hybrid:?truth=postgres://db/i&fast=redis://r",
        "hybrid:?fast=redis://r&truth=mysql://u@db/i"}) {
    EXPECT_TRUE(check_store_url(right)) << right;
  }
}

TEST(StoreUrl, no_password_is_repeated) {
  for (const char* const url :
       {"Postgres://u:s3cret@db/idem", "postgres:u:s3cret@db", "redis:u:s3cret@db",
        "MySQL://u:s3cret@db/x", "oracle://u:s3cret@db/x"}) {
    const auto known = check_store_url(url);
    ASSERT_FALSE(known) << url;
    EXPECT_EQ(known.error().find("s3cret"), std::string::npos) << known.error();
  }
}

TEST(StoreUrl, relative_paths_start_at_the_folder) {
  const std::pair<const char*, const char*> all[] = {
      {"sqlite:idem.db", "sqlite:/etc/idem/idem.db"},
      {"sqlite:./data/../idem.db", "sqlite:/etc/idem/idem.db"},
      {"sqlite:/var/idem.db", "sqlite:/var/idem.db"},
      {"memory:", "memory:"},
      {"postgres://u@db/idem", "postgres://u@db/idem"},
      {"postgres://u@db/idem?sslmode=verify-full&sslrootcert=ca.pem&sslkey=/k.pem",
       "postgres://u@db/idem?sslmode=verify-full&sslrootcert=%2Fetc%2Fidem%2Fca.pem&sslkey=/k.pem"},
      {"postgres://u@db/idem?sslrootcert=system", "postgres://u@db/idem?sslrootcert=system"},
      {"rediss://h/?ca_file=ca.pem&prefix=a%2Fb",
       "rediss://h/?ca_file=%2Fetc%2Fidem%2Fca.pem&prefix=a%2Fb"},
      {"redis://h/?password_file=secret", "redis://h/?password_file=%2Fetc%2Fidem%2Fsecret"},
      {"mysql://u@db/i?password_file=p&ca_file=/ca.pem",
       "mysql://u@db/i?password_file=%2Fetc%2Fidem%2Fp&ca_file=/ca.pem"},
      {"dynamodb://t?region=r&endpoint=https://h/&ca_file=ca.pem",
       "dynamodb://t?region=r&endpoint=https://h/&ca_file=%2Fetc%2Fidem%2Fca.pem"},
      {"hybrid:?truth=postgres://db/i&fast=redis://r",
       "hybrid:?truth=postgres://db/i&fast=redis://r"},
      {"hybrid:?truth=postgres://db/i&fast=redis://r/?password_file=s",
       "hybrid:?truth=postgres%3A%2F%2Fdb%2Fi&fast="
       "redis%3A%2F%2Fr%2F%3Fpassword_file%3D%252Fetc%252Fidem%252Fs"},
      {"sqlite://./x.db", "sqlite://./x.db"},
      {"sqlite::memory:", "sqlite::memory:"},
  };
  for (const auto& [url, absolute] : all) {
    EXPECT_EQ(absolute_store_url(url, "/etc/idem"), absolute);
  }
}

TEST(StoreUrl, what_a_store_can_do_is_known_by_its_url) {
  for (const char* const url :
       {"sqlite:x.db", "postgres://db/i", "postgresql://db/i", "mysql://db/i"}) {
    EXPECT_TRUE(has_transactions(url)) << url;
    EXPECT_FALSE(marks_dispatch_apart(url)) << url;
  }
  for (const char* const url : {"memory:", "redis://r", "dynamodb://t?region=r",
                                "hybrid:?truth=postgres://db/i&fast=redis://r"}) {
    EXPECT_FALSE(has_transactions(url)) << url;
    EXPECT_EQ(marks_dispatch_apart(url), url == std::string("redis://r")) << url;
  }
  EXPECT_EQ(stores_with_transactions(), "SQLite, PostgreSQL and MySQL");
}

}  // namespace
}  // namespace idem::test
