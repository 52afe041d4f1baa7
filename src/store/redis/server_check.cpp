#include "store/redis/server_check.hpp"

#include <idem/limits.hpp>

#include <fmt/format.h>

#include <cstdlib>

namespace idem::redis {
namespace {

/// The value of a "name:value" line; empty without such a line.
std::string_view value_of(std::string_view info, std::string_view name) {
  while (!info.empty()) {
    const auto end = info.find("\r\n");
    std::string_view line = info.substr(0, end);
    info.remove_prefix(end == info.npos ? info.size() : end + 2);
    if (line.size() <= name.size() || !line.starts_with(name) || line[name.size()] != ':') continue;
    return line.substr(name.size() + 1);
  }
  return {};
}

constexpr int version_min = 7;
/// The longest value that the server must take (proto-max-bulk-len; 512 MiB by default): the
/// largest answer or request with its fields, twice over.
constexpr std::size_t longest_value_min = 2 * limits::request_body_bytes_cap;

}  // namespace

ServerCheck judge_server(std::string_view info, const ReportedSettings& settings, bool is_cluster) {
  ServerCheck check;
  const std::string& appendfsync = settings.appendfsync;
  const std::string& longest = settings.proto_max_bulk_len;
  const auto version = value_of(info, "redis_version");
  const auto policy = value_of(info, "maxmemory_policy");
  const auto role = value_of(info, "role");
  if (std::atoi(std::string(version).c_str()) < version_min) {
    check.refusal =
        fmt::format("the server is of version {}; {} or later is needed", version, version_min);
  } else if (policy != "noeviction") {
    check.refusal = fmt::format(
        "maxmemory-policy is {}: it would evict records, and their retries would run again; "
        "set it to noeviction",
        policy);
  } else if (!longest.empty() && std::strtoull(longest.c_str(), nullptr, 10) < longest_value_min) {
    // It closes the connection at a longer value, so that nobody knows what became of the call.
    check.refusal = fmt::format(
        "proto-max-bulk-len is {}: answers and requests would not fit; set it to {} or more",
        longest, longest_value_min);
  } else if (role != "master") {
    check.refusal = "it is a replica: nothing can be reserved there";
    check.is_elsewhere = true;
  } else if ((value_of(info, "cluster_enabled") == "1") != is_cluster) {
    check.refusal = is_cluster ? "it is no cluster; write redis://"
                               : "it is part of a cluster; write redis+cluster://";
  }
  if (value_of(info, "aof_enabled") != "1") {
    check.why_lost =
        "appendonly is off: when the server ends, it forgets what it stored since its last "
        "snapshot, and retries of those requests run again";
  } else if (appendfsync.empty()) {
    check.why_lost =
        "the server does not report appendfsync: unless it is 'always', a crash of its machine may "
        "forget the latest records, and retries of those requests run again";
  } else if (appendfsync != "always") {
    check.why_lost = fmt::format(
        "appendfsync is {}: a crash of its machine may forget the latest records, and retries of "
        "those requests run again",
        appendfsync);
  }
  if (!check.why_lost.empty()) {
    check.loss = value_of(info, "aof_enabled") != "1" ? ServerCheck::Loss::at_its_end
                                                      : ServerCheck::Loss::in_a_crash;
    check.warnings.push_back(check.why_lost);
  }
  const bool has_replicas = std::atoi(std::string(value_of(info, "connected_slaves")).c_str()) > 0;
  if (has_replicas && value_of(info, "min_slaves_good_slaves").empty()) {
    check.warnings.push_back(
        "min-replicas-to-write is 0: a master that was cut off goes on accepting writes, and a "
        "failover forgets them");
  }
  return check;
}

Task<ServerCheck> check_server(Connection& connection, bool is_cluster) {
  Task<CommandResult> asking = connection.ask(command({"INFO"}));
  const CommandResult info = co_await std::move(asking);
  ServerCheck check;
  if (!info || info->kind != Reply::Kind::text) {
    check.refusal = info ? error_text(*info) : info.error().why;
    co_return check;
  }
  Task<CommandResult> asking_config =
      connection.ask(command({"CONFIG", "GET", "appendfsync", "proto-max-bulk-len"}));
  const CommandResult config = co_await std::move(asking_config);
  ReportedSettings settings;
  // A hosted server may forbid CONFIG.
  for (std::size_t i = 0; config && i + 1 < config->items.size(); i += 2) {
    const std::string& name = config->at(i).text;
    if (name == "appendfsync") settings.appendfsync = config->at(i + 1).text;
    if (name == "proto-max-bulk-len") settings.proto_max_bulk_len = config->at(i + 1).text;
  }
  co_return judge_server(info->text, settings, is_cluster);
}

}  // namespace idem::redis
