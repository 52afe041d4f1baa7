#include <idem/fingerprint.hpp>
#include <idem/json.hpp>
#include <idem/key.hpp>
#include <idem/open_store.hpp>
#include <idem/store_wait.hpp>

#include <cstdio>
#include <cstdlib>

// The first steps of a foreign service: reserve, complete, and find the answer again.
namespace {

[[noreturn]] void stop(const char* sentence) {
  std::fprintf(stderr, "%s\n", sentence);
  std::exit(1);
}

idem::Reserve reserve_for(const idem::Store& store) {
  const auto& identity = store.identity();
  idem::Reserve reserve;
  reserve.scope = "acme";
  reserve.operation = "create-payment";
  reserve.id = idem::record_id(identity.secret, reserve.scope, reserve.operation, "k1");
  reserve.fingerprints = {idem::fingerprint(identity.secret, {.method = "POST",
                                                              .target = "/v1/payments",
                                                              .content_type = "application/json",
                                                              .chosen_headers = {},
                                                              .body = R"({"amount":1250})"})};
  reserve.token = idem::random_token();
  reserve.lease = idem::Millis(60'000);
  reserve.retention = idem::Millis(3'600'000);
  reserve.tombstone = idem::Millis(3'600'000);
  reserve.generation = identity.generation;
  return reserve;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) stop("usage: program STORE-URL");
  auto store = idem::open_store(argv[1], {.scope_source = "static:acme"});
  if (!store) stop(store.error().c_str());
  auto reserve = reserve_for(**store);
  const auto first = idem::ask_and_wait(**store, reserve);
  if (!first || !std::holds_alternative<idem::Execute>(*first)) stop("the first may not run");
  const auto& granted = std::get<idem::Execute>(*first);
  const auto settled = idem::ask_and_wait(
      **store, idem::Complete{granted.id, granted.attempt, {201, {}, "paid", true}, {}});
  if (!settled || settled->verdict != idem::Verdict::done) stop("the answer was not stored");
  reserve.token = idem::random_token();
  const auto again = idem::ask_and_wait(**store, reserve);
  if (!again || !std::holds_alternative<idem::Replay>(*again)) stop("the second is no replay");
  std::printf("%d %s\n", std::get<idem::Replay>(*again).response.status,
              std::get<idem::Replay>(*again).response.body.c_str());
  return 0;
}
