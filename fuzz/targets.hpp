#pragma once

#include <array>
#include <string_view>

/// The fuzz targets: each function accepts any bytes and ends the process (check.hpp) when a
/// property does not hold. A target's file says which ones. libFuzzer runs them by entry.cpp, the
/// unit lane with the seeds alone.
namespace idem::fuzz {

void request_head(std::string_view input);
void response_head(std::string_view input);
void chunked(std::string_view input);
void key(std::string_view input);
void preferences(std::string_view input);
void canonical_json(std::string_view input);
void body_form(std::string_view input);
void coding(std::string_view input);
void json_rpc(std::string_view input);
void stored_record(std::string_view input);
void jwt(std::string_view input);
void redis_reply(std::string_view input);
void export_lines(std::string_view input);
void differential(std::string_view input);

struct Target {
  std::string_view name;
  void (*run)(std::string_view input);
};

inline constexpr std::array<Target, 14> targets{{
    {"request_head", request_head},
    {"response_head", response_head},
    {"chunked", chunked},
    {"key", key},
    {"preferences", preferences},
    {"canonical_json", canonical_json},
    {"body_form", body_form},
    {"coding", coding},
    {"json_rpc", json_rpc},
    {"stored_record", stored_record},
    {"jwt", jwt},
    {"redis_reply", redis_reply},
    {"export_lines", export_lines},
    {"differential", differential},
}};

}  // namespace idem::fuzz
