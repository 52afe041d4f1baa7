#include "fuzz/seeds.hpp"

#include "core/bytes/checksum.hpp"
#include "core/record/stored_record_codec.hpp"
#include "core/record/stored_response_codec.hpp"
#include "support/external_data.hpp"
#include "support/json.hpp"

#include <algorithm>
#include <filesystem>

namespace idem::fuzz {
namespace {

namespace fs = std::filesystem;
using test::Json;

/// A few files of the suites are very long to show that length alone does no harm; unit tests run
/// them.
constexpr std::size_t seed_bytes_max = 16 * 1024;

void add(std::vector<Seed>& seeds, const std::string& suite, std::string bytes) {
  if (bytes.size() > seed_bytes_max) return;
  const auto number = std::to_string(seeds.size());
  seeds.push_back({suite + '-' + number, std::move(bytes)});
}

void add_files(std::vector<Seed>& seeds, const std::string& suite, const fs::path& folder) {
  if (!fs::is_directory(folder)) return;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  for (const auto& file : files)
    add(seeds, suite + '-' + file.filename().string(), test::read_file(file));
}

Json read_json(const fs::path& file) {
  return test::parse_json(test::read_file(file)).value_or(Json{});
}

void add_requests(std::vector<Seed>& seeds, const fs::path& data) {
  for (const std::string suite : {"gunicorn-requests", "llhttp"}) {
    for (const Json& item : read_json(data / suite / "cases.json").items) {
      add(seeds, suite, test::decode_base64(item["raw_b64"].string));
      if (item.has("raw_host_b64")) {
        add(seeds, suite, test::decode_base64(item["raw_host_b64"].string));
      }
    }
  }
  for (const Json& item : read_json(data / "Http11Probe" / "cases.json").items) {
    add(seeds, "Http11Probe", item["rawRequest"].string);
  }
  for (const Json& item : read_json(data / "portswigger-desync" / "requests.json").items) {
    add(seeds, "portswigger-desync", test::decode_base64(item["raw_b64"].string));
  }
}

/// Of the requests that announce the chunked coding, what follows the head.
void add_chunked_bodies(std::vector<Seed>& seeds, const fs::path& data) {
  std::vector<Seed> requests;
  add_requests(requests, data);
  for (const Seed& request : requests) {
    const auto end = request.bytes.find("\r\n\r\n");
    if (end == request.bytes.npos || !request.bytes.contains("chunked")) continue;
    seeds.push_back({request.name, request.bytes.substr(end + 4)});
  }
}

void add_key_fields(std::vector<Seed>& seeds, const fs::path& data) {
  for (const char* file : {"string.json", "item.json", "token.json"}) {
    for (const Json& item : read_json(data / "structured-field-tests" / file).items) {
      for (const Json& raw : item["raw"].items) add(seeds, "structured-field-tests", raw.string);
    }
  }
}

std::string before_checksum(const std::string& bytes) {
  return bytes.substr(0, bytes.size() - checksum_bytes);
}

/// A record in each state, without and with everything that may be absent.
void add_records(std::vector<Seed>& seeds) {
  for (int state = 1; state <= static_cast<int>(State::expired); ++state) {
    Record record;
    record.state = static_cast<State>(state);
    record.attempt = Attempt{7, {}};
    record.stored_request.emplace();
    record.completed_at = record.expires_at = record.tombstone_until = StoreTime(Millis(1));
    std::string bytes;
    encode_record(record, bytes);
    add(seeds, "record", before_checksum(bytes));
    record.scope = "tenant";
    record.operation = "POST /v1/payments";
    record.owner = "gateway-1";
    record.recovery_point = record.last_error_code = record.upstream_reference = "x";
    record.release_basis = ReleaseBasis::proven;
    record.reconcile_after = StoreTime(Millis(-1));
    record.dispatched = true;
    encode_record(record, bytes);
    add(seeds, "record", before_checksum(bytes));
  }
  std::string bytes;
  encode_answer({201, {{"Content-Type", "application/json"}, {"X-Empty", ""}}, "", true}, bytes);
  add(seeds, "answer", bytes);
}

}  // namespace

std::vector<Seed> seeds_of(std::string_view target) {
  std::vector<Seed> seeds;
  add_files(seeds, "house", fs::path(IDEM_SOURCE_DIR) / "fuzz" / "seeds" / target);
  if (target == "stored_record") add_records(seeds);
  const fs::path data = test::external_data();
  if (data.empty()) return seeds;
  if (target == "request_head" || target == "differential") add_requests(seeds, data);
  if (target == "chunked") add_chunked_bodies(seeds, data);
  if (target == "key") add_key_fields(seeds, data);
  if (target == "canonical_json") {
    add_files(seeds, "JSONTestSuite", data / "JSONTestSuite" / "test_parsing");
    add_files(seeds, "jcs", data / "jcs" / "testdata" / "input");
  }
  return seeds;
}

}  // namespace idem::fuzz
