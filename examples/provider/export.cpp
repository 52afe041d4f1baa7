#include "export.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <charconv>
#include <ctime>

#include "faults.hpp"
#include "json_text.hpp"

namespace provider {
namespace {

std::string time_text(std::int64_t at) {
  const auto seconds = static_cast<std::time_t>(at / 1000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), at % 1000);
}

/// In quotes where it must be (RFC 4180).
std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += c;
    out += c;
  }
  return out + '"';
}

std::string_view type_of(const Effect& effect) {
  return is_refund(effect.target) ? "refund" : "charge";
}

std::string csv_line(const Ledger::Line& line) {
  const Effect& effect = *line.effect;
  return fmt::format("{},{},{},{},{},{},{},{},{}\r\n", line.id, type_of(effect),
                     csv_field(effect.key), csv_field(effect.operation),
                     csv_field(effect.reference), text_member(effect.answer, "amount"),
                     csv_field(text_member(effect.answer, "currency")),
                     line.happened ? "succeeded" : "failed", time_text(effect.at));
}

std::string json_line(const Ledger::Line& line) {
  const Effect& effect = *line.effect;
  auto out = fmt::format(R"({{"id":"{}","type":"{}","key":{},"operation":{},"reference":{})",
                         line.id, type_of(effect), in_quotes(effect.key),
                         in_quotes(effect.operation), in_quotes(effect.reference));
  for (const auto* name : {"amount", "currency"}) {
    const auto value = raw_member(effect.answer, name);
    if (!value.empty()) out += fmt::format(R"(,"{}":{})", name, value);
  }
  return out + fmt::format(R"(,"status":"{}","created":"{}"}})",
                           line.happened ? "succeeded" : "failed", time_text(effect.at));
}

std::size_t number_or(std::string_view text, std::size_t otherwise) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? number : otherwise;
}

Reply page_of(std::string_view target, const Ledger& ledger) {
  std::size_t index = number_or(query_value(target, "cursor"), 0);
  const std::size_t end = index + number_or(query_value(target, "limit"), 100);
  std::string items;
  for (; index < end && ledger.line(index).effect != nullptr; ++index) {
    items += (items.empty() ? "" : ",") + json_line(ledger.line(index));
  }
  const bool more = ledger.line(index).effect != nullptr;
  return json_reply(200, fmt::format(R"({{"data":[{}],"next":{}}})", items,
                                     more ? fmt::format("\"{}\"", index) : "null"));
}

}  // namespace

Reply export_of(std::string_view target, const Ledger& ledger) {
  const auto format = query_value(target, "format");
  if (format.empty()) return page_of(target, ledger);
  const bool is_csv = format == "csv";
  std::string body =
      is_csv ? "id,type,key,operation,reference,amount,currency,status,created\r\n" : "";
  for (std::size_t i = 0; ledger.line(i).effect != nullptr; ++i) {
    body += is_csv ? csv_line(ledger.line(i)) : json_line(ledger.line(i)) + "\n";
  }
  const char* type = is_csv ? "text/csv" : "application/jsonl";
  return {.fields = fmt::format("Content-Type: {}\r\n", type), .body = std::move(body)};
}

}  // namespace provider
