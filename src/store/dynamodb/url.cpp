#include "store/dynamodb/url.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/percent.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

namespace idem::dynamodb {
namespace {

constexpr std::string_view scheme = "dynamodb://";
// The bounds of the service's API reference (CreateTable, TableName).
constexpr std::size_t table_bytes_min = 3;
constexpr std::size_t table_bytes_max = 255;

using Problem = std::optional<std::string>;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_table_name(std::string_view name) {
  return name.size() >= table_bytes_min && name.size() <= table_bytes_max &&
         std::ranges::all_of(name, [](char c) {
           return is_letter_or_digit(c) || c == '_' || c == '-' || c == '.';
         });
}

/// It becomes a part of a host name and of the signature.
bool is_region(std::string_view name) {
  return !name.empty() && name.size() <= 63 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

bool is_endpoint(std::string_view text) {
  const bool is_plain = text.starts_with("http://");
  if (!is_plain && !text.starts_with("https://")) return false;
  text.remove_prefix(is_plain ? 7 : 8);
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_letter_or_digit(c) || std::string_view(".-:[]").contains(c);
  });
}

Problem read_option(const std::string& name, std::string value, Url& url) {
  if (name == "region") {
    if (!is_region(value)) return "the region is none; write for example region=eu-central-1";
    url.region = std::move(value);
  } else if (name == "endpoint") {
    while (value.ends_with('/')) value.pop_back();
    if (!is_endpoint(value)) {
      return "the endpoint must be http://HOST:PORT or https://HOST:PORT without a path or a user";
    }
    url.endpoint = std::move(value);
  } else if (name == "profile") {
    if (value.empty()) return "the profile is empty";
    url.profile = std::move(value);
  } else if (name == "ca_file") {
    if (value.empty()) return "the ca_file is empty";
    url.ca_file = std::move(value);
  } else {
    return "it has an option that does not exist; there are region, endpoint, profile and ca_file";
  }
  return std::nullopt;
}

std::string own_endpoint(const std::string& region) {
  const std::string suffix = region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com";
  return "https://dynamodb." + region + suffix;
}

}  // namespace

std::string of_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::expected<Url, std::string> parse_url(std::string_view text) {
  if (!text.starts_with(scheme)) return std::unexpected("no URL of a DynamoDB table");
  text.remove_prefix(scheme.size());
  std::string_view table = take_until(text, '?');
  if (table.contains('@')) {
    return std::unexpected(
        "credentials do not belong into the URL; they come from the environment, from the shared "
        "files, or from the machine's role");
  }
  if (table.ends_with('/')) table.remove_suffix(1);
  if (!is_table_name(table)) {
    return std::unexpected(
        "the table's name must have 3 to 255 letters, digits, '_', '-' or '.'; write "
        "dynamodb://TABLE?region=REGION");
  }
  Url url{.table = std::string(table)};
  while (!text.empty()) {
    std::string_view option = take_until(text, '&');
    const auto name = percent_decoded(take_until(option, '='));
    auto value = percent_decoded(option);
    if (!name || !value) return std::unexpected("an option is not percent-encoded as it should be");
    if (auto problem = read_option(*name, std::move(*value), url)) {
      return std::unexpected(std::move(*problem));
    }
  }
  if (url.region.empty()) url.region = of_environment("AWS_REGION");
  if (url.region.empty()) url.region = of_environment("AWS_DEFAULT_REGION");
  if (!is_region(url.region)) {
    return std::unexpected("no region; write for example dynamodb://TABLE?region=eu-central-1");
  }
  if (url.endpoint.empty()) url.endpoint = own_endpoint(url.region);
  if (!url.ca_file.empty() && !url.endpoint.starts_with("https://")) {
    return std::unexpected("ca_file needs an endpoint with https");
  }
  return url;
}

std::string place_of(const Url& url) {
  std::string place = url.table + " in " + url.region;
  if (url.endpoint != own_endpoint(url.region)) place += " at " + url.endpoint;
  return place;
}

}  // namespace idem::dynamodb
