#include "cli/process/resources.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace idem::cli {

// Raises the limit of descriptors to the hard limit: each connection needs one, and its upstream
// another. Shells set 1,024; running out would harm honest clients first.
void raise_descriptor_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

namespace {

/// The client's, the upstream's, and a file for a large body.
constexpr std::uint64_t of_one_client = 3;
constexpr std::uint64_t of_the_rest = 128;
/// Files of its log, of its records, of its ids, and of RocksDB.
constexpr std::uint64_t of_the_embedded_store = 600;
constexpr std::uint64_t clients_min = 16;

bool is_embedded(const std::string& store_url) { return store_url.starts_with("embedded:"); }

}  // namespace

std::uint64_t descriptors_for(std::uint64_t clients, const std::string& store_url) {
  return of_one_client * clients + of_the_rest +
         (is_embedded(store_url) ? of_the_embedded_store : 0);
}

std::size_t clients_within_limit(std::size_t clients, const std::string& store_url) {
  rlimit files{};
  if (!is_embedded(store_url)) return clients;
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return clients;
  const std::uint64_t others = descriptors_for(0, store_url);
  const std::uint64_t room = files.rlim_cur > others ? files.rlim_cur - others : 0;
  return std::min<std::uint64_t>(clients, std::max(room / of_one_client, clients_min));
}

}  // namespace idem::cli
